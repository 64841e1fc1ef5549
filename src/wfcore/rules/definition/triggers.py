"""The starts of a workflow in its definition: `triggers` and `concurrency`."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any

from attrs import frozen

from wfcore.model.execution import ExecutionStatus
from wfcore.model.json import Json
from wfcore.model.trigger import Chain, Missed, Schedule, TriggerKind, TriggerSpec
from wfcore.model.workflow import Concurrency, OnLimit, Variable, VariableType
from wfcore.rules.definition.values import (
    Check,
    Field,
    Findings,
    accepting,
    any_object,
    by_kind,
    choice,
    filled,
    is_one_template,
    known_or,
    list_of,
    named,
    number,
    object_schema,
    read_object,
    record,
    text,
)
from wfcore.rules.limits import MAX_DELAY_SECONDS, MAX_RUNS, MAX_RUNS_AT_ONCE, MAX_TRIGGERS
from wfcore.rules.paths import below
from wfcore.rules.triggers.identity import repeats
from wfcore.rules.variables import WANTED, fits

TemplatesOf = Callable[[str], Sequence[str]]
"""A function that finds the mistakes in one template."""

ScheduleProblems = Callable[[str, str], Mapping[str, str]]
"""`Calendar.problems`: finds the mistakes in a cron expression and a zone, by field."""


def no_schedules(cron: str, timezone: str) -> Mapping[str, str]:
    """`ScheduleProblems` for callers without a calendar."""
    return {"cron": "schedules are not available here"}


@frozen
class _TriggerKind:
    build: Callable[..., TriggerSpec]
    fields: Mapping[str, Field]


class Followed(StrEnum):
    """The ends of a workflow that a chain may follow. The names are those of `ExecutionStatus`."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


_ENDS = list_of(choice(Followed), least=1)


@accepting({"type": "array", "items": {"enum": [*Followed]}, "minItems": 1, "uniqueItems": True})
def _ends(document: Json, path: str, findings: Findings) -> Any:
    found = _ENDS(document, path, findings)
    if len(set(found)) < len(found):
        findings.add(path, "names a status twice")
    return tuple(ExecutionStatus(one) for one in found if one is not None)


_INPUTS = Field(
    any_object,
    "inputs",
    "The inputs of each start, by the name of a variable; templates over `trigger` and `state`.",
)
TRIGGER_KINDS: Mapping[str, _TriggerKind] = {
    TriggerKind.SCHEDULE: _TriggerKind(
        Schedule,
        {
            "kind": Field(text(), "kind", "`SCHEDULE` or `DELAYED_COMPLETION`.", required=True),
            "cron": Field(
                filled,
                "cron",
                "Five fields: minute, hour, day of month, month, day of week.",
                required=True,
            ),
            "timezone": Field(
                filled,
                "timezone",
                "The zone of the cron expression, like Europe/Berlin. Default: UTC.",
            ),
            "missed": Field(
                choice(Missed),
                "missed",
                "What happens to starts that were missed while no server ran. `skip` "
                "(default): nothing; `once`: one start makes up for them.",
            ),
            "pauseAfter": Field(
                number(1, MAX_RUNS, whole=True),
                "pause_after",
                "After this many failures in a row it is paused, and its owner is told.",
            ),
            "inputs": _INPUTS,
        },
    ),
    TriggerKind.DELAYED_COMPLETION: _TriggerKind(
        Chain,
        {
            "kind": Field(text(), "kind", "`SCHEDULE` or `DELAYED_COMPLETION`.", required=True),
            "workflow": Field(
                named,
                "workflow",
                "The workflow that is waited for: a name of the same owner's, or an id that "
                "the owner can see.",
                required=True,
            ),
            "on": Field(
                _ends,
                "on",
                "The ends that count: `COMPLETED` (default), `FAILED`, `CANCELLED`.",
            ),
            "delaySeconds": Field(
                number(0, MAX_DELAY_SECONDS, whole=True),
                "delay_seconds",
                "How long after each of these ends. Default: 0.",
            ),
            "maxRuns": Field(
                number(1, MAX_RUNS, whole=True),
                "max_runs",
                "After this many starts in total the trigger ends.",
            ),
            "inputs": _INPUTS,
        },
    ),
}


_TRIGGER = by_kind({kind: object_schema(one.fields) for kind, one in TRIGGER_KINDS.items()})


def triggers(
    schedule_problems: ScheduleProblems, problems_of: TemplatesOf, own_name: Json
) -> Check:
    """
    A check for the list of triggers, which must differ. SH-5. *problems_of* finds the mistakes in a
    template of `inputs`; *own_name*: the workflow's name.
    """

    one = Check(partial(_trigger, schedule_problems, problems_of, own_name), _TRIGGER)
    listed = list_of(one, most=MAX_TRIGGERS)

    @accepting(listed.schema)
    def check(document: Json, path: str, findings: Findings) -> Any:
        found = listed(document, path, findings)
        _report_twins(found, path, findings)
        return found

    return check


