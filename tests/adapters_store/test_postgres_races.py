"""
What SQLite's one writer gives for free, on PostgreSQL: races over several processes.

Each proof shows that it bites: a store without the lock in question is found out by it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from adapters_store.postgres import claims, committer, counters, groups, statements
from adapters_store.postgres.audit import link
from adapters_store.postgres.connection import lent, rows_of
from adapters_store.postgres.counters import PostgresCounters
from adapters_store.postgres.statements import LOCKED
from adapters_store.postgres.store import PostgresStore
from tests.support.postgres_server import emptied
from wfcore.errors import Stale
from wfcore.model.access import Window
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.trigger import Timer
from wfcore.ports.store import Slots
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.time import HOUR, EpochMs

from .conftest import Start

LIMIT = 2
NO_LOCK = "SELECT '{0}' || $1::text"
WAITING = """SELECT count(*) FROM pg_locks WHERE NOT granted"""
PREAMBLE = f"""
import asyncio, sys
sys.path.append({str(Path(__file__).parents[2])!r})
from attrs import evolve
from adapters_store.postgres.counters import PostgresCounters
from adapters_store.postgres.store import PostgresStore
from wfcore.errors import Stale
from wfcore.model.execution import Execution
from wfcore.ports.counters import Window
from wfcore.ports.store import Slots
from wfcore.testing import builders as make
from tests.adapters_store.test_postgres_races import *
"""
WORK = (
    PREAMBLE
    + """
async def main():
    store = await PostgresStore.open(sys.argv[1])
    print(await work(store, sys.argv[2], 8), flush=True)
    await store.close()
asyncio.run(main())
"""
)
COUNT = (
    PREAMBLE
    + """
async def main():
    counters = await PostgresCounters.open(sys.argv[1])
    print(await admitted(counters), flush=True)
    await counters.close()
