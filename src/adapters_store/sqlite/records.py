"""What accounts own: keys, sessions, workflows, shares and webhooks."""
# ruff: noqa: S608 - only constant text of this package is put together

from collections.abc import Collection, Sequence
from typing import TypeVar

from attrs import define

from adapters_store.sqlite.codec import reader_of, text_of, value_of, writer_of
from adapters_store.sqlite.kinds import (
    ACCOUNTS,
    DEFINITIONS,
    KEYS,
    LOGINS,
    REPLAYS,
    SESSIONS,
    SHARES,
    WEBHOOKS,
    WORKFLOWS,
    Kind,
    Row,
)
from adapters_store.sqlite.queries import Listing, query
from adapters_store.sqlite.sealed import Cells, sealed
from adapters_store.sqlite.statements import insert
from adapters_store.sqlite.unit_of_work import UnitOfWork
from wfcore.model.access import Account, ApiKey, Login, Session, Share
from wfcore.model.page import Page, PageRequest
from wfcore.model.replay import Replay
from wfcore.model.webhook import Delivery, Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.time import DAY, EpochMs

R = TypeVar("R")

ACCOUNT_PAGES = Listing("accounts")
WORKFLOW_PAGES = Listing("workflows", order=("name", "id"), descending=False)
WEBHOOK_PAGES = Listing("webhooks")

VISIBLE = """r.id IN (SELECT id FROM workflows WHERE owner_id = ?
    UNION SELECT workflow_id FROM shares WHERE account_id = ?)"""

IN_USE = """
WITH used (workflow_id, revision) AS (
    SELECT id, json_extract(body, '$.revision') FROM workflows
    UNION SELECT workflow_id, json_extract(body, '$.revision') FROM executions
        WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED'))
SELECT version, body, workflow_id, revision
    FROM used CROSS JOIN definitions USING (workflow_id, revision)
    ORDER BY workflow_id, revision"""
"""Costs what has not ended (`executions_unfinished`), not what is stored."""

ADD_TALLY = insert(
    "webhook_tallies",
    ("webhook_id", "date", "status", "count", "last_at"),
    """ ON CONFLICT (webhook_id, date, status)
    DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)""",
)
ADD_DELIVERY = insert("webhook_deliveries", ("webhook_id", "authenticated", "id", "at", "body"))
"""A trigger keeps their number bounded (migration 10), so that units that add some are gathered."""
REPLACE_REPLAY = insert(
    "replays",
    ("scope", "key", "created_at", "version", "body"),
    """ ON CONFLICT (scope, key) DO UPDATE
    SET created_at = excluded.created_at, version = excluded.version, body = excluded.body
    WHERE replays.created_at <= excluded.created_at - """
    + str(DAY),
)
write_delivery = writer_of(Delivery, [])
read_delivery = reader_of(Delivery)


async def _some(unit: UnitOfWork, kind: Kind[R], ids: Collection[str]) -> Sequence[R]:
    """One record alone is the point read that polls repeat, which the cache answers."""
    if len(ids) <= 1:
        alone: list[R] = []
        for id in ids:
            record: R | None = await unit.one(kind.one, (id,))
            alone += [] if record is None else [record]
        return alone
    sql = f"""SELECT version, body, id FROM {kind.table}
        WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"""
    return await unit.few(kind, query(sql, text_of(list(ids)), tables=kind.table))


@define(eq=False)
class Accounts:
    unit: UnitOfWork

    async def get(self, id: str) -> Account | None:
        return await self.unit.one(ACCOUNTS.one, (id,))

    async def some(self, ids: Collection[str]) -> Sequence[Account]:
        return await _some(self.unit, ACCOUNTS, ids)

    async def by_email(self, email: str) -> Account | None:
        sql = "SELECT version, body, id FROM accounts WHERE email = ?"
        return await self.unit.first(ACCOUNTS, query(sql, email.lower(), tables="accounts"))

    async def list(self, page: PageRequest) -> Page[Account]:
        found = ACCOUNT_PAGES.page("1 = 1", (), page, "accounts")
        return await self.unit.page(ACCOUNTS.table, ACCOUNTS.decode, found, page)

    def put(self, record: Account) -> None:
        self.unit.put(ACCOUNTS, record)


