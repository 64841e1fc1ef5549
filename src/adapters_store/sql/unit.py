"""The unit of work over rows, which both databases share."""
# ruff: noqa: S608 - only constant text of this package is put together

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar, cast

from adapters_store.sql import execution_queries, execution_rows, groups, large, record_queries
from adapters_store.sql.audit import cells_of
from adapters_store.sql.cells import sealed, text_of
from adapters_store.sql.events import Events, Logs
from adapters_store.sql.execution_rows import FETCH
from adapters_store.sql.groups import Groups
from adapters_store.sql.kinds import KINDS, TABLE_OF, Fetch, Kind
from adapters_store.sql.queries import tables_in
from adapters_store.sql.unit_of_work import SqlUnitOfWork
from wfcore.model.approval import Approval
from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution
from wfcore.model.webhook import Delivery
from wfcore.ports.records import KIND_OF
from wfcore.ports.store import queries
from wfcore.rules.auth.access import named
from wfcore.time import EpochMs

R = TypeVar("R")


class SqlUnit(ABC):
    """
    One unit of work; a unit that is never committed also serves as a view. Each database adds its
    own writes.
    """

    __slots__ = ("_unit",)

    def __init__(self, unit: SqlUnitOfWork) -> None:
        self._unit = unit

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:  # noqa: B027 - a unit holds nothing
        """Do nothing: uncommitted writes were only collected."""

    accounts = queries(record_queries.Accounts)
    keys = queries(record_queries.Keys)
    sessions = queries(record_queries.Sessions)
    workflows = queries(record_queries.Workflows)
    definitions = queries(record_queries.Definitions)
    shares = queries(record_queries.Shares)
    approvals = queries(execution_queries.Approvals)
    artifacts = queries(execution_queries.Artifacts)
    callbacks = queries(execution_queries.Callbacks)
    notices = queries(execution_queries.Notices)
    nodes = queries(record_queries.Nodes)
    webhooks = queries(record_queries.Webhooks)
    groups = queries(Groups)
    triggers = queries(record_queries.Triggers)
    timers = queries(record_queries.Timers)
    events = queries(Events)
    logs = queries(Logs)

    kinds: ClassVar[Mapping[type[Any], Kind[Any]]] = KINDS
    fetch: ClassVar[Fetch[Execution]] = FETCH
    """The statement by which an execution is read."""

    async def get(self, kind: type[R], *key: str | int) -> R | None:
        if kind is Execution:
            return cast("R | None", await large.whole(self._unit, self.fetch, str(key[0])))
        return await self._unit.one(self.kinds[kind].one, key)

    async def head(self, id: str) -> Execution | None:
        """The execution; large outputs may be left out."""
        return await large.head(self._unit, self.fetch, id)

    async def filled(self, run: Execution, keys: Collection[str | None] | None = None) -> Execution:
        """*run* with the outputs of the steps in *keys*, or of all steps. Raises `Stale`."""
        return await large.filled(self._unit, run, keys)

    async def texts(self, run: Execution, keys: Collection[str]) -> Mapping[str, bytes]:
        """The unread outputs of the steps *keys*, as JSON text. Raises `Stale`."""
        return await large.texts(self._unit, run, keys)

    async def some(self, kind: type[R], ids: Collection[str]) -> Sequence[R]:
        return await self._unit.among(self.kinds[kind], ids)

    def put(self, record: Any) -> None:
        """Add to the unit a compare-and-set of the record."""
        unit = self._unit
        if isinstance(record, Execution):
            execution_rows.put(unit, record)
            return
        kind = self.kinds[type(record)]
        unit.put(kind, record)
        if isinstance(record, Approval):
            _name_approvers(unit, record)

    def delete(self, record: Any) -> None:
        """
        Add to the unit a delete of the record and of all records that it owns, if its version is
        unchanged.
        """
        unit = self._unit
        kind = self.kinds[type(record)]
        unit.delete(kind, kind.key_of(record), kind.drop(record))
        for owned, owner in KIND_OF[type(record)].owns:
            table = TABLE_OF[owned]
            unit.write(table, (f"DELETE FROM {table} WHERE {owner} = ?", (record.id,), None))

    def discard(self, kind: type[Any], *key: str) -> None:
        """Add to the unit a delete of the record; a missing record is no error."""
        unit = self._unit
        table = self.kinds[kind]
        unit.delete(table, key, (table.delete, key, None))

    def append(self, entry: Event | AuditEntry, record: str | None = None) -> None:
        """Add an entry to its log."""
        if isinstance(entry, AuditEntry):
            self.append_audit(*cells_of(entry, record, self._unit.sealer))
            self._unit.changed |= {"audit", "audit_chain"}
        else:
            execution_rows.add_event(self._unit, entry)

    @abstractmethod
    def append_audit(self, text: str, record: str | None) -> None:
        """Add the text and the record of an entry to the end of the chain."""

    def log(self, line: Event) -> None:
        """Add output lines, which have the form of an event, to their own log."""
        execution_rows.add_lines(self._unit, line)

    def tally(self, webhook_id: str, date: str, status: int, at: EpochMs) -> None:
        unit = self._unit
        unit.write(
            "webhook_tallies", (record_queries.ADD_TALLY, (webhook_id, date, status, 1, at), None)
        )

    def deliver(self, record: Delivery) -> None:
        unit = self._unit
        body = text_of(record_queries.write_delivery(record))
        body = sealed(unit.sealer, body, "webhook_deliveries", "body", record.id)
        values = (record.webhook_id, int(record.authenticated), record.id, record.at, body)
        unit.write("webhook_deliveries", (record_queries.ADD_DELIVERY, values, None))

    def purge(self, *ids: str) -> None:
        unit = self._unit
        for sql in execution_queries.PURGE:
            unit.writes.append((sql, (text_of(ids),), None))
            unit.changed |= tables_in(sql)
        for id in ids:
            unit.pend("executions", (id,), None)

    def limit_group(self, workflow_id: str, at_once: int | None) -> None:
        unit = self._unit
        if at_once is None:
            unit.write("group_limits", (groups.NO_LIMIT, (workflow_id,), None))
        else:
            unit.write("group_limits", (groups.SET_LIMIT, (workflow_id, at_once), None))
        unit.write("group_checks", (groups.MARK_ALL, (workflow_id,), None))

    def require_room(self, group: str, at_once: int) -> None:
        self._unit.require((groups.HAS_ROOM, (group, at_once), ("concurrency group", group)))

    async def commit(self) -> None:
        """Store all collected writes. Raises `Stale`, `StoreUnavailable`."""
        await self._unit.commit()


def _name_approvers(unit: SqlUnitOfWork, record: Approval) -> None:
    if record.version:
        unit.write("approval_approvers", (execution_queries.FORGET_APPROVERS, (record.id,), None))
    for name in named(record):
        unit.write("approval_approvers", (execution_queries.ADD_APPROVER, (name, record.id), None))
