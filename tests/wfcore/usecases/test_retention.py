"""Retention in pieces: oldest first, until nothing is left, stoppable after any."""

import asyncio
from io import BytesIO

import pytest

from adapters_runtime.engine.retention import INTERVAL_S, Retention
from wfcore.errors import NotFound, StoreUnavailable, Unreadable
from wfcore.model.execution import Execution
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.time import DAY, EpochMs
from wfcore.usecases.upkeep import retention
from wfcore.usecases.upkeep.retention import DeletionPiece, delete_expired

from .conftest import World


async def pieces(world: World) -> list[DeletionPiece]:
    """Every piece until one says that there is no more."""
    found = [await delete_expired(world.services)]
    while found[-1].more:
        found.append(await delete_expired(world.services))
    return found


async def ended(world: World, *ids: str, age: int) -> None:
    """Executions that ended *age* ms ago, with an event and a file each."""
    for id in ids:
        at = EpochMs(world.clock.now() - age)
        await keep(
            world.services.store,
            make.execution(id, completed_at=at, due_at=None),
            make.event(1, id),
        )
        await world.services.files.store(id, "art_1", BytesIO(b"x"))


async def left(world: World, *ids: str) -> list[str]:
    async with world.services.store.view() as view:
        return [id for id in ids if await view.get(Execution, id) is not None]


async def has_file(world: World, id: str) -> bool:
    try:
        return [part async for part in world.services.files.read(f"{id}/art_1", 0, 1)] == [b"x"]
    except NotFound:
        return False


