"""What accounts own, in memory: keys, sessions, workflows, shares, webhooks, and the logs."""

from collections.abc import Callable, Collection, Sequence
from itertools import takewhile

from attrs import evolve, frozen

from wfcore.memory.disk import Changes, Disk
from wfcore.memory.overlay import Overlay
from wfcore.memory.runs import FINISHED
from wfcore.memory.tables import (
    ACCOUNTS,
    AUDIT,
    CHAIN,
    DEFINITIONS,
    DELIVERIES,
    EXECUTIONS,
    KEYS,
    LOGINS,
    REPLAYS,
    SESSIONS,
    SHARES,
    TALLIES,
    WEBHOOKS,
    WORKFLOWS,
    UnitOfWork,
    by_id,
    cut,
    newest,
)
from wfcore.model.access import Account, ApiKey, Login, Session, Share
from wfcore.model.event import AuditChain, AuditEntry, ChainedEntry
from wfcore.model.page import Page, PageRequest
from wfcore.model.replay import Replay
from wfcore.model.webhook import Delivery, Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.rules.audit.chain import BEGINNING, chained, entry_text, read_entry
from wfcore.rules.limits import DELIVERIES_KEPT
from wfcore.time import DAY, EpochMs


@frozen
class Accounts:
    unit: UnitOfWork

    async def get(self, id: str) -> Account | None:
        return await self.unit.one(ACCOUNTS, id)

    async def some(self, ids: Collection[str]) -> Sequence[Account]:
        return by_id(await self.unit.select(ACCOUNTS, lambda a: a.id in ids))

    async def by_email(self, email: str) -> Account | None:
        return await self.unit.first(ACCOUNTS, lambda a: a.email == email.lower())

    async def list(self, page: PageRequest) -> Page[Account]:
        return cut(newest(await self.unit.select(ACCOUNTS, lambda _: True)), page)

    def put(self, record: Account) -> None:
        def change(overlay: Overlay) -> None:
            taken = any(
                a.email == record.email and a.id != record.id for a in overlay.all(ACCOUNTS)
            )
            overlay.expect(ACCOUNTS, record.id, not taken)
            overlay.put(ACCOUNTS, record.id, record)

        self.unit.collect(change)


@frozen
class Keys:
    unit: UnitOfWork

    async def get(self, id: str) -> ApiKey | None:
        return await self.unit.one(KEYS, id)

    async def some(self, ids: Collection[str]) -> Sequence[ApiKey]:
        return by_id(await self.unit.select(KEYS, lambda k: k.id in ids))

    async def of_account(self, account_id: str) -> Sequence[ApiKey]:
        return newest(await self.unit.select(KEYS, lambda k: k.account_id == account_id))

    def put(self, record: ApiKey) -> None:
        self.unit.put(KEYS, record.id, record)


@frozen
class Sessions:
    unit: UnitOfWork

    async def get(self, id: str) -> Session | None:
        return await self.unit.one(SESSIONS, id)

    async def of_account(self, account_id: str) -> Sequence[Session]:
        return newest(await self.unit.select(SESSIONS, lambda s: s.account_id == account_id))

    def put(self, record: Session) -> None:
        self.unit.put(SESSIONS, record.id, record)

    def delete(self, id: str) -> None:
        self.unit.collect(lambda overlay: overlay.set(SESSIONS, id, None))


@frozen
class Logins:
    unit: UnitOfWork

    async def get(self, id: str) -> Login | None:
        return await self.unit.one(LOGINS, id)

    def put(self, record: Login) -> None:
        self.unit.put(LOGINS, record.id, record)

    def delete(self, id: str) -> None:
        self.unit.collect(lambda overlay: overlay.set(LOGINS, id, None))


