"""The SQLite store over the end of a process, and with several processes on one file."""

import fcntl
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from adapters_store.sqlite.store import SqliteStore
from adapters_store.sqlite.workers import Workers
from wfcore.model.access import Account
from wfcore.model.approval import Approval
from wfcore.model.execution import Execution
from wfcore.model.page import PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.ports.store import Slots
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.time import HOUR

from .conftest import Start

PREAMBLE = """
import asyncio, sys
from pathlib import Path
from attrs import evolve
from adapters_store.sqlite.store import SqliteStore
from wfcore.errors import Stale
from wfcore.model.execution import Execution
from wfcore.ports.store import Slots
from wfcore.testing import builders as make

async def keep(store, run, *events):
    async with store.unit() as unit:
        unit.put(run)
        for event in events:
            unit.append(event)
        await unit.commit()
"""

COMMIT_FOR_EVER = (
    PREAMBLE
    + """
async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    async def one(client):
        for number in range(10**9):
            id = f"exec_{client}_{number}"
            await keep(store, make.execution(id), make.event(1, id))
            print(id, flush=True)
    await asyncio.gather(*(one(client) for client in range(8)))
asyncio.run(main())
"""
)

BUMP = (
    PREAMBLE
    + """
async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    won = 0
    while won < 50:
        async with store.unit() as unit:
            run = await unit.get(Execution, "exec_1")
            unit.put(evolve(run, events=run.events + 1))
            try:
                await unit.commit()
                won += 1
            except Stale:
                pass
    await store.close()
asyncio.run(main())
"""
)

CLAIM = (
    PREAMBLE
    + """
async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    while taken := await store.claim(sys.argv[2], 1, Slots(1000), 2):
        for run in taken:
            print(run.id, flush=True)
    await store.close()
asyncio.run(main())
"""
)

WORK_IN_A_GROUP = (
    PREAMBLE
    + """
from wfcore.model.execution import ExecutionStatus
async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    async with asyncio.timeout(60):
        while True:
            taken = await store.claim(sys.argv[2], 1, Slots(1000), 2)
            async with store.view() as view:
                held, left = await view.groups.held("wf_1"), await view.groups.unfinished("wf_1")
            assert held <= 2, held
            if not left:
                break
            for run in taken:
                print(run.id, flush=True)
                await keep(store, evolve(
                    run, worker=None, status=ExecutionStatus.COMPLETED, completed_at=make.NOW
                ))
    await store.close()
asyncio.run(main())
"""
)

HOLD = (
    PREAMBLE
    + """
async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    await store.enlist("w1")
    await store.claim("w1", 10**9, Slots(10), 10)
    print("held", flush=True)
    sys.stdin.read()
asyncio.run(main())
"""
)

LIST_AND_END = (
    PREAMBLE
    + """
from wfcore.ports.records import ExecutionFilter
from wfcore.model.page import PageRequest
async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    async with store.view() as view:
        print((await view.executions.list(ExecutionFilter(), PageRequest())).total)
    await store.close()
asyncio.run(main())
"""
)


async def test_what_was_committed_survives_a_kill(tmp_path: Path, start: Start) -> None:
    """Every commit that returned before kill -9 is there afterwards, whole."""
    path = tmp_path / "wfcore.db"
    process = start(COMMIT_FOR_EVER, path)
    assert process.stdout is not None
    told = [process.stdout.readline().strip() for _ in range(200)]
    process.kill()
    told += process.stdout.read().split()
    store = await SqliteStore.open(path)
    async with store.view() as view:
        for id in told:
            assert await view.get(Execution, id) is not None
            assert len(await view.events.of_execution(id, 0, 9)) == 1
    await store.close()


