"""What many units write at once, and what is read behind it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from adapters_store.sql.statement import MOST
from adapters_store.sqlite import writer
from adapters_store.sqlite.batcher import Batcher
from adapters_store.sqlite.store import SqliteStore
from wfcore.errors import Stale, StoreUnavailable
from wfcore.model.access import Account
from wfcore.model.approval import Approval
from wfcore.model.execution import Execution
from wfcore.ports.store import Slots
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.time import HOUR

RUNS = ("exec_0", "exec_1", "exec_2")


@pytest.fixture
async def other(store: SqliteStore) -> AsyncIterator[SqliteStore]:
    """Another store on the same file, as another process has one."""
    other = await SqliteStore.open(store.path)
    yield other
    await other.close()


def traced(connection: Any) -> list[str]:
    """The statements that *connection* runs from now on."""
    said: list[str] = []
    connection.set_trace_callback(said.append)
    return said


async def step(store: SqliteStore, id: str, name: str, logged: bool = True) -> None:
    """A transition of the stored execution; what was read may be stale by then."""
    async with store.unit() as unit:
        run = await unit.get(Execution, id)
        assert run is not None
        await asyncio.sleep(0)
        results = {**run.step_results, name: make.step_result(output=name)}
        unit.put(evolve(run, step_results=results, events=run.events + 1))
        if logged:
            unit.append(make.event(run.events + 1, id, data={"step": name}))
        await unit.commit()


async def test_what_units_write_alike_is_one_statement(store: SqliteStore) -> None:
    """Units that commit at the same time take a few statements, not some for each of them."""
    await store.ping()
    said = traced(store._writer._connection)
    await asyncio.gather(
        *(keep(store, make.execution(f"e{n}"), make.event(1, f"e{n}")) for n in range(32))
    )
    said = list(dict.fromkeys(said))  # a statement is told again for each trigger that it fires
    assert len([text for text in said if text.startswith("INSERT")]) == 2
    async with store.view() as view:
        assert [await view.get(Execution, f"e{n}") is not None for n in range(32)] == [True] * 32
        assert len(await view.events.of_execution("e31", 0, 9)) == 1


@given(asked=st.lists(st.sampled_from(RUNS), min_size=1, max_size=12), logged=st.booleans())
async def test_of_racing_units_one_wins_and_the_others_leave_nothing(
    tmp_path_factory: pytest.TempPathFactory, asked: list[str], logged: bool
) -> None:
    """Each execution takes one of the transitions that race for it; the others are `Stale`."""
    store = await SqliteStore.open(tmp_path_factory.mktemp("racing") / "wfcore.db")
    try:
        await keep(store, *(make.execution(id, events=0) for id in RUNS))
        steps = [(id, f"step_{n}") for n, id in enumerate(asked)]
        racing = (step(store, *one, logged) for one in steps)
        ends = await asyncio.gather(*racing, return_exceptions=True)
        won = [one for one, end in zip(steps, ends, strict=True) if end is None]
        lost = {one: end for one, end in zip(steps, ends, strict=True) if end is not None}
        assert sorted(id for id, _ in won) == sorted(set(asked))
        assert {id: error.id for (id, _), error in lost.items() if isinstance(error, Stale)} == {
            id: id for id, _ in lost
        }
        async with store.view() as view:
            for id, name in won:
                run = await view.get(Execution, id)
                assert run is not None
                assert list(run.step_results) == [name]
                events = await view.events.of_execution(id, 0, 9)
                assert [one.data for one in events] == [{"step": name}] * logged
    finally:
        await store.close()


async def test_a_purge_keeps_its_place_among_others(store: SqliteStore) -> None:
    """What was appended before an execution was purged in the same batch is gone with it."""
    await keep(store, make.execution("e1", events=0), make.execution("e2", events=0))
    append, purge, beside = store.unit(), store.unit(), store.unit()
    append.append(make.event(1, "e1"))
    purge.purge("e1")
    beside.append(make.event(1, "e2"))
    await asyncio.gather(append.commit(), purge.commit(), beside.commit())
    async with store.view() as view:
        assert await view.get(Execution, "e1") is None
        assert not await view.events.of_execution("e1", 0, 9)
        assert len(await view.events.of_execution("e2", 0, 9)) == 1


async def test_what_this_process_wrote_is_not_read_again(store: SqliteStore) -> None:
    """A record is read from the cache as long as all commits since are known."""
    await keep(store, make.execution("e1", events=0))
    await step(store, "e1", "a")
    said = traced(store._reads._inline)
    await step(store, "e1", "b")
    await step(store, "e1", "c")
    assert not [text for text in said if "FROM executions" in text]


async def test_a_commit_that_a_read_saw_first_is_followed_too(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a commit and the news of it others read; what it put is not read again for that."""
    reads = store._reads
    follow = reads.committed

    def committed(*news: Any) -> None:
        reads._next_turn()
        reads.state()
        follow(*news)

    monkeypatch.setattr(store._writer, "_committed", committed)
    await keep(store, make.execution("e1", events=0))
    await step(store, "e1", "a")
    said = traced(reads._inline)
    await step(store, "e1", "b")
    assert not [text for text in said if "FROM executions" in text]


