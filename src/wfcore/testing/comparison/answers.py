"""What the model of `StoreComparison` (plain dicts) answers: one function per query of the port."""

from collections import Counter
from collections.abc import Collection
from typing import Any

from attrs import evolve

from wfcore.model.access import Permission, Share
from wfcore.model.approval import Approval, ApprovalHead, ApprovalStatus
from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.node import Node
from wfcore.model.notice import Notice
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Tally
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.ports.records import HOURS, WEEK, Activity, ApprovalFilter, ExecutionFilter
from wfcore.rules.auth.access import idle
from wfcore.rules.execution.budget import UNPRICED, ended_cost, in_usd
from wfcore.testing.comparison.model import DUE, OVER, State, key_of, newest
from wfcore.time import HOUR, EpochMs


def seen_by(state: State, account: str) -> list[Workflow]:
    shared = {share.workflow_id for share in state.all(Share) if share.account_id == account}
    return [w for w in state.all(Workflow) if w.owner_id == account or w.id in shared]


def listed(state: State, where: ExecutionFilter) -> list[Execution]:
    runs = [
        run
        for run in state.all(Execution)
        if where.owner_id in (None, run.owner_id)
        and where.workflow_id in (None, run.workflow_id)
        and (not where.statuses or run.status in where.statuses)
        and (not where.sources or run.trigger_source in where.sources)
        and _within(where, run.accepted_at)
        and run.id.endswith(where.id_end or "")
    ]
    found = newest(runs, "accepted_at")[:: -1 if where.oldest_first else 1]
    return [evolve(run, output=None, step_results=_bare(run)) for run in found]


def by_status(state: State, where: ExecutionFilter, most: int) -> dict[ExecutionStatus, int]:
    every = evolve(where, statuses=(), id_end=None)
    found = Counter(run.status for run in listed(state, every))
    return {status: min(found[status], most) for status in ExecutionStatus}


def _within(where: ExecutionFilter | ApprovalFilter, at: EpochMs) -> bool:
    return (where.since or 0) <= at and (where.until is None or at < where.until)


def _bare(run: Execution) -> Any:
    return {name: evolve(result, output=None) for name, result in run.step_results.items()}


def shown(state: State, where: ApprovalFilter) -> list[Approval]:
    me, email = where.account_id, (where.email or "").lower()
    voices = {me, f"mailto:{email}"}
    editable = {
        share.workflow_id
        for share in state.all(Share)
        if share.account_id == me and share.permission is Permission.EDIT
    }

    def decides(one: Approval) -> bool:
        approvers = (*one.approvers, *(given.to for given in one.delegations))
        names = {name.strip().lower() for name in approvers}
        owners = (one.owner_id, one.workflow_owner_id)
        return bool(names & {me, email}) if names else one.workflow_id in editable or me in owners

    def sees(one: Approval) -> bool:
        return me is None or me in (one.owner_id, one.workflow_owner_id) or decides(one)

    def agreed(one: Approval) -> bool:
        given_for = {one.given_for.account for one in one.assents if one.given_for}
        return bool(voices & (given_for | {assent.account for assent in one.assents}))

    def waits(one: Approval) -> bool:
        barred = me == one.owner_id and not one.allow_self_approval
        done = barred or agreed(one)
        spared = bool(idle(one) & {(me or "").lower(), email})
        mine = me is None or (decides(one) and not done and not spared)
        return not where.waiting or (mine and one.status is ApprovalStatus.PENDING)

    def agrees(one: Approval) -> bool:
        return not where.agreed or (agreed(one) and one.status is ApprovalStatus.PENDING)

    approvals = [
        one
        for one in state.all(Approval)
        if (not where.statuses or one.status in where.statuses)
        and where.workflow_id in (None, one.workflow_id)
        and where.execution_id in (None, one.execution_id)
        and _within(where, one.created_at)
    ]
    found = newest([one.head for one in approvals if sees(one) and waits(one) and agrees(one)])
    if where.soonest:
        return sorted(found, key=lambda one: (one.expires_at, one.id))
    return found[:: -1 if where.oldest_first else 1]


def due_runs(state: State, limit: int) -> list[Execution]:
    now = state.now()
    over = [
        run
        for run in state.all(Execution)
        if run.status is ExecutionStatus.INTERRUPTED and run.due_at is not None
    ]
    found = [run for run in over if (run.due_at or 0) <= now]
    return sorted(found, key=lambda run: (run.due_at, run.id))[:limit]


def abandoned(state: State, limit: int) -> list[Execution]:
    now = state.now()
    held = [run for run in state.all(Execution) if run.worker and run.status not in OVER]
    lost = [run for run in held if state.leases.get(run.id, 0) < now]
    return sorted(lost, key=lambda run: run.id)[:limit]


def nodes(state: State) -> list[Node]:
    return sorted(state.all(Node), key=lambda node: node.id)


def next_due(state: State, able: Collection[str] | None = None) -> EpochMs | None:
    times = [
        run.due_at
        for run in state.all(Execution)
        if run.status in DUE and run.worker is None and run.due_at is not None
        if able is None or {*run.capabilities} <= {*able}
    ]
    return min(times, default=None)


