"""Exact totals without counting: whatever is written or deleted, they are what a count says."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters_store.sql.execution_queries import execution_page
from adapters_store.sql.record_queries import activity_of
from adapters_store.sqlite import migrate, tallies
from adapters_store.sqlite.connection import Connection, connect
from adapters_store.sqlite.execution_queries import total_of
from adapters_store.sqlite.tallies import ALL_TIME, covering, tally
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.model.page import PageRequest
from wfcore.ports.records import HOURS, ExecutionFilter
from wfcore.testing.builders import NOW
from wfcore.time import DAY, HOUR, EpochMs

INSERT = """INSERT INTO executions (id, version, status, accepted_at, owner_id, workflow_id,
    trigger_source, masked, fence, revision, capabilities, body)
    VALUES (?, 1, ?, ?, ?, ?, ?, 0, 0, 1, '[]', '{}')"""
ENDED = ("COMPLETED", "FAILED", "CANCELLED")
OWNERS, WORKFLOWS = ("acc_1", "acc_2"), ("wf_1", "wf_2")

instants = st.builds(
    lambda days, hours, ms: EpochMs(NOW + days * DAY + hours * HOUR + ms),
    st.integers(-2, 0),
    st.integers(-1, 1),
    st.integers(-2, 2),
)
statuses = st.sampled_from(ExecutionStatus)
sources = st.sampled_from((TriggerSource.OPEN_API, TriggerSource.WEBHOOK))
wheres = st.builds(
    ExecutionFilter,
    st.none() | st.sampled_from(OWNERS),
    st.none() | st.sampled_from(WORKFLOWS),
    st.lists(statuses, max_size=3, unique=True).map(tuple),
    st.lists(sources, max_size=1).map(tuple),
    st.none() | instants,
    st.none() | instants,
)
numbers = st.integers(0, 9)
rows = st.tuples(statuses, instants, st.sampled_from(OWNERS), st.sampled_from(WORKFLOWS), sources)
first = st.lists(rows, min_size=4, max_size=12).map(lambda made: list(enumerate(made)))
inserts = st.tuples(st.just("insert"), numbers, rows)
moves = st.tuples(st.just("tally"), instants, st.integers(1, 12))
changes = st.one_of(
    inserts,
    moves,
    st.tuples(st.just("status"), numbers, statuses),
    st.tuples(st.just("delete"), numbers, st.none()),
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    path = tmp_path_factory.mktemp("tallies") / "wfcore.db"
    migrate.prepare(path)
    with closing(connect(path)) as connection:
        yield connection


def make(database: Connection, kind: str, which: int, what: Any) -> None:
    """One change; none where the rules of executions allow none."""
    if kind == "tally":
        tally(database.cursor(), EpochMs(which), what)
    elif kind == "delete":
        database.execute("DELETE FROM executions WHERE id = ?", (which,))
    elif kind == "status":
        sql = f"UPDATE executions SET status = ? WHERE id = ? AND status NOT IN {ENDED}"
        database.execute(sql, (what, which))
    elif not database.execute("SELECT 1 FROM executions WHERE id = ?", (which,)).fetchone():
        database.execute(INSERT, (which, *what))


def total(database: Connection, where: ExecutionFilter, *, tallied: bool) -> int:
    page = execution_page(where, PageRequest(1, 1), total_of(where) if tallied else None)
    return int(database.execute(page.sql, page.values).fetchone()[0])


@given(first, moves, st.lists(changes, max_size=12), st.lists(wheres, min_size=1, max_size=5))
def test_a_total_by_tallies_is_the_count(
    database: Connection,
    stored: list[tuple[int, Any]],
    move: tuple[str, int, Any],
    made: list[tuple[str, int, Any]],
    asked: list[ExecutionFilter],
) -> None:
    """In any order of starts, ends, deletions and moves of the mark, for any filter."""
    database.execute("BEGIN")
    try:
        for one in (*(("insert", *row) for row in stored), move, *made):
            make(database, *one)
        for where in (ExecutionFilter(), *asked):
            by_tallies = total(database, where, tallied=True)
            assert by_tallies == total(database, where, tallied=False)
        assert not database.execute("SELECT 1 FROM execution_tallies WHERE count < 1").fetchone()
    finally:
        database.execute("ROLLBACK")


def ends_of(
    database: Connection, me: str | None, *, tallied: bool, span: int = HOUR
) -> Mapping[Any, int]:
    """The ended executions of each workflow and span of the last 24 spans, by how they ended."""
    since = EpochMs(NOW // span * span - (HOURS - 1) * span)
    asked = activity_of(WORKFLOWS, me, since, tallies.SPANS if tallied else None, span)
    found = Counter[Any]()
    for workflow, what, hour, end, count in database.execute(asked.sql, asked.values):
        if what == "span":
            found[workflow, hour, end] += count
    return +found


@given(first, moves, st.lists(changes, max_size=12), st.none() | st.sampled_from(OWNERS))
def test_the_hours_of_a_workflow_by_tallies_are_the_counts(
    database: Connection,
    stored: list[tuple[int, Any]],
    move: tuple[str, int, Any],
    made: list[tuple[str, int, Any]],
    me: str | None,
) -> None:
    """In any order of starts, ends, deletions and moves of the mark, for any reader."""
    database.execute("BEGIN")
    try:
        for number, id in enumerate(WORKFLOWS):
            values = (id, OWNERS[number], id)
            database.execute("INSERT INTO workflows VALUES (?, ?, ?, 1, 1, '{}')", values)
        for one in (*(("insert", *row) for row in stored), move, *made):
            make(database, *one)
        by_tallies = ends_of(database, me, tallied=True)
        assert by_tallies == ends_of(database, me, tallied=False)
        days = ends_of(database, me, tallied=True, span=DAY)
        assert days == ends_of(database, me, tallied=False, span=DAY)
    finally:
        database.execute("ROLLBACK")


def test_the_hours_of_a_workflow_cost_the_same_however_many_have_ended(
    database: Connection,
) -> None:
    """Ended executions behind the mark are not counted one by one."""
    taken = []
    for many in (10, 2_000):
        database.execute("BEGIN")
        try:
            database.execute("INSERT INTO workflows VALUES ('wf_1', 'acc_1', 'a', 1, 1, '{}')")
            for id in range(many):
                row = (f"e{id}", "COMPLETED", NOW - HOUR, "acc_1", "wf_1", "open_api")
                database.execute(INSERT, row)
            tally(database.cursor(), EpochMs(NOW), many + 1)
            steps = [0]
            database.set_progress_handler(lambda steps=steps: steps.append(1), 10)
            assert sum(ends_of(database, "acc_1", tallied=True).values()) == many
            taken.append(len(steps))
        finally:
            database.execute("ROLLBACK")
    assert taken[1] <= taken[0] + 10, taken


@given(st.none() | instants, st.none() | instants)
def test_a_period_is_covered_once(since: EpochMs | None, until: EpochMs | None) -> None:
    """Tallies and what is left of a period meet without gap or overlap; an hour is left at most."""
    spans, edges = covering(since, until)
    begin, end = since or 0, ALL_TIME if until is None else until
    if (since, until) == (None, None):
        assert spans == [(ALL_TIME, 0, ALL_TIME)]
        return
    parts = sorted([(first, last) for _, first, last in spans] + edges)
    if begin >= end:
        return
    assert (parts[0][0], parts[-1][1]) == (begin, end)
    assert all(one[1] == other[0] for one, other in pairwise(parts))
    aligned = [(length, at) for length, *ends in spans for at in ends if at < ALL_TIME]
    assert not [at for length, at in aligned if at % length]
    assert sum(last - first for first, last in edges) < 2 * HOUR
    assert sum((last - first) // length for length, first, last in spans if length == HOUR) < 48


@pytest.mark.parametrize("since", [None, -(-NOW // HOUR) * HOUR])
def test_a_total_costs_the_same_however_many_have_ended(
    tmp_path: Path, since: EpochMs | None
) -> None:
    """With the mark behind all of them, few and ten times as many are counted in as many steps."""
    taken = []
    for many in (500, 5_000):
        path = tmp_path / f"{many}.db"
        migrate.prepare(path)
        with closing(connect(path)) as database:
            found = (
                (n, "COMPLETED", NOW + n * DAY // many, "acc_1", "wf_1", "webhook")
                for n in range(many)
            )
            database.execute("BEGIN")
            database.executemany(INSERT, found)
            while tally(database.cursor(), EpochMs(NOW + 2 * DAY), 1_000):
                pass
            database.execute("COMMIT")
            wanted = ExecutionFilter("acc_1", since=since)
            page = execution_page(wanted, PageRequest(1, 5), total_of(wanted))
            steps = [0]
            database.set_progress_handler(lambda steps=steps: steps.append(1), 10)
            database.execute(page.sql, page.values).fetchall()
            taken.append(len(steps))
    assert taken[1] <= taken[0] + 10


def test_the_newest_are_not_tallied_yet(database: Connection) -> None:
    """Most executions end first: then the end itself writes no tally."""
    database.execute("BEGIN")
    database.execute(INSERT, (1, "COMPLETED", NOW, "acc_1", "wf_1", "manual"))
    assert tally(database.cursor(), EpochMs(NOW + tallies.LAG), 9) == 0
    assert tally(database.cursor(), EpochMs(NOW + tallies.LAG + 1), 9) == 1
    assert tally(database.cursor(), EpochMs(NOW + tallies.LAG + 1), 9) == 0
    database.execute("ROLLBACK")
