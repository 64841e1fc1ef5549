"""
The format of scenario files, and the reader of the format.

The reader uses tables of fields, like the reader of definitions, so that all errors are reported at
once with their paths, and the JSON Schema for editors is generated from the same tables. An
expectation keeps only the fields that were written, and only these fields are compared. DF-11.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from attrs import field, frozen

from wfcore.errors import InvalidDefinition, Problem
from wfcore.model.approval import ApprovalStatus, Verdict
from wfcore.model.execution import ExecutionStatus, ReasonCode, StepStatus, TriggerSource, Usage
from wfcore.model.json import Json, JsonObject
from wfcore.model.trigger import TRIGGER_NAMES
from wfcore.model.workflow import ApprovalStep, Assurance, ChildStep, Definition
from wfcore.rules.definition.ai import amount
from wfcore.rules.definition.values import (
    Check,
    Field,
    Findings,
    accepting,
    any_of,
    boolean,
    choice,
    duration,
    filled,
    known_or,
    list_of,
    number,
    object_schema,
    read_object,
    record,
    text,
)
from wfcore.rules.execution.redrive import StepFate
from wfcore.rules.execution.scope import name_of
from wfcore.rules.limits import ARTIFACTS_PER_EXECUTION, MAX_PROMPT_TOKENS
from wfcore.rules.paths import below
from wfcore.time import DurationMs, EpochMs

DEFAULT_AT = EpochMs(1_767_225_600_000)
"""The beginning of a scenario without `at`: 2026-01-01T00:00:00Z."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class StartedBy(StrEnum):
    """The ways to start the execution: by hand, by an API call, or by the next schedule."""

    HAND = "hand"
    API = "api"
    SCHEDULE = "schedule"


class ScenarioNotice(StrEnum):
    """The kinds of notices to people."""

    OPENED = "opened"
    REMINDER = "reminder"
    VOIDED = "voided"
    DECIDED = "decided"
    EXPIRED = "expired"
    FAILED = "failed"


@frozen
class Stub:
    """
    The result of one attempt of a step, which does not run. `fails`: its error; None for a success.
    `model`: of an AI step with `fallback`, the model that answers. `state`: the object that it
    writes to `WF_STATE`.
    `files`: the names of the files that it leaves, which are empty.
    """

    output: Json = None
    fails: str | None = None
    takes_ms: DurationMs = DurationMs(0)
    usage: Usage | None = None
    model: str | None = None
    state: JsonObject | None = None
    files: tuple[str, ...] = ()


@frozen
class ScenarioDecision:
    """
    A decision about an approval of *step*, `after_ms` after the approval opened. `by` None: the
    first approver who has not approved. `refused`: the service must refuse the decision.
    """

    step: str
    decision: Verdict
    by: str | None = None
    after_ms: DurationMs = DurationMs(0)
    rows: Mapping[str, Json] | None = None
    comment: str | None = None
    answers: Mapping[str, Json] | None = None
    refused: bool = False


@frozen
class Given:
    """
    The start of the execution. `secrets`: values of named secrets; other secrets get made-up
    values. `state`: values of the workflow's state at the start. `trigger`: the facts of a start by
    a trigger, by their names in templates. `groups`: the members of the groups of the server.
    """

    inputs: JsonObject = field(factory=dict)
    by: str | None = None
    start: StartedBy = StartedBy.HAND
    secrets: Mapping[str, str] = field(factory=dict)
    state: JsonObject = field(factory=dict)
    trigger: JsonObject | None = None
    groups: Mapping[str, tuple[str, ...]] = field(factory=dict)


@frozen
class GivenRedrive:
    """
    A redrive. `start`: the step at which it begins. `definition`: the path of the newest
    definition, with which the redrive runs; None: the definition of the execution before.
    """

    start: str | None = None
    definition: str | None = None
    inputs: JsonObject = field(factory=dict)


@frozen
class GivenLike:
    """A new start with the inputs of an execution. `inputs` take precedence."""

    inputs: JsonObject = field(factory=dict)


@frozen
class Sequel:
    """
    An execution that repeats the execution before: either a `redrive` or a start `like` it. `steps`
    take precedence over the stubs before. `expect`: the written fields of `EXPECTED_AGAIN`.
    """

    expect: Mapping[str, Any]
    redrive: GivenRedrive | None = None
    like: GivenLike | None = None
    steps: Mapping[str, tuple[Stub, ...]] = field(factory=dict)
    decisions: tuple[ScenarioDecision, ...] = ()


