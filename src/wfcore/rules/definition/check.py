"""
Checking a definition: from a raw document (YAML or JSON) to the model, or all of its mistakes at
once. Pure: the caller provides the function that parses templates.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from wfcore.errors import InvalidDefinition, Problem
from wfcore.model.json import Json, JsonObject
from wfcore.model.trigger import TRIGGER_NAMES
from wfcore.model.workflow import CodeStep, Definition, Language, OnInterrupt, Runtime
from wfcore.rules.definition.ai import budget
from wfcore.rules.definition.review import approver_groups
from wfcore.rules.definition.steps import KINDS
from wfcore.rules.definition.tree import (
    Reading,
    TemplateProblems,
    on_failure_field,
    step_schema,
    steps_field,
)
from wfcore.rules.definition.triggers import (
    ScheduleProblems,
    concurrency,
    no_schedules,
    report_inputs,
    templated,
    triggers,
)
from wfcore.rules.definition.values import (
    CHANNELS,
    Field,
    Findings,
    by_kind,
    choice,
    named,
    object_schema,
    read_object,
    state,
    templates_within,
    text,
    variables,
    workflow_name,
)
from wfcore.rules.paths import below

SchemaProblems = Callable[[JsonObject], Sequence[str]]
"""A function that finds the mistakes of a JSON Schema, whose references stay within the schema."""


def _believed(schema: JsonObject) -> Sequence[str]:
    return ()


def check_definition(
    document: Json,
    template_problems: TemplateProblems,
    schedule_problems: ScheduleProblems = no_schedules,
    schema_problems: SchemaProblems = _believed,
) -> Definition:
    """
    The definition in *document*. Without *schema_problems*, JSON Schemas are not checked.

    Raises `InvalidDefinition` with every mistake and the path of its field. DF-1 to DF-9, AI-9.
    """
    findings = Findings()
    own_name = document.get("name") if isinstance(document, Mapping) else None
    own_name = workflow_name(own_name) if isinstance(own_name, str) else None
    reading = Reading(KINDS, findings, _declared(document), template_problems, own_name)
    reading.state = _declared(document, "state")
    reading.secret_state = tuple(name for name in reading.state if _is_secret(document, name))
    values = read_object(document, "", fields_of(reading, schedule_problems), findings)
    reading.check_templates()
    report_inputs(values, findings)
    for path, schema in findings.schemas:
        for message in schema_problems(schema):
            findings.add(path, message)
    if findings.problems:
        raise InvalidDefinition(tuple(findings.problems))
    whole: Any = document
    written = tuple(whole["steps"])
    return Definition(**values, steps_as_written=written, has_output="output" in values)


def language_problems(
    definition: Definition, cures: Mapping[tuple[Language, Runtime | None], str]
) -> tuple[Problem, ...]:
    """
    A problem for each step whose language cannot run here, with the program to install. *cures*:
    these languages, by the runtime that a step names.
    """
    return tuple(
        Problem(
            below(path, "runtime" if step.runtime else "language"),
            f"{step.runtime or step.language} cannot run here: {cure}",
        )
        for path, step in definition.located()
        if isinstance(step, CodeStep)
        and (cure := cures.get((step.language, step.runtime))) is not None
    )


def definition_schema() -> dict[str, Any]:
    """
    A JSON Schema (draft 7) of definitions, for editors and for checkers without wfcore.

    Made from the tables by which documents are checked: it accepts every document that the checker
    accepts. Only the checker finds mistakes that a schema cannot express, such as names that
    templates may not use, or repeated names. DF-10.
    """
    reading = Reading(KINDS, Findings(), (), lambda text, names: ())
    steps = {kind: step_schema(row, reading) for kind, row in KINDS.items()}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A workflow definition of wfcore",
        **object_schema(fields_of(reading)),
        "definitions": {"step": by_kind(steps)},
    }


def fields_of(
    reading: Reading, schedule_problems: ScheduleProblems = no_schedules
) -> Mapping[str, Field]:
    """All fields of the document, for one *reading* of it."""
    return {**_top(reading), **_starts(reading, schedule_problems)}


def _top(reading: Reading) -> Mapping[str, Field]:
    """The fields of the document itself."""
    return {
        "name": Field(
            named, "name", "The workflow's name, unique among those of its owner.", required=True
        ),
        "description": Field(text(), "description", "What the workflow does, for people."),
        "variables": Field(variables, "variables", "What a start may or must give, by name."),
        "state": Field(
            state,
            "state",
            "Values of the workflow that outlive its executions, by name, like `{cursor: {default: "
            '""}}`; steps write them to `WF_STATE`.',
        ),
        "approverGroups": Field(
            approver_groups,
            "approver_groups",
            "Members by the name of a group, like `{finance: [ann@example.org]}`; "
            "approvers name it as `group:finance`.",
        ),
        "steps": Field(
            steps_field(reading),
            "steps",
            "What is done, one step after the other. Names of steps are unique in the "
            "whole definition.",
            required=True,
        ),
        "output": Field(
            templates_within,
            "output",
            "A template, or JSON with templates: the execution's output. Default: the "
            "output of the last completed step.",
        ),
        "budget": Field(budget, "budget", "How much the AI steps of one execution may use."),
        "onInterrupt": Field(
            choice(OnInterrupt),
            "on_interrupt",
            "What happens to a step that was in flight when its worker died. `resume` "
            "(default): it begins again where the service resumes executions; `fail`: "
            "it never does.",
        ),
        "onFailure": Field(
            on_failure_field(reading),
            "on_failure",
            "Steps that run once when the execution is about to fail, before it is FAILED; `error` "
            "says why. They do not change how it ends; approvals are refused here.",
        ),
        "notifyOnFailure": Field(
            CHANNELS,
            "notify_on_failure",
            "The channels that tell the owner of an execution that failed, like `[mail]`.",
        ),
    }


def _starts(reading: Reading, schedule_problems: ScheduleProblems) -> Mapping[str, Field]:
    """The fields about starts: triggers, how many executions may run at once, and the reference."""
    known: Mapping[str, Collection[str]] = {"trigger": TRIGGER_NAMES}
    at_fire = {**known, "state": reading.public_state}
    at_start = {**known, "variables": reading.declared, "steps": (), "execution": ()}
    limit = concurrency(lambda key: reading.template_problems(key, at_start))
    return {
        "triggers": Field(
            triggers(
                schedule_problems,
                lambda text: reading.template_problems(text, at_fire),
                reading.own_name,
            ),
            "triggers",
            "What starts the workflow by itself: schedules, and completions of other workflows.",
        ),
        "concurrency": Field(limit, "concurrency", "How many executions run at once."),
        "reference": Field(
            templated(lambda text: reading.template_problems(text, at_start)),
            "reference",
            "A template over variables and `trigger`: the text by which people find an execution, "
            "like the number of an order.",
        ),
    }


def _is_secret(document: Json, name: str) -> bool:
    match document:
        case {"state": Mapping() as declared}:
            one = declared.get(name)
            return isinstance(one, Mapping) and one.get("secret") is True
    return False


def _declared(document: Json, field: str = "variables") -> Collection[str]:
    declared = document.get(field) if isinstance(document, Mapping) else None
    return tuple(declared) if isinstance(declared, Mapping) else ()
