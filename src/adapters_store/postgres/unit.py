"""The unit of work over PostgreSQL."""

from collections.abc import Mapping
from typing import Any, ClassVar

from adapters_store.postgres import groups
from adapters_store.postgres.audit import PostgresAudit
from adapters_store.postgres.queries import (
    EXECUTION,
    OWN,
    PostgresExecutions,
    PostgresWebhooks,
    PostgresWorkflows,
)
from adapters_store.postgres.unit_of_work import PostgresUnitOfWork
from adapters_store.sql.execution_rows import changes_group
from adapters_store.sql.kinds import Fetch, Kind
from adapters_store.sql.unit import SqlUnit
from wfcore.model.execution import Execution
from wfcore.ports.store import queries

REQUIRE_ABANDONED = """SELECT 1 FROM executions
    WHERE id = ? AND worker = ? AND coalesce(lease_until, 0) < wfcore_now() FOR UPDATE"""


class PostgresUnit(SqlUnit):
    """One unit of work; a unit that is never committed also serves as a view."""

    __slots__ = ()
    _unit: PostgresUnitOfWork

    webhooks = queries(PostgresWebhooks)
    workflows = queries(PostgresWorkflows)
    executions = queries(PostgresExecutions)
    audit = queries(PostgresAudit)

    kinds: ClassVar[Mapping[type[Any], Kind[Any]]] = OWN
    fetch: ClassVar[Fetch[Execution]] = EXECUTION

    def put(self, record: Any) -> None:
        """Add to the unit a compare-and-set of the record, and the locks of its group."""
        super().put(record)
        if isinstance(record, Execution) and changes_group(record):
            self._unit.locks |= groups.locks(record)

    def append_audit(self, text: str, record: str | None) -> None:
        """Add an entry, to be written after all other writes of the unit."""
        self._unit.audit.append((text, record))

    def require_abandoned(self, record: Execution) -> None:
        values = (record.id, record.worker)
        self._unit.require((REQUIRE_ABANDONED, values, ("executions", record.id)))

    def limit_group(self, workflow_id: str, at_once: int | None) -> None:
        self._unit.locks.add(groups.limit_lock(workflow_id, shared=False))
        super().limit_group(workflow_id, at_once)

    def require_room(self, group: str, at_once: int) -> None:
        self._unit.locks.add(groups.lock(group))
        super().require_room(group, at_once)