@frozen
class Scenario:
    """
    One execution and the expectations about it. `expect`: only the written fields of `EXPECTED`.
    `then`: the executions that repeat it, one after the other.
    """

    name: str
    expect: Mapping[str, Any]
    at: EpochMs = DEFAULT_AT
    given: Given = Given()
    steps: Mapping[str, tuple[Stub, ...]] = field(factory=dict)
    decisions: tuple[ScenarioDecision, ...] = ()
    then: tuple[Sequel, ...] = ()


@frozen
class ScenarioFile:
    """
    The path of the definition, the paths of the workflows that the definition starts, the
    scenarios, and their common stubs.
    """

    definition: str
    scenarios: tuple[Scenario, ...]
    workflows: tuple[str, ...] = ()
    steps: Mapping[str, tuple[Stub, ...]] = field(factory=dict)


@accepting({})
def _anything(document: Json, path: str, findings: Findings) -> Any:
    return document


def _object_of(check: Check) -> Check:
    """A check for an object whose values are of one kind."""

    @accepting({"type": "object", "additionalProperties": check.schema})
    def read(document: Json, path: str, findings: Findings) -> Any:
        if not isinstance(document, Mapping):
            return findings.wrong(path, "an object", document)
        return {key: check(one, below(path, key), findings) for key, one in document.items()}

    return read


def _given_fields(fields: Mapping[str, Field]) -> Check:
    """A check for an object whose present fields are kept, by attribute name."""

    @accepting(object_schema(fields))
    def read(document: Json, path: str, findings: Findings) -> Any:
        return read_object(document, path, fields, findings)

    return read