def _trigger(
    schedule_problems: ScheduleProblems,
    problems_of: TemplatesOf,
    own_name: Json,
    document: Json,
    path: str,
    findings: Findings,
) -> TriggerSpec | None:
    before = len(findings.problems)
    kind = _kind_of(document, path, findings)
    own = Findings()  # its templates see other names than those of steps
    values = read_object(document, path, kind.fields, own) if kind else {}
    findings.problems += own.problems
    for where, written in own.templates:
        for message in problems_of(written):
            findings.add(where, message)
    if kind is None or len(findings.problems) > before:
        return None
    values.pop("kind")
    spec = kind.build(**values)
    if isinstance(spec, Schedule):
        for field, message in schedule_problems(spec.cron, spec.timezone).items():
            findings.add(below(path, field), message)
    elif spec.workflow == own_name and (mistake := follows_itself(spec)):
        findings.add(below(path, "on"), mistake)
    return spec


def follows_itself(spec: Chain) -> str | None:
    """The mistake of a chain that follows its own workflow; None if it only follows COMPLETED."""
    ends = [one.value for one in spec.on if one is not ExecutionStatus.COMPLETED]
    return f"must not follow {' and '.join(ends)} of this workflow itself" if ends else None


def _kind_of(document: Json, path: str, findings: Findings) -> _TriggerKind | None:
    if not isinstance(document, Mapping):
        findings.wrong(path, "an object", document)
        return None
    where, kind = below(path, "kind"), document.get("kind")
    if not isinstance(kind, str):
        findings.add(where, f"must be one of {', '.join(TRIGGER_KINDS)}")
        return None
    if kind not in TRIGGER_KINDS:
        findings.add(where, f"kind {kind!r} is not supported; {known_or(kind, TRIGGER_KINDS)}")
    return TRIGGER_KINDS.get(kind)


def _report_twins(found: Sequence[TriggerSpec | None], path: str, findings: Findings) -> None:
    """
    Reports two chains behind one end of one workflow, or the same schedule twice: one cause would
    start the workflow twice.
    """
    for at, spec in enumerate(found):
        earlier = ((n, one) for n, one in enumerate(found[:at]) if one is not None and spec)
        first = next((n for n, one in earlier if spec and repeats(spec, one)), None)
        if first is not None:
            findings.add(below(path, at), f"repeats {below(path, first)}")


CONCURRENCY = {
    "limit": Field(
        number(1, MAX_RUNS_AT_ONCE, whole=True),
        "limit",
        "How many executions run at once.",
        required=True,
    ),
    "key": Field(
        text(), "key", "A template over variables: the limit holds for each of its values."
    ),
    "onLimit": Field(
        choice(OnLimit),
        "on_limit",
        "What happens to a start while the limit is reached. `queue` (default): it "
        "waits its turn; `skip`: it is refused.",
    ),
}


def templated(problems_of: TemplatesOf) -> Check:
    """A check for a text with templates that are evaluated when an execution is accepted."""

    @accepting({"type": "string"})
    def check(document: Json, path: str, findings: Findings) -> Any:
        if not isinstance(document, str):
            return findings.wrong(path, "a template over variables", document)
        for message in problems_of(document):
            findings.add(path, message)
        return document

    return check


def concurrency(problems_of: TemplatesOf) -> Check:
    """A check for the limit; *problems_of* finds the mistakes in the template of its key."""

    return record(
        Concurrency,
        {
            **CONCURRENCY,
            "key": Field(
                templated(problems_of),
                "key",
                "A template over variables: the limit holds for each of its values.",
            ),
        },
    )


def report_inputs(values: Mapping[str, Any], findings: Findings) -> None:
    """
    Reports inputs of triggers that are no variable of the workflow, or of another type; and a
    required variable to which nobody gives a value when the workflow starts by itself. SH-6, SH-12.
    """
    declared: Mapping[str, Variable | None] = values.get("variables") or {}
    specs: Sequence[TriggerSpec | None] = values.get("triggers") or ()
    for at, spec in enumerate(specs):
        if spec is None:
            continue
        place = below("triggers", at)
        for name, value in spec.inputs.items():
            if message := _mistake(name, value, declared):
                findings.add(below(below(place, "inputs"), name), message)
    for name, variable in declared.items():
        if variable and variable.required and not variable.has_default:
            without = [at for at, one in enumerate(specs) if one and name not in one.inputs]
            if without:
                findings.add(below("variables", name), _unattended(without, len(specs)))


def _mistake(name: str, value: Json, declared: Mapping[str, Variable | None]) -> str | None:
    """The mistake that the text of an input shows."""
    if name not in declared:
        there = known_or(name, declared) if declared else "it declares none"
        return f"is no variable of this workflow; {there}"
    variable = declared[name]
    is_text = isinstance(value, str) and "{{" in value
    if variable is None or (is_text and is_one_template(str(value))):
        return None
    fitting = variable.type is VariableType.STRING if is_text else fits(variable.type, value)
    return None if fitting else f"must be {WANTED[variable.type]}"


def _unattended(without: Sequence[int], triggers: int) -> str:
    if len(without) == triggers:
        return "is required and has no default, so no trigger can start this workflow"
    listed = ", ".join(below("triggers", at) for at in without)
    return f"is required and has no default, and {listed} gives no input for it"