@define(eq=False)
class Keys:
    unit: UnitOfWork

    async def get(self, id: str) -> ApiKey | None:
        return await self.unit.one(KEYS.one, (id,))

    async def some(self, ids: Collection[str]) -> Sequence[ApiKey]:
        return await _some(self.unit, KEYS, ids)

    async def of_account(self, account_id: str) -> Sequence[ApiKey]:
        sql = """SELECT version, body, id FROM api_keys WHERE account_id = ?
            ORDER BY created_at DESC, id DESC"""
        return await self.unit.records(KEYS, query(sql, account_id, tables="api_keys"))

    def put(self, record: ApiKey) -> None:
        self.unit.put(KEYS, record)


@define(eq=False)
class Sessions:
    unit: UnitOfWork

    async def get(self, id: str) -> Session | None:
        return await self.unit.one(SESSIONS.one, (id,))

    async def of_account(self, account_id: str) -> Sequence[Session]:
        """Reads every row: asked by the operator, and there are as many as people signed in."""
        sql = """SELECT version, body, id FROM sessions
            WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$.account_id') END = ?
            ORDER BY created_at DESC, id DESC"""
        return await self.unit.records(SESSIONS, query(sql, account_id, tables="sessions"))

    def put(self, record: Session) -> None:
        self.unit.put(SESSIONS, record)

    def delete(self, id: str) -> None:
        self.unit.delete(SESSIONS, (id,), (SESSIONS.delete, (id,), None))


@define(eq=False)
class Logins:
    unit: UnitOfWork

    async def get(self, id: str) -> Login | None:
        return await self.unit.one(LOGINS.one, (id,))

    def put(self, record: Login) -> None:
        self.unit.put(LOGINS, record)

    def delete(self, id: str) -> None:
        self.unit.delete(LOGINS, (id,), (LOGINS.delete, (id,), None))


@define(eq=False)
class Workflows:
    unit: UnitOfWork

    async def get(self, id: str) -> Workflow | None:
        return await self.unit.one(WORKFLOWS.one, (id,))

    async def by_name(self, owner_id: str, name: str) -> Workflow | None:
        sql = "SELECT version, body, id FROM workflows WHERE owner_id = ? AND name = ?"
        found = query(sql, owner_id, name, tables="workflows")
        return await self.unit.first(WORKFLOWS, found)

    async def visible_to(self, account_id: str, page: PageRequest) -> Page[Workflow]:
        values = (account_id, account_id)
        found = WORKFLOW_PAGES.page(VISIBLE, values, page, "workflows shares")
        return await self.unit.page(WORKFLOWS.table, WORKFLOWS.decode, found, page)

    async def list(self, page: PageRequest) -> Page[Workflow]:
        found = WORKFLOW_PAGES.page("1 = 1", (), page, "workflows")
        return await self.unit.page(WORKFLOWS.table, WORKFLOWS.decode, found, page)

    def put(self, record: Workflow) -> None:
        self.unit.put(WORKFLOWS, record)

    def delete(self, record: Workflow) -> None:
        self.unit.delete(WORKFLOWS, (record.id,), WORKFLOWS.drop(record))
        self.unit.write("shares", ("DELETE FROM shares WHERE workflow_id = ?", (record.id,), None))


@define(eq=False)
class Definitions:
    unit: UnitOfWork

    async def get(self, workflow_id: str, revision: int) -> DefinitionSnapshot | None:
        return await self.unit.one(DEFINITIONS.one, (workflow_id, revision))

    async def in_use(self) -> Sequence[DefinitionSnapshot]:
        found = query(IN_USE, tables="definitions workflows executions")
        rows = await self.unit.rows(found)
        read = self.unit.reads.read  # strictly: what is left out would lose its packages
        return [read("definitions", DEFINITIONS.decode, row, tuple(row[2:])) for row in rows]

    def put(self, record: DefinitionSnapshot) -> None:
        self.unit.put(DEFINITIONS, record)


