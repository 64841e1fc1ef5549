"""The records of executions in memory: executions, approvals, artifacts, events."""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from attrs import evolve, frozen

from wfcore.memory.overlay import Table
from wfcore.memory.tables import (
    APPROVALS,
    ARTIFACTS,
    CALLBACKS,
    EVENTS,
    EXECUTIONS,
    FINISHED,
    NOTICES,
    SHARES,
    UnitOfWork,
    cut,
    newest,
)
from wfcore.memory.writes import is_gone, is_open
from wfcore.model.access import Permission
from wfcore.model.approval import Approval, ApprovalHead, ApprovalStatus
from wfcore.model.event import Event
from wfcore.model.execution import Artifact, Callback, Execution, ExecutionStatus
from wfcore.model.notice import Notice, NoticeStatus
from wfcore.model.page import Page, PageRequest
from wfcore.ports.records import SEARCHED, ApprovalFilter, ExecutionFilter
from wfcore.rules.approval.machine import accounts_of, next_reminder
from wfcore.rules.auth.access import idle, named
from wfcore.time import DurationMs, EpochMs

DUE = (
    ExecutionStatus.PENDING,
    ExecutionStatus.RUNNING,
    ExecutionStatus.AWAITING_APPROVAL,
)


@frozen
class Executions:
    """The queries for executions, over the tables in memory."""

    unit: UnitOfWork

    async def list(self, where: ExecutionFilter, page: PageRequest) -> Page[Execution]:
        runs: Sequence[Execution] = await self.unit.select(EXECUTIONS, partial(fits, where))
        if where.id_end is not None:
            searched = newest(runs, "accepted_at")
            floor = searched[:SEARCHED][-1].accepted_at if searched else 0
            end = where.id_end
            runs = [one for one in runs if one.accepted_at >= floor and one.id.endswith(end)]
        runs = ordered(runs, where, "accepted_at")
        found = cut(runs, page, "accepted_at", where.oldest_first)
        return evolve(found, rows=tuple(map(listed, found.rows)))

    async def by_status(self, where: ExecutionFilter, most: int) -> Mapping[ExecutionStatus, int]:
        runs = await self.unit.select(EXECUTIONS, partial(fits, evolve(where, statuses=())))
        found = Counter(run.status for run in runs)
        return {status: min(found[status], most) for status in ExecutionStatus}

    async def durations(
        self, owner_id: str, since: EpochMs, span: DurationMs, spans: int, most: int
    ) -> Mapping[int, Sequence[DurationMs]]:
        done = ExecutionFilter(owner_id, statuses=(ExecutionStatus.COMPLETED,), since=since)
        found = defaultdict[int, list[DurationMs]](list)
        runs = newest(await self.unit.select(EXECUTIONS, partial(fits, done)), "accepted_at")
        for run in runs:
            place = (run.accepted_at - since) // span
            if run.completed_at is not None and len(found[place]) < most:
                found[place].append(DurationMs(run.completed_at - run.accepted_at))
        return {place: sorted(found[place]) for place in range(spans) if found[place]}

    async def grace_over(self, limit: int) -> Sequence[Execution]:
        now = self.unit.now()
        found = await self.unit.select(
            EXECUTIONS,
            lambda run: (
                run.status is ExecutionStatus.INTERRUPTED
                and run.due_at is not None
                and run.due_at <= now
            ),
        )
        return sorted(found, key=lambda run: (run.due_at, run.id))[:limit]

    async def abandoned(self, limit: int) -> Sequence[Execution]:
        now = self.unit.now()

        def holds(run: Execution) -> bool:
            held = run.worker is not None and run.status not in FINISHED
            return held and is_gone(self.unit.overlay, run, now, self.unit.ended)

        return sorted(await self.unit.select(EXECUTIONS, holds), key=lambda run: run.id)[:limit]

    async def next_due(self, able: Collection[str] | None = None) -> EpochMs | None:
        found = await self.unit.select(EXECUTIONS, lambda run: waits(run) and can_run(able, run))
        return min((run.due_at for run in found if run.due_at is not None), default=None)

    async def ended_before(self, at: EpochMs, limit: int) -> Sequence[str]:
        found = await self.unit.select(
            EXECUTIONS, lambda run: run.completed_at is not None and run.completed_at < at
        )
        return [run.id for run in sorted(found, key=lambda r: (r.completed_at, r.id))][:limit]

    async def redriven_as(self, id: str) -> str | None:
        found = await self.unit.select(EXECUTIONS, lambda run: run.redrive_of == id)
        return next((run.id for run in newest(found, "accepted_at")), None)


R = TypeVar("R")


def fits(where: ExecutionFilter, run: Execution) -> bool:
    """Whether *run* fits every field of the filter except `id_end`."""
    return (
        where.owner_id in (None, run.owner_id)
        and where.workflow_id in (None, run.workflow_id)
        and (not where.statuses or run.status in where.statuses)
        and (not where.sources or run.trigger_source in where.sources)
        and where.reference in (None, run.reference)
        and within(where, run.accepted_at)
    )


