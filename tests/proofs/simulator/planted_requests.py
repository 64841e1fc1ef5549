"""Bugs to plant in what clients ask for: starts, decisions, cancels, quotas. See `planted`."""

from typing import Any

import pytest
from attrs import evolve

from wfcore.errors import AlreadyFinished, IllegalMove, Stale
from wfcore.memory import MemoryCounters
from wfcore.model.access import Admission, Window
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.execution import Execution, ExecutionStatus, Replay
from wfcore.rules.approval import machine as decisions
from wfcore.rules.approval.machine import BY_TIMEOUT, Approve, Expire, decide, expired
from wfcore.rules.execution import fold, machine, proceed
from wfcore.rules.execution.fold import advance
from wfcore.usecases import unit_of_work
from wfcore.usecases.approvals import deciding, expiry
from wfcore.usecases.executions import executions, starting
from wfcore.usecases.services import Services
from wfcore.usecases.webhooks import triggering, webhooks


def second_decision_acknowledged(patch: pytest.MonkeyPatch) -> None:
    """Whoever lost the race for a decision is told that it has won."""
    once = deciding._decide.__wrapped__  # type: ignore[attr-defined]

    async def decides(services: Services, who: Any, asked: Any, origin: Any) -> Any:
        try:
            return await once(services, who, asked, origin)
        except Stale:
            async with services.store.view() as view:
                approval = await view.get(Approval, asked.approval_id)
            yes = isinstance(asked.decision, Approve)
            return evolve(
                approval, status=ApprovalStatus.APPROVED if yes else ApprovalStatus.REJECTED
            )

    patch.setattr(deciding, "_decide", decides)


def expiry_overrides(patch: pytest.MonkeyPatch) -> None:
    """An expiry looks once whether somebody decided, and writes without looking again."""

    async def expire(services: Services, approval_id: str) -> bool:
        now = services.clock.deadline_now()
        async with services.store.view() as view:
            approval = await view.get(Approval, approval_id)
        if approval is None or not expired(approval, now):
            return False
        async with services.store.unit() as unit:
            current = await unit.get(Approval, approval_id)
            run = await unit.get(Execution, approval.execution_id)
            assert run is not None
            assert current is not None
            over = decide(approval, Expire(), BY_TIMEOUT, now).record
            unit.put(evolve(over, version=current.version))
            rejected = machine.Rejected(approval.step_name, approval.id, timed_out=True)
            if run.status is ExecutionStatus.AWAITING_APPROVAL:
                await unit_of_work.stage(unit, advance(run, rejected, now), now)
            await unit.commit()
        return True

    patch.setattr(expiry, "expire", expiry.retried(expire))


def approvals_outlive(patch: pytest.MonkeyPatch) -> None:
    """A cancelled execution leaves its question open."""

    async def withdraw(*_: Any) -> None:
        """Do nothing."""

    patch.setattr(unit_of_work, "_withdraw", withdraw)


def retried_without_reading(patch: pytest.MonkeyPatch) -> None:
    """A cancel that met somebody faster writes what it had decided before."""

    async def cancel(services: Services, who: Any, execution_id: str, origin: Any = None) -> Any:
        now = services.store.now()
        async with services.store.view() as view:
            run = await executions.execution_for(view, who, execution_id)
        try:
            outcome = advance(run, machine.CancelAsked(), now)
        except IllegalMove:
            raise AlreadyFinished("over", run.id) from None
        while True:
            async with services.store.unit() as unit:
                current = await unit.get(Execution, execution_id)
                assert current is not None
                told = [
                    evolve(event, number=current.events + number)
                    for number, event in enumerate(outcome.events, start=1)
                ]
                number = current.events + len(told)
                record = evolve(outcome.record, version=current.version, events=number)
                again = evolve(outcome, record=record, events=tuple(told))
                await unit_of_work.stage(unit, again, now)
                try:
                    await unit.commit()
                except Stale:
                    continue
                return record

    patch.setattr(executions, "cancel_execution", cancel)


def events_get_lost(patch: pytest.MonkeyPatch) -> None:
    """The last event of a cancel is not stored."""
    collect = unit_of_work.stage

    async def collecting(unit: Any, outcome: Any, now: Any) -> Any:
        return await collect(unit, evolve(outcome, events=outcome.events[:-1]), now)

    patch.setattr(executions, "stage", collecting)


def key_in_a_unit_of_its_own(patch: pytest.MonkeyPatch) -> None:
    """The idempotency key is stored after the execution, in another unit."""
    accept = starting.accept_start

    async def accepts(
        services: Services,
        unit: Any,
        workflow: Any,
        start: Any,
        now: Any,
        asked: Any,
        *more: Any,
        **named: Any,
    ) -> Any:
        started = await accept(services, unit, workflow, start, now, None, *more, **named)
        if asked is not None:
            async with services.store.unit() as after:
                after.put(asked.record_for(started.execution_id, now))
                await after.commit()
        return started

    patch.setattr(starting, "accept_start", accepts)
    patch.setattr(triggering, "accept_start", accepts)


def key_read_twice(patch: pytest.MonkeyPatch) -> None:
    """The idempotency key is looked up, and read again when it is stored."""
    accept = starting.accept_start

    async def accepts(
        services: Services,
        unit: Any,
        workflow: Any,
        start: Any,
        now: Any,
        asked: Any,
        *more: Any,
        **named: Any,
    ) -> Any:
        if asked is not None:
            found = await unit.get(Replay, asked.scope, asked.idempotency.key)
            asked = evolve(asked, found=found)
        return await accept(services, unit, workflow, start, now, asked, *more, **named)

    patch.setattr(starting, "accept_start", accepts)
    patch.setattr(triggering, "accept_start", accepts)


def quota_in_two_steps(patch: pytest.MonkeyPatch) -> None:
    """A quota is looked at first and counted afterwards."""

    async def take(
        self: MemoryCounters, subject: str, asked: tuple[Window, ...], now: Any
    ) -> Admission:
        counts = await self._gate("look", subject, lambda: self.ledger.peek_counts(subject, asked))
        if any(w.limit is not None and n >= w.limit for w, n in zip(asked, counts, strict=True)):
            return Admission(tuple(window.kind for window in asked), counts)
        free = [evolve(window, limit=None) for window in asked]
        return await self._gate("take", subject, lambda: self.ledger.take(subject, free))

    patch.setattr(MemoryCounters, "take", take)


def room_unclaimed(patch: pytest.MonkeyPatch) -> None:
    """The plan's number of webhooks is counted, and not held against others who count."""

    async def counts(unit: Any, owner: Any, webhook_id: str) -> None:
        others = await unit.webhooks.all_of_owner(owner.id)
        webhooks.rules.require_room(owner.plan, others)

    patch.setattr(webhooks, "_claim_room", counts)


def each_branch_asks_for_budget(patch: pytest.MonkeyPatch) -> None:
    """A step that meets a spent budget asks, whether people are asked already or not."""
    patch.setattr(proceed, "open_budget_question", lambda run, definition: None)


def link_and_account_are_two(patch: pytest.MonkeyPatch) -> None:
    """Who has agreed by personal link agrees once more with the account."""
    patch.setattr(decisions, "one_person", lambda one, other: one.account == other.account)


def a_round_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Going back drops the results of the round instead of putting them aside."""
    once = fold._revised

    def forgets(run: Execution, fact: Any, now: Any) -> Any:
        change = once(run, fact, now)
        return evolve(change, changes={**change.changes, "put_aside": run.put_aside})

    patch.setitem(fold.FOLDS, machine.Revised, forgets)  # type: ignore[arg-type]
