"""Concurrency groups: the transaction that claims counts rows to see whether a group has room."""

from adapters_store.sql.groups import (
    EVERYBODY,
    FIRST_WAITING,
    HELD,
    INSIDE,
    LIMIT,
)
from adapters_store.sqlite.connection import Cursor

GROUPS_IN_A_CLAIM = 200


TURN = "UPDATE executions SET queued = 1 - queued WHERE id = ?"


MARKED = "SELECT concurrency_group FROM group_checks ORDER BY number LIMIT ?"


CHECKED = "DELETE FROM group_checks WHERE concurrency_group = ?"


def admit_waiting(cursor: Cursor) -> None:
    """
    In every marked group, admit as many executions as there is room for, and queue the other
    executions.
    """
    for (group,) in cursor.execute(MARKED, (GROUPS_IN_A_CLAIM,)).fetchall():
        _admit(cursor, group)
        cursor.execute(CHECKED, (group,))


def _admit(cursor: Cursor, group: str) -> None:
    """Admit unclaimed executions in the order of the queue, while the group has room."""
    at_once = cursor.execute(LIMIT, (group,)).fetchone()
    held = cursor.execute(HELD, (group,)).fetchone()[0]
    room = max(0, at_once[0] - held) if at_once else EVERYBODY
    inside = cursor.execute(INSIDE, (group,)).fetchall()
    line = sorted(inside + cursor.execute(FIRST_WAITING, (group, room)).fetchall())
    for place, (_, id, queued) in enumerate(line):
        if queued == (place < room):
            cursor.execute(TURN, (id,))