def within(where: ExecutionFilter | ApprovalFilter, at: EpochMs) -> bool:
    """Whether *at* lies in the span of the filter."""
    late = where.since is None or at >= where.since
    return late and (where.until is None or at < where.until)


def ordered(
    records: Sequence[R], where: ExecutionFilter | ApprovalFilter, at: str = "created_at"
) -> Sequence[R]:
    """*records* in the order of the filter."""
    found = newest(records, at)
    return found[::-1] if where.oldest_first else found


def waits(run: Execution) -> bool:
    """Whether *run* has a due time and no worker."""
    return run.status in DUE and run.due_at is not None and run.worker is None


def can_run(able: Collection[str] | None, run: Execution) -> bool:
    """Whether a worker with the capabilities *able* (None: all) may take *run*."""
    return able is None or {*run.capabilities} <= {*able}


def listed(run: Execution) -> Execution:
    """
    *run* in its form for lists: without outputs and items; with variables only if some are masked.
    """
    results = run.step_results.items()
    bare = {name: evolve(result, output=None, items=None) for name, result in results}
    aside = {name: evolve(one, output=None, items=None) for name, one in run.put_aside.items()}
    variables = run.variables if run.secrets else {}
    return evolve(
        run, step_results=bare, put_aside=aside, variables=variables, trigger={}, output=None
    )


@frozen
class Approvals:
    """The queries for approvals, over the tables in memory."""

    unit: UnitOfWork

    async def list(self, where: ApprovalFilter, page: PageRequest) -> Page[ApprovalHead]:
        found = await self._that_fit(where)
        if where.soonest:
            soonest = sorted(found, key=lambda a: (a.expires_at, a.id))
            return _heads(cut(soonest, page, "expires_at", ascending=True))
        return _heads(cut(ordered(found, where), page, ascending=where.oldest_first))

    async def count(self, where: ApprovalFilter, most: int) -> int:
        return min(len(await self._that_fit(where)), most)

    async def _that_fit(self, where: ApprovalFilter) -> Sequence[Approval]:
        edits = await self.unit.select(
            SHARES,
            lambda s: s.account_id == where.account_id and s.permission is Permission.EDIT,
        )
        editable = {share.workflow_id for share in edits}
        return await self.unit.select(
            APPROVALS,
            lambda a: (
                (not where.statuses or a.status in where.statuses)
                and where.workflow_id in (None, a.workflow_id)
                and where.execution_id in (None, a.execution_id)
                and within(where, a.created_at)
                and shown(a, where, editable)
                and (not where.waiting or waits_for(a, where, editable))
                and (not where.agreed or has_agreed(a, where))
            ),
        )

    async def of_execution(self, execution_id: str) -> Sequence[Approval]:
        return newest(await self.unit.select(APPROVALS, lambda a: a.execution_id == execution_id))

    async def due(self, now: EpochMs, limit: int) -> Sequence[ApprovalHead]:
        found = await self.unit.select(
            APPROVALS, lambda a: a.status is ApprovalStatus.PENDING and a.expires_at <= now
        )
        return [one.head for one in sorted(found, key=lambda a: (a.expires_at, a.id))[:limit]]

    async def reminders_due(self, now: EpochMs, limit: int) -> Sequence[ApprovalHead]:
        def due(one: Approval) -> bool:
            at = next_reminder(one)
            return at is not None and at <= now

        found = await self.unit.select(APPROVALS, due)
        soonest = sorted(found, key=lambda a: (next_reminder(a), a.id))
        return [one.head for one in soonest[:limit]]

    async def open(self, most: int) -> tuple[int, EpochMs | None]:
        found = await self.unit.select(APPROVALS, lambda a: a.status is ApprovalStatus.PENDING)
        opened = sorted(a.created_at for a in found)[:most]
        return len(opened), min(opened, default=None)

    async def next_deadline(self) -> EpochMs | None:
        found = await self.unit.select(APPROVALS, lambda a: a.status is ApprovalStatus.PENDING)
        instants = (at for a in found for at in (a.expires_at, next_reminder(a)) if at is not None)
        return min(instants, default=None)


def _heads(found: Page[Approval]) -> Page[ApprovalHead]:
    rows = tuple(one.head for one in found.rows)
    return Page(rows, found.total, found.page, found.size, found.next)


def shown(approval: Approval, where: ApprovalFilter, editable: set[str]) -> bool:
    """Whether a list with that filter shows *approval*. See `ApprovalFilter`."""
    if where.account_id is None:
        return True
    owners = (approval.owner_id, approval.workflow_owner_id)
    return where.account_id in owners or _may_decide(approval, where, editable)


