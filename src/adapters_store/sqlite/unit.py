"""The unit of work over one file."""

from adapters_store.sql.statement import Values
from adapters_store.sql.unit import SqlUnit
from adapters_store.sqlite.audit import ADD_AUDIT, SqliteAudit
from adapters_store.sqlite.execution_queries import SqliteExecutions, SqliteWorkflows
from adapters_store.sqlite.unit_of_work import SqliteUnitOfWork
from wfcore.model.execution import Execution
from wfcore.ports.store import queries

REQUIRE_ABANDONED = """SELECT 1 FROM executions
    WHERE id = ? AND worker = ? AND (coalesce(lease_until, 0) < ? OR ?)"""
"""The condition that the lease has ended, or that the worker is known to have ended."""


class SqliteUnit(SqlUnit):
    """One unit of work; a unit that is never committed also serves as a view."""

    __slots__ = ()
    _unit: SqliteUnitOfWork

    executions = queries(SqliteExecutions)
    workflows = queries(SqliteWorkflows)
    audit = queries(SqliteAudit)

    def append_audit(self, text: str, record: str | None) -> None:
        self._unit.writes.append((ADD_AUDIT, (text, record), None))

    def require_abandoned(self, record: Execution) -> None:
        unit = self._unit
        ended = bool(record.worker and unit.ended((record.worker,)))
        values: Values = (record.id, record.worker, unit.now(), ended)
        unit.require((REQUIRE_ABANDONED, values, ("executions", record.id)))
