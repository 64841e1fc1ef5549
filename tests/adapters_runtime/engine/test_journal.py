"""What the log says of executions: one line for each end, and each step that failed."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import evolve

from adapters_runtime.engine import journal
from adapters_runtime.engine.journal import CommittedUnit, journalled
from tests.wfcore.usecases.conftest import World, a_world, code
from wfcore.errors import Stale, StoreUnavailable
from wfcore.model.access import Account
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution, TriggerSource, Usage
from wfcore.model.workflow import ChildStep, Retry, Variable
from wfcore.ports.runtime import StepEnd
from wfcore.ports.store import Store
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.machine import CancelAsked
from wfcore.testing import builders as make
from wfcore.time import DAY, MINUTE
from wfcore.usecases.audit.auditing import Origin
from wfcore.usecases.executions import executions, starting, worker
from wfcore.usecases.unit_of_work import stage
from wfcore.usecases.upkeep import sweeping

CANARY = "c4nary-7e1f"
Lines = Callable[[], list[tuple[str, str, Mapping[str, object]]]]


@pytest.fixture(params=[None, "memory:"], ids=["sqlite", "memory"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    async with a_world(request.param, tmp_path) as made:
        store = journalled(made.services.store)
        yield evolve(made, services=evolve(made.services, store=store))


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """The lines so far: level, words, and what is said beside them."""
    caplog.set_level(logging.DEBUG, "wfcore.executions")
    usual = {*logging.makeLogRecord({}).__dict__, "message"}

    def read() -> list[tuple[str, str, Mapping[str, object]]]:
        found = [one for one in caplog.records if one.name == "wfcore.executions"]
        about = [{k: v for k, v in one.__dict__.items() if k not in usual} for one in found]
        return [(one.levelname, one.msg, beside) for one, beside in zip(found, about, strict=True)]

    return read


async def test_the_end_of_an_execution_is_one_line(world: World, lines: Lines) -> None:
    """Ids, workflow, reason, duration and tokens; where a request started it, its id."""
    ann = await world.account()
    flow = await world.workflow(ann, code("one"))
    started = await starting.start_execution(
        world.services, ann, flow, {}, origin=Origin(request_id="req-7")
    )
    lease, (job,) = await world.take()
    assert job.environment["WF_REQUEST_ID"] == "req-7"
    world.clock.advance(MINUTE)
    end = StepEnd(usage=Usage(30, 20, "0.5"))
    await worker.complete_step(world.services, lease, "one", end)
    (line,) = lines()
    assert line == (
        "INFO",
        "an execution ended",
        {
            "execution_id": started.execution_id,
            "workflow_id": flow,
            "workflow": "flow",
            "request_id": "req-7",
            "status": "COMPLETED",
            "reason": None,
            "step": None,
            "started_by": "open_api",
            "duration_ms": MINUTE,
            "steps": 1,
            "input_tokens": 30,
            "output_tokens": 20,
            "cost_usd": "0.5",
        },
    )


async def test_a_failure_says_which_step_and_why_and_shows_no_secret(
    world: World, lines: Lines
) -> None:
    """The retry is told, then the failed step, then the end; errors are masked and cut."""
    secret = {"pin": Variable("pin", has_default=True, default=CANARY, secret=True)}
    ann = await world.account()
    flow = await world.workflow(ann, code("one", retry=Retry(2)), variables=secret)
    await world.start(ann, flow)
    for _ in range(2):
        lease, _ = await world.take()
        await worker.complete_step(world.services, lease, "one", StepEnd(error=CANARY + "x" * 900))
        world.clock.advance(MINUTE)
    assert [(level, says) for level, says, _ in lines()] == [
        ("INFO", "a step is tried again"),
        ("WARNING", "a step failed"),
        ("WARNING", "an execution ended"),
    ]
    assert [about.get("attempt") for *_, about in lines()] == [1, 2, None]
    assert lines()[2][2]["reason"] == "STEP_FAILED"
    assert CANARY not in str(lines())
    assert max(len(str(about["error"])) for *_, about in lines()) <= 500


async def test_whoever_ends_it_there_is_a_line(world: World, lines: Lines) -> None:
    """Cancelled with its child, or interrupted and given up: each end once."""
    ann = await world.account()
    await world.workflow(ann, code("one"), name="child")
    flow = await world.workflow(ann, ChildStep("sub", "child"), name="parent")
    run_id = await world.start(ann, flow)
    await world.take()
    await executions.cancel_execution(world.services, ann, run_id)
    assert [about["reason"] for *_, about in lines()] == ["CANCEL_REQUESTED", "PARENT_CANCELLED"]
    await world.start(ann, await world.workflow(ann, code("one")), source=TriggerSource.OPEN_API)
    lease, _ = await world.take()
    await worker.hand_back(world.services, lease)
    world.clock.advance(DAY)
    await sweeping.end_graces(world.services)
    told = [(level, says, about["status"]) for level, says, about in lines()[2:]]
    assert told == [
        ("WARNING", "an execution is interrupted", "INTERRUPTED"),
        ("WARNING", "an execution ended", "FAILED"),
    ]


async def test_a_unit_that_lost_its_race_says_nothing(world: World, lines: Lines) -> None:
    """The line is written after the commit, so what was rolled back is not told."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    async with world.services.store.unit() as late:
        run, now = await late.get(Execution, run_id), world.services.store.now()
        await executions.cancel_execution(world.services, ann, run_id)
        await stage(late, advance(run, CancelAsked(), now), now)
        with pytest.raises(Stale):
            await late.commit()
    assert len(lines()) == 1


