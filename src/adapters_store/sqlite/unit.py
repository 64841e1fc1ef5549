"""
The unit of work of SQLite as the port has it: reads, named queries, and one way to write each kind.

Nothing is written here: each method adds statements to what the unit hands over when it commits.
"""
# ruff: noqa: S608 - only constant text of this package is put together

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from adapters_store.sqlite import audit, concurrency, execution_rows, records, runs
from adapters_store.sqlite.concurrency import COUNT
from adapters_store.sqlite.execution_rows import FETCH, bumped
from adapters_store.sqlite.kinds import KINDS, REPLAYS, TABLE_OF, Fetch, sealed, text_of
from adapters_store.sqlite.read_cache import ENTRY_BYTES
from adapters_store.sqlite.statements import Size, insert
from adapters_store.sqlite.unit_of_work import UnitOfWork
from wfcore.model.approval import Approval
from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution, Replay
from wfcore.model.webhook import Delivery
from wfcore.ports.records import KIND_OF
from wfcore.ports.store import queries
from wfcore.rules.audit.chain import entry_text
from wfcore.time import DAY, EpochMs
from wfcore.wire.records import writer_of

R = TypeVar("R")

REPLACE_REPLAY = insert(
    "replays",
    ("scope", "key", "created_at", "version", "body"),
    """ ON CONFLICT (scope, key) DO UPDATE
    SET created_at = excluded.created_at, version = excluded.version, body = excluded.body
    WHERE replays.created_at <= excluded.created_at - """
    + str(DAY),
)
FORGET_APPROVERS = "DELETE FROM approval_approvers WHERE approval_id = ?"
ADD_APPROVER = "INSERT INTO approval_approvers (approver, approval_id) VALUES (?, ?)"

_EVENT = ("execution_id", "number", "at", "kind", "data")
ADD_EVENT = {table: insert(table, _EVENT) for table in ("events", "logs")}
ADD_TALLY = insert(
    "webhook_tallies",
    ("webhook_id", "date", "status", "count", "last_at"),
    """ ON CONFLICT (webhook_id, date, status)
    DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)""",
)
ADD_DELIVERY = insert("webhook_deliveries", ("webhook_id", "authenticated", "id", "at", "body"))
"""A trigger keeps their number bounded (migration 10), so that units that add some are batched."""

REQUIRE_ABANDONED = """SELECT 1 FROM executions
    WHERE id = ? AND worker = ? AND (coalesce(lease_until, 0) < ? OR ?)"""
"""Finds the row exactly where the lease is over, or the worker is known to have ended."""

_PURGED = "(SELECT value FROM json_each(?))"
PURGE = (
    f"""DELETE FROM approval_approvers
        WHERE approval_id IN (SELECT id FROM approvals WHERE execution_id IN {_PURGED})""",
    f"DELETE FROM approvals WHERE execution_id IN {_PURGED}",
    f"DELETE FROM artifacts WHERE execution_id IN {_PURGED}",
    f"DELETE FROM callbacks WHERE id IN {_PURGED}",
    f"DELETE FROM events WHERE execution_id IN {_PURGED}",
    f"DELETE FROM logs WHERE execution_id IN {_PURGED}",
    f"DELETE FROM step_results WHERE execution_id IN {_PURGED}",
    f"DELETE FROM execution_variables WHERE execution_id IN {_PURGED}",
    f"DELETE FROM executions WHERE id IN {_PURGED}",
)
"""Each for any number of executions, so that a batch of them costs no more statements than one."""

SET_LIMIT = """INSERT INTO lane_limits (workflow_id, at_once) VALUES (?, ?)
    ON CONFLICT (workflow_id) DO UPDATE SET at_once = excluded.at_once"""
NO_LIMIT = "DELETE FROM lane_limits WHERE workflow_id = ?"
MARK_ALL = """INSERT INTO lane_checks (lane) SELECT DISTINCT lane FROM executions
    WHERE workflow_id = ? AND lane IS NOT NULL
    AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED') ON CONFLICT (lane) DO NOTHING"""
HAS_ROOM = f"SELECT 1 WHERE ({COUNT}) < ?"
"""Finds a row exactly where there is room."""

write_delivery = writer_of(Delivery, [])


