"""
`values_of(kind)`: valid values of every record, fact and decision, by its class.

    @given(values_of(Approval), values_of(StepDone))

A value is valid if a store may hold it: an end is not before its beginning, a failure has an error,
a decision has its time. Ids come from small pools, so that records refer to one another.
Definitions only use names in scope. Everything shrinks towards the plainest value.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

from attrs import evolve, has
from hypothesis import strategies as st

from wfcore.model.access import Admission, Session, Window
from wfcore.model.approval import Approval, ApprovalStatus, Group
from wfcore.model.execution import Execution, ExecutionStatus, StepResult, StepStatus, Usage
from wfcore.model.page import Page, PageRequest
from wfcore.model.trigger import Chain, Schedule, Trigger
from wfcore.model.webhook import Tally, Webhook
from wfcore.model.workflow import (
    ApprovalStep,
    Branch,
    Case,
    ChildStep,
    CodeStep,
    Column,
    DataStep,
    Definition,
    DefinitionSnapshot,
    DelayStep,
    GroupSpec,
    LoopStep,
    MailStep,
    ParallelStep,
    Retry,
    SwitchStep,
    Variable,
)
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.webhooks.webhook import utc_date
from wfcore.testing.strategies import definition as written
from wfcore.testing.strategies import values as plain
from wfcore.testing.strategies.derived import Strategy, derived, names, told
from wfcore.testing.strategies.runs import FACTS
from wfcore.time import DAY, EpochMs, later

K = TypeVar("K")


def values_of(kind: type[K]) -> st.SearchStrategy[K]:
    """
    Any valid value of the attrs class *kind*. Raises `TypeError` if *kind* is no attrs class, or if
    the type of a field is unknown.
    """
    return cast("st.SearchStrategy[K]", _values_of(cast("Any", kind)))


@cache  # not of the function above, whose types checkers would forget
def _values_of(kind: type) -> Strategy:
    if kind in FACTS:
        return FACTS[kind]
    if not has(kind):
        raise TypeError(f"values_of takes an attrs class, not {kind!r}")
    said = _SAID.get(kind)
    found = derived(kind, values_of) if said is None else said()
    return found.flatmap(told)


def _any(kind: type, **given: Strategy) -> Strategy:
    return derived(kind, values_of, **given)


# Executions and approvals


def _steps() -> Strategy:
    return _any(StepResult).map(_sound_step)


def _sound_step(step: StepResult) -> StepResult:
    """
    The result with an end exactly where its status demands one, and with the fields that go with an
    end.
    """
    open = step.status in (StepStatus.RUNNING, StepStatus.AWAITING_APPROVAL)
    began, ended = step.started_at, step.completed_at or step.started_at
    failed = step.status in (StepStatus.FAILED, StepStatus.REJECTED, StepStatus.CANCELLED)
    waits = step.status is StepStatus.AWAITING_APPROVAL
    return evolve(
        step,
        started_at=min(began, ended),
        completed_at=None if open else max(began, ended),
        output=step.output if step.status is StepStatus.COMPLETED else None,
        error=(step.error or "it failed") if failed else None,
        retry_at=step.retry_at if step.status is StepStatus.RUNNING else None,
        approval_id=(step.approval_id or "appr_1") if waits else None,
    )


def _executions() -> Strategy:
    keys = st.sampled_from(("one", "two", "three"))
    steps = st.dictionaries(keys, values_of(StepResult))
    free = _any(Execution, step_results=steps)
    held = _any(
        Execution,
        step_results=st.dictionaries(keys, _in_flight() | values_of(StepResult), min_size=1),
        status=st.just(ExecutionStatus.RUNNING),
        worker=st.sampled_from(("worker_1", "worker_2")),
    )
    return st.one_of(free, free, held).map(_sound_execution)


def _in_flight() -> Strategy:
    """A step with a process that may be running."""
    nothing, running = st.none(), st.just(StepStatus.RUNNING)
    waits = {"retry_at": nothing, "awaits": nothing, "until": nothing, "child_id": nothing}
    return _any(StepResult, status=running, **waits).map(_sound_step)


def _sound_execution(run: Execution) -> Execution:
    """
    The execution with the fields that its status demands, and without the fields that it forbids.
    """
    status, over = run.status, run.status in EXECUTION.final
    failed = status is ExecutionStatus.FAILED
    held = run.worker is not None and status is ExecutionStatus.RUNNING
    ended = max(run.accepted_at, run.completed_at or run.accepted_at)
    due = None if over or held else run.due_at or run.accepted_at
    return evolve(
        run,
        completed_at=ended if over else None,
        error=(run.error or "it failed") if failed else None,
        output=run.output if status is ExecutionStatus.COMPLETED else None,
        worker=run.worker if held else None,
        fence=max(run.fence, 1) if held else run.fence,
        due_at=None if status is ExecutionStatus.AWAITING_APPROVAL else due,
        total_steps=max(run.total_steps, len(run.step_results), 1),
    )


def _approvals() -> Strategy:
    groups = st.lists(plain.groups(), max_size=1).map(tuple)
    return _any(Approval, groups=groups, reminded=st.just(0)).map(_sound_approval)


def _sound_approval(approval: Approval) -> Approval:
    """The approval with its expiry, and with a decision exactly where its status demands one."""
    decided = approval.status is not ApprovalStatus.PENDING
    at = approval.decided_at or approval.created_at
    return evolve(
        approval,
        expires_at=later(approval.created_at, approval.timeout_ms),
        decided_at=max(at, approval.created_at) if decided else None,
        decided_by=approval.decided_by if decided else None,
        decision_source=approval.decision_source if decided else None,
        required_approvals=max(approval.required_approvals, 1),
        reminders=tuple(sorted(approval.reminders)),
    )


# What else is not free in its fields


def _sessions() -> Strategy:
    idle = st.integers(0, 7 * DAY)
    return st.builds(_seen_later, _any(Session), idle)


def _seen_later(session: Session, idle: int) -> Session:
    return evolve(session, last_seen_at=later(session.created_at, idle))


def _tallies() -> Strategy:
    status = st.sampled_from((202, 400, 401, 404, 409, 429))
    return _any(Tally, date=plain.instants().map(utc_date), status=status)


def _windows() -> Strategy:
    def window(kind: str, start: int, limit: int | None) -> Window:
        length = 60_000 if kind == "minute" else DAY
        begin = start - start % length
        return Window(kind, EpochMs(begin), EpochMs(begin + length), limit)

    limits = st.none() | st.integers(0, 500_000)
    return st.builds(window, st.sampled_from(("minute", "day")), plain.instants(), limits)


def _taken() -> Strategy:
    full = st.sampled_from(((), ("minute",), ("day",), ("minute", "day")))
    return st.builds(Admission, full, st.tuples(st.integers(0, 300), st.integers(0, 50_000)))


def _pages() -> Strategy:
    rows = st.lists(plain.scalars(), max_size=3).map(tuple)
    more = st.integers(0, 100)
    return st.tuples(rows, more, st.integers(1, 9)).map(
        lambda drawn: Page(drawn[0], len(drawn[0]) + drawn[1], drawn[2], 50)
    )


def _usage() -> Strategy:
    cost = st.none() | st.integers(0, 10**9).map(lambda micros: f"{micros / 1e6:.6f}")
    tokens = st.integers(0, 10**6)
    return st.builds(Usage, tokens, tokens, cost)


def _snapshots() -> Strategy:
    return _any(DefinitionSnapshot, definition=values_of(Definition))


def _webhooks() -> Strategy:
    mapping = st.none() | st.dictionaries(plain.texts(1), plain.texts(1), max_size=2)
    return st.builds(evolve, plain.webhooks(), name=names(), variable_mapping=mapping)


def _step(of_kind: Callable[..., st.SearchStrategy[Any]]) -> Callable[[], Strategy]:
    """Steps of one kind outside a container, in a definition without variables."""

    def steps() -> Strategy:
        name = st.sampled_from(written.STEP_NAMES)
        return name.flatmap(lambda name: of_kind(name, written.Scene((), used=[name])))

    return steps


def _branches() -> Strategy:
    steps = st.builds(written.Scene, st.just(()), depth=st.just(1)).flatmap(written.step_lists)
    return st.builds(Branch, names(), steps)


def _cases() -> Strategy:
    scenes = st.builds(written.Scene, st.just(()), depth=st.just(1))
    return scenes.flatmap(
        lambda scene: st.builds(Case, scene.expressions(), written.step_lists(scene))
    )


def _triggers() -> Strategy:
    schedules = st.tuples(written.schedules(), st.none())
    chains = st.tuples(written.chains(), st.sampled_from(("name:import", "id:wf_1")))
    trigger = _any(Trigger, spec=st.none(), watches=st.none())
    return st.builds(
        lambda trigger, said: evolve(trigger, spec=said[0], watches=said[1]),
        trigger,
        schedules | chains,
    )


_SAID: Mapping[type, Callable[[], st.SearchStrategy[Any]]] = {
    StepResult: _steps,
    Execution: _executions,
    Group: plain.groups,
    Approval: _approvals,
    Session: _sessions,
    Tally: _tallies,
    Window: _windows,
    Admission: _taken,
    Page: _pages,
    PageRequest: lambda: st.builds(PageRequest, st.integers(1, 99), st.integers(1, 200)),
    Usage: _usage,
    Webhook: _webhooks,
    Schedule: written.schedules,
    Chain: written.chains,
    Trigger: _triggers,
    Variable: lambda: st.sampled_from(written.VARIABLE_NAMES).flatmap(plain.variables),
    Retry: written.retries,
    Column: lambda: names().flatmap(written.columns),
    GroupSpec: _step(written.group_specs),
    CodeStep: _step(written.code_steps),
    ApprovalStep: _step(written.approval_steps),
    DelayStep: _step(written.delay_steps),
    MailStep: _step(written.mail_steps),
    ChildStep: _step(written.child_steps),
    ParallelStep: _step(written.parallel_steps),
    LoopStep: _step(written.loop_steps),
    DataStep: _step(written.data_steps),
    SwitchStep: _step(written.switch_steps),
    Case: _cases,
    Branch: _branches,
    Definition: written.definitions,
    DefinitionSnapshot: _snapshots,
}
"""
The strategies for classes whose fields depend on one another, or whose types do not tell which
values are valid.
"""