@define(eq=False)
class Shares:
    unit: UnitOfWork

    async def get(self, workflow_id: str, account_id: str) -> Share | None:
        return await self.unit.one(SHARES.one, (workflow_id, account_id))

    async def of_workflow(self, workflow_id: str) -> Sequence[Share]:
        sql = """SELECT version, body, workflow_id, account_id FROM shares
            WHERE workflow_id = ? ORDER BY account_id"""
        return await self.unit.records(SHARES, query(sql, workflow_id, tables="shares"))

    def put(self, record: Share) -> None:
        self.unit.put(SHARES, record)

    def delete(self, workflow_id: str, account_id: str) -> None:
        key = (workflow_id, account_id)
        self.unit.delete(SHARES, key, (SHARES.delete, key, None))


def _delivery(row: Row, cells: Cells) -> Delivery:
    return read_delivery(value_of(cells.opened(row[1], "body")))


@define(eq=False)
class Webhooks:
    unit: UnitOfWork

    async def get(self, id: str) -> Webhook | None:
        return await self.unit.one(WEBHOOKS.one, (id,))

    async def of_owner(self, owner_id: str | None, page: PageRequest) -> Page[Webhook]:
        where, values = ("1 = 1", ()) if owner_id is None else ("r.owner_id = ?", (owner_id,))
        found = WEBHOOK_PAGES.page(where, values, page, "webhooks")
        return await self.unit.page(WEBHOOKS.table, WEBHOOKS.decode, found, page)

    async def all_of_owner(self, owner_id: str) -> Sequence[Webhook]:
        sql = """SELECT version, body, id FROM webhooks WHERE owner_id = ?
            ORDER BY created_at DESC, id DESC"""
        return await self.unit.records(WEBHOOKS, query(sql, owner_id, tables="webhooks"))

    async def of_workflow(self, workflow_id: str) -> Sequence[Webhook]:
        sql = """SELECT version, body, id FROM webhooks WHERE workflow_id = ?
            ORDER BY created_at DESC, id DESC"""
        return await self.unit.records(WEBHOOKS, query(sql, workflow_id, tables="webhooks"))

    async def tallies(self, webhook_id: str) -> Sequence[Tally]:
        sql = """SELECT webhook_id, date, status, count, last_at FROM webhook_tallies
            WHERE webhook_id = ? ORDER BY date, status"""
        found = await self.unit.rows(query(sql, webhook_id, tables="webhook_tallies"))
        return [Tally(*row) for row in found]

    async def deliveries(self, webhook_id: str) -> Sequence[Delivery]:
        sql = "SELECT 0, body, id FROM webhook_deliveries WHERE webhook_id = ? ORDER BY id DESC"
        found = await self.unit.rows(query(sql, webhook_id, tables="webhook_deliveries"))
        return self.unit.readable("webhook_deliveries", _delivery, found)

    def put(self, record: Webhook) -> None:
        self.unit.put(WEBHOOKS, record)

    def delete(self, record: Webhook) -> None:
        self.unit.delete(WEBHOOKS, (record.id,), WEBHOOKS.drop(record))
        sql = "DELETE FROM webhook_tallies WHERE webhook_id = ?"
        self.unit.write("webhook_tallies", (sql, (record.id,), None))
        sql = "DELETE FROM webhook_deliveries WHERE webhook_id = ?"
        self.unit.write("webhook_deliveries", (sql, (record.id,), None))

    def tally(self, webhook_id: str, date: str, status: int, at: EpochMs) -> None:
        values = (webhook_id, date, status, 1, at)
        self.unit.write("webhook_tallies", (ADD_TALLY, values, None))

    def deliver(self, record: Delivery) -> None:
        body = text_of(write_delivery(record))
        body = sealed(self.unit.sealer, body, "webhook_deliveries", "body", record.id)
        values = (record.webhook_id, int(record.authenticated), record.id, record.at, body)
        self.unit.write("webhook_deliveries", (ADD_DELIVERY, values, None))


@define(eq=False)
class Replays:
    unit: UnitOfWork

    async def get(self, scope: str, key: str) -> Replay | None:
        return await self.unit.one(REPLAYS.one, (scope, key))

    def put(self, record: Replay) -> None:
        if record.version:
            self.unit.put(REPLAYS, record)
            return
        _, values, stale = REPLAYS.put(record, self.unit.sealer)
        self.unit.put(REPLAYS, record)
        self.unit.writes[-1] = (REPLACE_REPLAY, values, stale)
