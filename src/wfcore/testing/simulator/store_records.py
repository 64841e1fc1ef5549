"""What accounts own, in the simulated store: keys, sessions, workflows, shares, webhooks, logs."""

from collections.abc import Callable, Sequence

from attrs import evolve

from wfcore.instants import DAY, EpochMs
from wfcore.model.access import Account, ApiKey, Login, Session, Share
from wfcore.model.event import AuditEntry
from wfcore.model.page import Page, PageRequest
from wfcore.model.replay import Replay
from wfcore.model.webhook import Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.testing.simulator.desk import Desk, cut, newest
from wfcore.testing.simulator.tables import (
    ACCOUNTS,
    AUDIT,
    DEFINITIONS,
    KEYS,
    LOGINS,
    REPLAYS,
    SESSIONS,
    SHARES,
    TALLIES,
    WEBHOOKS,
    WORKFLOWS,
    Overlay,
)


class OfDesk:
    """One kind of record, as one unit sees it."""

    __slots__ = ("desk",)

    def __init__(self, desk: Desk) -> None:
        self.desk = desk


class Accounts(OfDesk):
    async def get(self, id: str) -> Account | None:
        return await self.desk.one(ACCOUNTS, id)

    async def by_email(self, email: str) -> Account | None:
        found = await self.desk.select(ACCOUNTS, lambda a: a.email == email.lower())
        return found[0] if found else None

    async def list(self, page: PageRequest) -> Page[Account]:
        return cut(newest(await self.desk.select(ACCOUNTS, lambda _: True)), page)

    def put(self, record: Account) -> None:
        def change(overlay: Overlay) -> None:
            others = (a for a in overlay.all(ACCOUNTS) if a.id != record.id)
            overlay.expect(ACCOUNTS, record.id, all(a.email != record.email for a in others))
            overlay.put(ACCOUNTS, record.id, record)

        self.desk.collect(change)


class Keys(OfDesk):
    async def get(self, id: str) -> ApiKey | None:
        return await self.desk.one(KEYS, id)

    async def of_account(self, account_id: str) -> Sequence[ApiKey]:
        return newest(await self.desk.select(KEYS, lambda k: k.account_id == account_id))

    def put(self, record: ApiKey) -> None:
        self.desk.put(KEYS, record.id, record)


class Sessions(OfDesk):
    async def get(self, id: str) -> Session | None:
        return await self.desk.one(SESSIONS, id)

    def put(self, record: Session) -> None:
        self.desk.put(SESSIONS, record.id, record)

    def delete(self, id: str) -> None:
        self.desk.collect(lambda overlay: overlay.set(SESSIONS, id, None))


class Logins(OfDesk):
    async def get(self, id: str) -> Login | None:
        return await self.desk.one(LOGINS, id)

    def put(self, record: Login) -> None:
        self.desk.put(LOGINS, record.id, record)

    def delete(self, id: str) -> None:
        self.desk.collect(lambda overlay: overlay.set(LOGINS, id, None))


class Workflows(OfDesk):
    async def get(self, id: str) -> Workflow | None:
        return await self.desk.one(WORKFLOWS, id)

    async def by_name(self, owner_id: str, name: str) -> Workflow | None:
        found = await self.desk.select(
            WORKFLOWS, lambda w: (w.owner_id, w.name) == (owner_id, name)
        )
        return found[0] if found else None

    async def visible_to(self, account_id: str, page: PageRequest) -> Page[Workflow]:
        shares = await self.desk.select(SHARES, lambda s: s.account_id == account_id)
        shared = {share.workflow_id for share in shares}
        return await self._page(lambda w: w.owner_id == account_id or w.id in shared, page)

    async def list(self, page: PageRequest) -> Page[Workflow]:
        return await self._page(lambda _: True, page)

    async def _page(self, holds: Callable[[Workflow], bool], page: PageRequest) -> Page[Workflow]:
        found = await self.desk.select(WORKFLOWS, holds)
        return cut(sorted(found, key=lambda w: (w.name, w.id)), page)

    def put(self, record: Workflow) -> None:
        name = (record.owner_id, record.name)

        def change(overlay: Overlay) -> None:
            others = (w for w in overlay.all(WORKFLOWS) if w.id != record.id)
            free = all((w.owner_id, w.name) != name for w in others)
            overlay.expect(WORKFLOWS, record.id, free)
            overlay.put(WORKFLOWS, record.id, record)

        self.desk.collect(change)

    def delete(self, record: Workflow) -> None:
        def change(overlay: Overlay) -> None:
            overlay.drop(WORKFLOWS, record.id, record)
            for share in list(overlay.all(SHARES)):
                if share.workflow_id == record.id:
                    overlay.set(SHARES, (share.workflow_id, share.account_id), None)

        self.desk.collect(change)


