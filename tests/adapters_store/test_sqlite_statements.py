"""That statements do no more work than they should: counted, not timed."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import adapters_store
from adapters_store.sql import execution_queries as runs
from adapters_store.sql import execution_rows, kinds, step_rows
from adapters_store.sql import record_queries as records
from adapters_store.sql.cache import KnownRecord
from adapters_store.sql.execution_queries import approval_page, counts_by_status, execution_page
from adapters_store.sql.statement import insert, update
from adapters_store.sqlite import claims
from adapters_store.sqlite.connection import Connection, connect
from adapters_store.sqlite.execution_queries import total_of
from adapters_store.sqlite.migrate import prepare
from adapters_store.sqlite.statements import Writes, perform, perform_together
from wfcore.model.approval import ApprovalStatus
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.page import NEWEST, PageCursor, PageRequest
from wfcore.ports.records import WEEK, ApprovalFilter, ExecutionFilter
from wfcore.ports.store import Slots
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.time import HOUR, EpochMs

MANY = 5_000
PENDING = (ExecutionStatus.PENDING,)


class Steps:
    """Counts the steps of SQLite's machine, *each* at a time."""

    def __init__(self, connection: Connection, each: int = 1_000) -> None:
        self.taken, self._each = 0, each
        connection.set_progress_handler(self._more, each)

    def _more(self) -> int:
        self.taken += self._each
        return 0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Connection]:
    """A database with very many due executions of one account and a few of another."""
    path = tmp_path / "wfcore.db"
    prepare(path)
    with closing(connect(path)) as connection:
        rows: list[tuple[Any, ...]] = []
        for number in range(MANY):
            owner = "acc_2" if number < 3 else "acc_1"
            run = make.execution(f"e{number}", owner_id=owner, due_at=EpochMs(NOW - number))
            rows.append(execution_rows.writes(run, None, None)[0][0][1])
        connection.execute("BEGIN")
        connection.executemany(execution_rows.INSERT.one, rows)
        connection.execute("COMMIT")
        yield connection


def known(run: Execution) -> KnownRecord:
    """What a unit knows of an execution that it has read."""
    return KnownRecord(run.version, run, 2_000)


def test_a_claim_does_not_walk_through_a_flood(database: Connection) -> None:
    """Claiming from thousands of due executions of one account takes a few steps for each taken."""
    steps = Steps(database)
    taken = claims.SqliteClaim("w1", NOW, EpochMs(NOW + 1), Slots(100), 8)(database.cursor())
    assert [one.id for one in taken[:2]] == [f"e{MANY - 1}", "e2"]
    assert len(taken) == 8
    assert steps.taken <= 3_000


def test_a_claim_does_not_walk_through_accounts(database: Connection) -> None:
    """However many accounts were served lately, a claim takes the same few steps."""
    rows = ((f"acc_{number}", NOW - number % 9) for number in range(3, MANY))
    database.executemany("INSERT INTO served VALUES (?, ?)", rows)
    steps = Steps(database)
    assert len(claims.SqliteClaim("w1", NOW, EpochMs(NOW + 1), Slots(8), 8)(database.cursor())) == 7
    assert steps.taken <= 3_000


def queue(connection: Connection, groups: int) -> None:
    """As many executions of one account as there are already, in so many groups with limit 1."""
    connection.execute("BEGIN")
    connection.execute("INSERT INTO group_limits VALUES ('wf_9', 1)")
    for number in range(MANY):
        group, due_at = f"wf_9:{number % groups}", EpochMs(number)
        run = make.execution(
            f"q{number}",
            owner_id="acc_3",
            workflow_id="wf_9",
            concurrency_group=group,
            due_at=due_at,
        )
        perform(connection.cursor(), execution_rows.writes(run, None, None)[0])
    connection.execute("COMMIT")


