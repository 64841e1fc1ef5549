"""
Definitions: from a raw document (of YAML or JSON) to the model, or all its mistakes at once.

Contract §4 and §10. Pure: templates are looked at by a function that the caller brings.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, cast

from wfcore.errors import InvalidDefinition, Problem
from wfcore.model.json import Json
from wfcore.model.workflow import CodeStep, Definition, Language
from wfcore.rules.definition_checks import (
    Field,
    Findings,
    read_object,
    templates_within,
    text,
)
from wfcore.rules.definition_fields import filled, variables
from wfcore.rules.definition_steps import Reading, read_steps
from wfcore.rules.field_paths import below
from wfcore.rules.limits import MAX_STEPS

TemplateProblems = Callable[[str, Mapping[str, Collection[str] | None]], Sequence[str]]
"""`Templates.problems`: what is wrong in a text, given the names that it may use."""


def check_definition(document: Json, template_problems: TemplateProblems) -> Definition:
    """
    The definition that *document* says.

    Raises `InvalidDefinition` with every mistake and the path of its field. DF-1 to DF-9.
    """
    findings = Findings()
    seen: dict[str, str] = {}
    check = partial(_check_templates, findings, _declared(document), template_problems)
    reading = Reading(findings, check, seen)
    values = read_object(document, "", _top(reading), findings)
    check(seen)
    if findings.problems:
        raise InvalidDefinition(tuple(findings.problems))
    values.pop("triggers", None)
    written = tuple(cast(Mapping[str, Any], document)["steps"])
    return Definition(**values, steps_as_written=written, has_output="output" in values)


def language_problems(definition: Definition, cures: Mapping[Language, str]) -> tuple[Problem, ...]:
    """A problem for each step in a language of *cures*: it cannot run here, and what to install."""
    return tuple(
        Problem(below(below("steps", at), "language"), f"{step.language} cannot run here: {cure}")
        for at, step in enumerate(definition.steps)
        if isinstance(step, CodeStep) and (cure := cures.get(step.language)) is not None
    )


def _top(reading: Reading) -> Mapping[str, Field]:
    """The fields of the document itself."""
    return {
        "name": Field(filled, "name", required=True),
        "description": Field(text(), "description"),
        "variables": Field(variables, "variables"),
        "steps": Field(partial(_steps, reading), "steps", required=True),
        "output": Field(templates_within, "output"),
        "triggers": Field(_no_triggers, "triggers"),
    }


def _steps(reading: Reading, document: Json, path: str, findings: Findings) -> Any:
    if isinstance(document, list | tuple) and len(document) > MAX_STEPS:
        return findings.add(path, f"has {len(document)} steps; at most {MAX_STEPS}")
    return read_steps(document, path, reading)


def _no_triggers(document: Json, path: str, findings: Findings) -> Any:
    if not isinstance(document, list | tuple):
        return findings.wrong(path, "a list", document)
    if document:
        findings.add(path, "triggers are not supported by this version; leave them out")
    return ()


def _declared(document: Json) -> Collection[str]:
    declared = document.get("variables") if isinstance(document, Mapping) else None
    return tuple(declared) if isinstance(declared, Mapping) else ()


def _check_templates(
    findings: Findings,
    declared: Collection[str],
    template_problems: TemplateProblems,
    steps: Collection[str],
) -> None:
    """Check the templates met so far against the names that they can see, and forget them."""
    names = {"variables": declared, "steps": steps, "execution": ("id", "workflowId")}
    for path, written in findings.templates:
        for message in template_problems(written, names):
            findings.add(path, message)
    findings.templates.clear()