def ended(state: State, before: EpochMs, limit: int) -> list[str]:
    over = [
        run
        for run in state.all(Execution)
        if run.completed_at is not None and run.completed_at < before
    ]
    return [run.id for run in sorted(over, key=lambda run: (run.completed_at, run.id))][:limit]


def due_approvals(state: State, now: EpochMs, limit: int) -> list[ApprovalHead]:
    due = [one.head for one in open_approvals(state) if one.expires_at <= now]
    return sorted(due, key=lambda one: (one.expires_at, one.id))[:limit]


def open_approvals(state: State) -> list[Approval]:
    return [one for one in state.all(Approval) if one.status is ApprovalStatus.PENDING]


def opened_first(state: State, most: int) -> tuple[int, EpochMs | None]:
    opened = sorted(one.created_at for one in open_approvals(state))[:most]
    return len(opened), min(opened, default=None)


def log(state: State, id: str, above: int, limit: int) -> list[Event]:
    found = [e for e in state.all(Event) if e.execution_id == id and e.number > above]
    return sorted(found, key=lambda event: event.number)[:limit]


def entries(state: State, since: EpochMs, above: str | None, limit: int) -> list[AuditEntry]:
    found = [e for e in state.all(AuditEntry) if e.at >= since and e.id > (above or "")]
    return sorted(found, key=lambda entry: entry.id)[:limit]


def counted(state: State, webhook: str) -> list[Tally]:
    found = [tally for tally in state.all(Tally) if tally.webhook_id == webhook]
    return sorted(found, key=lambda tally: (tally.date, tally.status))


def in_use(state: State) -> list[DefinitionSnapshot]:
    wanted = {(one.id, one.revision) for one in state.all(Workflow)}
    runs = (run for run in state.all(Execution) if run.status not in OVER)
    wanted |= {(run.workflow_id, run.revision) for run in runs}
    found = [one for one in state.all(DefinitionSnapshot) if key_of(one) in wanted]
    return sorted(found, key=key_of)


def due(state: State, kind: type[Any], now: EpochMs) -> list[Any]:
    found = [one for one in state.all(kind) if one.due_at is not None and one.due_at <= now]
    return sorted(found, key=lambda one: (one.due_at, one.id))


def first(state: State, kind: type[Any]) -> EpochMs | None:
    return min((one.due_at for one in state.all(kind) if one.due_at is not None), default=None)


def oldest(records: list[Any]) -> list[Any]:
    return newest(records)[::-1]


def in_group(state: State, group: str) -> list[Execution]:
    return [
        run
        for run in state.all(Execution)
        if run.concurrency_group == group and run.status not in OVER
    ]


def at_address(state: State, to: str, since: EpochMs, limit: int) -> list[Notice]:
    found = [
        one
        for one in state.all(Notice)
        if (one.channel, one.to) == ("mail", to)
        and (one.due_at is not None or (one.attempted_at or -1) >= since)
    ]
    return newest(found)[::-1][:limit]


def triggers_of(state: State, owner_id: str) -> list[Trigger]:
    flows = {one.id for one in state.all(Workflow) if one.owner_id == owner_id}
    return [one for one in state.all(Trigger) if one.workflow_id in flows]


def activity(state: State, ids: list[str], me: str | None, since: EpochMs) -> dict[str, Activity]:
    return {
        one.id: _activity(state, one, me, since) for one in state.all(Workflow) if one.id in ids
    }


def _activity(state: State, flow: Workflow, me: str | None, since: EpochMs) -> Activity:
    def mine(kind: type[Any]) -> list[Any]:
        of_it = (one for one in state.all(kind) if one.workflow_id == flow.id)
        return [one for one in of_it if me in (None, flow.owner_id, one.owner_id)]

    runs = newest(mine(Execution), "accepted_at")
    last = runs[0] if runs else None
    own = {one.id for one in state.all(Trigger) if one.workflow_id == flow.id}
    timers = [one.due_at for one in state.all(Timer) if one.trigger_id in own]
    return Activity(
        last.id if last else None,
        last.status if last else None,
        last.accepted_at if last else None,
        tuple(_hour(runs, since + hour * HOUR) for hour in range(HOURS)),
        sum(one.status is ApprovalStatus.PENDING for one in mine(Approval)),
        min(timers, default=None),
        *_spent(runs, since + HOURS * HOUR),
    )


def _spent(runs: list[Execution], until: int) -> tuple[str, int]:
    week = [ended_cost(run) for run in runs if until - WEEK <= run.accepted_at < until]
    return in_usd(sum(one for one in week if one and one != UNPRICED)), week.count(UNPRICED)


def _hour(runs: list[Execution], begin: int) -> tuple[int, int]:
    then = [run.status for run in runs if begin <= run.accepted_at < begin + HOUR]
    failed = sum(status is ExecutionStatus.FAILED for status in then)
    return sum(status in OVER for status in then) - failed, failed