def test_a_claim_of_one_execution_looks_at_that_one(database: Connection) -> None:
    """A queue that says which one is next costs the same however many others wait."""
    steps = Steps(database)
    claim = claims.SqliteClaim("w1", NOW, EpochMs(NOW + 1), Slots(100), 1, ids=["e7"])
    assert [one.id for one in claim(database.cursor())] == ["e7"]
    assert steps.taken <= 2_000


def test_a_claim_of_what_a_worker_is_able_to_do_does_not_walk_through_a_flood(
    database: Connection,
) -> None:
    """While it is able to do what is first in line, it takes a few steps for each taken."""
    steps = Steps(database)
    claim = claims.SqliteClaim("w1", NOW, EpochMs(NOW + 1), Slots(100), 8, able=["network"])
    assert len(claim(database.cursor())) == 8
    assert steps.taken <= 10_000


@pytest.mark.parametrize("groups", [1, 50, MANY])
def test_a_claim_does_not_walk_through_queues(database: Connection, groups: int) -> None:
    """However many wait in one group or in many, a claim takes a few steps for each taken. CC-2."""
    queue(database, groups)
    cursor = database.cursor()
    first = claims.SqliteClaim("w1", NOW, EpochMs(NOW + 1), Slots(10_000), 300)(cursor)
    assert [one.id for one in first if one.id.startswith("q")][:1] == ["q0"]
    steps = Steps(database)
    taken = claims.SqliteClaim("w2", NOW, EpochMs(NOW + 1), Slots(100), 8)(cursor)
    assert len(taken) == 8
    assert steps.taken <= 20_000
    queued = [one.id for one in (*first, *taken) if one.id.startswith("q")]
    assert len(queued) <= groups
    database.execute("UPDATE executions SET status = 'COMPLETED' WHERE id = 'q0'")
    database.execute(execution_rows.MARK_BUSY_GROUP, ("wf_9:0",) * 2)
    steps = Steps(database)
    after = claims.SqliteClaim("w3", NOW, EpochMs(NOW + 1), Slots(100), 8)(cursor)
    assert steps.taken <= 20_000
    if groups < MANY:
        assert f"q{groups}" in [one.id for one in after]


def run_with_steps(**fields: Any) -> Execution:
    """A stored execution with two results."""
    results = {"a": make.step_result(output="x"), "b": make.step_result(output="y")}
    return make.execution(version=4, step_results=results, **fields)


def test_a_transition_writes_the_head_and_the_changed_step_only() -> None:
    """Neither variables nor other steps nor any index are written when one step changed."""
    base = run_with_steps(worker="w1", due_at=None, status=ExecutionStatus.RUNNING)
    changed = {**base.step_results, "b": make.step_result(output="z")}
    writes, _ = execution_rows.writes(evolve(base, step_results=changed), known(base), None)
    assert [sql for sql, _, _ in writes] == [execution_rows.STAY, step_rows.PUT_STEP]
    assert writes[1][1][1] == 1


