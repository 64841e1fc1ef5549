"""
What this database is asked in other words than SQLite, or has other columns for.

Everything else is one story: kinds, lists and look-ups are those of `adapters_store.sqlite`.
"""
# ruff: noqa: S608 - only constant text of this package is put together

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attrs import evolve

from adapters_store.sqlite import records, runs
from adapters_store.sqlite.execution_rows import COLUMNS, FETCH, HEAD, INSERT
from adapters_store.sqlite.kinds import DEFINITIONS, KINDS, Fetch, Kind
from adapters_store.sqlite.queries import query
from adapters_store.sqlite.statements import SHAPES, insert
from wfcore.model.execution import Execution
from wfcore.model.webhook import Delivery, Tally
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.rules.limits import DELIVERIES_KEPT

DOABLE = "capabilities::jsonb <@ to_jsonb(?::text[])"
"""Whether a worker with these words is able to run it."""
OPEN = "status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')"

OWN: Mapping[type[Any], Kind[Any]] = {
    **KINDS,
    Workflow: Kind("workflows", Workflow, columns=("owner_id", "name", "revision"), watched=True),
}
"""How each kind of record is stored here: what SQLite finds in a body is a column."""

BORN = insert("executions", (*SHAPES[INSERT].columns, "revision"))
"""A new execution."""


def _fetch(fetch: Fetch[Any], whole: str = "body") -> Fetch[Any]:
    """With a *probe*, another value is the version that is known; if it is, nothing else comes."""
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


FETCHES: Mapping[type[Any], Fetch[Any]] = {
    Execution: _fetch(FETCH),
    **{type: _fetch(kind.one, kind.whole) for type, kind in OWN.items()},
}

IN_USE = f"""
WITH used (workflow_id, revision) AS (
    SELECT id, revision FROM workflows
    UNION SELECT workflow_id, revision FROM executions WHERE {OPEN})
SELECT version, body, workflow_id, revision
    FROM used JOIN definitions USING (workflow_id, revision) ORDER BY workflow_id, revision"""


class PostgresDefinitions(records.Definitions):
    async def in_use(self) -> Sequence[DefinitionSnapshot]:
        rows = await self.unit.rows(query(IN_USE, tables="definitions workflows executions"))
        read = self.unit.reads.read  # strictly: what is left out would lose its packages
        return [read("definitions", DEFINITIONS.decode, row, tuple(row[2:])) for row in rows]


class PostgresWebhooks(records.Webhooks):
    async def deliveries(self, webhook_id: str) -> Sequence[Delivery]:
        """More than are kept may be there: units at once do not see what the others add."""
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
        found = await self.unit.rows(query(sql, webhook_id, tables="webhook_tallies"))
        return [Tally(*row) for row in found]


class PostgresExecutions(runs.Executions):
    _tallied = False  # totals are counted: a tally would be a row that units wait for

    async def abandoned(self, limit: int) -> Sequence[Execution]:
        """Only a lease tells: a connection that was lost says nothing about a worker."""
        where = f"""r.worker IS NOT NULL AND r.{OPEN}
            AND coalesce(r.lease_until, 0) < wfcore_now() ORDER BY r.id"""
        return await self._some(where, limit)

    def _doable(self, able: Collection[str]) -> tuple[str, Any]:
        return DOABLE, list(able)