async def test_what_this_process_claimed_is_not_read_again(store: SqliteStore) -> None:
    """A claim changes what is known of an execution as a unit of work does, whoever claims it."""
    await keep(store, make.execution("e1", events=0, due_at=0))
    await step(store, "e1", "a")
    said = traced(store._reads._inline)
    [claimed] = await store.claim("w1", HOUR, Slots(8), 1)
    async with store.view() as view:
        assert await view.get(Execution, "e1") == claimed
    assert (claimed.worker, claimed.version, list(claimed.step_results)) == ("w1", 3, ["a"])
    await step(store, "e1", "b")
    assert not [text for text in said if "FROM executions" in text]
    assert store._reads.cache.decoded == 0


async def test_a_claim_of_what_another_process_changed_shows_the_change(
    store: SqliteStore, other: SqliteStore
) -> None:
    """What is known of an older version is not taken for the execution that is claimed."""
    await keep(store, make.execution("e1", events=0, due_at=0))
    await step(other, "e1", "a")
    [claimed] = await store.claim("w1", HOUR, Slots(8), 1)
    assert list(claimed.step_results) == ["a"]
    async with other.view() as view:
        assert await view.get(Execution, "e1") == claimed


async def test_another_process_is_noticed_behind_own_commits(
    store: SqliteStore, other: SqliteStore
) -> None:
    """What others commit between two commits of this process is seen by the next read."""
    await keep(store, make.execution("e1", events=0), make.execution("e2", events=0))
    await step(store, "e1", "a")
    unit = store.unit()
    second = await unit.get(Execution, "e2")
    assert second is not None
    unit.put(evolve(second, events=1))
    await step(other, "e1", "b")
    await unit.commit()
    async with store.view() as view:
        run = await view.get(Execution, "e1")
    assert run is not None
    assert list(run.step_results) == ["a", "b"]


async def test_what_a_purge_takes_along_is_not_remembered(store: SqliteStore) -> None:
    """An approval that was read is gone once its execution is purged."""
    await keep(store, make.execution("e1"), make.approval("a1", execution_id="e1"))
    async with store.view() as view:
        assert await view.get(Approval, "a1") is not None
    async with store.unit() as unit:
        unit.purge("e1")
        await unit.commit()
    async with store.view() as view:
        assert await view.get(Approval, "a1") is None