def test_a_transition_from_an_unknown_state_writes_everything() -> None:
    """Where it is not known what is stored, all rows are written anew."""
    writes, _ = execution_rows.writes(run_with_steps(variables={"n": 1}), None, None)
    assert [sql for sql, _, _ in writes] == [
        execution_rows.MOVE,
        step_rows.DROP_STEPS,
        step_rows.PUT_STEP,
        step_rows.PUT_STEP,
        execution_rows.PUT_VARIABLES,
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"status": ExecutionStatus.INTERRUPTED},
        {"due_at": EpochMs(NOW + 1)},
        {"completed_at": NOW},
        {"worker": "w2"},
        {"secrets": ("url",)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_a_filter_looks_at_is_written_when_it_changes(change: dict[str, Any]) -> None:
    """Every column of an index follows the record."""
    base = run_with_steps()
    writes, _ = execution_rows.writes(evolve(base, **change), known(base), None)
    assert [sql for sql, _, _ in writes] == [execution_rows.MOVE]


def test_definitions_in_use_cost_what_has_not_ended(tmp_path: Path) -> None:
    """However many executions have ended, and revisions are stored, asking takes the same steps."""
    prepare(tmp_path / "wfcore.db")
    taken = []
    with closing(connect(tmp_path / "wfcore.db")) as connection:
        for many in (10, MANY):
            snapshots = (make.snapshot("wf_1", many + n) for n in range(many))
            writes = [write for one in snapshots for write in kinds.DEFINITIONS.put(one, None)]
            for number in range(many):
                ended = ExecutionStatus.COMPLETED if number else ExecutionStatus.RUNNING
                run = make.execution(f"e{many}_{number}", status=ended, revision=many)
                writes += execution_rows.writes(run, None, None)[0]
            connection.execute("BEGIN")
            perform(connection.cursor(), writes)
            connection.execute("COMMIT")
            steps = Steps(connection, each=10)
            found = connection.execute(records.IN_USE).fetchall()
            taken.append(steps.taken)
            assert {row[3] for row in found} == {10, many}
    assert taken[1] <= taken[0] + 100


@pytest.mark.parametrize(
    ("where", "most"),
    [
        (ExecutionFilter("acc_2"), 3_000),
        (ExecutionFilter("acc_2", "wf_1", PENDING, (TriggerSource.OPEN_API,)), 50_000),
        (ExecutionFilter("acc_1", since=EpochMs(NOW + MANY - 5)), 3_000),
        (ExecutionFilter("acc_1", until=EpochMs(NOW + 20), oldest_first=True), 3_000),
        (ExecutionFilter(workflow_id="wf_1", until=EpochMs(NOW + 20)), 3_000),
        (ExecutionFilter(since=EpochMs(NOW + MANY - 5), sources=(TriggerSource.OPEN_API,)), 3_000),
        (ExecutionFilter("acc_1", statuses=(ExecutionStatus.FAILED,)), 50_000),
        (ExecutionFilter("acc_1", sources=(TriggerSource.MANUAL,)), 50_000),
    ],
)
def test_lists_are_narrowed_by_indexes(
    database: Connection, where: ExecutionFilter, most: int
) -> None:
    """
    Owner, workflow and time lead into an index; status and trigger are read from its entries,
    twice for the total and the page, and rows are read of the page alone.
    """
    database.execute("UPDATE executions SET accepted_at = ? + rowid - 1", (NOW,))
    asked = execution_page(where, PageRequest(1, 5), total_of(where))
    plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {asked.sql}", asked.values)]
    assert not [line for line in plan if line.startswith("SCAN r") and "INDEX" not in line], plan
    assert any("USING COVERING INDEX executions_" in line for line in plan), plan
    steps = Steps(database)
    database.execute(asked.sql, asked.values).fetchall()
    assert steps.taken <= most


@pytest.mark.parametrize("of", [{"owner_id": "acc_1"}, {"workflow_id": "wf_1"}])
@pytest.mark.parametrize("source", [TriggerSource.WEBHOOK, TriggerSource.OPEN_API])
def test_what_a_source_started_is_read_without_the_rest(
    database: Connection, source: TriggerSource, of: dict[str, str]
) -> None:
    """Of a source that started none, and of one that started all: nothing reads every row."""
    database.execute("UPDATE executions SET status = 'COMPLETED'")
    where = ExecutionFilter(**of, sources=(source,))
    asked = counts_by_status(where, 10)
    steps = Steps(database)
    found = dict(database.execute(asked.sql, asked.values).fetchall())
    assert found["COMPLETED"] == (10 if source is TriggerSource.OPEN_API else 0)
    assert steps.taken <= 2_000
    page = execution_page(where, PageRequest(size=5, after=PageCursor(NOW + 1, "")))
    steps = Steps(database)
    database.execute(page.sql, page.values).fetchall()
    assert steps.taken <= 2_000


def test_a_search_from_a_day_on_reads_no_further(
    database: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest so many are searched, and not more of them if a list begins at some day."""
    monkeypatch.setattr(runs, "SEARCHED", 100)
    database.execute("UPDATE executions SET accepted_at = ? + rowid - 1", (NOW,))
    taken = []
    for since in (None, EpochMs(NOW + 5), EpochMs(NOW + MANY - 50)):
        where = ExecutionFilter("acc_1", since=since, id_end="zzzz")
        page = execution_page(where, PageRequest(size=5, after=PageCursor(NOW + MANY, "")))
        steps = Steps(database, each=10)
        assert not database.execute(page.sql, page.values).fetchall()
        taken.append(steps.taken)
    assert max(taken) <= taken[0] + 100


def test_costs_are_found_without_what_cost_nothing(database: Connection) -> None:
    """Executions of a week that called no model are not looked at, nor those of other weeks."""
    database.execute("INSERT INTO workflows VALUES ('wf_1', 'acc_1', 'a', 1, 1, '{}')")
    taken = []
    for sql in ("status = 'FAILED'", "cost = 5 WHERE rowid = 1", f"accepted_at = {NOW - WEEK}"):
        database.execute(f"UPDATE executions SET {sql}")
        asked = records.activity_of(["wf_1"], "acc_1", EpochMs(NOW + HOUR))
        steps = Steps(database, each=10)
        found = [row for row in database.execute(asked.sql, asked.values) if row[1] == "cost"]
        taken.append(steps.taken)
    assert max(taken) <= min(taken) + 200
    plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {asked.sql}", asked.values)]
    assert any("COVERING INDEX executions_costs" in line for line in plan), plan
    assert found


@pytest.mark.parametrize(
    "where",
    [
        ExecutionFilter(),
        ExecutionFilter("acc_1"),
        ExecutionFilter(workflow_id="wf_1"),
        ExecutionFilter("acc_1", oldest_first=True),
    ],
)
def test_rows_behind_a_cursor_cost_the_same_wherever_it_is(
    database: Connection, where: ExecutionFilter
) -> None:
    """A cursor leads into the index: nobody counts, and nobody walks over what was shown."""
    database.execute("UPDATE executions SET accepted_at = ? + rowid - 1", (NOW,))
    for offset in (5, MANY // 2, MANY - 5):
        behind = PageRequest(size=5, after=PageCursor(NOW + offset, "e"))
        asked = execution_page(where, behind)
        steps = Steps(database)
        assert database.execute(asked.sql, asked.values).fetchall()
        assert steps.taken <= 3_000, offset


def test_what_waits_for_somebody_is_found_among_what_is_open(database: Connection) -> None:
    """However many approvals were decided, or wait in other executions, few are looked at."""
    database.execute("BEGIN")
    for number in range(MANY):
        open_ones = number % 500 == 0
        status = ApprovalStatus.PENDING if open_ones else ApprovalStatus.APPROVED
        made = make.approval(f"a{number}", execution_id=f"e{number}", status=status)
        perform(database.cursor(), kinds.APPROVALS.put(made, None))
    database.execute("COMMIT")
    for where in (
        ApprovalFilter("acc_1", "a@example.org", waiting=True),
        ApprovalFilter("acc_1", "a@example.org", execution_id="e7"),
    ):
        asked = approval_page(where, PageRequest(1, 5))
        steps = Steps(database)
        assert database.execute(asked.sql, asked.values).fetchall()
        assert steps.taken <= 5_000


def test_what_is_open_is_read_by_expiry_until_a_page_is_full(database: Connection) -> None:
    """However many approvals are open, a search reads those that expire first. AC-5, PG-9."""
    database.execute("BEGIN")
    for number in range(MANY):
        made = make.approval(f"a{number}", execution_id=f"e{number}")
        perform(database.cursor(), kinds.APPROVALS.put(made, None))
    database.execute("COMMIT")
    pending = (ApprovalStatus.PENDING,)
    where = ApprovalFilter("acc_1", "a@example.org", statuses=pending, soonest=True)
    asked = approval_page(where, PageRequest(size=5, after=PageCursor(-1, "")))
    steps = Steps(database)
    assert database.execute(asked.sql, asked.values).fetchall()
    assert steps.taken <= 3_000
    plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {asked.sql}", asked.values)]
    assert any("INDEX approvals_open" in line for line in plan), plan


@pytest.mark.parametrize("open_ones", [1, 500])
def test_what_is_decided_is_read_by_age_until_a_page_is_full(
    database: Connection, open_ones: int
) -> None:
    """However many approvals are open, or were decided before these, few are looked at. AC-5."""
    database.execute("BEGIN")
    for number in range(MANY):
        status = ApprovalStatus.APPROVED if number % open_ones == 0 else ApprovalStatus.PENDING
        made = make.approval(f"a{number}", execution_id=f"e{number}", status=status)
        perform(database.cursor(), kinds.APPROVALS.put(made, None))
    database.execute("COMMIT")
    decided = tuple(one for one in ApprovalStatus if one is not ApprovalStatus.PENDING)
    where = ApprovalFilter(made.owner_id, "a@example.org", statuses=decided)
    asked = approval_page(where, PageRequest(size=5, after=PageCursor(NOW + 1, "")))
    plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {asked.sql}", asked.values)]
    assert any("INDEX approvals_decided" in line for line in plan), plan
    steps = Steps(database)
    assert len(database.execute(asked.sql, asked.values).fetchall()) == 6
    assert steps.taken <= 3_000
    nobody = approval_page(evolve(where, account_id="acc_9"), PageRequest(size=5, after=NEWEST))
    steps = Steps(database)
    assert database.execute(nobody.sql, nobody.values).fetchall() == []
    assert steps.taken <= MANY * 60


@pytest.mark.parametrize("count", [1, 2, 3, 70])
def test_one_row_and_many_are_written_alike(tmp_path: Path, count: int) -> None:
    """Units that insert, replace and update together leave what each of them would leave alone."""
    columns, taken = ("id", "name", "seen"), " ON CONFLICT (id) DO UPDATE SET name = excluded.name"
    add, put = insert("things", columns), insert("things", columns, taken)
    see = update(
        "things", ("name",), ("id", "seen"), {"more": "name"}, seen="things.seen + length({more})"
    )
    writes = (
        (add, [(n, "a", n * 10) for n in range(count)]),
        (put, [(n, "bc", 0) for n in range(count)]),
        (see, [(f"def{n}", f"gh{n}", n, n * 10) for n in range(count)]),
    )
    alone, together = (tmp_path / "alone.db", tmp_path / "together.db")
    for path in (alone, together):
        with closing(connect(path, "rwc")) as connection:
            connection.execute("CREATE TABLE things (id PRIMARY KEY, name, seen)")
            cursor = connection.cursor()
            for text, rows in writes:
                units = [Writes([(text, row, ("things", "0"))]) for row in rows]
                if path is together:
                    assert perform_together(cursor, units)
                else:
                    for unit in units:
                        unit(cursor)
    wanted = [(n, f"def{n}", n * 10 + len(f"gh{n}")) for n in range(count)]
    assert _things(alone) == _things(together) == wanted


def test_placeholders_have_no_numbers() -> None:
    """
    Python 3.12.0 to 3.12.3 warn of a sequence of values for `?1`, so that `-W error` would break
    every execution.
    """
    sources = sorted(Path(adapters_store.__file__).parent.rglob("*.py"))
    assert sources
    assert not [one for one in sources if re.search(r"\?\d", one.read_text("utf-8"))]


def _things(path: Path) -> list[tuple[Any, ...]]:
    with closing(connect(path, "ro")) as connection:
        return connection.execute("SELECT id, name, seen FROM things ORDER BY id").fetchall()