class SqliteUnit:
    """One unit of work; also serves as a view if nobody commits it."""

    __slots__ = ("_unit",)

    def __init__(self, unit: UnitOfWork) -> None:
        self._unit = unit

    async def __aenter__(self) -> "SqliteUnit":
        return self

    async def __aexit__(self, *_: object) -> None:
        """Uncommitted writes were only collected: there is nothing to undo."""

    accounts = queries(records.Accounts)
    keys = queries(records.Keys)
    sessions = queries(records.Sessions)
    workflows = queries(records.Workflows)
    definitions = queries(records.Definitions)
    shares = queries(records.Shares)
    executions = queries(runs.Executions)
    approvals = queries(runs.Approvals)
    artifacts = queries(runs.Artifacts)
    callbacks = queries(runs.Callbacks)
    webhooks = queries(records.Webhooks)
    groups = queries(concurrency.Groups)
    triggers = queries(records.Triggers)
    timers = queries(records.Timers)
    events = queries(runs.Events)
    logs = queries(partial(runs.Events, table="logs"))
    audit = queries(audit.Audit)

    async def get(self, kind: type[R], *key: str | int) -> R | None:
        fetch = FETCH if kind is Execution else KINDS[kind].one
        return await self._unit.one(cast("Fetch[R]", fetch), key)

    async def some(self, kind: type[R], ids: Collection[str]) -> Sequence[R]:
        return await self._unit.among(KINDS[kind], ids)

    def put(self, record: Any) -> None:
        """Compare the version and set."""
        unit = self._unit
        if isinstance(record, Execution):
            _put_execution(unit, record)
            return
        kind = KINDS[type(record)]
        unit.put(kind, record)
        if isinstance(record, Approval):
            _name_approvers(unit, record)
        if isinstance(record, Replay) and not record.version:
            _, values, stale = REPLAYS.put(record, unit.sealer)
            unit.writes[-1] = (REPLACE_REPLAY, values, stale)

    def delete(self, record: Any) -> None:
        """Compare the version and delete, with what it owns."""
        unit = self._unit
        kind = KINDS[type(record)]
        unit.delete(kind, kind.key_of(record), kind.drop(record))
        for owned, owner in KIND_OF[type(record)].owns:
            table = TABLE_OF[owned]
            unit.write(table, (f"DELETE FROM {table} WHERE {owner} = ?", (record.id,), None))

    def discard(self, kind: type[Any], *key: str) -> None:
        """Delete it if it exists."""
        unit = self._unit
        table = KINDS[kind]
        unit.delete(table, key, (table.delete, key, None))

    def append(self, entry: Event | AuditEntry, record: str | None = None) -> None:
        """Add an entry to its log."""
        unit = self._unit
        if isinstance(entry, AuditEntry):
            if record is not None:
                record = sealed(unit.sealer, record, "audit", "record", entry.id)
            unit.write("audit", (audit.ADD, (entry_text(entry), record), None))
        else:
            _append_event(unit, "events", entry)

    def log(self, line: Event) -> None:
        """Add output lines, which have the form of an event, to their own log."""
        _append_event(self._unit, "logs", line)

    def tally(self, webhook_id: str, date: str, status: int, at: EpochMs) -> None:
        unit = self._unit
        unit.write("webhook_tallies", (ADD_TALLY, (webhook_id, date, status, 1, at), None))

    def deliver(self, record: Delivery) -> None:
        unit = self._unit
        body = text_of(write_delivery(record))
        body = sealed(unit.sealer, body, "webhook_deliveries", "body", record.id)
        values = (record.webhook_id, int(record.authenticated), record.id, record.at, body)
        unit.write("webhook_deliveries", (ADD_DELIVERY, values, None))

    def purge(self, *ids: str) -> None:
        unit = self._unit
        for sql in PURGE:
            unit.write("executions", (sql, (text_of(ids),), None))
        unit.changed.update(
            ("approvals", "artifacts", "events", "logs", "approval_approvers", "callbacks")
        )
        for id in ids:
            unit.pend("executions", (id,), None)

    def require_abandoned(self, record: Execution) -> None:
        unit = self._unit
        ended = bool(record.worker and unit.ended((record.worker,)))
        values = (record.id, record.worker, unit.now(), ended)
        unit.write("executions", (REQUIRE_ABANDONED, values, ("executions", record.id)))

    def limit_group(self, workflow_id: str, at_once: int | None) -> None:
        unit = self._unit
        if at_once is None:
            unit.write("lane_limits", (NO_LIMIT, (workflow_id,), None))
        else:
            unit.write("lane_limits", (SET_LIMIT, (workflow_id, at_once), None))
        unit.write("lane_checks", (MARK_ALL, (workflow_id,), None))

    def require_room(self, group: str, at_once: int) -> None:
        unit = self._unit
        unit.write("pulse", (HAS_ROOM, (group, at_once), ("concurrency group", group)))

    async def commit(self) -> None:
        """Store what was collected. Raises `Stale`, `StoreUnavailable`."""
        await self._unit.commit()


def _put_execution(unit: UnitOfWork, record: Execution) -> None:
    base, rest = _base(unit, record)
    writes, size = execution_rows.writes(record, base, unit.sealer)
    unit.write("executions", *writes)
    if len(writes) > 1:
        unit.changed.add("step_results")
    size = Size(size.head, size.rest + rest)
    unit.pend("executions", (record.id,), bumped(record), size)


def _base(unit: UnitOfWork, record: Execution) -> tuple[Execution | None, int]:
    """
    What is stored at the record's version, if known, and the approximate bytes of all but its head.
    """
    key = (record.id,)
    base, size = unit.pending.get(("executions", key), (None, None))
    rest = size.rest if size is not None else 0
    if base is None and (known := unit.reads.cache.get("executions", key)):
        base, rest = known.record, known.size - known.head
    if base is None or base.version != record.version:
        return None, ENTRY_BYTES
    return base, rest


def _name_approvers(unit: UnitOfWork, record: Approval) -> None:
    if record.version:
        unit.write("approval_approvers", (FORGET_APPROVERS, (record.id,), None))
    for name in {name.strip().lower() for name in record.approvers if name.strip()}:
        unit.write("approval_approvers", (ADD_APPROVER, (name, record.id), None))


def _append_event(unit: UnitOfWork, table: str, event: Event) -> None:
    about = text_of(event.data) if event.data else "{}"
    data = sealed(unit.sealer, about, table, "data", event.execution_id, event.number)
    values = (event.execution_id, event.number, event.at, event.kind.value, data)
    unit.write(table, (ADD_EVENT[table], values, None))
