"""
Queries for accounts and the records that accounts own, such as keys, workflows and webhooks; and
for nodes.
"""
# ruff: noqa: S608 - only constant text of this package is put together

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, TypeVar

from attrs import define, frozen

from adapters_store.sql.cells import Cells, Row, text_of, value_of
from adapters_store.sql.kinds import (
    ACCOUNTS,
    DEFINITIONS,
    KEYS,
    NODES,
    SESSIONS,
    SHARES,
    TIMERS,
    TRIGGERS,
    WEBHOOKS,
    WORKFLOWS,
)
from adapters_store.sql.queries import Listing, Query, query
from adapters_store.sql.statement import insert
from adapters_store.sql.unit_of_work import SqlUnitOfWork
from wfcore.model.access import Account, ApiKey, Session, Share
from wfcore.model.execution import ExecutionStatus
from wfcore.model.node import Node
from wfcore.model.page import Page, PageRequest
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Delivery, Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.ports.records import HOURS, WEEK, Activity, LatestExecution
from wfcore.rules.execution.budget import UNPRICED, in_usd
from wfcore.time import DAY, HOUR, DurationMs, EpochMs
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
    SELECT id, revision FROM workflows
    UNION SELECT workflow_id, revision FROM executions
        WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED'))
SELECT version, body, workflow_id, revision
    FROM used JOIN definitions USING (workflow_id, revision) ORDER BY workflow_id, revision"""
"""
The query for the definitions of all workflows and of all executions that have not ended. The cost
grows with the executions that have not ended, and never with the stored executions.
"""

read_delivery = reader_of(Delivery)

ADD_TALLY = insert(
    "webhook_tallies",
    ("webhook_id", "date", "status", "count", "last_at"),
    """ ON CONFLICT (webhook_id, date, status)
    DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)""",
)
ADD_DELIVERY = insert("webhook_deliveries", ("webhook_id", "authenticated", "id", "at", "body"))
"""
The insertion of a delivery. A trigger of the database bounds the number of deliveries, so that
units that add deliveries are batched.
"""
write_delivery = writer_of(Delivery, [])


@define(eq=False)
class Accounts:
    unit: SqlUnitOfWork

    async def by_email(self, email: str) -> Account | None:
        sql = "SELECT version, body, id FROM accounts WHERE email = ?"
        found = query(sql, email.lower())
        return await self.unit.first(ACCOUNTS, found, email=email.lower())

    async def list(self, page: PageRequest) -> Page[Account]:
        found = ACCOUNT_PAGES.page("1 = 1", (), page)
        return await self.unit.page(ACCOUNTS.table, ACCOUNTS.decode, found, page)


@define(eq=False)
class Keys:
    unit: SqlUnitOfWork

    async def of_account(self, account_id: str) -> Sequence[ApiKey]:
        sql = """SELECT version, body, id FROM api_keys WHERE account_id = ?
            ORDER BY created_at DESC, id DESC"""
        found = query(sql, account_id)
        return await self.unit.records(KEYS, found, account_id=account_id)


@define(eq=False)
class Sessions:
    unit: SqlUnitOfWork

    async def of_account(self, account_id: str) -> Sequence[Session]:
        sql = """SELECT version, body, id FROM sessions WHERE account_id = ?
            ORDER BY created_at DESC, id DESC"""
        found = query(sql, account_id)
        return await self.unit.records(SESSIONS, found, account_id=account_id)


@frozen
class CountedSpans:
    """
    The counts that a database keeps of the ended executions of each hour and each day, as SQL for
    `activity_of`. `mark`: the instant from which on executions are not counted yet. `rows`: `parts`
    SELECTs of counts by `span`, each with the values `since`, `since`, the end of the spans, and
    those of `own`, the condition on what an account sees of the table `r`.
    """

    mark: str
    rows: str
    parts: int


@define(eq=False)
class Workflows:
    unit: SqlUnitOfWork

    async def by_name(self, owner_id: str, name: str) -> Workflow | None:
        sql = "SELECT version, body, id FROM workflows WHERE owner_id = ? AND name = ?"
        found = query(sql, owner_id, name)
        return await self.unit.first(WORKFLOWS, found)

    async def visible_to(self, account_id: str, page: PageRequest) -> Page[Workflow]:
        values = (account_id, account_id)
        found = WORKFLOW_PAGES.page(VISIBLE, values, page)
        return await self.unit.page(WORKFLOWS.table, WORKFLOWS.decode, found, page)

    async def list(self, page: PageRequest) -> Page[Workflow]:
        found = WORKFLOW_PAGES.page("1 = 1", (), page)
        return await self.unit.page(WORKFLOWS.table, WORKFLOWS.decode, found, page)

    counted: ClassVar[CountedSpans | None] = None
    """The counts of hours and days that the database keeps; None: executions are counted."""

    async def activity(
        self,
        ids: Collection[str],
        account_id: str | None,
        since: EpochMs,
        span: DurationMs = HOUR,
        spans: int = HOURS,
    ) -> Mapping[str, Activity]:
        found = defaultdict(list)
        counted = self.counted if span in (HOUR, DAY) and since % span == 0 else None
        wanted = activity_of(ids, account_id, since, counted, span, spans)
        for row in await self.unit.rows(wanted):
            found[row[0]].append(row)
        return {id: _activity(rows, spans) for id, rows in found.items()}

    those: ClassVar[str] = "IN ({})"
    """The condition that a column has one of the values of a SELECT, read once for each row."""

    async def latest(
        self, ids: Collection[str], account_id: str | None, most: int
    ) -> Mapping[str, Sequence[LatestExecution]]:
        found = defaultdict[str, list[LatestExecution]](list)
        for flow, id, status, *times in await self.unit.rows(
            latest_of(ids, account_id, most, self.those)
        ):
            found[flow].append(LatestExecution(id, ExecutionStatus(status), *times))
        return found


def latest_of(ids: Collection[str], me: str | None, most: int, those: str) -> Query:
    """
    The query for the newest executions of each workflow. The CROSS JOIN keeps the order: for each
    workflow, its newest ids from an index, then these executions.
    """
    own = "1 = 1" if me is None else "(w.owner_id = ? OR e.owner_id = ?)"
    newest = f"""SELECT e.id FROM executions e WHERE e.workflow_id = w.id AND {own}
        ORDER BY e.accepted_at DESC, e.id DESC LIMIT ?"""
    sql = f"""SELECT w.id, r.id, r.status, r.accepted_at, r.completed_at
        FROM (SELECT id, owner_id FROM workflows
            WHERE id IN (SELECT value FROM json_each(?))) w
        CROSS JOIN executions r WHERE r.id {those.format(newest)}
        ORDER BY w.id, r.accepted_at DESC, r.id DESC"""
    return query(sql, text_of(list(ids)), *(() if me is None else (me, me)), most)


def activity_of(
    ids: Collection[str],
    me: str | None,
    since: EpochMs,
    counted: CountedSpans | None = None,
    span: int = HOUR,
    spans: int = HOURS,
) -> Query:
    """
    The query for rows `(workflow, what, text, status, number)`: for each workflow one row for
    itself, its last execution, each span and kind of end, its open approvals, its next timer, and
    its costs; with *counted* several rows for a span, to be added up. All values are found in
    indexes. Each span is counted as a range of an index: grouping a day would sort it.
    """
    own = "1 = 1" if me is None else "(w.owner_id = ? OR {0}.owner_id = ?)"
    who = () if me is None else (me, me)
    start = f"CAST(? AS BIGINT) + s.n * {span}"
    begin = start if counted is None else f"max({start}, {counted.mark})"
    counts = " ".join(
        f"""UNION ALL SELECT w.id, 'span', CAST(s.n AS TEXT), '{end}', (SELECT count(*)
            FROM executions r WHERE r.workflow_id = w.id AND {within} AND {own.format("r")}
            AND r.accepted_at >= {begin} AND r.accepted_at < {start} + {span})
            FROM w CROSS JOIN s"""
        for end, within in _ENDS.items()
    )
    sql = f"""WITH w AS (SELECT id, owner_id FROM workflows
            WHERE id IN (SELECT value FROM json_each(?))),
            s (n) AS (VALUES {", ".join(f"({n})" for n in range(spans))})
        SELECT w.id, 'workflow', '', '', 0 FROM w
        UNION ALL SELECT w.id, 'last', r.id, r.status, r.accepted_at FROM w
            JOIN executions r ON r.id = (SELECT e.id FROM executions e
                WHERE e.workflow_id = w.id AND {own.format("e")}
                ORDER BY e.accepted_at DESC, e.id DESC LIMIT 1)
        {counts} {"" if counted is None else counted.rows.format(own=own.format("r"), span=span)}
        UNION ALL SELECT w.id, 'waiting', '', '', (SELECT count(*) FROM approvals a
            WHERE a.workflow_id = w.id AND a.status = 'PENDING' AND {own.format("a")}) FROM w
        UNION ALL SELECT w.id, 'next', '', '', min(m.due_at) FROM w
            JOIN triggers t ON t.workflow_id = w.id JOIN timers m ON m.trigger_id = t.id
            GROUP BY w.id
        UNION ALL SELECT w.id, 'cost', (SELECT {_COSTS} FROM executions r
            WHERE r.workflow_id = w.id AND r.cost IS NOT NULL AND {own.format("r")}
            AND r.accepted_at >= ? AND r.accepted_at < ?), '', 0 FROM w"""
    now = (*who, since, since) * len(_ENDS)
    until = since + spans * span
    kept = () if counted is None else (since, since, until, *who) * counted.parts
    values = (*who, *now, *kept, *who, *who, until - WEEK, until)
    return query(sql, text_of(list(ids)), *values)


_ENDS = {
    "ended": "r.status IN ('COMPLETED', 'CANCELLED')",
    "failed": "r.status = 'FAILED' AND r.status IN ('FAILED', 'CANCELLED')",
}
"""
The kinds of ends of an execution; the condition of `failed` is in the words of its index (decision
147).
"""


_SPLIT = 1_000_000
_COSTS = " || ' ' || ".join(
    f"coalesce(sum(CASE WHEN r.cost {holds} THEN {part} END), 0)"
    for holds, part in (
        ("> 0", f"r.cost / {_SPLIT}"),
        ("> 0", f"r.cost % {_SPLIT}"),
        (f"= {UNPRICED}", "1"),
    )
)
"""
The expression for two parts of a sum, each within 64 bits, and for the number of executions without
a price: all three in one reading.
"""


def _activity(rows: Sequence[Row], spans: int) -> Activity:
    counts = Counter[tuple[int, str]]()
    for _, what, text, end, n in rows:
        if what == "span":
            counts[int(text), end] += n
    found = {what: row for _, what, *row in rows if what != "span"}
    last, status, at = found.get("last", (None, None, None))
    high, low, unpriced = map(int, found["cost"][0].split())
    return Activity(
        last,
        ExecutionStatus(status) if status else None,
        at,
        tuple((counts[place, "ended"], counts[place, "failed"]) for place in range(spans)),
        found["waiting"][-1],
        found["next"][-1] if "next" in found else None,
        in_usd(high * _SPLIT + low),
        unpriced,
    )


@define(eq=False)
class Definitions:
    unit: SqlUnitOfWork

    async def in_use(self) -> Sequence[DefinitionSnapshot]:
        found = query(IN_USE)
        rows = await self.unit.rows(found)
        read = self.unit.reads.read  # strictly: one that is left out would lose its packages
        return [read("definitions", DEFINITIONS.decode, row, tuple(row[2:])) for row in rows]


@define(eq=False)
class Shares:
    unit: SqlUnitOfWork

    async def of_workflow(self, workflow_id: str) -> Sequence[Share]:
        sql = """SELECT version, body, workflow_id, account_id FROM shares
            WHERE workflow_id = ? ORDER BY account_id"""
        return await self.unit.records(SHARES, query(sql, workflow_id))


def delivery_of(row: Row, cells: Cells) -> Delivery:
    return read_delivery(value_of(cells.opened(row[1], "body")))


@define(eq=False)
class Webhooks:
    unit: SqlUnitOfWork

    async def of_owner(self, owner_id: str | None, page: PageRequest) -> Page[Webhook]:
        where, values = ("1 = 1", ()) if owner_id is None else ("r.owner_id = ?", (owner_id,))
        found = WEBHOOK_PAGES.page(where, values, page)
        return await self.unit.page(WEBHOOKS.table, WEBHOOKS.decode, found, page)

    async def all_of_owner(self, owner_id: str) -> Sequence[Webhook]:
        sql = """SELECT version, body, id FROM webhooks WHERE owner_id = ?
            ORDER BY created_at DESC, id DESC"""
        found = query(sql, owner_id)
        return await self.unit.records(WEBHOOKS, found, owner_id=owner_id)

    async def of_workflow(self, workflow_id: str) -> Sequence[Webhook]:
        sql = """SELECT version, body, id FROM webhooks WHERE workflow_id = ?
            ORDER BY created_at DESC, id DESC"""
        found = query(sql, workflow_id)
        return await self.unit.records(WEBHOOKS, found, workflow_id=workflow_id)

    async def tallies(self, webhook_id: str) -> Sequence[Tally]:
        sql = """SELECT webhook_id, date, status, count, last_at FROM webhook_tallies
            WHERE webhook_id = ? ORDER BY date, status"""
        found = await self.unit.rows(query(sql, webhook_id))
        return [Tally(*row) for row in found]

    async def deliveries(self, webhook_id: str) -> Sequence[Delivery]:
        sql = "SELECT 0, body, id FROM webhook_deliveries WHERE webhook_id = ? ORDER BY id DESC"
        found = await self.unit.rows(query(sql, webhook_id))
        return await self.unit.read_aside("webhook_deliveries", delivery_of, found)


@define(eq=False)
class Triggers:
    unit: SqlUnitOfWork

    async def list(self, page: PageRequest) -> Page[Trigger]:
        found = TRIGGER_PAGES.page("1 = 1", (), page)
        return await self.unit.page(TRIGGERS.table, TRIGGERS.decode, found, page)

    async def of_owner(self, owner_id: str, page: PageRequest) -> Page[Trigger]:
        where = "r.workflow_id IN (SELECT id FROM workflows WHERE owner_id = ?)"
        found = TRIGGER_PAGES.page(where, (owner_id,), page)
        return await self.unit.page(TRIGGERS.table, TRIGGERS.decode, found, page)

    async def of_workflow(self, workflow_id: str) -> Sequence[Trigger]:
        sql = "SELECT version, body, id FROM triggers WHERE workflow_id = ? ORDER BY created_at, id"
        return await self.unit.few(TRIGGERS, query(sql, workflow_id))

    async def of_workflows(self, ids: Collection[str]) -> Sequence[Trigger]:
        sql = """SELECT version, body, id FROM triggers
            WHERE workflow_id IN (SELECT value FROM json_each(?)) ORDER BY created_at, id"""
        return await self.unit.records(TRIGGERS, query(sql, text_of(list(ids))))

    async def watching(self, keys: Collection[str]) -> Sequence[Trigger]:
        marks = ", ".join("?" for _ in keys)
        sql = f"""SELECT version, body, id FROM triggers WHERE watches IN ({marks})
            ORDER BY created_at, id"""
        return await self.unit.few(TRIGGERS, query(sql, *keys))


@define(eq=False)
class Timers:
    unit: SqlUnitOfWork

    async def due(self, now: EpochMs, limit: int) -> Sequence[Timer]:
        sql = "SELECT version, body, id FROM timers WHERE due_at <= ? ORDER BY due_at, id"
        found = query(sql, now)
        return await self.unit.some("timers", TIMERS.decode, found, limit)

    async def next_due(self) -> EpochMs | None:
        return await self._earliest("SELECT min(due_at) FROM timers")

    async def next_of(self, trigger_id: str) -> EpochMs | None:
        return await self._earliest(
            "SELECT min(due_at) FROM timers WHERE trigger_id = ?", trigger_id
        )

    async def _earliest(self, sql: str, *values: str) -> EpochMs | None:
        found = (await self.unit.few_rows(query(sql, *values)))[0][0]
        return None if found is None else EpochMs(found)


@define(eq=False)
class Nodes:
    unit: SqlUnitOfWork

    async def list(self) -> Sequence[Node]:
        found = query("SELECT version, body, id FROM nodes ORDER BY id")
        return await self.unit.few(NODES, found)


def _old(table: str, key: str, at: str, holds: str = "true") -> str:
    oldest = f"SELECT {key} FROM {table} WHERE {at} < ? AND {holds} ORDER BY {at} LIMIT ?"
    return f"DELETE FROM {table} WHERE ({key}) IN ({oldest})"


OLD = (
    _old("replays", "scope, key", "created_at"),
    _old("sessions", "id", "created_at"),
    _old("logins", "id", "last_failure_at"),
    _old("login_links", "id", "created_at"),
    _old("webhook_deliveries", "webhook_id, authenticated, id", "at"),
    _old("notices", "id", "created_at", "due_at IS NULL"),
)
"""
The statements that delete old rows, in the order of the instants that `trim` takes after the
instant for the audit log.
"""