class Full:
    """A store on a disk that may be full; `why`: what it says then."""

    def __init__(self, store: Any, why: str = "disk is full") -> None:
        self._store = store
        self._why = why
        self.full = False

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Any]:
        async with self._store.unit() as unit:
            yield SimpleNamespace(commit=self.ping, put=unit.put) if self.full else unit

    async def ping(self) -> None:
        if self.full:
            raise StoreUnavailable(detail=self._why)


async def test_a_store_that_cannot_write_is_said_once_and_so_is_its_recovery(
    tmp_path: Path, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first failure with its cause; single writes that still fit do not count as the end."""
    async with a_world("memory:", tmp_path) as plain:
        disk = Full(plain.services.store)
        store = journalled(cast("Store", disk))

        async def write() -> None:
            async with store.unit() as unit:
                await unit.commit()

        async def said(full: bool) -> list[tuple[str, str, object]]:
            disk.full = full
            for each in (write, store.ping):
                with nullcontext() if not full else pytest.raises(StoreUnavailable):
                    await each()
            return [(level, words, about.get("detail")) for level, words, about in lines()]

        assert await said(full=False) == []
        failed = ("WARNING", "the store cannot write", "disk is full")
        for full in (True, False):
            assert await said(full) == [failed]
        monkeypatch.setattr(journal, "CALM_S", 0)
        assert await said(full=True) == [failed]
        disk.full = False
        async with store.unit() as unit:
            await unit.commit()
        assert len(lines()) == 1  # it wrote nothing, and shows nothing
        async with store.unit() as unit:
            unit.put(make.account())
            await unit.commit()
        for _ in range(2):
            assert await said(full=False) == [failed, ("WARNING", "the store writes again", None)]


async def test_a_store_that_cannot_write_is_one_line_a_minute(
    tmp_path: Path, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it is tried; the recovery is a line ten seconds after the last failure."""
    clock = SimpleNamespace(at=1_000.0)
    monkeypatch.setattr(journal, "monotonic", lambda: clock.at)
    async with a_world("memory:", tmp_path) as plain:
        disk = Full(plain.services.store)
        store = journalled(cast("Store", disk))
        disk.full = True
        for passed, said in ((0, 1), (30, 1), (29.9, 1), (0.1, 2), (59.9, 2), (0.1, 3)):
            clock.at += passed
            with pytest.raises(StoreUnavailable):
                await store.ping()
            assert len(lines()) == said
        disk.full = False
        for passed, said in ((9.9, 3), (0.1, 4), (60, 4)):
            clock.at += passed
            await store.ping()
            assert len(lines()) == said
    assert lines()[-1][1] == "the store writes again"


async def test_a_database_that_is_back_is_said_at_once(tmp_path: Path, lines: Lines) -> None:
    """By the first write that succeeds, once; so is the next time that it is away."""
    async with a_world("memory:", tmp_path) as plain:
        database = Full(plain.services.store, "ConnectionRefusedError")
        store = journalled(cast("Store", database))
        for database.full in (True, True, False, False, True, False):
            with pytest.raises(StoreUnavailable) if database.full else nullcontext():
                await store.ping()
    assert [words for _, words, _ in lines()] == [
        "the store cannot write",
        "the store writes again",
    ] * 2


class Noted:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.units: list[CommittedUnit] = []
        self.lost = 0

    def committed(self, unit: CommittedUnit) -> None:
        self.units.append(unit)

    def collided(self) -> None:
        self.lost += 1


async def test_an_observer_is_told_of_each_commit_and_each_lost_race(tmp_path: Path) -> None:
    """Events with the kind of their step; what lost its race counts as that alone."""
    async with a_world(None, tmp_path) as plain:
        noted = Noted()
        store = journalled(plain.services.store, noted)
        world = evolve(plain, services=evolve(plain.services, store=store))
        ann = await world.account()
        flow = await world.workflow(ann, code("one"))
        await starting.start_execution(world.services, ann, flow, {})
        lease, _ = await world.take()
        await worker.complete_step(world.services, lease, "one", StepEnd())
        told = [(one.event.kind, one.kind) for unit in noted.units for one in unit.events]
        assert told == [
            (EventKind.EXECUTION_PENDING, ""),
            (EventKind.EXECUTION_RUNNING, ""),
            (EventKind.STEP_STARTED, "code"),
            (EventKind.STEP_COMPLETED, "code"),
            (EventKind.EXECUTION_COMPLETED, ""),
        ]
        before = len(noted.units)
        async with store.unit() as one, store.unit() as other:
            for unit in (one, other):
                account = await unit.get(Account, ann.account.id)
                assert account is not None
                unit.put(account)
            await one.commit()
            with pytest.raises(Stale):
                await other.commit()
        assert (len(noted.units) - before, noted.lost) == (1, 1)
        assert [one.id for one in noted.units[-1].records] == [ann.account.id]
