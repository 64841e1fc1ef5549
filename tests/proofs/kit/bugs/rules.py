"""Bugs in rules and tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from attrs import evolve

from tests.proofs.kit.bugs.catching import Bug, patched, promise, vector, walk
from wfcore.effects import Outcome, StopSteps, WithdrawApprovals
from wfcore.machine import Machine, Row
from wfcore.model.access import Window
from wfcore.model.execution import ExecutionStatus, StepStatus
from wfcore.model.webhook import DisabledReason
from wfcore.rules.approval import machine as approval
from wfcore.rules.auth import api_key, rate_limit
from wfcore.rules.execution import fold, fold_steps, proceed
from wfcore.rules.execution.machine import EXECUTION, CancelAsked, StepBegun
from wfcore.rules.execution.plan import Begin, Skip, plan
from wfcore.rules.execution.step_machine import STEP, StepState
from wfcore.rules.webhooks import scheme, webhook
from wfcore.testing.contracts import MachineContract
from wfcore.testing.vectors import mappings
from wfcore.testing.walks import execution as walks_execution
from wfcore.testing.walks.decisions import ApprovalWalk, WebhookWalk
from wfcore.testing.walks.execution import ExecutionWalk, StepWalk
from wfcore.time import EpochMs

A = approval.S
E = ExecutionStatus


class ExecutionRows(MachineContract):
    walk = ExecutionWalk


class StepRows(MachineContract):
    walk = StepWalk


class ApprovalRows(MachineContract):
    walk = ApprovalWalk


def with_rows(machine: Machine[Any], *rows: Row[Any]) -> Machine[Any]:
    """The machine with further rows, which its constructor would refuse."""
    broken = evolve(machine)
    pairs = {(row.state, row.fact): row for row in rows}
    object.__setattr__(broken, "rows", (*machine.rows, *rows))
    object.__setattr__(broken, "_by_pair", {**machine._by_pair, **pairs})
    return broken


DECIDES_TWICE = with_rows(
    approval.APPROVAL,
    Row(A.APPROVED, approval.Reject, A.REJECTED, "none"),
    Row(A.REJECTED, approval.Approve, A.APPROVED, "none"),
)
BEGINS_TWICE = with_rows(STEP, Row(StepState.RUNNING, StepBegun, StepState.RUNNING, "none"))
ENDS_TWICE = with_rows(EXECUTION, Row(E.COMPLETED, CancelAsked, E.CANCELLED, "none"))


def expired_late(one: approval.Approval, now: EpochMs) -> bool:
    return one.status is A.PENDING and now > one.expires_at


def gap_before_the_end(run: Any, now: Any, said: Any) -> Any:
    events = NUMBERED(run, now, said)
    final = {f"execution.{status.lower()}" for status in EXECUTION.final}
    return tuple(evolve(one, number=one.number + (one.kind in final)) for one in events)


NUMBERED = fold._numbered
ADVANCE = fold.advance


def keeps_its_worker(run: Any, fact: Any, now: Any) -> Outcome[Any]:
    """The end does not give the place back: a slot is leaked."""
    outcome = ADVANCE(run, fact, now)
    if outcome.record.status not in EXECUTION.final:
        return outcome
    return evolve(outcome, record=evolve(outcome.record, worker=run.worker))


def without(*effects: type) -> Any:
    """The same moves, but these effects are forgotten."""

    def advance(run: Any, fact: Any, now: Any) -> Outcome[Any]:
        outcome = ADVANCE(run, fact, now)
        kept = tuple(one for one in outcome.effects if not isinstance(one, effects))
        return evolve(outcome, effects=kept)

    return advance


def cancels_what_had_ended(run: Any, fact: Any, now: Any) -> Outcome[Any]:
    outcome = ADVANCE(run, fact, now)
    if outcome.record.status is not E.CANCELLED:
        return outcome
    results = {
        name: evolve(one, status=StepStatus.CANCELLED)
        for name, one in outcome.record.step_results.items()
    }
    return evolve(outcome, record=evolve(outcome.record, step_results=results))


def in_place(run: Any, fact: Any, now: Any) -> Outcome[Any]:
    """What was given is changed instead of copied."""
    outcome = ADVANCE(run, fact, now)
    run.step_results.update(outcome.record.step_results)
    return outcome


def last_reason(one: Any, fact: Any, now: Any) -> Any:
    moved = MOVED(one, fact, now)
    if moved.disabled_reason is None:
        return moved
    return evolve(moved, disabled_reason=DisabledReason.MANUAL)


MOVED = webhook.moved


@contextmanager
def sliding_windows() -> Iterator[None]:
    def sliding(kind: str, now: int, length: int, limit: int | None) -> Window:
        return Window(kind, EpochMs(now), EpochMs(now + length), limit)

    with mock.patch.object(rate_limit, "_window", sliding):
        yield


class Anything(str):
    """A checksum that is never found wrong."""

    __hash__ = str.__hash__

    def __ne__(self, other: object) -> bool:
        return False


CHECKSUM = api_key.checksum


def empty_for_missing(payload: Any, mapping: Any) -> Any:
    if mapping is None:
        return MAP_PAYLOAD(payload, mapping)
    return {name: payload.get(field, "") for name, field in mapping.items()}


MAP_PAYLOAD = mappings.map_payload


def never_skips(*asked: Any) -> Any:
    found = plan(*asked)
    moves = (Begin(one.at) if isinstance(one, Skip) else one for one in found.actions)
    return evolve(found, actions=tuple(moves))


def too_early(definition: Any, run: Any, now: Any, *more: Any) -> Any:
    return plan(definition, run, EpochMs(now + 1), *more)


def one_by_one(*asked: Any) -> Any:
    """What may run beside one another waits for one another."""
    found = plan(*asked)
    return evolve(found, actions=() if asked[1].in_flight else found.actions[:1])


BUGS = (
    Bug(
        "an approval expires a millisecond late",
        patched(approval, "expired", expired_late),
        walk(ApprovalWalk),
    ),
    Bug(
        "a decision is applied twice",
        patched(approval, "APPROVAL", DECIDES_TWICE),
        walk(ApprovalWalk),
    ),
    Bug(
        "what has ended is cancelled",
        patched(fold, "EXECUTION", ENDS_TWICE),
        promise(
            ExecutionRows, "test_every_fact_without_a_row_is_refused", state=lambda: E.COMPLETED
        ),
    ),
    Bug(
        "a row leaves a final state",
        patched(ApprovalWalk, "machine", DECIDES_TWICE),
        promise(ApprovalRows, "test_the_table_agrees_with_itself"),
    ),
    Bug(
        "a step that runs is begun again",
        patched(fold_steps, "STEP", BEGINS_TWICE),
        promise(
            StepRows, "test_every_fact_without_a_row_is_refused", state=lambda: StepState.RUNNING
        ),
    ),
    Bug(
        "a lost worker's step is left running",
        patched(fold, "close_all", lambda results, fact, now, why: results),
        walk(ExecutionWalk),
    ),
    Bug(
        "a gap in the numbers before the end",
        patched(fold, "_numbered", gap_before_the_end),
        walk(ExecutionWalk),
    ),
    Bug(
        "the end keeps the worker",
        patched(walks_execution, "advance", keeps_its_worker),
        walk(ExecutionWalk),
    ),
    Bug(
        "the end leaves approvals open",
        patched(walks_execution, "advance", without(WithdrawApprovals)),
        walk(ExecutionWalk),
    ),
    Bug(
        "steps run on after the end",
        patched(walks_execution, "advance", without(StopSteps)),
        walk(ExecutionWalk),
    ),
    Bug(
        "a cancel undoes what had ended",
        patched(walks_execution, "advance", cancels_what_had_ended),
        walk(ExecutionWalk),
    ),
    Bug(
        "a fold changes what it was given",
        patched(walks_execution, "advance", in_place),
        walk(ExecutionWalk),
    ),
    Bug(
        "the last reason to disable wins",
        lambda: mock.patch("wfcore.testing.walks.decisions.moved", last_reason),
        walk(WebhookWalk),
    ),
    Bug(
        "of a signature one digit is not compared",
        patched(scheme, "compare_digest", lambda a, b: a[1:] == b[1:]),
        vector("signatures"),
    ),
    Bug("windows slide", sliding_windows, vector("windows")),
    Bug(
        "the checksum of a key is not compared",
        patched(api_key, "checksum", lambda *parts: Anything(CHECKSUM(*parts))),
        vector("keys"),
    ),
    Bug(
        "a missing field overwrites the default",
        patched(mappings, "map_payload", empty_for_missing),
        vector("mappings"),
    ),
    Bug("a false condition is ignored", patched(proceed, "plan", never_skips), vector("plans")),
    Bug("a retry comes too early", patched(proceed, "plan", too_early), vector("plans")),
    Bug("branches run one by one", patched(proceed, "plan", one_by_one), vector("plans")),
)
