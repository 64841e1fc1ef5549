"""What accounts own: keys, sessions, workflows, shares and webhooks."""
# ruff: noqa: S608 - only constant text of this package is put together

from collections.abc import Collection, Sequence
from typing import TypeVar

from attrs import define

from adapters_store.sqlite.kinds import (
    ACCOUNTS,
    DEFINITIONS,
    KEYS,
    SESSIONS,
    SHARES,
    TIMERS,
    TRIGGERS,
    WEBHOOKS,
    WORKFLOWS,
    Cells,
    Row,
    value_of,
)
from adapters_store.sqlite.queries import Listing, query
from adapters_store.sqlite.statements import insert
from adapters_store.sqlite.unit_of_work import UnitOfWork
from wfcore.model.access import Account, ApiKey, Session, Share
from wfcore.model.page import Page, PageRequest
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Delivery, Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.time import DAY, EpochMs
from wfcore.wire.records import reader_of, writer_of

R = TypeVar("R")

ACCOUNT_PAGES = Listing("accounts")
WORKFLOW_PAGES = Listing("workflows", order=("name", "id"), descending=False)
WEBHOOK_PAGES = Listing("webhooks")
TRIGGER_PAGES = Listing("triggers")

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

read_delivery = reader_of(Delivery)

REPLACE_REPLAY = insert(
    "replays",
    ("scope", "key", "created_at", "version", "body"),
    """ ON CONFLICT (scope, key) DO UPDATE
    SET created_at = excluded.created_at, version = excluded.version, body = excluded.body
    WHERE replays.created_at <= excluded.created_at - """
    + str(DAY),
)
ADD_TALLY = insert(
    "webhook_tallies",
    ("webhook_id", "date", "status", "count", "last_at"),
    """ ON CONFLICT (webhook_id, date, status)
    DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)""",
)
ADD_DELIVERY = insert("webhook_deliveries", ("webhook_id", "authenticated", "id", "at", "body"))
"""A trigger keeps their number bounded (migration 10), so that units that add some are batched."""
write_delivery = writer_of(Delivery, [])


@define(eq=False)
class Accounts:
    unit: UnitOfWork

    async def by_email(self, email: str) -> Account | None:
        sql = "SELECT version, body, id FROM accounts WHERE email = ?"
        return await self.unit.first(ACCOUNTS, query(sql, email.lower(), tables="accounts"))

    async def list(self, page: PageRequest) -> Page[Account]:
        found = ACCOUNT_PAGES.page("1 = 1", (), page, "accounts")
        return await self.unit.page(ACCOUNTS.table, ACCOUNTS.decode, found, page)


@define(eq=False)
class Keys:
    unit: UnitOfWork

    async def of_account(self, account_id: str) -> Sequence[ApiKey]:
        sql = """SELECT version, body, id FROM api_keys WHERE account_id = ?
            ORDER BY created_at DESC, id DESC"""
        return await self.unit.records(KEYS, query(sql, account_id, tables="api_keys"))


@define(eq=False)
class Sessions:
    unit: UnitOfWork

    async def of_account(self, account_id: str) -> Sequence[Session]:
        """Reads every row: asked by the operator, and there are as many as people signed in."""
        sql = """SELECT version, body, id FROM sessions
            WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$.account_id') END = ?
            ORDER BY created_at DESC, id DESC"""
        return await self.unit.records(SESSIONS, query(sql, account_id, tables="sessions"))


@define(eq=False)
class Workflows:
    unit: UnitOfWork

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


@define(eq=False)
class Definitions:
    unit: UnitOfWork

    async def in_use(self) -> Sequence[DefinitionSnapshot]:
        found = query(IN_USE, tables="definitions workflows executions")
        rows = await self.unit.rows(found)
        read = self.unit.reads.read  # strictly: what is left out would lose its packages
        return [read("definitions", DEFINITIONS.decode, row, tuple(row[2:])) for row in rows]


@define(eq=False)
class Shares:
    unit: UnitOfWork

    async def of_workflow(self, workflow_id: str) -> Sequence[Share]:
        sql = """SELECT version, body, workflow_id, account_id FROM shares
            WHERE workflow_id = ? ORDER BY account_id"""
        return await self.unit.records(SHARES, query(sql, workflow_id, tables="shares"))


def _delivery(row: Row, cells: Cells) -> Delivery:
    return read_delivery(value_of(cells.opened(row[1], "body")))


@define(eq=False)
class Webhooks:
    unit: UnitOfWork

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


@define(eq=False)
class Triggers:
    unit: UnitOfWork

    async def list(self, page: PageRequest) -> Page[Trigger]:
        found = TRIGGER_PAGES.page("1 = 1", (), page, "triggers")
        return await self.unit.page(TRIGGERS.table, TRIGGERS.decode, found, page)

    async def of_workflow(self, workflow_id: str) -> Sequence[Trigger]:
        sql = "SELECT version, body, id FROM triggers WHERE workflow_id = ? ORDER BY created_at, id"
        return await self.unit.few(TRIGGERS, query(sql, workflow_id, tables="triggers"))

    async def watching(self, keys: Collection[str]) -> Sequence[Trigger]:
        marks = ", ".join("?" for _ in keys)
        sql = f"""SELECT version, body, id FROM triggers WHERE watches IN ({marks})
            ORDER BY created_at, id"""
        return await self.unit.few(TRIGGERS, query(sql, *keys, tables="triggers"))


@define(eq=False)
class Timers:
    unit: UnitOfWork

    async def due(self, now: EpochMs, limit: int) -> Sequence[Timer]:
        sql = "SELECT version, body, id FROM timers WHERE due_at <= ? ORDER BY due_at, id"
        found = query(sql, now, tables="timers")
        return await self.unit.some("timers", TIMERS.decode, found, limit)

    async def next_due(self) -> EpochMs | None:
        return await self._earliest("SELECT min(due_at) FROM timers")

    async def next_of(self, trigger_id: str) -> EpochMs | None:
        return await self._earliest(
            "SELECT min(due_at) FROM timers WHERE trigger_id = ?", trigger_id
        )

    async def _earliest(self, sql: str, *values: str) -> EpochMs | None:
        found = (await self.unit.few_rows(query(sql, *values, tables="timers")))[0][0]
        return None if found is None else EpochMs(found)