asyncio.run(main())
"""
)
MINUTE = Window("minute", EpochMs(0), EpochMs(60_000), 301)
DAY = Window("day", EpochMs(0), EpochMs(86_400_000), None)


async def work(store: PostgresStore, name: str, count: int) -> int:
    """
    Accept *count* executions of a group, and take and end what there is until nobody has more. The
    most that were seen taken at once.
    """
    most = 0

    async def accept(number: int) -> None:
        await keep(
            store, make.execution(f"{name}_{number:02}", concurrency_group="wf_1", owner_id=name)
        )

    async def finish(run: Execution) -> None:
        done = {"worker": None, "status": ExecutionStatus.COMPLETED, "completed_at": make.NOW}
        await keep(store, evolve(run, **done))

    accepting = asyncio.gather(*(accept(number) for number in range(count)))
    async with asyncio.timeout(60):
        while True:
            taken = await store.claim(name, HOUR, Slots(1_000), 2)
            async with store.view() as view:
                most = max(most, await view.groups.held("wf_1"))
                left = await view.groups.unfinished("wf_1")
            if accepting.done() and not left:
                return most
            await asyncio.gather(*map(finish, taken))


async def admitted(counters: PostgresCounters) -> int:
    """How many of 200 requests at once were admitted."""
    asked = (counters.take("k", (MINUTE, DAY), EpochMs(1)) for _ in range(200))
    return sum(one.admitted for one in await asyncio.gather(*asked))


@pytest.fixture
async def handles(database: str) -> AsyncIterator[list[PostgresStore]]:
    """Four stores on one empty database, as four processes would have."""
    url = await emptied(database)
    opened = [await PostgresStore.open(url) for _ in range(4)]
    async with opened[0].unit() as unit:
        unit.limit_group("wf_1", LIMIT)
        await unit.commit()
    yield opened
    for store in opened:
        await store.close()


@pytest.mark.parametrize("lost", [0, 1], ids=["none is lost", "one is lost"])
async def test_who_was_too_late_for_what_it_chose_asks_again(
    handles: list[PostgresStore], monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """Until nobody took anything of it away; then it asks no more."""
    real, chosen = claims.PostgresClaim._taken, list[Sequence[str]]()

    async def late(claim: Any, connection: Any, ids: Sequence[str]) -> Any:
        chosen.append(ids)
        return await real(claim, connection, ids[lost:] if len(chosen) == 1 else ids)

    monkeypatch.setattr(claims.PostgresClaim, "_taken", late)
    await keep(handles[0], *(make.execution(f"e{n}", due_at=make.NOW) for n in range(3)))
    assert len(await handles[0].claim("w1", HOUR, Slots(9), 3)) == 3
    assert len(chosen) == 1 + lost


async def most_at_once(handles: list[PostgresStore]) -> int:
    """What was seen by handles that accept and work at the same time."""
    seen = await asyncio.gather(*(work(one, f"w{n}", 8) for n, one in enumerate(handles)))
    return max(seen)


async def test_handles_that_race_keep_a_groups_limit(handles: list[PostgresStore]) -> None:
    """Accepting, admitting, taking and ending at once, never more run than the limit says."""
    assert await most_at_once(handles) == LIMIT


async def until_waiting(task: "asyncio.Task[Any]", store: PostgresStore) -> None:
    """Until *task* is done, or waits for a lock in the server."""
    async with asyncio.timeout(60), lent(store.pool) as connection:
        while not task.done() and not await connection.fetchval(WAITING):  # noqa: ASYNC110
            await asyncio.sleep(0.005)  # the server tells nobody who waits


@pytest.mark.parametrize(("lock", "together"), [(LOCKED, 1), (NO_LOCK, 2)])
async def test_who_counts_a_group_waits_for_who_has_counted(
    handles: list[PostgresStore], monkeypatch: pytest.MonkeyPatch, lock: str, together: int
) -> None:
    """One accepts and has not committed; another counts it as well. Without the lock both begin."""
    first, second, *_ = handles
    async with first.unit() as unit:
        unit.limit_group("wf_1", 1)
        await unit.commit()
    at_the_end, go_on = asyncio.Event(), asyncio.Event()

    async def pause(connection: Any, entries: Any) -> None:
        at_the_end.set()
        await go_on.wait()
        await link(connection, entries)

    for module in (groups, statements):
        monkeypatch.setattr(module, "LOCKED", lock)
    monkeypatch.setattr(committer, "link", pause)
    run, other = (make.execution(name, concurrency_group="wf_1") for name in ("e1", "e2"))
    early = asyncio.ensure_future(keep(first, run, make.audit_entry("aud_1")))
    await at_the_end.wait()
    late = asyncio.ensure_future(keep(second, other))
    await until_waiting(late, handles[2])
    go_on.set()
    await asyncio.gather(early, late)
    assert len(await second.claim("w1", HOUR, Slots(9), 9)) == together


@pytest.mark.parametrize(("rows", "taken"), [(groups.LOCKING, []), ("", ["e0"])])
async def test_who_admits_waits_for_who_is_taking(
    handles: list[PostgresStore], monkeypatch: pytest.MonkeyPatch, rows: str, taken: list[str]
) -> None:
    """
    One takes an execution and has not committed; another wants to put an earlier one before it.
    Without the lock on its row both run.
    """
    first, second, *_ = handles
    async with first.unit() as unit:
        unit.limit_group("wf_1", 1)
        await unit.commit()
    monkeypatch.setattr(groups, "LOCKING", rows)
    await keep(first, make.execution("e1", concurrency_group="wf_1"))
    async with lent(first.pool) as connection:
        async with connection.transaction():
            assert await rows_of(connection, claims.TAKE, ["e1"], "w1", HOUR)
            early = make.execution("e0", concurrency_group="wf_1", due_at=EpochMs(make.NOW - 9))
            await keep(first, early)
            claiming = asyncio.ensure_future(second.claim("w2", HOUR, Slots(9), 9))
            await until_waiting(claiming, handles[2])
        assert [run.id for run in await claiming] == taken


async def test_processes_that_race_keep_a_groups_limit(
    handles: list[PostgresStore], database: str, start: Start
) -> None:
    """Four processes, as on four machines: each saw the limit kept, and everything ended."""
    running = [start(WORK, database, f"p{number}") for number in range(4)]
    ends = [await asyncio.to_thread(process.communicate) for process in running]
    assert [int(said) for said, _ in ends] == [LIMIT] * 4
    async with handles[0].view() as view:
        assert await view.groups.unfinished("wf_1") == 0


async def test_processes_that_race_admit_exactly_the_limit(database: str, start: Start) -> None:
    """Of 800 requests in four processes 301 are admitted, whoever asks first."""
    await emptied(database)
    running = [start(COUNT, database) for _ in range(4)]
    ends = [await asyncio.to_thread(process.communicate) for process in running]
    assert sum(int(said) for said, _ in ends) == 301


async def test_subjects_are_counted_in_one_order(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked first: machines that count the same subjects never wait in a circle."""
    real, asked = counters.rows_of, list[list[str]]()

    async def noted(connection: Any, sql: str, *values: Any) -> Any:
        asked.append([one["who"] for one in json.loads(values[0])])
        return await real(connection, sql, *values)

    monkeypatch.setattr(counters, "rows_of", noted)
    counting = await PostgresCounters.open(await emptied(database))
    await asyncio.gather(*(counting.take(who, (MINUTE,), EpochMs(1)) for who in "bca"))
    await counting.close()
    assert asked == [["a", "b", "c"]]


