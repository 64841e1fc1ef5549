"""The shipped fakes keep the contracts of the ports that they stand for."""

import asyncio
from collections.abc import Callable
from itertools import count
from unittest import mock

import pytest

from wfcore.errors import StoreUnavailable
from wfcore.memory import MemoryStore
from wfcore.model.workflow import Language, Needs
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.ports.runtime import Job, Say, StepEnd, StepJob
from wfcore.testing.contracts import (
    CalendarContract,
    CallbackClientContract,
    CallContract,
    ClockContract,
    CountersContract,
    EnvironmentsContract,
    FilesContract,
    IdsContract,
    PasswordsContract,
    StoreContract,
    TemplatesContract,
    TokensContract,
    WakeupContract,
    keeping,
)
from wfcore.testing.contracts.steps import job
from wfcore.testing.fakes import (
    CountingIds,
    CountingTokens,
    ManualClock,
    NotedEnvironments,
    NotedHints,
    PathTemplates,
    PlainCalendar,
    PlainPasswords,
)
from wfcore.testing.fakes_running import (
    DictFiles,
    HeldRunner,
    NotedCallbacks,
    ScriptedRunner,
    counters_in_memory,
    in_turn,
    store_in_memory,
)


class TestManualClock(ClockContract):
    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def turn(self, clock: ManualClock) -> ManualClock:
        return clock


class TestCountingIds(IdsContract):
    @pytest.fixture
    def new_ids(self) -> Callable[[], CountingIds]:
        nodes = count()
        return lambda: CountingIds(str(next(nodes)))


class TestCountingTokens(TokensContract):
    @pytest.fixture
    def tokens(self) -> CountingTokens:
        return CountingTokens()


class TestPlainPasswords(PasswordsContract):
    @pytest.fixture
    def passwords(self) -> PlainPasswords:
        return PlainPasswords()


class TestPathTemplates(TemplatesContract):
    @pytest.fixture
    def templates(self) -> PathTemplates:
        return PathTemplates()


class TestPlainCalendar(CalendarContract):
    @pytest.fixture
    def calendar(self) -> PlainCalendar:
        return PlainCalendar()


class TestNotedHints(WakeupContract):
    @pytest.fixture
    def wakeup(self) -> NotedHints:
        return NotedHints()


async def refused(name, about, apply, *, writes=False):
    """A `SchedulingPoint` to a medium that is gone."""
    raise StoreUnavailable(detail="gone")


class TestStoreInMemory(StoreContract):
    @pytest.fixture
    def store(self, clock):
        return store_in_memory(clock)

    @pytest.fixture
    def another(self, store, clock):
        return MemoryStore(in_turn, store.disk, now=clock.service_now)

    @pytest.fixture
    def broken(self, clock):
        return MemoryStore(refused, now=clock.service_now)


async def test_a_store_whose_time_stands_still_is_told_so():
    """A suite that waits for time to pass ends, and says what to give the store."""
    waits = keeping.pass_time(store_in_memory(), ManualClock(), 1)
    with mock.patch.object(keeping, "PATIENCE_S", 0.01), pytest.raises(AssertionError, match="now"):
        await waits


class TestCountersInMemory(CountersContract):
    @pytest.fixture
    def counters(self):
        return counters_in_memory()


class TestDictFiles(FilesContract):
    @pytest.fixture
    def files(self) -> DictFiles:
        return DictFiles()


async def deeds(asked: Job, say: Say) -> StepEnd:
    """What the steps of the contract do, without any process."""
    assert isinstance(asked, StepJob)
    match asked.step.source:
        case "gives":
            return StepEnd({"n": [1, "ü"]})
        case "fails":
            return StepEnd(error="status 3")
        case "waits":
            await say("stdout", "waiting\n")
            await asyncio.sleep(600)
        case "speaks":
            await say("stdout", "one\n")
            await say("stdout", "two\n")
        case "ticks":
            return await ticks_until_timeout(asked, say)
    return StepEnd("")


async def ticks_until_timeout(asked: StepJob, say: Say) -> StepEnd:
    try:
        async with asyncio.timeout(asked.step.timeout_ms / 1_000):
            while True:
                await say("stdout", "tick\n")
                await asyncio.sleep(0.01)
    except TimeoutError:
        return StepEnd(error="timed out", timed_out=True)


class TestScriptedRunner(CallContract):
    @pytest.fixture
    def runner(self) -> ScriptedRunner:
        return ScriptedRunner(deeds)

    @pytest.fixture
    def does(self) -> Callable[[str], StepJob]:
        return job


class TestHeldRunner(CallContract):
    """Somebody lets each step go as soon as it has begun, but for those that wait."""

    @pytest.fixture
    def runner(self) -> HeldRunner:
        class LetGo(HeldRunner):
            async def run(self, job: Job, say: Say) -> StepEnd:
                held = asyncio.ensure_future(super().run(job, say))
                await asyncio.sleep(0)
                end = asyncio.ensure_future(deeds(job, say))
                try:
                    self.let_go(job.execution_id, job.step_name, await end)
                    return await held
                finally:
                    end.cancel()
                    held.cancel()

        return LetGo()

    @pytest.fixture
    def does(self) -> Callable[[str], StepJob]:
        return job


class TestNotedEnvironments(EnvironmentsContract):
    GOOD, OTHER, IMPOSSIBLE = (
        Needs(Language.PYTHON, (package,)) for package in ("one==1", "two==2", "gone==1")
    )

    @pytest.fixture
    def environments(self) -> NotedEnvironments:
        return NotedEnvironments("gone")

    def grow_old(self, environments) -> None:
        environments.grow_old()


class CalledPeer:
    """The other side of a `NotedCallbacks`: what it noted."""

    host = "https://example.org"
    url = f"{host}/told?for=me"

    def __init__(self, callback_client: NotedCallbacks) -> None:
        self._courier = callback_client

    @property
    def received(self):
        posted = self._courier.posted
        return [
            (one.url.removeprefix("https://example.org"), one.headers, one.body) for one in posted
        ]

    def answers(self, status: int) -> None:
        self._courier.answers.append(CallbackAnswer(status))

    def hangs_up(self) -> None:
        self._courier.answers.append(CallbackAnswer(error="could not be reached"))


class TestNotedCallbacks(CallbackClientContract):
    @pytest.fixture
    def callback_client(self) -> NotedCallbacks:
        return NotedCallbacks()

    @pytest.fixture
    def peer(self, callback_client: NotedCallbacks) -> CalledPeer:
        return CalledPeer(callback_client)