@frozen
class Workflows:
    unit: UnitOfWork

    async def get(self, id: str) -> Workflow | None:
        return await self.unit.one(WORKFLOWS, id)

    async def by_name(self, owner_id: str, name: str) -> Workflow | None:
        return await self.unit.first(WORKFLOWS, lambda w: w.owner_id == owner_id and w.name == name)

    async def visible_to(self, account_id: str, page: PageRequest) -> Page[Workflow]:
        shares = await self.unit.select(SHARES, lambda s: s.account_id == account_id)
        shared = {share.workflow_id for share in shares}
        return await self._page(lambda w: w.owner_id == account_id or w.id in shared, page)

    async def list(self, page: PageRequest) -> Page[Workflow]:
        return await self._page(lambda _: True, page)

    async def _page(self, holds: Callable[[Workflow], bool], page: PageRequest) -> Page[Workflow]:
        found = await self.unit.select(WORKFLOWS, holds)
        return cut(sorted(found, key=lambda w: (w.name, w.id)), page, "name", ascending=True)

    def put(self, record: Workflow) -> None:
        def change(overlay: Overlay) -> None:
            taken = any(
                (w.owner_id, w.name) == (record.owner_id, record.name) and w.id != record.id
                for w in overlay.all(WORKFLOWS)
            )
            overlay.expect(WORKFLOWS, record.id, not taken)
            overlay.put(WORKFLOWS, record.id, record)

        self.unit.collect(change)

    def delete(self, record: Workflow) -> None:
        def change(overlay: Overlay) -> None:
            overlay.drop(WORKFLOWS, record.id, record)
            for share in overlay.all(SHARES):
                if share.workflow_id == record.id:
                    overlay.set(SHARES, (share.workflow_id, share.account_id), None)

        self.unit.collect(change)


@frozen
class Definitions:
    unit: UnitOfWork

    async def get(self, workflow_id: str, revision: int) -> DefinitionSnapshot | None:
        return await self.unit.one(DEFINITIONS, (workflow_id, revision))

    async def in_use(self) -> Sequence[DefinitionSnapshot]:
        workflows = await self.unit.select(WORKFLOWS, lambda _: True)
        runs = await self.unit.select(EXECUTIONS, lambda run: run.status not in FINISHED)
        wanted = {(one.id, one.revision) for one in workflows}
        wanted |= {(run.workflow_id, run.revision) for run in runs}
        found = await self.unit.select(
            DEFINITIONS, lambda one: (one.workflow_id, one.revision) in wanted
        )
        return sorted(found, key=lambda one: (one.workflow_id, one.revision))

    def put(self, record: DefinitionSnapshot) -> None:
        new = evolve(record, version=0)
        self.unit.put(DEFINITIONS, (record.workflow_id, record.revision), new)


@frozen
class Shares:
    unit: UnitOfWork

    async def get(self, workflow_id: str, account_id: str) -> Share | None:
        return await self.unit.one(SHARES, (workflow_id, account_id))

    async def of_workflow(self, workflow_id: str) -> Sequence[Share]:
        found = await self.unit.select(SHARES, lambda s: s.workflow_id == workflow_id)
        return sorted(found, key=lambda s: s.account_id)

    def put(self, record: Share) -> None:
        self.unit.put(SHARES, (record.workflow_id, record.account_id), record)

    def delete(self, workflow_id: str, account_id: str) -> None:
        self.unit.collect(lambda o: o.set(SHARES, (workflow_id, account_id), None))