async def test_one_handle_is_elected(handles: list[PostgresStore]) -> None:
    """Of handles that ask at once one is, and the others find it so until its lease is over."""
    for _ in range(3):
        asked = await asyncio.gather(*(handle.elect("sweep", HOUR) for handle in handles))
        assert sum(asked) == 1
    assert await handles[0].elect("another", HOUR)


async def test_units_that_want_the_same_rows_never_wait_in_a_circle(
    handles: list[PostgresStore],
) -> None:
    """Units over the same records in every order: one wins each round, the others are stale."""
    names = [f"e{number}" for number in range(6)]
    await keep(handles[0], *(make.execution(name, events=0) for name in names))
    await keep(handles[0], *(make.timer(f"t{number}") for number in range(6)))

    async def change(number: int) -> bool:
        async with handles[number % 4].unit() as unit:
            order = names[number % 6 :] + names[: number % 6]
            for name in order if number % 2 else reversed(order):
                run = await unit.get(Execution, name)
                timer = await unit.get(Timer, name.replace("e", "t"))
                assert run is not None
                assert timer is not None
                unit.put(timer)
                unit.put(evolve(run, events=run.events + 1))
                if number % 3 == 0:
                    unit.put(evolve(run, events=run.events + 1, version=run.version + 1))
            try:
                await unit.commit()
            except Stale:
                return False
            return True

    won = 0
    for _ in range(4):
        ends = await asyncio.gather(*(change(number) for number in range(12)))
        assert any(ends)
        won += sum(ends)
    async with handles[0].view() as view:
        first = await view.get(Execution, "e0")
        assert first is not None
        assert won <= first.version - 1 <= 2 * won


@pytest.mark.parametrize("spread", [True, False])
async def test_deliveries_at_one_webhook_do_not_collide(
    handles: list[PostgresStore], spread: bool
) -> None:
    """Every answer is counted and the newest deliveries stay, however many handles write them."""

    async def deliver(number: int) -> None:
        async with handles[number % 4].unit() as unit:
            unit.tally("wh_1", "2023-11-14", 202, make.NOW)
            unit.deliver(make.delivery(f"dlv_{number:03}"))
            if spread:
                unit.append(make.audit_entry(f"aud_{number:03}"))
            await unit.commit()

    await asyncio.gather(*(deliver(number) for number in range(80)))
    await deliver(80)
    async with handles[0].view() as view:
        (tally,) = await view.webhooks.tallies("wh_1")
        kept = await view.webhooks.deliveries("wh_1")
    assert tally.count == 81
    assert kept[0].id == "dlv_080"
    assert len(kept) == 50
