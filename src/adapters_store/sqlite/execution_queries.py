"""The queries of executions and workflows whose SQL is only for SQLite."""

from collections.abc import Collection, Sequence
from typing import Any

from attrs import define, evolve

from adapters_store.sql.cells import text_of
from adapters_store.sql.execution_queries import Executions, conditions, excludes_ended
from adapters_store.sql.queries import query
from adapters_store.sql.record_queries import Workflows
from adapters_store.sqlite import tallies
from adapters_store.sqlite.unit_of_work import SqliteUnitOfWork
from wfcore.model.execution import Execution
from wfcore.ports.records import ExecutionFilter

DOABLE = """NOT EXISTS (SELECT 1 FROM json_each(capabilities)
    WHERE value NOT IN (SELECT value FROM json_each(?)))"""
"""The condition that a worker with these capabilities is able to run an execution."""


def total_of(where: ExecutionFilter) -> tuple[str, Sequence[Any]] | None:
    """
    An expression for the number of executions by tallies, with its values; None if tallies do not
    help. Tallies do not help for the executions of all accounts since some day: no index has the
    unfinished executions of all accounts by time.
    """
    of_all = where.owner_id is None and where.workflow_id is None and where.since is not None
    chosen = where.id_end is not None or where.reference is not None
    if chosen or of_all or excludes_ended(where.statuses):
        return None
    any_time = evolve(where, since=None, until=None)
    return tallies.total(where, conditions(any_time, where.statuses))


@define(eq=False)
class SqliteWorkflows(Workflows):
    counted = tallies.SPANS


@define(eq=False)
class SqliteExecutions(Executions):
    unit: SqliteUnitOfWork

    async def abandoned(self, limit: int) -> Sequence[Execution]:
        sql = "SELECT DISTINCT worker FROM executions WHERE worker IS NOT NULL"
        workers = [row[0] for row in await self.unit.rows(query(sql))]
        ended = self.unit.ended(workers)
        where = f"""r.worker IS NOT NULL AND r.status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
            AND (coalesce(r.lease_until, 0) < ? OR r.worker IN ({", ".join("?" for _ in ended)}))
            ORDER BY +r.id"""  # the sign keeps it to executions_held, which is short
        return await self._some(where, limit, self.unit.now(), *ended)

    def _total(self, where: ExecutionFilter) -> tuple[str, Sequence[Any]] | None:
        return total_of(where)

    def _doable(self, able: Collection[str]) -> tuple[str, Any]:
        return DOABLE, text_of(list(able))