async def test_no_update_is_lost_between_processes(store: SqliteStore, start: Start) -> None:
    """Compare-and-set holds over processes, and each sees what the others stored."""
    await keep(store, make.execution(events=0))
    processes = [start(BUMP, store.path) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    async with store.view() as view:
        run = await view.get(Execution, "exec_1")
    assert run is not None
    assert (run.events, run.version) == (100, 101)


async def test_processes_share_out_what_is_due(store: SqliteStore, start: Start) -> None:
    """Each execution is claimed by one worker of one process."""
    await keep(store, *(make.execution(f"e{n}", owner_id=f"acc_{n % 5}") for n in range(100)))
    processes = [start(CLAIM, store.path, f"w{number}") for number in range(3)]
    told = [process.communicate(timeout=60)[0].split() for process in processes]
    everything = [id for ids in told for id in ids]
    assert sorted(everything) == sorted(f"e{n}" for n in range(100))


async def test_processes_keep_the_limit_of_a_group(store: SqliteStore, start: Start) -> None:
    """Never more than the limit are held, whoever claims; each is taken once, all are."""
    async with store.unit() as unit:
        unit.limit_group("wf_1", 2)
        await unit.commit()
    await keep(store, *(make.execution(f"e{n:02}", concurrency_group="wf_1") for n in range(60)))
    processes = [start(WORK_IN_A_GROUP, store.path, f"w{number}") for number in range(3)]
    told = [process.communicate(timeout=90)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(id for ids in told for id in ids) == [f"e{n:02}" for n in range(60)]


async def test_the_end_of_a_worker_is_seen_at_once(store: SqliteStore, start: Start) -> None:
    """While its process lives a worker keeps its lease; killed, it is abandoned at once."""
    await keep(store, make.execution())
    process = start(HOLD, store.path)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    async with store.view() as view:
        assert list(await view.executions.abandoned(9)) == []
        process.kill()
        process.wait()
        for _ in ("the lock is free", "its file is gone"):
            assert [run.id for run in await view.executions.abandoned(9)] == ["exec_1"]
    assert list((store.path.parent / "workers").iterdir()) == []


async def test_an_enlisted_worker_of_this_process_lives(store: SqliteStore) -> None:
    """One's own workers are alive, also for another store on the same file."""
    await keep(store, make.execution())
    await store.enlist("odd/../name")
    await store.claim("odd/../name", HOUR, Slots(1), 1)
    other = await SqliteStore.open(store.path)
    for each in (store, other):
        async with each.view() as view:
            assert list(await view.executions.abandoned(9)) == []
    await store.close()
    async with other.view() as view:
        assert len(await view.executions.abandoned(9)) == 1
    await other.close()


ENLIST = (
    PREAMBLE
    + """
async def main():
    store = await SqliteStore.open(Path(sys.argv[1]))
    sys.stdin.readline()
    for number in range(20):
        await store.enlist(f"{sys.argv[2]}-{number}")
    print("held", flush=True)
    sys.stdin.read()
asyncio.run(main())
"""
)


def tell(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


async def test_locks_of_the_dead_go_and_those_of_the_living_stay(
    store: SqliteStore, start: Start
) -> None:
    """Servers that start at once remove what killed ones left, and never each other's locks."""
    folder = store.path.parent / "workers"
    dead = start(ENLIST, store.path, "dead")
    tell(dead)
    assert dead.stdout is not None
    assert dead.stdout.readline() == "held\n"
    dead.kill()
    dead.wait()
    (folder / "notes.txt").touch()
    assert len(list(folder.glob("dead-*.lock"))) == 20
    servers = [start(ENLIST, store.path, f"w{number}") for number in range(4)]
    for server in servers:
        tell(server)
    for server in servers:
        assert server.stdout is not None
        assert server.stdout.readline() == "held\n"
    living = {f"w{server}-{number}" for server in range(4) for number in range(20)}
    assert {path.name for path in folder.iterdir()} == {
        "notes.txt",
        *(f"{worker}.lock" for worker in living),
    }
    assert list(store._workers.ended(living)) == []


def test_a_worker_is_enlisted_by_one_process_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is made and not yet locked looks dead: the folder is held around both."""
    locked: list[bool] = []
    flock = fcntl.flock

    def noting(descriptor: int, operation: int) -> None:
        locked.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", noting)
    workers = Workers(tmp_path / "workers")
    workers.enlist("w1")
    assert locked == [True, False]
    workers.release()


async def test_a_program_that_closed_its_store_ends(tmp_path: Path, start: Start) -> None:
    """No thread of a closed store keeps its process from ending."""
    process = start(LIST_AND_END, tmp_path / "wfcore.db")
    assert process.communicate(timeout=30)[0] == "0\n"
    assert process.returncode == 0


async def test_a_store_sees_what_another_one_changed(store: SqliteStore) -> None:
    """No decoded record outlives a change that came from elsewhere."""
    records = [make.execution(), make.account(), make.share(), make.approval(), make.key()]
    other = await SqliteStore.open(store.path)
    await keep(store, *records)
    async with store.view() as view, other.view() as others:
        for version in (1, 2, 3):
            assert (await view.get(Execution, "exec_1")).version == version  # type: ignore[union-attr]
            assert (await view.get(Account, "acc_1")).version == version  # type: ignore[union-attr]
            assert (await view.get(Approval, "appr_1")).version == version  # type: ignore[union-attr]
            run, account = await others.get(Execution, "exec_1"), await others.get(Account, "acc_1")
            approval = await others.get(Approval, "appr_1")
            await keep(other, run, account, approval)
        async with other.unit() as unit:
            unit.purge("exec_1")
            await unit.commit()
        assert await view.get(Execution, "exec_1") is None
        assert await view.get(Approval, "appr_1") is None
        assert (await view.executions.list(ExecutionFilter(), PageRequest())).total == 0
    await other.close()


async def test_what_was_written_bit_by_bit_is_read_as_a_whole(store: SqliteStore) -> None:
    """Another store, which must decode every row, reads what this one wrote as differences."""
    other = await SqliteStore.open(store.path)
    first = {"b": make.step_result(output={"n": 1}), "a": make.step_result(output="x")}
    await keep(store, make.execution(step_results=first, variables={"v": 1}))
    changes: list[dict[str, Any]] = [
        {"step_results": {**first, "c": make.step_result(output=[1])}},
        {"step_results": {**first, "a": make.step_result(output=None)}},
        {"variables": {"v": 2}, "output": {"all": 1}},
        {"step_results": {"c": make.step_result(), "b": first["b"]}, "output": None},
        {"step_results": {}, "worker": "w1"},
        {"step_results": first, "worker": None, "secrets": ("v",)},
    ]
    for version, change in enumerate(changes, start=1):
        async with store.unit() as unit:
            run = await unit.get(Execution, "exec_1")
            assert run is not None
            changed = evolve(run, **change)
            unit.put(changed)
            await unit.commit()
        async with other.view() as view:
            found = await view.get(Execution, "exec_1")
        assert found == evolve(changed, version=version + 1)
        assert list(found.step_results) == list(changed.step_results)
    await other.close()
