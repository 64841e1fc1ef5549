"""The comparison of a scenario's expectations with its result. Only written fields are compared."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from difflib import ndiff
from typing import Any

from attrs import frozen

from wfcore.model.approval import Approval
from wfcore.model.execution import Execution, StepResult
from wfcore.model.json import Json
from wfcore.model.notice import Notice
from wfcore.ports.runtime import AiJob, Job
from wfcore.rules.variables import compact
from wfcore.scenarios.playing import ScenarioRun
from wfcore.time import DAY, HOUR, MINUTE, SECOND, DurationMs

_ABSENT = "(none)"


@frozen
class ScenarioResult:
    """
    The result of one scenario: the differences (empty: as expected), the time it took, and the time
    that passed in it; None if nothing was started or has not ended.
    """

    name: str
    line: int
    wrong: tuple[str, ...]
    seconds: float
    passed: DurationMs | None = None


@frozen
class Mismatch:
    """
    An expectation that failed, with the expected and the actual value as text of one or more lines.
    """

    path: str
    expected: str
    was: str

    def lines(self) -> Sequence[str]:
        """
        The expected and the actual text; in texts of several lines, differing lines are marked.
        """
        if "\n" not in self.expected + self.was:
            return (f"{self.path}: expected {self.expected}, was {self.was}",)
        marked = ndiff(self.expected.splitlines(), self.was.splitlines())
        return (
            f"{self.path}: (- expected, + was)",
            *(f"  {line}" for line in marked if not line.startswith("?")),
        )


def mismatches(expect: Mapping[str, Any], played: ScenarioRun, zone: tzinfo) -> Sequence[Mismatch]:
    """Every difference between *played* and *expect*. Instants are shown in *zone*."""
    was = _observed(played)
    found: list[Mismatch] = []
    for name, expected in expect.items():
        found += _compared(name, expected, was.get(name), zone)
    if played.refused is not None and "refused" not in expect and played.run is None:
        return [Mismatch("start", "an execution", f"refused: {played.refused}")]
    return found


def _compared(path: str, expected: Any, was: Any, zone: tzinfo) -> Iterator[Mismatch]:
    last = path.rpartition(".")[2]
    if last in ("error", "refused"):  # a part of it will do
        if was is None or expected not in was:
            yield Mismatch(path, f"a text with {compact(expected)}", _text(was))
    elif path == "steps":
        for key, fields in expected.items():
            yield from _fields(f"steps.{key}", fields, was.get(key, {}), zone)
    elif path in ("state", "plan"):
        for name, value in expected.items():
            yield from _values(f"{path}.{name}", value, was.get(name), zone)
    elif path in ("approvals", "notices", "mails"):
        shown = [_only(fields, one) for fields, one in zip(expected, was, strict=False)]
        rest = [_brief(one) for one in was[len(expected) :]]
        yield from _values(path, expected, [*shown, *rest], zone)
    else:
        yield from _values(path, expected, was, zone)


def _fields(path: str, fields: Mapping[str, Any], was: Any, zone: tzinfo) -> Iterator[Mismatch]:
    for name, expected in fields.items():
        yield from _compared(f"{path}.{name}", expected, was.get(name), zone)


def _values(path: str, expected: Any, was: Any, zone: tzinfo) -> Iterator[Mismatch]:
    if not _same(expected, was):
        name = path.rpartition(".")[2]
        yield Mismatch(path, _shown(name, expected, zone), _shown(name, was, zone))


def _same(one: Any, other: Any) -> bool:
    """Equality as JSON: true is not a number, a tuple is a list, 1 equals 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _only(fields: Mapping[str, Any], was: Mapping[str, Any]) -> Mapping[str, Any]:
    """The observed values of the expected *fields*."""
    return {name: was.get(name) for name in fields}


def _brief(was: Mapping[str, Any]) -> Mapping[str, Any]:
    """The identifying fields of an unexpected value."""
    return {name: was[name] for name in ("notice", "step") if was.get(name) is not None}