@frozen
class Webhooks:
    unit: UnitOfWork

    async def get(self, id: str) -> Webhook | None:
        return await self.unit.one(WEBHOOKS, id)

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

    def put(self, record: Webhook) -> None:
        self.unit.put(WEBHOOKS, record.id, record)

    def delete(self, record: Webhook) -> None:
        def change(overlay: Overlay) -> None:
            overlay.drop(WEBHOOKS, record.id, record)
            for tally in overlay.all(TALLIES):
                if tally.webhook_id == record.id:
                    overlay.set(TALLIES, (tally.webhook_id, tally.date, tally.status), None)
            for one in overlay.all(DELIVERIES):
                if one.webhook_id == record.id:
                    overlay.set(DELIVERIES, one.id, None)

        self.unit.collect(change)

    def tally(self, webhook_id: str, date: str, status: int, at: EpochMs) -> None:
        key = (webhook_id, date, status)

        def change(overlay: Overlay) -> None:
            old = overlay.get(TALLIES, key) or Tally(webhook_id, date, status, 0, at)
            new = evolve(old, count=old.count + 1, last_at=max(old.last_at, at))
            overlay.set(TALLIES, key, new)

        self.unit.collect(change)

    def deliver(self, record: Delivery) -> None:
        def change(overlay: Overlay) -> None:
            overlay.set(DELIVERIES, record.id, record)
            alike = [
                one.id
                for one in overlay.all(DELIVERIES)
                if (one.webhook_id, one.authenticated) == (record.webhook_id, record.authenticated)
            ]
            for id in sorted(alike)[:-DELIVERIES_KEPT]:
                overlay.set(DELIVERIES, id, None)

        self.unit.collect(change)


@frozen
class Replays:
    unit: UnitOfWork

    async def get(self, scope: str, key: str) -> Replay | None:
        return await self.unit.one(REPLAYS, (scope, key))

    def put(self, record: Replay) -> None:
        key = (record.scope, record.key)

        def change(overlay: Overlay) -> None:
            old = overlay.get(REPLAYS, key)
            if old and record.version == 0 and record.created_at - old.created_at >= DAY:
                overlay.set(REPLAYS, key, None)
            overlay.put(REPLAYS, key, record)

        self.unit.collect(change)


def audit_chain(overlay: Overlay) -> AuditChain:
    """The one chain of a store in memory."""
    return overlay.get(CHAIN, "") or AuditChain("memory", BEGINNING, BEGINNING)


def over_time(disk: Disk, before: EpochMs, limit: int) -> Changes:
    """What deletes up to *limit* entries from the beginning of the chain: those that are old."""
    kept = sorted(Overlay(disk).all(AUDIT), key=lambda entry: entry.number)[:limit]
    entries = [(read_entry(one.text), one) for one in kept]
    old = list(takewhile(lambda pair: pair[0].at < before, entries))
    if not old:
        return {}
    chain = evolve(audit_chain(Overlay(disk)), start=old[-1][1].point)
    return {AUDIT.name: {entry.id: None for entry, _ in old}, CHAIN.name: {"": chain}}


@frozen
class Audit:
    unit: UnitOfWork

    async def list(self, since: EpochMs, after_id: str | None, limit: int) -> Sequence[AuditEntry]:
        kept = (read_entry(entry.text) for entry in await self._where(lambda _: True))
        found = [one for one in kept if one.at >= since and one.id > (after_id or "")]
        return sorted(found, key=lambda entry: entry.id)[:limit]

    async def chain(self) -> AuditChain:
        return await self.unit.one(CHAIN, "") or audit_chain(self.unit.overlay)

    async def chained(self, after: int, limit: int) -> Sequence[ChainedEntry]:
        return (await self._where(lambda entry: entry.number > after))[:limit]

    async def of_execution(self, execution_id: str) -> Sequence[ChainedEntry]:
        return await self._where(lambda one: read_entry(one.text).execution_id == execution_id)

    async def _where(self, holds: Callable[[ChainedEntry], bool]) -> Sequence[ChainedEntry]:
        return sorted(await self.unit.select(AUDIT, holds), key=lambda entry: entry.number)

    def append(self, entry: AuditEntry, record: str | None = None) -> None:
        text = entry_text(entry)

        def change(overlay: Overlay) -> None:
            overlay.expect(AUDIT, entry.id, overlay.get(AUDIT, entry.id) is None)
            chain = audit_chain(overlay)
            linked = chained(chain.id, chain.end, text, record)
            overlay.set(AUDIT, entry.id, linked)
            overlay.set(CHAIN, "", evolve(chain, end=linked.point))

        self.unit.collect(change)