@accepting({"type": "string", "format": "date-time"})
def _instant(document: Json, path: str, findings: Findings) -> Any:
    wanted = "an instant with its offset from UTC, like 2026-03-29T09:00:00+02:00"
    if not isinstance(document, str):
        return findings.wrong(path, wanted, document)
    try:
        moment = datetime.fromisoformat(document)
    except ValueError:
        return findings.add(path, f"must be {wanted}")
    if moment.tzinfo is None:
        return findings.add(path, f"must be {wanted}")
    return EpochMs((moment - _EPOCH) // timedelta(milliseconds=1))


_STUB: Check = record(
    Stub,
    {
        "output": Field(_anything, "output"),
        "fails": Field(filled, "fails"),
        "takes": Field(duration, "takes_ms"),
        "model": Field(filled, "model"),
        "usage": Field(
            record(
                Usage,
                {
                    "inputTokens": Field(number(0, MAX_PROMPT_TOKENS, whole=True), "input_tokens"),
                    "outputTokens": Field(
                        number(0, MAX_PROMPT_TOKENS, whole=True), "output_tokens"
                    ),
                    "costUsd": Field(amount, "cost_usd"),
                },
            ),
            "usage",
        ),
        "state": Field(_object_of(_anything), "state"),
        "files": Field(list_of(filled, most=ARTIFACTS_PER_EXECUTION), "files"),
    },
)
_ATTEMPTS = list_of(_STUB, least=1)


@accepting(any_of(_STUB.schema, _ATTEMPTS.schema))
def _stubs(document: Json, path: str, findings: Findings) -> Any:
    """The results of a step: one result for all attempts, or one result for each attempt."""
    if isinstance(document, list | tuple):
        return _ATTEMPTS(document, path, findings)
    return (_STUB(document, path, findings),)


_INPUTS = Field(_object_of(_anything), "inputs")
_ROWS = _object_of(list_of(_object_of(_anything)))

_DECISION: Check = record(
    ScenarioDecision,
    {
        "step": Field(filled, "step", required=True),
        "decision": Field(choice(Verdict), "decision", required=True),
        "by": Field(filled, "by"),
        "after": Field(duration, "after_ms"),
        "rows": Field(_ROWS, "rows"),
        "comment": Field(text(), "comment"),
        "answers": Field(_object_of(_anything), "answers"),
        "refused": Field(boolean, "refused"),
    },
)
_TRIGGER: Check = _given_fields(
    {
        name: Field(choice(TriggerSource), name, required=True)
        if name == "kind"
        else Field(_anything, name)
        for name in TRIGGER_NAMES
    }
)
"""The facts of the start, by their names in templates."""
_GIVEN: Check = record(
    Given,
    {
        "inputs": _INPUTS,
        "by": Field(filled, "by"),
        "start": Field(choice(StartedBy), "start"),
        "secrets": Field(_object_of(text()), "secrets"),
        "trigger": Field(_TRIGGER, "trigger"),
        "state": Field(_object_of(_anything), "state"),
        "groups": Field(_object_of(list_of(filled)), "groups"),
    },
)
EXPECTED: Mapping[str, Field] = {
    "status": Field(choice(ExecutionStatus), "status"),
    "error": Field(filled, "error"),
    "reason": Field(choice(ReasonCode), "reason"),
    "refused": Field(filled, "refused"),
    "output": Field(_anything, "output"),
    "state": Field(_object_of(_anything), "state"),
    "took": Field(duration, "took"),
    "startedAt": Field(_instant, "startedAt"),
    "ran": Field(list_of(filled), "ran"),
    "steps": Field(
        _object_of(
            _given_fields(
                {
                    "status": Field(choice(StepStatus), "status"),
                    "output": Field(_anything, "output"),
                    "error": Field(filled, "error"),
                    "attempts": Field(number(0, 10_000, whole=True), "attempts"),
                    "model": Field(text(), "model"),
                    "prompt": Field(text(), "prompt"),
                    "system": Field(text(), "system"),
                    "command": Field(list_of(text()), "command"),
                    "variables": Field(_object_of(text()), "variables"),
                    "files": Field(list_of(filled), "files"),
                }
            )
        ),
        "steps",
    ),
    "approvals": Field(
        list_of(
            _given_fields(
                {
                    "step": Field(filled, "step", required=True),
                    "status": Field(choice(ApprovalStatus), "status"),
                    "message": Field(text(), "message"),
                    "rows": Field(_ROWS, "rows"),
                    "approvers": Field(list_of(filled), "approvers"),
                    "by": Field(filled, "by"),
                    "comment": Field(text(), "comment"),
                    "answers": Field(_object_of(_anything), "answers"),
                    "assurance": Field(choice(Assurance), "assurance"),
                    "signedBy": Field(list_of(filled), "signedBy"),
                    "after": Field(duration, "after"),
                }
            )
        ),
        "approvals",
    ),
    "notices": Field(
        list_of(
            _given_fields(
                {
                    "notice": Field(choice(ScenarioNotice), "notice", required=True),
                    "step": Field(filled, "step"),
                    "to": Field(list_of(filled), "to"),
                    "channels": Field(list_of(filled), "channels"),
                    "after": Field(duration, "after"),
                }
            )
        ),
        "notices",
    ),
    "mails": Field(
        list_of(
            _given_fields(
                {
                    "step": Field(filled, "step", required=True),
                    "to": Field(list_of(filled), "to"),
                    "subject": Field(text(), "subject"),
                    "body": Field(text(), "body"),
                    "attach": Field(list_of(filled), "attach"),
                    "after": Field(duration, "after"),
                }
            )
        ),
        "mails",
    ),
    "nextFires": Field(list_of(_instant, least=1, most=1_000), "nextFires"),
}
"""The fields of an expectation; the `into` of each field is its name."""
EXPECTED_AGAIN: Mapping[str, Field] = {
    **{name: one for name, one in EXPECTED.items() if name != "nextFires"},
    "plan": Field(_object_of(choice(StepFate)), "plan"),
}
"""The fields of an expectation about a repetition. `plan`: of a redrive, the fates of its steps."""


def _some_of(fields: Mapping[str, Field]) -> Check:
    """A check for at least one expectation: a scenario without expectations could not fail."""
    expectations = _given_fields(fields)

    @accepting({**object_schema(fields), "minProperties": 1})
    def read(document: Json, path: str, findings: Findings) -> Any:
        if isinstance(document, Mapping) and not document:
            findings.add(path, f"must not be empty; known: {', '.join(fields)}")
        return expectations(document, path, findings)

    return read


_STEPS = Field(_object_of(_stubs), "steps")
_DECISIONS = Field(list_of(_DECISION), "decisions")
_SEQUEL_FIELDS: Check = record(
    Sequel,
    {
        "redrive": Field(
            record(
                GivenRedrive,
                {
                    "from": Field(filled, "start"),
                    "definition": Field(filled, "definition"),
                    "inputs": _INPUTS,
                },
            ),
            "redrive",
        ),
        "like": Field(record(GivenLike, {"inputs": _INPUTS}), "like"),
        "steps": _STEPS,
        "decisions": _DECISIONS,
        "expect": Field(_some_of(EXPECTED_AGAIN), "expect", required=True),
    },
)
_EITHER = {"oneOf": [{"required": ["redrive"]}, {"required": ["like"]}]}


@accepting({"allOf": [_SEQUEL_FIELDS.schema, _EITHER]})
def _sequel(document: Json, path: str, findings: Findings) -> Any:
    if isinstance(document, Mapping) and ("redrive" in document) is ("like" in document):
        findings.add(path, "must have either redrive or like")
    return _SEQUEL_FIELDS(document, path, findings)


_SCENARIO: Check = record(
    Scenario,
    {
        "name": Field(filled, "name", required=True),
        "at": Field(_instant, "at"),
        "given": Field(_GIVEN, "given"),
        "steps": _STEPS,
        "decisions": _DECISIONS,
        "expect": Field(_some_of(EXPECTED), "expect", required=True),
        "then": Field(list_of(_sequel), "then"),
    },
)
_FILE: Mapping[str, Field] = {
    "definition": Field(filled, "definition", required=True),
    "workflows": Field(list_of(filled), "workflows"),
    "steps": _STEPS,
    "scenarios": Field(list_of(_SCENARIO, least=1, unique="name"), "scenarios", required=True),
}


def read_scenarios(document: Json) -> ScenarioFile:
    """
    The scenarios in *document*. Raises `InvalidDefinition` with all errors and their paths. DF-11.
    """
    findings = Findings()
    values = read_object(document, "", _FILE, findings)
    if findings.problems:
        raise InvalidDefinition(tuple(findings.problems))
    return ScenarioFile(**values)


def scenarios_schema() -> dict[str, Any]:
    """
    The JSON Schema (draft 7) of scenario files. The schema accepts every file that `read_scenarios`
    accepts.
    """
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Tests of a workflow definition of wfcore",
        **object_schema(_FILE),
    }


