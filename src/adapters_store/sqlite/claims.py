"""
Claims and leases: how workers take executions, and how long workers keep executions.

A claim is a job for the writer thread, so no other claim comes between reading and taking, in this
process or another (the transaction is IMMEDIATE). A claim runs in four steps:

1. `admit_waiting` admits executions that wait in a concurrency group with room, so that the rest of
   the claim reads only one column (`queued`).
2. `_questions` finds each account with a due execution, and the due time of its earliest execution.
   The query walks the index once per *account*, not per execution: a million queued executions of
   one account cost as much as one execution. A claim of particular executions, or of executions
   that a worker is able to run, walks over these executions alone.
3. Accounts take turns. The account with the fewest held slots comes first, then the account that
   was served longest ago, then the earliest due time. `Slots.admits` keeps the last free slot for
   an account without a slot while other accounts have had work lately (decision 61).
4. `TAKE` writes worker, lease and a fencing number one higher. Every later write of that worker
   names the number; a write with an old number matches no row and is `Stale`.

A lease is only a promise about time. The lock file of a worker (`workers`) shows sooner that its
process has ended. The fencing number really prevents double work: a worker that comes back after
the end of its lease is too late to write, whatever its state. So a lease may be short without harm
to correctness, and a clock that jumps can delay work but not duplicate it.

An execution in the cache is not read again when it is taken: a claim changes four fields of the
execution, and updates the cache as a unit of work does.

An execution whose row cannot be decoded is set aside instead of failing the claim: one unreadable
row must not stop the queue.
"""
# ruff: noqa: S608 - only constant text of this package is put together

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import cast

import attrs
from attrs import frozen

from adapters_store.sql.cache import KnownRecord, RecordCache
from adapters_store.sql.cells import Row, text_of
from adapters_store.sql.execution_queries import CLAIMABLE
from adapters_store.sql.execution_rows import SELECT_HEAD
from adapters_store.sql.record_queries import OLD
from adapters_store.sqlite import audit
from adapters_store.sqlite.connection import Cursor, DriverError, is_no_text, text_or_bytes
from adapters_store.sqlite.execution_queries import DOABLE
from adapters_store.sqlite.groups import admit_waiting
from adapters_store.sqlite.statements import Writes
from wfcore.model.execution import Execution, evolve
from wfcore.ports.store import Slots, Trimmed
from wfcore.ports.system import Sealer
from wfcore.time import EpochMs

HELD = "SELECT owner_id, count(*) FROM executions WHERE worker = ? GROUP BY owner_id"

NAMED = """named AS MATERIALIZED (SELECT id, owner_id, due_at FROM executions
    WHERE id IN (SELECT value FROM json_each(:ids)) AND +({wanted}))"""
"""
The part of a query that reads the rows of given ids. The plus sign makes the planner use the index
of ids, so that only as many rows are read as there are ids.
"""


@cache
def _questions(named: bool, narrowed: bool) -> tuple[str, str]:
    """
    Two queries: the accounts that wait, with the instants since when; and the next execution of an
    account. They regard all executions that can be claimed, or only *named* executions, or only
    executions that a worker is able to run (*narrowed*). The first query takes one index step per
    account, however many executions of one account wait.
    """
    doable = DOABLE.replace("?", ":able")
    wanted = f"{CLAIMABLE} AND {doable}" if narrowed else CLAIMABLE
    first, table = (NAMED.format(wanted=wanted), "named") if named else ("", "executions")
    wanted = "1 = 1" if named else wanted
    waiting = f"""
WITH RECURSIVE {first + "," if named else ""} owners (owner_id) AS (
    SELECT min(owner_id) FROM {table} WHERE {wanted}
    UNION ALL
    SELECT (SELECT min(owner_id) FROM {table} WHERE {wanted} AND owner_id > owners.owner_id)
    FROM owners WHERE owners.owner_id IS NOT NULL
)
SELECT owner_id, (SELECT min(due_at) FROM {table}
    WHERE {wanted} AND owner_id = owners.owner_id),
    coalesce((SELECT at FROM served WHERE owner_id = owners.owner_id), 0)
    FROM owners WHERE owner_id IS NOT NULL"""
    next = f"""{"WITH " + first if named else ""} SELECT id, due_at FROM {table}
    WHERE {wanted} AND owner_id = :owner ORDER BY due_at, id LIMIT 1"""
    return waiting, next


SERVED_LATELY = "SELECT owner_id FROM served WHERE at > ? ORDER BY at DESC LIMIT 2"
"""
The query for accounts that were served lately. Two accounts are enough to know for any account
whether there is another.
"""

SERVE = """INSERT INTO served (owner_id, at) VALUES (?, ?)
    ON CONFLICT (owner_id) DO UPDATE SET at = excluded.at"""

TAKE = """UPDATE executions SET worker = ?, lease_until = ?, due_at = NULL, fence = fence + 1,
    version = version + 1 WHERE id = ? RETURNING version, fence"""

EXTEND = "UPDATE executions SET lease_until = ? WHERE worker = ? AND id = ? RETURNING due_at"


@frozen
class ClaimedRow:
    """
    A claimed execution: the known record after the claim, or the row if the record was not known.
    """

    id: str
    known: KnownRecord | None = None
    row: Row = ()

    @property
    def run(self) -> Execution | None:
        """The execution as it is stored now; large values may be left out."""
        return None if self.known is None else cast("Execution", self.known.light)