class Definitions(OfDesk):
    async def get(self, workflow_id: str, revision: int) -> DefinitionSnapshot | None:
        return await self.desk.one(DEFINITIONS, (workflow_id, revision))

    def put(self, record: DefinitionSnapshot) -> None:
        new = evolve(record, version=0)
        self.desk.put(DEFINITIONS, (record.workflow_id, record.revision), new)


class Shares(OfDesk):
    async def get(self, workflow_id: str, account_id: str) -> Share | None:
        return await self.desk.one(SHARES, (workflow_id, account_id))

    async def of_workflow(self, workflow_id: str) -> Sequence[Share]:
        found = await self.desk.select(SHARES, lambda s: s.workflow_id == workflow_id)
        return sorted(found, key=lambda s: s.account_id)

    def put(self, record: Share) -> None:
        self.desk.put(SHARES, (record.workflow_id, record.account_id), record)

    def delete(self, workflow_id: str, account_id: str) -> None:
        self.desk.collect(lambda o: o.set(SHARES, (workflow_id, account_id), None))


class Webhooks(OfDesk):
    async def get(self, id: str) -> Webhook | None:
        return await self.desk.one(WEBHOOKS, id)

    async def of_owner(self, owner_id: str | None, page: PageRequest) -> Page[Webhook]:
        found = await self.desk.select(WEBHOOKS, lambda w: owner_id in (None, w.owner_id))
        return cut(newest(found), page)

    async def all_of_owner(self, owner_id: str) -> Sequence[Webhook]:
        return newest(await self.desk.select(WEBHOOKS, lambda w: w.owner_id == owner_id))

    async def of_workflow(self, workflow_id: str) -> Sequence[Webhook]:
        return newest(await self.desk.select(WEBHOOKS, lambda w: w.workflow_id == workflow_id))

    async def tallies(self, webhook_id: str) -> Sequence[Tally]:
        found = await self.desk.select(TALLIES, lambda t: t.webhook_id == webhook_id)
        return sorted(found, key=lambda t: (t.date, t.status))

    def put(self, record: Webhook) -> None:
        self.desk.put(WEBHOOKS, record.id, record)

    def delete(self, record: Webhook) -> None:
        def change(overlay: Overlay) -> None:
            overlay.drop(WEBHOOKS, record.id, record)
            for tally in list(overlay.all(TALLIES)):
                if tally.webhook_id == record.id:
                    overlay.set(TALLIES, (tally.webhook_id, tally.date, tally.status), None)

        self.desk.collect(change)

    def tally(self, webhook_id: str, date: str, status: int, at: EpochMs) -> None:
        key = (webhook_id, date, status)

        def change(overlay: Overlay) -> None:
            old = overlay.get(TALLIES, key) or Tally(webhook_id, date, status, 0, at)
            new = evolve(old, count=old.count + 1, last_at=max(old.last_at, at))
            overlay.set(TALLIES, key, new)

        self.desk.collect(change)


class Replays(OfDesk):
    async def get(self, scope: str, key: str) -> Replay | None:
        return await self.desk.one(REPLAYS, (scope, key))

    def put(self, record: Replay) -> None:
        key = (record.scope, record.key)

        def change(overlay: Overlay) -> None:
            old = overlay.get(REPLAYS, key)
            if old and record.version == 0 and record.created_at - old.created_at >= DAY:
                overlay.set(REPLAYS, key, None)
            overlay.put(REPLAYS, key, record)

        self.desk.collect(change)


class Audit(OfDesk):
    async def list(self, since: EpochMs, after_id: str | None, limit: int) -> Sequence[AuditEntry]:
        found = await self.desk.select(AUDIT, lambda e: e.at >= since and e.id > (after_id or ""))
        return sorted(found, key=lambda entry: entry.id)[:limit]

    def append(self, entry: AuditEntry) -> None:
        def change(overlay: Overlay) -> None:
            overlay.expect(AUDIT, entry.id, overlay.get(AUDIT, entry.id) is None)
            overlay.set(AUDIT, entry.id, entry)

        self.desk.collect(change)
