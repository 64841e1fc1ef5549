"""
The queries whose SQL or whose columns differ in PostgreSQL.

Kinds, lists and look-ups that both databases share are in `adapters_store.sql`.
"""
# ruff: noqa: S608 - only constant text of this package is put together

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any, TypeVar

from attrs import evolve

from adapters_store.sql import execution_queries as runs
from adapters_store.sql import record_queries as records
from adapters_store.sql.execution_rows import COLUMNS, FETCH, HEAD
from adapters_store.sql.kinds import KINDS, Fetch, Kind
from adapters_store.sql.queries import query
from wfcore.model.execution import Execution
from wfcore.model.webhook import Delivery, Tally
from wfcore.rules.limits import DELIVERIES_KEPT

R = TypeVar("R")

DOABLE = "capabilities::jsonb <@ to_jsonb(?::text[])"
"""The condition that a worker with these capabilities is able to run an execution."""
OPEN = "status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')"


def _fetch(fetch: Fetch[R], whole: str = "body") -> Fetch[R]:
    """
    *fetch* with one statement. If *fetch* has a *probe*, the statement takes the known version as
    its last value; if that version is current, the server sends nothing else.
    """
    if fetch.probe is None:
        return fetch
    if fetch.table == FETCH.table:
        rest = ", ".join(f"{HEAD.get(name, f'r.{name}')} AS {name}" for name in COLUMNS[1:])
        text = f"""SELECT r.version, x.* FROM executions r
            LEFT JOIN LATERAL (SELECT {rest}) x ON r.version <> $2 WHERE r.id = $1"""
    else:
        text = f"""SELECT version, CASE WHEN version <> $2 THEN {whole} END
            FROM {fetch.table} WHERE id = $1"""
    return evolve(fetch, fetch=text)


def _own(kind: Kind[R]) -> Kind[R]:
    """*kind*, read by the statement for PostgreSQL."""
    own = copy(kind)
    own.one = _fetch(kind.one, kind.whole)
    return own


EXECUTION = _fetch(FETCH)
"""The statement by which an execution is read."""
OWN: Mapping[type[Any], Kind[Any]] = {type: _own(kind) for type, kind in KINDS.items()}
"""The kinds of records, read by statements for PostgreSQL."""


class PostgresWorkflows(records.Workflows):
    those = "= ANY (ARRAY({}))"


class PostgresWebhooks(records.Webhooks):
    async def deliveries(self, webhook_id: str) -> Sequence[Delivery]:
        """
        The newest deliveries. More deliveries may be stored, because simultaneous units do not see
        each other's deliveries.
        """
        found: Counter[bool] = Counter()
        kept = []
        for delivery in await super().deliveries(webhook_id):
            found[delivery.authenticated] += 1
            if found[delivery.authenticated] <= DELIVERIES_KEPT:
                kept.append(delivery)
        return kept

    async def tallies(self, webhook_id: str) -> Sequence[Tally]:
        sql = """SELECT webhook_id, date, status, sum(count)::bigint, max(last_at)
            FROM webhook_tallies WHERE webhook_id = ?
            GROUP BY webhook_id, date, status ORDER BY date, status"""
        found = await self.unit.rows(query(sql, webhook_id))
        return [Tally(*row) for row in found]


class PostgresExecutions(runs.Executions):
    """
    The queries of executions. Totals are counted: a tally would be a row for which units wait.
    """

    async def abandoned(self, limit: int) -> Sequence[Execution]:
        """
        The executions whose lease has ended. A lost connection does not show that a worker has
        ended.
        """
        where = f"""r.worker IS NOT NULL AND r.{OPEN}
            AND coalesce(r.lease_until, 0) < wfcore_now() ORDER BY r.id"""
        return await self._some(where, limit)

    def _doable(self, able: Collection[str]) -> tuple[str, Any]:
        return DOABLE, list(able)