async def test_it_goes_on_until_nothing_old_is_left(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece takes the oldest there are; what is young enough stays, with its files."""
    monkeypatch.setattr(retention, "EXECUTIONS", 2)
    names = [f"e{n}" for n in range(5)]
    for number, id in enumerate(names):
        await ended(world, id, age=40 * DAY - number)
    await ended(world, "young", age=29 * DAY)
    assert await delete_expired(world.services) == DeletionPiece(2, 0, 0)
    assert await left(world, *names) == names[2:]
    assert [piece.executions for piece in await pieces(world)] == [2, 1, 0]
    assert await left(world, *names, "young") == ["young"]
    assert [await has_file(world, id) for id in ("e0", "e4", "young")] == [False, False, True]


async def test_old_records_go_in_pieces_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Audit entries, idempotency records, sessions, logins: piece by piece, until none is old."""
    monkeypatch.setattr(retention, "RECORDS", 3)
    long_ago = EpochMs(world.clock.now() - 91 * DAY)
    await keep(
        world.services.store,
        *(make.audit_entry(f"aud_{n}", at=long_ago) for n in range(4)),
        *(make.replay(f"k{n}", created_at=long_ago) for n in range(4)),
        make.session("s1", created_at=long_ago),
        make.login("l1", last_failure_at=long_ago),
    )
    assert [piece.records for piece in await pieces(world)] == [3, 3, 3, 1, 0]


async def test_a_crash_between_files_and_rows_is_made_good(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files go first: what fails then leaves rows, which the next piece takes, and no files."""
    await ended(world, "e1", age=40 * DAY)
    delete = world.services.files.delete_executions

    async def torn(*ids: str) -> None:
        await delete(*ids)
        raise StoreUnavailable(detail="crashed")

    with monkeypatch.context() as patch:
        patch.setattr(world.services.files, "delete_executions", torn)
        with pytest.raises(StoreUnavailable):
            await delete_expired(world.services)
    assert await left(world, "e1") == ["e1"]
    assert not await has_file(world, "e1")
    await pieces(world)
    assert await left(world, "e1") == []


async def test_the_loop_goes_on_and_stops_after_any_piece(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop is heeded after the piece that is at work; another loop does the rest."""
    monkeypatch.setattr(retention, "EXECUTIONS", 1)
    names = [f"e{n}" for n in range(4)]
    await ended(world, *names, age=40 * DAY)
    loop = Retention(world.services)
    delete = world.services.files.delete_executions

    async def stopping(*ids: str) -> None:
        loop.loop.stop()
        await delete(*ids)

    with monkeypatch.context() as patch:
        patch.setattr(world.services.files, "delete_executions", stopping)
        await loop.run()
    assert await left(world, *names) == names[1:]
    again = Retention(world.services)
    running = asyncio.create_task(again.run())
    for _ in range(100_000):
        if not await left(world, *names):
            break
        await asyncio.sleep(0)
    again.loop.stop()
    await running


async def test_files_that_cannot_be_deleted_stop_nobody_else(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """
    What stands in the way of one execution leaves it as it is, named in the log once; the others
    go in the same run, and it goes as soon as it can.
    """
    monkeypatch.setattr(retention, "EXECUTIONS", 2)
    stuck, rest = ("e0", "e1", "e2"), ("e3", "e4", "e5")
    for number, id in enumerate((*stuck, *rest)):
        await ended(world, id, age=40 * DAY - number)
    delete = world.services.files.delete_executions

    async def refusing(*ids: str) -> None:
        if found := set(stuck).intersection(ids):
            raise StoreUnavailable(detail=f"{found} cannot be deleted")
        await delete(*ids)

    loop = Retention(world.services)
    with monkeypatch.context() as patch:
        patch.setattr(world.services.files, "delete_executions", refusing)
        for _ in range(2):
            while await loop._round() < INTERVAL_S:
                pass
            assert await left(world, *stuck, *rest) == list(stuck)
    assert [vars(line)["id"] for line in caplog.records if "skipped" in line.message] == [*stuck]
    while await loop._round() < INTERVAL_S:
        pass
    assert await left(world, *stuck) == []


async def test_a_folder_that_cannot_be_written_is_not_tried_for_each(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many that cannot be deleted it is no matter of one: the rest waits for the next run."""
    monkeypatch.setattr(retention, "EXECUTIONS", 2)
    monkeypatch.setattr(retention, "MOST_LEFT_OUT", 4)
    await ended(world, *(f"e{n}" for n in range(20)), age=40 * DAY)
    tried: list[str] = []

    async def refusing(*ids: str) -> None:
        tried.extend(ids)
        raise StoreUnavailable(detail="read-only")

    monkeypatch.setattr(world.services.files, "delete_executions", refusing)
    loop = Retention(world.services)
    while await loop._round() < INTERVAL_S:
        pass
    assert len(set(tried)) == 4


async def test_a_duty_that_fails_leaves_the_others_theirs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old executions go although audit entries cannot; the loop is then seen to be down."""
    monkeypatch.setattr(retention, "EXECUTIONS", 2)
    names = [f"e{n}" for n in range(5)]
    await ended(world, *names, age=40 * DAY)

    async def damaged(*_: object) -> int:
        raise StoreUnavailable(detail="malformed")

    monkeypatch.setattr(world.services.store, "trim", damaged)
    loop = Retention(world.services)
    for _ in range(3):
        assert await loop._round() < INTERVAL_S
    with pytest.raises(StoreUnavailable):
        await loop._round()
    assert await left(world, *names) == []


async def test_tidying_goes_on_behind_what_fails(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Packages that nobody can tell from unused ones keep neither schedules nor pieces waiting."""
    planned: list[object] = []

    async def unreadable(*_: object) -> int:
        raise Unreadable("definitions", "wf_1/1")

    async def plan(*_: object) -> int:
        planned.append(1)
        return 0

    monkeypatch.setattr(retention, "prune_packages", unreadable)
    monkeypatch.setattr(retention, "plan_anew", plan)
    loop = Retention(world.services)
    for _ in range(3):
        assert await loop._round() == INTERVAL_S
    assert len(planned) == 1
    assert [vars(line)["id"] for line in caplog.records] == ["packages"]