@frozen
class SqliteClaim:
    """A job that claims up to *limit* due executions. It reads *cache* and does not change it."""

    worker: str
    now: EpochMs
    until: EpochMs
    slots: Slots
    limit: int
    ids: Collection[str] | None = None
    able: Collection[str] | None = None
    cache: RecordCache | None = None

    def written(self, taken: Sequence[ClaimedRow]) -> Writes:
        """The writes of a unit of work that would have stored the same records."""
        return Writes((), {("executions", (one.id,)): (one.run, one.known) for one in taken})

    @property
    def _questions(self) -> tuple[str, str]:
        return _questions(self.ids is not None, self.able is not None)

    @property
    def _values(self) -> dict[str, str]:
        return {"ids": text_of(list(self.ids or ())), "able": text_of(list(self.able or ()))}

    def __call__(self, cursor: Cursor) -> list[ClaimedRow]:
        admit_waiting(cursor)
        held = Counter[str](dict(cursor.execute(HELD, (self.worker,)).fetchall()))
        found = cursor.execute(self._questions[0], self._values).fetchall()
        waiting = [row for row in found if row[1] <= self.now]
        due = {owner: due_at for owner, due_at, _ in waiting}
        served = {owner: at for owner, _, at in waiting}
        lately = self._served_lately(cursor) if due else set()
        taken: list[ClaimedRow] = []
        while due and len(taken) < self.limit:
            owner = min(due, key=lambda owner: (held[owner], served[owner], due[owner], owner))
            others = not (lately | held.keys()) <= {owner}
            free = self.slots.places - held.total()
            if not self.slots.admits(held[owner], free, others_lately=others):
                break
            taken.append(self._take_first_of(cursor, owner, due))
            held[owner] += 1
            served[owner] = self.now
        return taken

    def _served_lately(self, cursor: Cursor) -> set[str]:
        """The accounts that recently got a slot; two accounts at most."""
        found = cursor.execute(SERVED_LATELY, (self.now - self.slots.lately_ms,)).fetchall()
        return {row[0] for row in found}

    def _take_first_of(self, cursor: Cursor, owner: str, due: dict[str, int]) -> ClaimedRow:
        """
        Take the earliest execution of the account, and note in *due* when its next execution is
        due.
        """
        next, which = self._questions[1], {**self._values, "owner": owner}
        id = cursor.execute(next, which).fetchone()[0]
        version, fence = cursor.execute(TAKE, (self.worker, self.until, id)).fetchone()
        cursor.execute(SERVE, (owner, self.now))
        following = cursor.execute(next, which).fetchone()
        if following is not None and following[1] <= self.now:
            due[owner] = following[1]
        else:
            del due[owner]
        known = self.cache.entries.get(("executions", (id,))) if self.cache else None
        if known is None or known.version != version - 1:
            return ClaimedRow(id, row=_read(cursor, id))
        changes = {"version": version, "fence": fence, "worker": self.worker, "due_at": None}
        bare = known.bare and evolve(known.bare, **changes)
        record = evolve(known.record, **changes)
        return ClaimedRow(id, attrs.evolve(known, version=version, record=record, bare=bare))


UNREADABLE = "unreadable"
"""
The worker of executions that were taken but cannot be read. No process has this name, so these
executions take up no slot.
"""

SET_ASIDE = "UPDATE executions SET worker = ?, lease_until = 0 WHERE worker = ? AND id = ?"


def set_aside(cursor: Cursor, worker: str, ids: Collection[str]) -> None:
    """
    Remove executions that cannot be read from the queue. Once they can be read, they continue as
    after the end of a worker.
    """
    cursor.executemany(SET_ASIDE, [(UNREADABLE, worker, id) for id in ids])


def _read(cursor: Cursor, id: str) -> Row:
    """The row of an execution; text that is not UTF-8 is returned as bytes."""
    try:
        row: Row = cursor.execute(SELECT_HEAD + "r.id = ?", (id,)).fetchone()
    except DriverError as error:
        if not is_no_text(error):
            raise
        cursor.connection.text_factory = text_or_bytes
        row = cursor.execute(SELECT_HEAD + "r.id = ?", (id,)).fetchone()
    return row


def extend(
    cursor: Cursor, worker: str, ids: Collection[str], until: EpochMs
) -> Mapping[str, EpochMs | None]:
    """
    Extend the leases that *worker* holds on *ids*; returns the ids of these leases, each with its
    `due_at`.
    """
    found = {id: cursor.execute(EXTEND, (until, worker, id)).fetchone() for id in ids}
    return {id: row[0] for id, row in found.items() if row is not None}


def touch(cursor: Cursor) -> None:
    """Do the smallest write that fails if the file cannot be written, or was moved."""
    cursor.execute("UPDATE audit_chain SET end_number = end_number")


def trim(
    cursor: Cursor,
    before: Sequence[EpochMs],
    limit: int,
    trimmed: Trimmed | None,
    sealer: Sealer | None,
) -> int:
    """Delete up to *limit* old rows; returns the number of deleted rows."""
    gone = audit.trim(cursor, before[0], limit, trimmed, sealer)
    for sql, at in zip(OLD, before[1:], strict=True):
        gone += cursor.execute(sql, (at, limit - gone)).rowcount
    return gone
