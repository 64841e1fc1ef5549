"""
The unit of work: what this database reads and writes in other words than SQLite.

Writes are collected until `Committer.commit` carries them to the server. A record that the unit has
put is read from here. A list over tables that the unit has changed is read in a transaction that
carries out the unit's writes, and is rolled back.
"""

from typing import Any, TypeVar, cast

from attrs import define, field

from adapters_store.postgres import groups, queries
from adapters_store.postgres.audit import PostgresAudit, link
from adapters_store.postgres.committer import Committer
from adapters_store.postgres.connection import lent, rows_of
from adapters_store.postgres.queries import BORN, FETCHES, OWN
from adapters_store.postgres.statements import Lock, UnitWrites, perform
from adapters_store.sqlite import execution_rows, large, unit_of_work
from adapters_store.sqlite.audit import cells_of
from adapters_store.sqlite.concurrency import HAS_ROOM
from adapters_store.sqlite.kinds import REPLAYS, TABLE_OF, Fetch, Row
from adapters_store.sqlite.queries import Query
from adapters_store.sqlite.records import REPLACE_REPLAY
from adapters_store.sqlite.runs import FORGET_APPROVERS
from adapters_store.sqlite.statements import Write, insert
from adapters_store.sqlite.store import SqliteUnit
from wfcore.model.approval import Approval
from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution, Replay
from wfcore.ports.records import KIND_OF
from wfcore.ports.store import queries as asked
from wfcore.rules.auth.access import named

R = TypeVar("R")

ADD_APPROVER = insert("approval_approvers", ("approver", "approval_id"))
REQUIRE_ABANDONED = """SELECT 1 FROM executions
    WHERE id = ? AND worker = ? AND coalesce(lease_until, 0) < wfcore_now() FOR UPDATE"""


@define(eq=False)
class PostgresUnitOfWork(unit_of_work.UnitOfWork):
    """
    One unit's view of the database. `reads` is one of this package, which has the form of SQLite's.
    """

    committer: Committer = field(kw_only=True)
    locks: set[Lock] = field(factory=set)
    audit: list[tuple[str, str | None]] = field(factory=list)

    async def rows(self, query: Query) -> list[Row]:
        """All rows of *query*, with the unit's own writes in them."""
        if self.changed.isdisjoint(query.tables):
            return await self.reads.rows(query)
        async with lent(self.committer.pool) as connection:
            looking = connection.transaction()
            await looking.start()
            try:
                await perform(connection, self.committer.statements, self._writes)
                if self.audit:
                    await link(connection, self.audit)
                return list(await rows_of(connection, query.sql, *query.values))
            finally:
                await looking.rollback()

    @property
    def _writes(self) -> UnitWrites:
        return UnitWrites(
            self.writes.copy(), frozenset(self.locks), tuple(self.audit), self.pending
        )

    async def commit(self) -> None:
        """Submit everything and wait until it is durable. Raises `Stale`, `StoreUnavailable`."""
        if not (self.writes or self.audit):
            return
        writes = self._writes
        await self.committer.commit(writes)
        self.locks, self.audit = set(), []
        self.begin_anew()


class PostgresUnit(SqliteUnit):
    """One unit of work; also serves as a view if nobody commits it."""

    __slots__ = ()
    _unit: PostgresUnitOfWork

    definitions = asked(queries.PostgresDefinitions)
    webhooks = asked(queries.PostgresWebhooks)
    executions = asked(queries.PostgresExecutions)
    audit = asked(PostgresAudit)

    _fetch = cast("Fetch[Execution]", FETCHES[Execution])

    async def get(self, kind: type[R], *key: str | int) -> R | None:
        if kind is Execution:
            return cast("R | None", await large.whole(self._unit, self._fetch, str(key[0])))
        return await self._unit.one(cast("Fetch[R]", FETCHES[kind]), key)

    def put(self, record: Any) -> None:
        """Compare the version and set."""
        unit = self._unit
        if isinstance(record, Execution):
            _put_execution(unit, record)
            return
        unit.put(OWN[type(record)], record)
        if isinstance(record, Approval):
            _name_approvers(unit, record)
        if isinstance(record, Replay) and not record.version:
            [(_, values, stale)] = REPLAYS.put(record, unit.sealer)
            unit.writes[-1] = (REPLACE_REPLAY, values, stale)

    def delete(self, record: Any) -> None:
        """Compare the version and delete, with what it owns."""
        unit = self._unit
        kind = OWN[type(record)]
        sql, values, stale = kind.drop(record)
        unit.delete(kind, kind.key_of(record), (f"{sql} RETURNING 1", values, stale))
        for owned, owner in KIND_OF[type(record)].owns:
            table = TABLE_OF[owned]
            unit.write(table, (f"DELETE FROM {table} WHERE {owner} = ?", (record.id,), None))  # noqa: S608

    def append(self, entry: Event | AuditEntry, record: str | None = None) -> None:
        """Add an entry to its log; the audit log comes last, whatever else is collected."""
        unit = self._unit
        if not isinstance(entry, AuditEntry):
            super().append(entry)
            return
        unit.audit.append(cells_of(entry, record, unit.sealer))
        unit.changed.add("audit")

    def require_abandoned(self, record: Execution) -> None:
        values = (record.id, record.worker)
        self._unit.write("executions", (REQUIRE_ABANDONED, values, ("executions", record.id)))

    def limit_group(self, workflow_id: str, at_once: int | None) -> None:
        self._unit.locks.add(groups.limit_lock(workflow_id, shared=False))
        super().limit_group(workflow_id, at_once)

    def require_room(self, group: str, at_once: int) -> None:
        self._unit.locks.add(groups.lock(group))
        write = (HAS_ROOM, (group, at_once), ("concurrency group", group))
        self._unit.write("executions", write)


def _put_execution(unit: PostgresUnitOfWork, record: Execution) -> None:
    first = len(unit.writes)
    execution_rows.put(unit, record)
    if unit.writes[-1][0] == execution_rows.MARK_BUSY_GROUP:
        unit.locks |= groups.locks(record)
    unit.writes[first:] = [_translated(write, record) for write in unit.writes[first:]]


def _translated(write: Write, record: Execution) -> Write:
    sql, values, stale = write
    if sql == execution_rows.INSERT:
        return BORN, (*values, record.revision), stale
    return write


def _name_approvers(unit: PostgresUnitOfWork, record: Approval) -> None:
    if record.version:
        unit.write("approval_approvers", (FORGET_APPROVERS, (record.id,), None))
    for name in named(record):
        unit.write("approval_approvers", (ADD_APPROVER, (name, record.id), None))
