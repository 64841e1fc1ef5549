"""
Exact totals of executions, for which hardly any execution is read.

An ended execution never changes again. So ended executions that were accepted before a mark are
counted once, into tallies by owner, workflow, status and source, for each hour, each day, and all
time. The total of a list is the sum of four counts:

1. the tallies of the days and hours that lie in the list's period as a whole, and their notes;
2. ended executions before the mark in the rest at either end of the period: an hour at most;
3. executions before the mark that have not ended;
4. all executions from the mark on.

The cost of the first count does not grow with executions. Each of the other counts walks through an
index, over no more executions than it counts. Retention moves the mark forward (`tally`). The mark
stays some time behind, so that most executions have ended when the mark passes them. Triggers note
the executions that end later or are deleted, in the transaction that ends or deletes them, until
`tally` adds the notes.

Triggers that change tallies at once were measured: SQLite then records how to undo every statement
on executions, 15 % of a start. PostgreSQL counts rows: there, ends and the mark would need a lock.
"""
# ruff: noqa: S608 - only constant text of this package is put together

from collections.abc import Sequence
from typing import Any, TypeAlias

from adapters_store.sql.queries import Where
from adapters_store.sql.record_queries import CountedSpans
from adapters_store.sqlite.connection import Cursor
from wfcore.ports.records import ExecutionFilter
from wfcore.rules.execution.machine import EXECUTION
from wfcore.time import DAY, HOUR, MINUTE, EpochMs

ALL_TIME = 1 << 53
LAG = MINUTE
ENDED = "r.status IN ('COMPLETED', 'FAILED', 'CANCELLED')"
UNFINISHED = "r.status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')"
MARK = "(SELECT before FROM tally_mark)"

_IN_A_SPAN = """SELECT w.id, 'span', CAST((r.begins - ?) / {span} AS TEXT),
    CASE r.status WHEN 'FAILED' THEN 'failed' ELSE 'ended' END, sum(r.count)"""
_WITHIN = "r.begins >= ? AND r.begins < ? AND {own} GROUP BY 1, 3, 4"
SPANS = CountedSpans(
    MARK,
    f"""UNION ALL {_IN_A_SPAN} FROM w CROSS JOIN execution_tallies r
        WHERE r.span = {{span}} AND r.workflow_id = w.id AND {_WITHIN}
    UNION ALL {_IN_A_SPAN} FROM (
            SELECT workflow_id, owner_id, accepted_at / {{span}} * {{span}} AS begins, status,
                sum(count) AS count
            FROM tally_notes GROUP BY 1, 2, 3, 4) r
        CROSS JOIN w ON w.id = r.workflow_id WHERE {_WITHIN}""",
    2,
)
"""The tallies and notes of hours and days, for the activity of workflows."""

Span: TypeAlias = tuple[int, int, int]
"""The length of tallies, the begin of the first tally, and the end of the last tally."""
Period: TypeAlias = tuple[int, int]