def waits_for(approval: Approval, where: ApprovalFilter, editable: set[str]) -> bool:
    """Whether a decision on *approval* is awaited from the account of the filter."""
    me = where.account_id
    barred = me == approval.owner_id and not approval.allow_self_approval
    done = barred or _has_assented(approval, where)
    spared = not idle(approval).isdisjoint(((me or "").lower(), (where.email or "").lower()))
    mine = me is None or (not (done or spared) and _may_decide(approval, where, editable))
    return mine and approval.status is ApprovalStatus.PENDING


def has_agreed(approval: Approval, where: ApprovalFilter) -> bool:
    """
    Whether the account of the filter has approved *approval*, which still waits for other
    approvers.
    """
    return _has_assented(approval, where) and approval.status is ApprovalStatus.PENDING


def _has_assented(approval: Approval, where: ApprovalFilter) -> bool:
    given = {account for one in approval.assents for account in accounts_of(one)}
    return not given.isdisjoint(where.identities)


def _may_decide(approval: Approval, where: ApprovalFilter, editable: set[str]) -> bool:
    if not approval.approvers:
        owners = (approval.owner_id, approval.workflow_owner_id)
        return where.account_id in owners or approval.workflow_id in editable
    assert where.account_id is not None
    return not named(approval).isdisjoint({where.account_id.lower(), (where.email or "").lower()})


@frozen
class Artifacts:
    """The queries for artifacts, over the tables in memory."""

    unit: UnitOfWork

    async def of_execution(self, execution_id: str) -> Sequence[Artifact]:
        return newest(await self.unit.select(ARTIFACTS, lambda a: a.execution_id == execution_id))


D = TypeVar("D", Callback, Notice)


async def _due(unit: UnitOfWork, table: Table[D], limit: int) -> Sequence[D]:
    now = unit.now()
    found = await unit.select(table, lambda one: one.due_at is not None and one.due_at <= now)
    return sorted(found, key=lambda one: (one.due_at, one.id))[:limit]


async def _next_due(unit: UnitOfWork, table: Table[D]) -> EpochMs | None:
    waiting = await unit.select(table, lambda one: one.due_at is not None)
    return min((one.due_at for one in waiting if one.due_at is not None), default=None)


@frozen
class Callbacks:
    """The queries for callbacks, over the tables in memory."""

    unit: UnitOfWork

    async def due(self, limit: int) -> Sequence[Callback]:
        return await _due(self.unit, CALLBACKS, limit)

    async def next_due(self) -> EpochMs | None:
        return await _next_due(self.unit, CALLBACKS)


@frozen
class Notices:
    unit: UnitOfWork

    async def due(self, limit: int) -> Sequence[Notice]:
        return await _due(self.unit, NOTICES, limit)

    async def next_due(self) -> EpochMs | None:
        return await _next_due(self.unit, NOTICES)

    async def at_address(
        self, channel: str, to: str, since: EpochMs, limit: int
    ) -> Sequence[Notice]:
        def holds(one: Notice) -> bool:
            lately = one.attempted_at is not None and one.attempted_at >= since
            return one.address == (channel, to) and (one.due_at is not None or lately)

        return newest(await self.unit.select(NOTICES, holds))[::-1][:limit]

    async def list(self, statuses: tuple[NoticeStatus, ...], page: PageRequest) -> Page[Notice]:
        holds = lambda one: not statuses or one.status in statuses  # noqa: E731
        return cut(newest(await self.unit.select(NOTICES, holds)), page)


@frozen
class Events:
    """Queries of one log: the events, or the output lines."""

    unit: UnitOfWork
    table: Table[tuple[Event, ...]] = EVENTS

    async def of_execution(self, execution_id: str, after: int, limit: int) -> Sequence[Event]:
        log = await self.unit.one(self.table, execution_id) or ()
        return [event for event in log if event.number > after][:limit]


@frozen
class Groups:
    """The queries for concurrency groups, over the tables in memory."""

    unit: UnitOfWork

    async def unfinished(self, group: str) -> int:
        return len(await self.unit.select(EXECUTIONS, lambda run: is_open(run, group)))

    async def held(self, group: str) -> int:
        found = await self.unit.select(EXECUTIONS, lambda run: is_open(run, group))
        return sum(run.fence > 0 for run in found)


def waiting_in_groups(runs: Iterable[Execution], limits: Mapping[Hashable, int]) -> frozenset[str]:
    """
    The ids of the executions that wait for an end in their concurrency group, counted from *runs*.
    """
    held = Counter[str]()
    queues: defaultdict[str, list[Execution]] = defaultdict(list)
    for run in runs:
        if run.concurrency_group is None or run.status in FINISHED:
            continue
        if run.fence > 0:
            held[run.concurrency_group] += 1
        elif run.workflow_id in limits:
            queues[run.concurrency_group].append(run)
    late: list[Execution] = []
    for group, queue in queues.items():
        queue.sort(key=lambda run: (run.due_at or 0, run.id))
        late += queue[max(0, limits[queue[0].workflow_id] - held[group]) :]
    return frozenset(run.id for run in late)
