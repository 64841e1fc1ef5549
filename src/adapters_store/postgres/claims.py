"""
Claims and leases: how workers of several machines take executions.

A claim reads the state, decides whose turn it is, and takes the chosen executions that are still
free (`SKIP LOCKED`: the claim waits for no other machine). If another claim was faster in between,
the claim reads the state again. The rules are the same as for claims in SQLite: fairness between
accounts, the last free slot, and one index step per account, however many executions wait.

Only the first accounts in the order of turns are read: an account whose place is beyond the number
wanted cannot get a turn. The instant at which an account was served is written, unless another
claim is writing that instant at the same time.
"""
# ruff: noqa: S608 - only constant text of this package is put together

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from attrs import frozen

from adapters_store.postgres.connection import Connection, Pool, lent, rows_of
from adapters_store.postgres.groups import admit_waiting
from adapters_store.postgres.queries import DOABLE
from adapters_store.sql.cells import Row
from adapters_store.sql.execution_queries import CLAIMABLE
from adapters_store.sql.execution_rows import COLUMNS, HEAD
from wfcore.ports.store import Slots
from wfcore.time import DurationMs, EpochMs

TRIES = 5
GROUPS_IN_A_CLAIM = 200


@cache
def _question(named: bool, narrowed: bool) -> str:
    doable = DOABLE.replace("?", "$5")
    wanted = f"{CLAIMABLE} AND {doable}" if narrowed else f"{CLAIMABLE} AND $5::text[] IS NULL"
    first, table = "", "executions"
    if named:
        first = f"""named AS MATERIALIZED (SELECT id, owner_id, due_at FROM executions
            WHERE id = ANY($4::text[]) AND {wanted}),"""
        table, wanted = "named", "true"
    of = f"SELECT {{}} FROM {table} e WHERE {wanted}"
    return f"""
WITH RECURSIVE {first} held AS (
    SELECT owner_id, count(*) AS count FROM executions WHERE worker = $1 GROUP BY owner_id
), owners (owner_id) AS (
    ({of.format("owner_id")} ORDER BY owner_id LIMIT 1)
    UNION ALL
    SELECT ({of.format("e.owner_id")} AND e.owner_id > o.owner_id ORDER BY e.owner_id LIMIT 1)
    FROM owners o WHERE o.owner_id IS NOT NULL
), turns AS (
    SELECT o.owner_id, coalesce(s.at, 0) AS served
    FROM owners o CROSS JOIN LATERAL (
        {of.format("e.due_at")} AND e.owner_id = o.owner_id ORDER BY e.due_at, e.id LIMIT 1) f
    LEFT JOIN held h ON h.owner_id = o.owner_id LEFT JOIN served s ON s.owner_id = o.owner_id
    WHERE f.due_at <= wfcore_now()
    ORDER BY coalesce(h.count, 0), served, f.due_at, o.owner_id LIMIT $2
), found AS (
    SELECT t.owner_id, t.served, c.id, c.due_at FROM turns t CROSS JOIN LATERAL (
        {of.format("e.id, e.due_at")} AND e.owner_id = t.owner_id AND e.due_at <= wfcore_now()
        ORDER BY e.due_at, e.id LIMIT $2) c
)
SELECT wfcore_now(),
    (SELECT json_agg(concurrency_group) FROM
        (SELECT concurrency_group FROM group_checks
        ORDER BY concurrency_group LIMIT {GROUPS_IN_A_CLAIM}) m),
    (SELECT json_object_agg(owner_id, count) FROM held),
    (SELECT json_agg(owner_id) FROM
        (SELECT owner_id FROM served WHERE at > wfcore_now() - $3::bigint
        ORDER BY at DESC LIMIT 2) l),
    (SELECT json_agg(json_build_array(owner_id, served, due_at, id) ORDER BY due_at, id) FROM found)
    {"" if named else "WHERE $4::text[] IS NULL"}"""