def covering(since: EpochMs | None, until: EpochMs | None) -> tuple[list[Span], list[Period]]:
    """The tallies that lie in a period as a whole, and the other parts of the period."""
    if since is None and until is None:
        return [(ALL_TIME, 0, ALL_TIME)], []
    begin, end = since or 0, ALL_TIME if until is None else until
    first, last = -(-begin // HOUR) * HOUR, end // HOUR * HOUR
    if first >= last:
        return [], [(begin, end)]
    dawn, dusk = -(-first // DAY) * DAY, last // DAY * DAY
    if dawn >= dusk:
        spans = [(HOUR, first, last)]
    else:
        spans = [(HOUR, first, dawn), (DAY, dawn, dusk), (HOUR, dusk, last)]
    return [one for one in spans if one[1] < one[2]], [
        one for one in ((begin, first), (last, end)) if one[0] < one[1]
    ]


def total(where: ExecutionFilter, wanted: Where) -> tuple[str, Sequence[Any]]:
    """
    The number of executions that fit *where*, as an expression with its values; *wanted*: the
    conditions of *where* without the period. Tallies have no `id_end`.
    """
    spans, edges = covering(where.since, where.until)
    counts = [_tallied(where, span) for span in spans]
    if spans:
        counts.append(_noted(where, min(span[1] for span in spans), max(span[2] for span in spans)))
    for begin, end in edges:
        ended = _copy(wanted)
        ended.within("r.accepted_at", EpochMs(begin), EpochMs(end))
        ended.add(f"{ENDED} AND r.accepted_at < {MARK}")
        counts.append(_counted(ended))
    if not where.statuses or not EXECUTION.final.issuperset(where.statuses):
        counts.append(_unfinished(where, wanted))
    counts.append(_counted(_since_mark(where, wanted)))
    return " + ".join(text for text, _ in counts), [one for _, values in counts for one in values]


def _tallied(where: ExecutionFilter, span: Span) -> tuple[str, Sequence[Any]]:
    length, first, end = span
    wanted = _fitting(where)
    wanted.add("t.span = ? AND t.begins >= ? AND t.begins < ?", length, first, end)
    return _summed("execution_tallies", wanted)


def _noted(where: ExecutionFilter, first: int, end: int) -> tuple[str, Sequence[Any]]:
    """The sum of the notes between *first* and *end*."""
    wanted = _fitting(where)
    wanted.within("t.accepted_at", EpochMs(first), EpochMs(end))
    return _summed("tally_notes", wanted)


def _fitting(where: ExecutionFilter) -> Where:
    """The conditions on tallies, without the period."""
    wanted = Where()
    wanted.equal("t.owner_id", where.owner_id)
    wanted.equal("t.workflow_id", where.workflow_id)
    wanted.among("t.status", where.statuses)
    wanted.among("t.trigger_source", where.sources)
    return wanted


def _summed(table: str, wanted: Where) -> tuple[str, Sequence[Any]]:
    sql = f"(SELECT coalesce(sum(t.count), 0) FROM {table} t WHERE {wanted.text})"
    return sql, wanted.values


def _counted(wanted: Where, index: str = "") -> tuple[str, Sequence[Any]]:
    return f"(SELECT count(*) FROM executions r{index} WHERE {wanted.text})", wanted.values


def _unfinished(where: ExecutionFilter, wanted: Where) -> tuple[str, Sequence[Any]]:
    """
    The count of unfinished executions before the mark, from a short index of their own: the planner
    might prefer the index of all executions. Without an owner or a workflow, a plus sign prevents
    that.
    """
    found, index, at = _copy(wanted), "", "+r.accepted_at"
    if where.workflow_id is not None or where.owner_id is not None:
        of = "owner" if where.workflow_id is None else "workflow"
        index, at = f" INDEXED BY executions_unfinished_of_{of}", "r.accepted_at"
    found.within(at, where.since, None)
    until = ALL_TIME if where.until is None else where.until
    found.add(f"{UNFINISHED} AND {at} < min(?, {MARK})", until)
    return _counted(found, index)


def _since_mark(where: ExecutionFilter, wanted: Where) -> Where:
    found = _copy(wanted)
    found.add(f"r.accepted_at >= max(?, {MARK})", where.since or 0)
    found.within("r.accepted_at", None, where.until)
    return found


def _copy(wanted: Where) -> Where:
    return Where([*wanted.conditions], [*wanted.values])


NEXT = """SELECT accepted_at FROM executions
    WHERE accepted_at >= ? AND accepted_at < ? ORDER BY accepted_at LIMIT 1 OFFSET ?"""
COUNT = "SELECT count(*) FROM executions WHERE accepted_at >= ? AND accepted_at < ?"
_ADD = f"""INSERT INTO execution_tallies
    SELECT s.span, r.owner_id, r.hour / s.span * s.span, r.workflow_id, r.status,
        r.trigger_source, sum(r.count)
    FROM (
        SELECT owner_id, accepted_at / {HOUR} * {HOUR} AS hour, workflow_id, status,
            trigger_source, {{count}} AS count
        FROM {{rows}} GROUP BY 1, 2, 3, 4, 5) r
    CROSS JOIN (SELECT {HOUR} AS span UNION ALL SELECT {DAY} UNION ALL SELECT {ALL_TIME}) s
    GROUP BY 1, 2, 3, 4, 5, 6
    ON CONFLICT DO UPDATE SET count = count + excluded.count"""
ADD_ENDED = _ADD.format(
    count="count(*)",
    rows="""executions WHERE accepted_at >= ? AND accepted_at < ?
        AND status IN ('COMPLETED', 'FAILED', 'CANCELLED')""",
)
SOME_NOTES = "(SELECT rowid FROM tally_notes ORDER BY rowid LIMIT ?)"
ADD_NOTES = _ADD.format(count="sum(count)", rows=f"tally_notes WHERE rowid IN {SOME_NOTES}")

FORGET_NOTES = f"DELETE FROM tally_notes WHERE rowid IN {SOME_NOTES}"


def tally(cursor: Cursor, now: EpochMs, limit: int) -> int:
    """
    A job for the writer: add up to *limit* notes to the tallies, count the ended executions among
    the next *limit* executions, and move the mark behind them; returns the number of notes and
    executions. If more executions have the same instant, they are counted together.
    """
    cursor.execute(ADD_NOTES, (limit,))
    noted = cursor.execute(FORGET_NOTES, (limit,)).rowcount
    if noted:
        cursor.execute("DELETE FROM execution_tallies WHERE count = 0")
    (mark,) = cursor.execute("SELECT before FROM tally_mark").fetchone()
    target = now - LAG
    found = cursor.execute(NEXT, (mark, target, limit)).fetchone()
    moved = target if found is None else max(found[0], mark + 1)
    counted = cursor.execute(COUNT, (mark, moved)).fetchone()[0]
    if counted:
        cursor.execute(ADD_ENDED, (mark, moved))
        cursor.execute("UPDATE tally_mark SET before = ?", (moved,))
    return int(noted + counted)
