"""
Queries in memory about the belongings of accounts: keys, workflows, webhooks, triggers, the logs.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from attrs import frozen

from wfcore.memory.tables import (
    ACCOUNTS,
    APPROVALS,
    AUDIT,
    CHAIN,
    DEFINITIONS,
    DELIVERIES,
    EXECUTIONS,
    FINISHED,
    KEYS,
    NO_CHAIN,
    NODES,
    SESSIONS,
    SHARES,
    TALLIES,
    TIMERS,
    TRIGGERS,
    WEBHOOKS,
    WORKFLOWS,
    UnitOfWork,
    by_id,
    cut,
    newest,
)
from wfcore.model.access import Account, ApiKey, Session, Share
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.event import AuditChain, AuditEntry, ChainedEntry
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.node import Node
from wfcore.model.page import Page, PageRequest
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Delivery, Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.ports.records import HOURS, WEEK, Activity, LatestExecution
from wfcore.rules.audit.chain import read_entry
from wfcore.rules.execution.budget import UNPRICED, ended_cost, in_usd
from wfcore.time import HOUR, DurationMs, EpochMs

Ends: TypeAlias = tuple[tuple[int, int], ...]
"""The `ends` of an `Activity`."""


@frozen
class Accounts:
    """The queries for accounts, over the tables in memory."""

    unit: UnitOfWork

    async def by_email(self, email: str) -> Account | None:
        return await self.unit.first(ACCOUNTS, lambda a: a.email == email.lower())

    async def list(self, page: PageRequest) -> Page[Account]:
        return cut(newest(await self.unit.select(ACCOUNTS, lambda _: True)), page)


@frozen
class Keys:
    """The queries for API keys, over the tables in memory."""

    unit: UnitOfWork

    async def of_account(self, account_id: str) -> Sequence[ApiKey]:
        return newest(await self.unit.select(KEYS, lambda k: k.account_id == account_id))


@frozen
class Sessions:
    """The queries for sessions, over the tables in memory."""

    unit: UnitOfWork

    async def of_account(self, account_id: str) -> Sequence[Session]:
        return newest(await self.unit.select(SESSIONS, lambda s: s.account_id == account_id))


@frozen
class Workflows:
    """The queries for workflows, over the tables in memory."""

    unit: UnitOfWork

    async def by_name(self, owner_id: str, name: str) -> Workflow | None:
        return await self.unit.first(WORKFLOWS, lambda w: w.owner_id == owner_id and w.name == name)

    async def visible_to(self, account_id: str, page: PageRequest) -> Page[Workflow]:
        shares = await self.unit.select(SHARES, lambda s: s.account_id == account_id)
        shared = {share.workflow_id for share in shares}
        return await self._page(lambda w: w.owner_id == account_id or w.id in shared, page)

    async def list(self, page: PageRequest) -> Page[Workflow]:
        return await self._page(lambda _: True, page)

    async def activity(
        self,
        ids: Collection[str],
        account_id: str | None,
        since: EpochMs,
        span: DurationMs = HOUR,
        spans: int = HOURS,
    ) -> Mapping[str, Activity]:
        found = await self.unit.select(WORKFLOWS, lambda w: w.id in ids)
        ends = partial(ends_of, since=since, span=span, spans=spans)
        until = since + spans * span
        return {one.id: await self._activity(one, account_id, ends, until) for one in found}

    async def _activity(
        self, flow: Workflow, me: str | None, ends: Callable[..., Ends], until: int
    ) -> Activity:
        def seen(one: Execution | Approval) -> bool:
            return one.workflow_id == flow.id and me in (None, flow.owner_id, one.owner_id)

        runs = newest(await self.unit.select(EXECUTIONS, seen), "accepted_at")
        last = next(iter(runs), None)
        asked = await self.unit.select(APPROVALS, seen)
        triggers = await self.unit.select(TRIGGERS, lambda t: t.workflow_id == flow.id)
        own = {trigger.id for trigger in triggers}
        timers = await self.unit.select(TIMERS, lambda t: t.trigger_id in own)
        return Activity(
            last.id if last else None,
            last.status if last else None,
            last.accepted_at if last else None,
            ends((run.accepted_at, run.status) for run in runs),
            sum(one.status is ApprovalStatus.PENDING for one in asked),
            min((timer.due_at for timer in timers), default=None),
            *costs_of(runs, until),
        )

    async def latest(
        self, ids: Collection[str], account_id: str | None, most: int
    ) -> Mapping[str, Sequence[LatestExecution]]:
        flows = await self.unit.select(WORKFLOWS, lambda w: w.id in ids)
        found = {one.id: await self._latest(one, account_id, most) for one in flows}
        return {id: runs for id, runs in found.items() if runs}

    async def _latest(self, flow: Workflow, me: str | None, most: int) -> Sequence[LatestExecution]:
        def seen(one: Execution) -> bool:
            return one.workflow_id == flow.id and me in (None, flow.owner_id, one.owner_id)

        runs = newest(await self.unit.select(EXECUTIONS, seen), "accepted_at")
        return [
            LatestExecution(one.id, one.status, one.accepted_at, one.completed_at)
            for one in runs[:most]
        ]

    async def _page(self, holds: Callable[[Workflow], bool], page: PageRequest) -> Page[Workflow]:
        found = await self.unit.select(WORKFLOWS, holds)
        return cut(sorted(found, key=lambda w: (w.name, w.id)), page, "name", ascending=True)


def ends_of(
    runs: Iterable[tuple[EpochMs, ExecutionStatus]], since: EpochMs, span: int, spans: int
) -> Ends:
    """
    The `Activity.ends` of executions, each given by the instant of its acceptance and its status.
    """
    found = Counter(((at - since) // span, _ENDED.get(status)) for at, status in runs)
    return tuple((found[place, "ended"], found[place, "failed"]) for place in range(spans))


def costs_of(runs: Iterable[Execution], until: int) -> tuple[str, int]:
    """The `Activity.cost_usd` and `Activity.unpriced` of the executions of a week."""
    week = [ended_cost(run) or 0 for run in runs if until - WEEK <= run.accepted_at < until]
    return in_usd(sum(one for one in week if one > 0)), week.count(UNPRICED)


_ENDED = {
    ExecutionStatus.COMPLETED: "ended",
    ExecutionStatus.CANCELLED: "ended",
    ExecutionStatus.FAILED: "failed",
}


@frozen
class Definitions:
    """The queries for stored versions of definitions, over the tables in memory."""

    unit: UnitOfWork

    async def in_use(self) -> Sequence[DefinitionSnapshot]:
        workflows = await self.unit.select(WORKFLOWS, lambda _: True)
        runs = await self.unit.select(EXECUTIONS, lambda run: run.status not in FINISHED)
        wanted = {(one.id, one.revision) for one in workflows}
        wanted |= {(run.workflow_id, run.revision) for run in runs}
        found = await self.unit.select(
            DEFINITIONS, lambda one: (one.workflow_id, one.revision) in wanted
        )
        return sorted(found, key=lambda one: (one.workflow_id, one.revision))


@frozen
class Shares:
    """The queries for shares of workflows, over the tables in memory."""

    unit: UnitOfWork

    async def of_workflow(self, workflow_id: str) -> Sequence[Share]:
        found = await self.unit.select(SHARES, lambda s: s.workflow_id == workflow_id)
        return sorted(found, key=lambda s: s.account_id)


@frozen
class Webhooks:
    """The queries for webhooks and their deliveries, over the tables in memory."""

    unit: UnitOfWork

    async def of_owner(self, owner_id: str | None, page: PageRequest) -> Page[Webhook]:
        found = await self.unit.select(WEBHOOKS, lambda w: owner_id in (None, w.owner_id))
        return cut(newest(found), page)

    async def all_of_owner(self, owner_id: str) -> Sequence[Webhook]:
        return newest(await self.unit.select(WEBHOOKS, lambda w: w.owner_id == owner_id))

    async def of_workflow(self, workflow_id: str) -> Sequence[Webhook]:
        return newest(await self.unit.select(WEBHOOKS, lambda w: w.workflow_id == workflow_id))

    async def tallies(self, webhook_id: str) -> Sequence[Tally]:
        found = await self.unit.select(TALLIES, lambda t: t.webhook_id == webhook_id)
        return sorted(found, key=lambda t: (t.date, t.status))

    async def deliveries(self, webhook_id: str) -> Sequence[Delivery]:
        found = await self.unit.select(DELIVERIES, lambda d: d.webhook_id == webhook_id)
        return sorted(found, key=lambda d: d.id, reverse=True)


@frozen
class Triggers:
    """The queries for triggers, over the tables in memory."""

    unit: UnitOfWork

    async def list(self, page: PageRequest) -> Page[Trigger]:
        return cut(newest(await self.unit.select(TRIGGERS, lambda _: True)), page)

    async def of_owner(self, owner_id: str, page: PageRequest) -> Page[Trigger]:
        flows = await self.unit.select(WORKFLOWS, lambda w: w.owner_id == owner_id)
        own = {flow.id for flow in flows}
        return cut(newest(await self.unit.select(TRIGGERS, lambda t: t.workflow_id in own)), page)

    async def of_workflow(self, workflow_id: str) -> Sequence[Trigger]:
        return newest(await self.unit.select(TRIGGERS, lambda t: t.workflow_id == workflow_id))[
            ::-1
        ]

    async def of_workflows(self, ids: Collection[str]) -> Sequence[Trigger]:
        return newest(await self.unit.select(TRIGGERS, lambda t: t.workflow_id in ids))[::-1]

    async def watching(self, keys: Collection[str]) -> Sequence[Trigger]:
        return newest(await self.unit.select(TRIGGERS, lambda t: t.watches in keys))[::-1]


@frozen
class Timers:
    """The queries for timers, over the tables in memory."""

    unit: UnitOfWork

    async def due(self, now: EpochMs, limit: int) -> Sequence[Timer]:
        found = await self.unit.select(TIMERS, lambda timer: timer.due_at <= now)
        return sorted(found, key=lambda timer: (timer.due_at, timer.id))[:limit]

    async def next_due(self) -> EpochMs | None:
        found = await self.unit.select(TIMERS, lambda _: True)
        return min((timer.due_at for timer in found), default=None)

    async def next_of(self, trigger_id: str) -> EpochMs | None:
        found = await self.unit.select(TIMERS, lambda timer: timer.trigger_id == trigger_id)
        return min((timer.due_at for timer in found), default=None)


@frozen
class Nodes:
    """The queries for nodes, over the tables in memory."""

    unit: UnitOfWork

    async def list(self) -> Sequence[Node]:
        return by_id(await self.unit.select(NODES, lambda _: True))


@frozen
class Audit:
    """The queries for the audit log, over the tables in memory."""

    unit: UnitOfWork

    async def list(self, since: EpochMs, after_id: str | None, limit: int) -> Sequence[AuditEntry]:
        kept = (read_entry(entry.text) for entry in await self._where(lambda _: True))
        found = [one for one in kept if one.at >= since and one.id > (after_id or "")]
        return sorted(found, key=lambda entry: entry.id)[:limit]

    async def newest(self, before: int | None, limit: int) -> Sequence[tuple[int, AuditEntry]]:
        found = await self._where(lambda entry: before is None or entry.number < before)
        return [(one.number, read_entry(one.text)) for one in found[::-1][:limit]]

    async def chain(self) -> AuditChain:
        return await self.unit.one(CHAIN, "") or NO_CHAIN

    async def chained(self, after: int, limit: int) -> Sequence[ChainedEntry]:
        return (await self._where(lambda entry: entry.number > after))[:limit]

    async def of_execution(self, execution_id: str) -> Sequence[ChainedEntry]:
        return await self._where(lambda one: read_entry(one.text).execution_id == execution_id)

    async def _where(self, holds: Callable[[ChainedEntry], bool]) -> Sequence[ChainedEntry]:
        return sorted(await self.unit.select(AUDIT, holds), key=lambda entry: entry.number)