def _observed(played: ScenarioRun) -> Mapping[str, Any]:
    """The observed values by the names of `EXPECTED`; instants and durations in ms."""
    run = played.run
    if run is None:
        nothing: Mapping[str, Any] = {"steps": {}, "state": {}, "plan": {}}
        return {"nextFires": played.next_fires, "refused": played.refused, **nothing}
    return {
        "nextFires": played.next_fires,
        "refused": played.refused,
        "startedAt": run.accepted_at,
        "status": run.status,
        "error": run.error,
        "reason": run.status_reason.code if run.status_reason else None,
        "output": run.output,
        "state": played.state,
        "plan": played.plan,
        "took": None if run.completed_at is None else run.completed_at - run.accepted_at,
        "ran": list(dict.fromkeys(one.key for one in played.attempts)),
        "steps": _steps(run, played),
        "approvals": [_approval(*one, played) for one in played.approvals],
        "notices": list(_notices(played)),
        "mails": [_mail(*one, played) for one in played.mails],
    }


def _steps(run: Execution, played: ScenarioRun) -> Mapping[str, Mapping[str, Any]]:
    jobs = {one.key: _asked(one.job) for one in played.attempts}
    results = {key: _result(result) for key, result in run.step_results.items()}
    return {key: {**jobs.get(key, {}), **results.get(key, {})} for key in {**jobs, **results}}


def _result(result: StepResult) -> Mapping[str, Any]:
    return {
        "status": result.status,
        "output": result.output,
        "error": result.error,
        "attempts": result.attempts,
        "model": result.model,
    }


def _asked(job: Job) -> Mapping[str, Any]:
    """The step's inputs with their templates rendered."""
    if isinstance(job, AiJob):
        return {"prompt": job.prompt, "system": job.system}
    prefix = "WF_VAR_"
    named = {
        name.removeprefix(prefix): value
        for name, value in job.environment.items()
        if name.startswith(prefix)
    }
    files = [f"{one.step}/{path}" for one in job.files for path in one.files]
    return {"command": job.argv, "variables": named, "files": files}


def _approval(opened: Approval, approval: Approval, played: ScenarioRun) -> Mapping[str, Any]:
    return {
        "step": played.keys[approval.execution_id] + approval.step_name,
        "status": approval.status,
        "message": approval.message,
        "rows": {group.name: group.items for group in opened.groups},
        "approvers": approval.approvers,
        "by": approval.decided_by,
        "comment": approval.comment,
        "answers": approval.answers,
        "assurance": approval.assurance,
        "signedBy": [one.by for one in approval.assents if one.receipt is not None],
        "after": approval.created_at - played.started_at,
    }


def _mail(notice: Notice, files: Sequence[str], played: ScenarioRun) -> Mapping[str, Any]:
    return {
        "step": played.keys[notice.subject] + str(notice.about["step"]),
        "to": notice.recipients,
        "subject": notice.about["subject"],
        "body": notice.about["body"],
        "attach": files,
        "after": notice.created_at - played.started_at,
    }


def _notices(played: ScenarioRun) -> Iterator[Mapping[str, Any]]:
    """Each notice once, with its channels and its recipients by mail."""
    steps = {one.id: played.keys[one.execution_id] + one.step_name for one, _ in played.approvals}
    facts: dict[tuple[str, str, int], list[Notice]] = {}
    for notice in played.notices:
        fact = (notice.kind, notice.subject, notice.created_at)
        facts.setdefault(fact, []).append(notice)
    for (kind, subject, at), told in facts.items():
        yield {
            "notice": kind.partition(".")[2],
            "step": steps.get(subject),
            "to": [one.to for one in told if one.to],
            "channels": list(dict.fromkeys(one.channel for one in told)),
            "after": at - played.started_at,
        }


def _shown(name: str, value: Any, zone: tzinfo) -> str:
    """
    A value of the field *name* for people: JSON, with durations and instants written as in
    definitions.
    """
    return _text(_written(name, value, zone))


def _written(name: str, value: Any, zone: tzinfo) -> Any:
    if name in ("took", "after") and isinstance(value, int):
        return _span(value)
    if name in ("startedAt", "nextFires") and isinstance(value, int):
        return datetime.fromtimestamp(value / 1_000, UTC).astimezone(zone).isoformat()
    if isinstance(value, Mapping):
        return {key: _written(key, one, zone) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_written(name, one, zone) for one in value]
    return value


_UNITS = (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND))


def _span(ms: int) -> str:
    """A duration as written in a definition: in the largest unit that needs no decimal point."""
    for unit, size in _UNITS:
        if ms and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"


_SHORT = 60


def _text(value: Json) -> str:
    if value is None:
        return _ABSENT
    line = json.dumps(value, ensure_ascii=False, default=dict)
    if len(line) <= _SHORT:
        return line
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True, default=dict)
