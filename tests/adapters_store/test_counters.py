"""The counters' file: several processes, restarts, damage, and a disk that cannot be written."""

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from adapters_store.sqlite import connection
from adapters_store.sqlite.counters import CountRequest, Counts, SqliteCounters, open_counts
from adapters_store.sqlite.store import SqliteStore
from wfcore.model.access import Admission
from wfcore.model.execution import Execution
from wfcore.rules.auth.rate_limit import Ledger
from wfcore.testing.builders import NOW
from wfcore.testing.contracts.counters import day, minute
from wfcore.time import DAY, SECOND, EpochMs

from .conftest import Start

TAKE_MANY = """
import asyncio, sys
from pathlib import Path
from adapters_store.sqlite.counters import SqliteCounters
from adapters_store.sqlite import connection
from wfcore.ports.counters import Window

connection.COUNTERS_BUSY_S = 30  # four processes on a slow machine: none gives up

windows = (Window("minute", 0, 60_000, 300), Window("day", 0, 86_400_000, 10_000))

async def main():
    counters = await SqliteCounters.open(Path(sys.argv[1]))
    sys.stdin.readline()
    taken = [await counters.take("k", windows, 1_000) for _ in range(250)]
    print(sum(each.admitted for each in taken))
    await counters.close()

asyncio.run(main())
"""


@pytest.fixture
async def counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SqliteCounters]:
    """Counters that wait only a moment for a lock."""
    monkeypatch.setattr(connection, "COUNTERS_BUSY_S", 0.01)
    counters = await SqliteCounters.open(tmp_path / "counters.db")
    yield counters
    await counters.close()


def filed(path: Path) -> list[int]:
    """The counts that are in the file."""
    with closing(sqlite3.connect(path)) as database:
        return [row[0] for row in database.execute("SELECT admitted FROM counts")]


async def test_four_processes_admit_exactly_the_limit(tmp_path: Path, start: Start) -> None:
    """Of 1,000 tries from 4 processes exactly 300 are admitted, and a restart grants none."""
    path = tmp_path / "counters.db"
    await (await SqliteCounters.open(path)).close()
    processes = [start(TAKE_MANY, path) for _ in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    admitted = [int(process.communicate(timeout=60)[0]) for process in processes]
    assert sum(admitted) == 300
    counters = await SqliteCounters.open(path)
    assert counters.damaged is None
    start_of_time = EpochMs(0)
    full = await counters.take("k", (minute(300, 0), day(10_000, 0)), start_of_time)
    assert full == Admission(("minute",), (300, 300))
    await counters.close()


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 1), st.integers(0, 5)), min_size=9, max_size=30
    )
)
def test_two_handles_count_as_one(turns: list[tuple[bool, int, int]]) -> None:
    """RL-4: whoever of them counts, or breaks off, each is told the sum of all."""
    with TemporaryDirectory() as folder:
        opened = [Counts(open_counts(Path(folder) / "counters.db")[0]) for _ in range(2)]
        ledger, windows = Ledger(), (minute(4), day(9))
        for second, subject, chance in turns:
            counts, asked = opened[second], (f"k{subject}", windows, NOW)
            if not chance:
                with pytest.raises(sqlite3.Error):
                    counts.take_all([asked, ("k0", (evolve(day(1), kind=object()),), NOW)])
            else:
                assert counts.take_all([asked]) == [ledger.take(*asked[:2])]
        for counts in opened:
            counts.connection.close()


@pytest.mark.parametrize(
    "content",
    [os.urandom(8_192), b"SQLite format 3\0" + b"x" * 5_000],
    ids=["noise", "only a header"],
)
async def test_a_damaged_file_is_moved_aside(tmp_path: Path, content: bytes) -> None:
    """Counting begins anew, and the damaged file is kept and named."""
    path = tmp_path / "counters.db"
    path.write_bytes(content)
    counters = await SqliteCounters.open(path)
    assert counters.damaged == str(path) + ".damaged"
    assert Path(counters.damaged).read_bytes() == content  # noqa: ASYNC240
    assert (await counters.take("k", (minute(1),), NOW)).admitted
    await counters.close()
    again = await SqliteCounters.open(path)
    assert again.damaged is None
    assert not (await again.take("k", (minute(1),), NOW)).admitted
    await again.close()


async def test_a_foreign_file_is_not_written(tmp_path: Path) -> None:
    """Somebody else's database under that name is moved aside, too."""
    path = tmp_path / "counters.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE theirs (x)")
    counters = await SqliteCounters.open(path)
    assert counters.damaged is not None
    with closing(sqlite3.connect(counters.damaged)) as database:
        names = database.execute("SELECT name FROM sqlite_master").fetchall()
    assert names == [("theirs",)]
    await counters.close()


