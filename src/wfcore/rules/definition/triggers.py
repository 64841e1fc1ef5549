"""The starts of a workflow in its definition: `triggers` and `concurrency`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import frozen

from wfcore.model.json import Json
from wfcore.model.trigger import Chain, Missed, Schedule, TriggerKind, TriggerSpec
from wfcore.model.workflow import Concurrency, OnLimit, Variable
from wfcore.rules.definition.values import (
    Check,
    Field,
    Findings,
    accepting,
    by_kind,
    choice,
    filled,
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
from wfcore.rules.triggers.identity import identity

ScheduleProblems = Callable[[str, str], Mapping[str, str]]
"""`Calendar.problems`: finds the mistakes in a cron expression and a zone, by field."""


def no_schedules(cron: str, timezone: str) -> Mapping[str, str]:
    """`ScheduleProblems` for callers without a calendar."""
    return {"cron": "schedules are not available here"}


@frozen
class _TriggerKind:
    build: Callable[..., TriggerSpec]
    fields: Mapping[str, Field]


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
            "delaySeconds": Field(
                number(0, MAX_DELAY_SECONDS, whole=True),
                "delay_seconds",
                "How long after each completion. Default: 0.",
            ),
            "maxRuns": Field(
                number(1, MAX_RUNS, whole=True),
                "max_runs",
                "After this many starts in total the trigger ends.",
            ),
        },
    ),
}


_TRIGGER = by_kind({kind: object_schema(one.fields) for kind, one in TRIGGER_KINDS.items()})


def triggers(schedule_problems: ScheduleProblems) -> Check:
    """A check for the list of triggers, which must differ. SH-5."""

    one = Check(partial(_trigger, schedule_problems), _TRIGGER)
    listed = list_of(one, most=MAX_TRIGGERS)

    @accepting(listed.schema)
    def check(document: Json, path: str, findings: Findings) -> Any:
        found = listed(document, path, findings)
        _report_twins(found, path, findings)
        return found

    return check


def _trigger(
    schedule_problems: ScheduleProblems, document: Json, path: str, findings: Findings
) -> TriggerSpec | None:
    before = len(findings.problems)
    kind = _kind_of(document, path, findings)
    values = read_object(document, path, kind.fields, findings) if kind else {}
    if kind is None or len(findings.problems) > before:
        return None
    values.pop("kind")
    spec = kind.build(**values)
    if isinstance(spec, Schedule):
        for field, message in schedule_problems(spec.cron, spec.timezone).items():
            findings.add(below(path, field), message)
    return spec


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
    Reports two chains behind one workflow, or the same schedule twice: one cause would start the
    workflow twice.
    """
    seen: dict[object, int] = {}
    for at, spec in enumerate(found):
        if spec is not None and seen.setdefault(identity(spec), at) != at:
            first = below(path, seen[identity(spec)])
            findings.add(below(path, at), f"repeats {first}")


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


def concurrency(problems_of: Callable[[str], Sequence[str]]) -> Check:
    """A check for the limit; *problems_of* finds the mistakes in the template of its key."""

    @accepting({"type": "string"})
    def key(document: Json, path: str, findings: Findings) -> Any:
        if not isinstance(document, str):
            return findings.wrong(path, "a template over variables", document)
        for message in problems_of(document):
            findings.add(path, message)
        return document

    return record(
        Concurrency,
        {
            **CONCURRENCY,
            "key": Field(
                key, "key", "A template over variables: the limit holds for each of its values."
            ),
        },
    )


def report_unattended(values: Mapping[str, Any], findings: Findings) -> None:
    """
    Reports a required variable without a default in a workflow that starts by itself: nobody gives
    the variable a value. SH-6.
    """
    declared: Mapping[str, Variable | None] = values.get("variables") or {}
    if not values.get("triggers"):
        return
    for name in _without_value(declared):
        message = "is required and has no default, so no trigger can start this workflow"
        findings.add(below("variables", name), message)


def _without_value(declared: Mapping[str, Variable | None]) -> Collection[str]:
    return [name for name, one in declared.items() if one and one.required and not one.has_default]