_HEAD = ", ".join(f"{HEAD.get(name, f'r.{name}')} AS {name}" for name in COLUMNS)
TAKE = f"""
WITH picked AS (
    SELECT id FROM executions WHERE id = ANY($1::text[]) AND {CLAIMABLE}
    ORDER BY id FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE executions r SET worker = $2, lease_until = wfcore_now() + $3::bigint, due_at = NULL,
        fence = fence + 1, version = version + 1
    FROM picked p WHERE r.id = p.id RETURNING {_HEAD}
), free AS (
    SELECT owner_id FROM served WHERE owner_id IN (SELECT owner_id FROM taken)
    ORDER BY owner_id FOR UPDATE SKIP LOCKED
), again AS (
    UPDATE served SET at = wfcore_now() WHERE owner_id IN (SELECT owner_id FROM free)
), first AS (
    INSERT INTO served SELECT DISTINCT owner_id, wfcore_now() FROM taken t
    WHERE NOT EXISTS (SELECT 1 FROM served s WHERE s.owner_id = t.owner_id)
    ON CONFLICT (owner_id) DO NOTHING
)
SELECT {", ".join(COLUMNS)} FROM taken"""

EXTEND = """
WITH mine AS (
    SELECT id FROM executions WHERE worker = $1 AND id = ANY($2::text[]) ORDER BY id FOR UPDATE)
UPDATE executions r SET lease_until = wfcore_now() + $3::bigint FROM mine WHERE r.id = mine.id
RETURNING r.id, r.due_at"""

UNREADABLE = "unreadable"
"""
The worker of executions that were taken but cannot be read. No process has this name, so these
executions take up no slot.
"""
SET_ASIDE = "UPDATE executions SET worker = ?, lease_until = 0 WHERE worker = ? AND id = ANY(?)"


@frozen
class ClaimState:
    """
    The state by which a claim decides: the time, and everything on which the turns of accounts
    depend.
    """

    now: EpochMs
    marked: Sequence[str]
    held: Counter[str]
    lately: set[str]
    waiting: Mapping[str, Sequence[tuple[int, str]]]
    served: Mapping[str, int]


@frozen
class PostgresClaim:
    """A claim of up to *limit* due executions."""

    worker: str
    lease_ms: DurationMs
    slots: Slots
    limit: int
    ids: Collection[str] | None = None
    able: Collection[str] | None = None

    async def take(self, pool: Pool) -> list[Row]:
        """
        Take executions until there are enough or no more are due; returns their rows, each with its
        id.
        """
        taken: list[Row] = []
        for _ in range(TRIES):
            async with lent(pool) as connection:
                state = await self._read_state(connection)
                if not state.marked:
                    chosen = self._choose(state, self.limit - len(taken))
                    rows = await self._taken(connection, chosen) if chosen else []
                    taken += rows
                    if len(rows) == len(chosen):
                        break
            if state.marked:
                await admit_waiting(pool, state.marked)
        return taken

    async def _taken(self, connection: Connection, ids: Sequence[str]) -> list[Row]:
        """
        Take those executions of *ids* that are still free; returns their rows, in the order of
        *ids*.
        """
        rows = await rows_of(connection, TAKE, list(ids), self.worker, self.lease_ms)
        return sorted(rows, key=lambda row: ids.index(row[-1]))

    async def _read_state(self, connection: Connection) -> ClaimState:
        ids = None if self.ids is None else list(self.ids)
        able = None if self.able is None else list(self.able)
        sql = _question(ids is not None, able is not None)
        values = (self.worker, self.limit, self.slots.lately_ms, ids, able)
        now, *parts = (await rows_of(connection, sql, *values))[0]
        marked, held, lately, found = (None if part is None else json.loads(part) for part in parts)
        waiting: dict[str, list[tuple[int, str]]] = {}
        served: dict[str, int] = {}
        for owner, at, due_at, id in found or ():
            waiting.setdefault(owner, []).append((due_at, id))
            served[owner] = at
        return ClaimState(
            now, marked or (), Counter(held or {}), set(lately or ()), waiting, served
        )

    def _choose(self, state: ClaimState, limit: int) -> list[str]:
        """
        The ids of the executions to take, by the turns of their accounts: one id for each free
        place.
        """
        held, served = state.held.copy(), dict(state.served)
        due = {owner: iter(line) for owner, line in state.waiting.items()}
        first = {owner: next(line) for owner, line in due.items()}
        chosen: list[str] = []
        while first and len(chosen) < limit:
            owner = min(first, key=lambda one: (held[one], served[one], first[one][0], one))
            others = not (state.lately | held.keys()) <= {owner}
            free = self.slots.places - held.total()
            if not self.slots.admits(held[owner], free, others_lately=others):
                break
            chosen.append(first.pop(owner)[1])
            held[owner] += 1
            served[owner] = state.now
            if (following := next(due[owner], None)) is not None:
                first[owner] = following
        return chosen
