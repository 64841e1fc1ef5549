"""
Concurrency groups: PostgreSQL has locks where SQLite has its one writer.

A transaction that accepts or ends an execution of a group, requires room in a group, or admits
waiting executions holds the group's advisory lock. The lock is taken before the statement that
counts (a statement sees only commits from before its begin). A transaction that sets a new limit
excludes all these transactions. Claims do not hold the lock: they take executions that are already
admitted. An admission first locks the rows of these executions, so that each execution is either
taken, and counted, or still free.
"""
# ruff: noqa: S608 - only constant text of this package is put together

from collections.abc import Sequence

from adapters_store.postgres.connection import Connection, Pool, lent, rows_of
from adapters_store.postgres.statements import LOCKED, Lock
from adapters_store.sql.groups import (
    EVERYBODY,
    FIRST_WAITING,
    HELD,
    INSIDE,
    LIMIT,
    OPEN,
)
from wfcore.model.execution import Execution

WORKFLOW = f"SELECT workflow_id FROM executions WHERE {OPEN} LIMIT 1"
LOCKING = " FOR UPDATE"
CHECKED = "DELETE FROM group_checks WHERE concurrency_group = ? RETURNING 1"
TURN = "UPDATE executions SET queued = 1 - queued WHERE id = ANY(?::text[])"


def lock(group: str) -> Lock:
    """The lock of a transaction that counts in *group*."""
    return Lock(f"group {group}")


def limit_lock(workflow_id: str, *, shared: bool = True) -> Lock:
    """
    The lock of a limit. Transactions that count share the lock; a new limit holds the lock alone.
    """
    return Lock(f"limit {workflow_id}", shared)


def locks(run: Execution) -> set[Lock]:
    """The locks of a unit that accepts or ends *run*."""
    return {limit_lock(run.workflow_id), lock(run.concurrency_group or "")}


async def admit_waiting(pool: Pool, marked: Sequence[str]) -> None:
    """
    In every marked group, admit as many executions as there is room for, and queue the other
    executions.
    """
    for group in marked:
        async with lent(pool) as connection, connection.transaction():
            await _admit(connection, group)


async def _admit(connection: Connection, group: str) -> None:
    """Admit unclaimed executions in the order of the queue, while the group has room."""
    for (workflow_id,) in await rows_of(connection, WORKFLOW, group):
        await rows_of(connection, LOCKED.format("_shared"), limit_lock(workflow_id).name)
    await rows_of(connection, LOCKED.format(""), lock(group).name)
    if not await rows_of(connection, CHECKED, group):
        return
    inside = await rows_of(connection, f"{INSIDE} ORDER BY id{LOCKING}", group)
    at_once = await rows_of(connection, LIMIT, group)
    held = (await rows_of(connection, HELD, group))[0][0]
    room = max(0, at_once[0][0] - held) if at_once else EVERYBODY
    line = sorted(inside + await rows_of(connection, FIRST_WAITING, group, room))
    turned = [id for place, (_, id, queued) in enumerate(line) if queued == (place < room)]
    await rows_of(connection, TURN, sorted(turned))