def step_problems(
    file: ScenarioFile,
    definition: Definition,
    others: Sequence[Definition],
    newest: Mapping[str, Definition],
) -> tuple[Problem, ...]:
    """Stubs and decisions for steps that do not exist or cannot be decided. DF-11."""
    everywhere = (definition, *others, *newest.values())
    runs = [step.name for one in everywhere for step in one.walk() if not _asks(step)]
    asks = [step.name for one in everywhere for step in one.walk() if _asks(step)]
    started = {other.name for other in others}
    holds = [
        step.name
        for one in everywhere
        for step in one.walk()
        if isinstance(step, ChildStep) and step.workflow in started
    ]
    found: list[Problem] = []
    for place, one in parts_of(file):
        found += _unknown(one.steps, below(place, "steps"), runs)
        for which, decision in enumerate(one.decisions):
            where = below(below(below(place, "decisions"), which), "step")
            found += _unknown_step(decision.step, where, [*asks, *runs])
    found += _unknown(file.steps, "steps", runs)
    found += _other_names(file, definition, newest)
    for key in {*file.steps, *(key for _, one in parts_of(file) for key in one.steps)} & {*holds}:
        message = f"{key} starts a workflow that is given; stub its steps: {key}/STEP"
        found.append(Problem(below("steps", key), message))
    return tuple(found)


def parts_of(file: ScenarioFile) -> Iterator[tuple[str, Scenario | Sequel]]:
    """Every execution of the file: the scenarios and what follows each, with their paths."""
    for at, scenario in enumerate(file.scenarios):
        place = below("scenarios", at)
        yield place, scenario
        for which, sequel in enumerate(scenario.then):
            yield below(below(place, "then"), which), sequel


def newest_of(file: ScenarioFile) -> Iterator[tuple[str, str]]:
    """The path of each newest definition in the file, and the path as it is written."""
    for place, one in parts_of(file):
        if isinstance(one, Sequel) and one.redrive and one.redrive.definition:
            yield below(below(place, "redrive"), "definition"), one.redrive.definition


def _other_names(
    file: ScenarioFile, definition: Definition, newest: Mapping[str, Definition]
) -> Iterator[Problem]:
    for path, name in newest_of(file):
        if newest[name].name != definition.name:
            yield Problem(path, f"must be a definition of {definition.name!r}, under its name")


def _asks(step: object) -> bool:
    return isinstance(step, ApprovalStep)


def _unknown(keys: Collection[str], path: str, known: Sequence[str]) -> Sequence[Problem]:
    return [one for key in keys for one in _unknown_step(key, below(path, key), known)]


def _unknown_step(key: str, path: str, known: Sequence[str]) -> Sequence[Problem]:
    name = name_of(key.rpartition("/")[2])
    if name in known:
        return ()
    return (Problem(path, f"there is no such step; {known_or(name, known)}"),)