async def test_counting_goes_on_while_the_file_cannot_be_written(
    counters: SqliteCounters, tmp_path: Path
) -> None:
    """On top of what the file says, and what was counted meanwhile gets into the file."""
    path, windows = tmp_path / "counters.db", (minute(5), day(100))
    assert (await counters.take("k", windows, NOW)).counts == (1, 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for count in (2, 3):
            assert (await counters.take("k", windows, NOW)).counts == (count, count)
        assert await counters.last_used("k") == NOW
        assert not (await counters.take("k", (minute(3), day(100)), NOW)).admitted
        other.execute("ROLLBACK")
    assert filed(path) == [1, 1]
    later = EpochMs(NOW + SECOND)
    assert (await counters.take("k", windows, later)).counts == (4, 4)
    assert sorted(filed(path)) == [4, 4]
    assert (await counters.take("k", windows, later)).counts == (5, 5)
    assert (await counters.take("k", windows, later)).full == ("minute",)


async def test_a_file_that_failed_is_left_alone_for_a_second(
    counters: SqliteCounters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting for the file's lock at each request would stop the whole service."""
    tries: list[EpochMs] = []
    take_all = Counts.take_all

    def counted(counts: Counts, asked: Sequence[CountRequest]) -> list[Admission]:
        tries.extend(now for _, _, now in asked)
        return take_all(counts, asked)

    monkeypatch.setattr(Counts, "take_all", counted)
    with closing(sqlite3.connect(tmp_path / "counters.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for offset in (0, 1, 999, 1_000, 1_500):
            await counters.take("k", (day(9),), EpochMs(NOW + offset))
        other.execute("ROLLBACK")
    both = [NOW, NOW]  # in the loop, then by the thread that waits
    assert tries == both  # the try a second later failed while carrying back
    for offset in (1_999, 2_000):
        await counters.take("k", (day(9),), EpochMs(NOW + offset))
    assert tries == [*both, NOW + 2_000]
    assert (await counters.take("k", (day(9),), EpochMs(NOW + 2_000))).counts == (8,)


async def test_closing_counts_what_was_asked(tmp_path: Path) -> None:
    """An admission on its way when the counters close is answered and kept."""
    counters = await SqliteCounters.open(tmp_path / "counters.db")
    asked = asyncio.ensure_future(counters.take("k", (minute(5),), NOW))
    await asyncio.sleep(0)
    await counters.close()
    assert (await asked).counts == (1,)
    assert filed(tmp_path / "counters.db") == [1]


async def test_a_defect_reaches_those_who_wait(
    counters: SqliteCounters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for ever for a count that failed."""

    def broken(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(Counts, "take_all", broken)
    answers = await asyncio.gather(
        *(counters.take("k", (minute(5),), NOW) for _ in range(3)), return_exceptions=True
    )
    assert [str(answer) for answer in answers] == ["a defect"] * 3


async def test_one_turns_admissions_are_exact(counters: SqliteCounters) -> None:
    """Of many that ask in one turn of the loop, of several subjects, each gets its own limit."""
    asked = [counters.take(f"k{n % 3}", (minute(5), day(4)), NOW) for n in range(30)]
    answers = await asyncio.gather(*asked)
    assert [sum(one.admitted for one in answers[k::3]) for k in range(3)] == [4, 4, 4]
    assert {one.full for one in answers if not one.admitted} == {("day",)}


HOLD = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
held.execute("ROLLBACK")
print("free", flush=True)
sys.stdin.readline()
"""


def say(process: "subprocess.Popen[str]", word: str) -> None:
    """Let a process that holds a lock go on."""
    assert process.stdin is not None
    process.stdin.write(f"{word}\n")
    process.stdin.flush()


def heard(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


async def test_the_loop_goes_on_while_another_process_holds_the_lock(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Admissions wait for the lock, nobody else does; once it is free all are counted exactly."""
    monkeypatch.setattr(connection, "COUNTERS_BUSY_S", 60)
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    counters = await SqliteCounters.open(tmp_path / "counters.db")
    process = start(HOLD, tmp_path / "counters.db")
    assert heard(process) == "held"
    asked = [asyncio.ensure_future(counters.take("k", (minute(5),), NOW)) for _ in range(8)]
    for _ in range(200):
        async with store.view() as view:  # what other requests do meanwhile
            assert await view.get(Execution, "e1") is None
        assert await counters.last_used("k") is None
        await asyncio.sleep(0)
    asked.append(asyncio.ensure_future(counters.take("k", (minute(5),), NOW)))
    assert not any(one.done() for one in asked)
    say(process, "go")
    taken = await asyncio.gather(*asked)
    assert [one.admitted for one in taken] == [True] * 5 + [False] * 4
    assert filed(tmp_path / "counters.db") == [5]
    await counters.close()
    await store.close()


async def test_a_lock_that_stays_is_counted_past(
    counters: SqliteCounters, tmp_path: Path, start: Start
) -> None:
    """Counting goes on in memory for a second, then the file is tried again; closing waits."""
    process = start(HOLD, tmp_path / "counters.db")
    assert heard(process) == "held"
    assert (await counters.take("k", (minute(5),), NOW)).counts == (1,)
    assert (await counters.take("k", (minute(5),), NOW)).counts == (2,)
    say(process, "go")
    assert heard(process) == "free"
    assert (await counters.take("k", (minute(5),), EpochMs(NOW + SECOND))).counts == (3,)
    assert filed(tmp_path / "counters.db") == [3]


async def test_trimming_waits_outside_the_loop(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old windows go once the lock is free; meanwhile the loop turns."""
    monkeypatch.setattr(connection, "COUNTERS_BUSY_S", 60)
    counters = await SqliteCounters.open(tmp_path / "counters.db")
    await counters.take("k", (minute(5),), NOW)
    process = start(HOLD, tmp_path / "counters.db")
    assert heard(process) == "held"
    trimming = asyncio.ensure_future(counters.trim(EpochMs(NOW + DAY)))
    for _ in range(200):
        await asyncio.sleep(0)
    assert not trimming.done()
    say(process, "go")
    await trimming
    assert filed(tmp_path / "counters.db") == []
    await counters.close()


async def test_connections_of_the_loop_have_no_patience(store: SqliteStore) -> None:
    """Whatever the loop asks a file that is locked, the answer is there at once."""
    counters = await SqliteCounters.open(store.path.with_name("counters.db"))
    async with store.view() as view:
        await view.get(Execution, "e1")
    for used in (counters._counts.connection, store._reads._inline):
        assert used is not None
        assert used.execute("PRAGMA busy_timeout").fetchone() == (0,)
    await counters.close()