@pytest.mark.parametrize("change", ["UPDATE accounts SET body = ?", "DELETE FROM accounts"])
async def test_a_watched_record_that_is_changed_by_hand_is_read_again(
    store: SqliteStore, change: str
) -> None:
    """Whoever changes an account, by whatever program, is noticed, own commits or not."""
    await keep(store, make.account("acc_1"), make.execution("e1", events=0))
    async with store.view() as view:
        account = await view.get(Account, "acc_1")
    assert account is not None
    with closing(sqlite3.connect(store.path)) as connection:
        body = connection.execute("SELECT body FROM accounts").fetchone()[0]
        changed = body.replace(account.email, "other@example.org")
        connection.execute(change, (changed,) if "?" in change else ())
        connection.commit()
    await step(store, "e1", "a")
    async with store.view() as view:
        account = await view.get(Account, "acc_1")
    assert (account.email if account else None) == ("other@example.org" if "?" in change else None)


async def test_whatever_goes_wrong_the_writer_goes_on(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that nobody thought of fails its batch, and the next one is written."""

    def exhausted(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(writer, "_together", exhausted)
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(keep(store, make.execution("e1")), 60)
    await asyncio.wait_for(keep(store, make.execution("e2")), 60)
    async with store.view() as view:
        assert await view.get(Execution, "e1") is None
        assert await view.get(Execution, "e2") is not None


async def test_looking_for_work_in_vain_writes_nothing(store: SqliteStore) -> None:
    """A claim that finds nothing costs the disk nothing, however often it is asked; a ping does."""
    await keep(store, make.execution("e1", due_at=None))
    log = store.path.with_name(store.path.name + "-wal")
    size = log.stat().st_size
    for _ in range(3):
        assert not await store.claim("w1", HOUR, Slots(1), 1)
    assert log.stat().st_size == size
    await store.ping()
    assert log.stat().st_size > size


async def test_where_nobody_fails_nobody_is_kept_apart(store: SqliteStore) -> None:
    """Jobs of every kind share a transaction without savepoints, which cost as much as they do."""
    await store.ping()
    said = traced(store._writer._connection)
    await asyncio.gather(store.ping(), keep(store, make.execution("e1")), store.ping())
    assert said
    assert not [text for text in said if text.startswith("SAVEPOINT")]


async def test_what_fails_alone_writes_nothing(store: SqliteStore) -> None:
    """A unit that is stale costs the disk nothing, and counts as no commit."""
    await keep(store, make.execution("e1", events=0))
    async with store.unit() as late:
        run = await late.get(Execution, "e1")
        assert run is not None
        await step(store, "e1", "a")
        log = store.path.with_name(store.path.name + "-wal")
        size = log.stat().st_size
        late.put(evolve(run, events=7))
        with pytest.raises(Stale):
            await late.commit()
    assert log.stat().st_size == size


async def test_gathering_waits_while_more_comes_and_no_longer() -> None:
    """What comes in successive turns is handed over together, in order, once a turn is quiet."""
    handed: list[list[int]] = []
    batcher = Batcher[int](handed.append, quiet_turns=2)
    for number in range(5):
        batcher.add(number)
        await asyncio.sleep(0)
    assert handed == []
    for _ in range(4):
        await asyncio.sleep(0)
    assert handed == [[0, 1, 2, 3, 4]]
    batcher.flush()
    assert len(handed) == 1


async def test_gathering_hands_over_when_there_is_enough() -> None:
    """However many turns bring more, at most so many wait."""
    handed: list[list[int]] = []
    batcher = Batcher[int](handed.append, quiet_turns=1_000)
    for number in range(MOST):
        batcher.add(number)
    await asyncio.sleep(0)
    assert [len(some) for some in handed] == [MOST]


async def test_all_who_wait_for_a_lock_wait_as_long_as_the_first(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes later waits for the remainder of its time, and in the end only briefly."""
    monkeypatch.setattr(writer, "monotonic", lambda: 100.0)
    at_work = store._writer
    assert at_work._patience_s() == writer.BUSY_S
    for since, patience in ((100.0, writer.BUSY_S), (98.0, writer.BUSY_S - 2), (90.0, 0.25)):
        at_work._locked_since = since
        assert at_work._patience_s() == patience
    at_work._locked_since = None
