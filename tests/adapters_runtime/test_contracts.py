"""The adapters of the runtime keep the contracts that wfcore ships."""

import asyncio
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest

from adapters_runtime import system
from adapters_runtime.cron import CronCalendar
from adapters_runtime.engine import wakeups
from adapters_runtime.engine.callbacks import HttpCallbackClient
from adapters_runtime.engine.wakeups import Wakeups
from adapters_runtime.engine.worker import Worker
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from adapters_runtime.passkeys import WebAuthnPasskeys
from adapters_runtime.passwords import Argon2Passwords
from adapters_runtime.system import SystemClock, SystemIds, SystemTokens
from tests.support.receiver import Receiver, a_receiver
from wfcore.ports.runtime import JobRunner
from wfcore.ports.system import Offload, inline
from wfcore.rules.clock_jumps import HOLD_MS
from wfcore.testing.contracts import (
    CalendarContract,
    CallbackClientContract,
    ClockContract,
    IdsContract,
    OffloadContract,
    PasskeysContract,
    PasswordsContract,
    TemplatesContract,
    TokensContract,
    WakeupContract,
    WorkerContract,
)
from wfcore.time import HOUR, MINUTE, EpochMs
from wfcore.usecases.services import Services


class TurnedClock(SystemClock):
    """The clock of the system, on a machine whose time is turned by hand."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_700_000_000_000, 5_000
        super().__init__()

    def _wall(self) -> int:
        return self.wall

    def _steady(self) -> int:
        return self.steady

    def advance(self, by_ms: int) -> None:
        self.wall += by_ms
        self.steady += by_ms

    def jump(self, by_ms: int) -> None:
        self.wall += by_ms


class TestSystemClock(ClockContract):
    @pytest.fixture
    def clock(self) -> TurnedClock:
        return TurnedClock()

    @pytest.fixture
    def turn(self, clock: TurnedClock) -> TurnedClock:
        return clock


class TestSystemIds(IdsContract):
    @pytest.fixture
    def new_ids(self) -> Callable[[], SystemIds]:
        return SystemIds


class TestIdsOfSeveralCells(IdsContract):
    """Every promise about ids of several makers, made in cells whose names do not ascend."""

    @pytest.fixture
    def new_ids(self) -> Callable[[], SystemIds]:
        cells = cycle(("z9", "k0", "g0", "m7"))
        return lambda: SystemIds(next(cells))


class TestSystemTokens(TokensContract):
    @pytest.fixture
    def tokens(self) -> SystemTokens:
        return SystemTokens()


class TestWebAuthnPasskeys(PasskeysContract):
    @pytest.fixture
    def passkeys(self) -> WebAuthnPasskeys:
        return WebAuthnPasskeys()


class TestArgon2Passwords(PasswordsContract):
    @pytest.fixture
    def passwords(self) -> Argon2Passwords:
        return Argon2Passwords()


class TestThreads(OffloadContract):
    @pytest.fixture
    def offload(self) -> Offload:
        return asyncio.to_thread


class TestInline(OffloadContract):
    @pytest.fixture
    def offload(self) -> Offload:
        return inline


class TestMiniJinjaTemplates(TemplatesContract):
    @pytest.fixture
    def templates(self) -> MiniJinjaTemplates:
        return MiniJinjaTemplates()


class TestCronCalendar(CalendarContract):
    @pytest.fixture
    def calendar(self) -> CronCalendar:
        return CronCalendar()


class TestWakeups(WakeupContract):
    @pytest.fixture
    def wakeup(self, monkeypatch: pytest.MonkeyPatch) -> Wakeups:
        monkeypatch.setattr(wakeups, "POLL_MS", HOUR)
        return Wakeups()


class TestDispatcher(WorkerContract):
    @pytest.fixture
    def wakeup(self) -> Wakeups:
        return Wakeups()

    @pytest.fixture
    def dispatch(self) -> Callable[[Services, JobRunner, str], Worker]:
        return Worker


class ReceivingPeer:
    """A server on a socket, as the contract wants it told what to do."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self.url = receiver.url

    @property
    def received(self):
        return [tuple(one) for one in self._receiver.received]

    def answers(self, status: int) -> None:
        self._receiver.answers.append(status)

    def hangs_up(self) -> None:
        self._receiver.answers.append(-1)


class TestHttpCourier(CallbackClientContract):
    @pytest.fixture
    def peer(self) -> Iterator[ReceivingPeer]:
        with a_receiver() as receiver:
            receiver.location = receiver.url
            yield ReceivingPeer(receiver)

    @pytest.fixture
    def callback_client(self) -> HttpCallbackClient:
        return HttpCallbackClient(allow_private=True, timeout_s=20)


class TurnedMachine:
    """A machine whose clocks are turned by hand; *clock* is that of a process on its data."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.steady, self.boot = 1_700_000_000_000, 5_000, "first"
        self._kept = folder / "clock.json"
        monkeypatch.setattr(SystemClock, "_wall", lambda clock: self.wall)
        monkeypatch.setattr(SystemClock, "_steady", lambda clock: self.steady)
        monkeypatch.setattr(system, "_boot", lambda: self.boot)

    def clock(self) -> SystemClock:
        return SystemClock(self._kept)

    def passes(self, ms: int) -> None:
        self.wall, self.steady = self.wall + ms, self.steady + ms


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TurnedMachine:
    return TurnedMachine(tmp_path, monkeypatch)


@pytest.mark.parametrize("boot", ["first", "second"])
def test_a_hold_and_the_time_of_work_outlive_the_process(machine: TurnedMachine, boot: str) -> None:
    """A process that starts after the clock was set back goes on as the one before it. EX-30."""
    before = machine.clock().service_now()
    machine.wall -= 10 * MINUTE
    if boot != "first":
        machine.steady, machine.boot = 700, boot
    after = machine.clock()
    assert after.service_now() == after.deadline_now() == before
    machine.passes(HOLD_MS - 1)
    again = machine.clock()
    assert again.deadline_now() == before + HOLD_MS - 1
    machine.passes(1)
    assert again.deadline_now() == again.now() == machine.wall
    assert again.service_now() >= before + HOLD_MS * 9 // 10
    assert machine.clock().service_now() == again.service_now()


def test_a_hold_ends_in_every_process_at_once(machine: TurnedMachine) -> None:
    """Who sees a jump later than another process takes no lease for over before it does. EX-30."""
    first, second = machine.clock(), machine.clock()
    machine.wall -= 10 * MINUTE
    before = first.deadline_now()
    machine.passes(MINUTE)
    assert second.deadline_now() == first.deadline_now() == before + MINUTE
    machine.passes(HOLD_MS - MINUTE - 1)
    assert second.deadline_now() == first.deadline_now() == before + HOLD_MS - 1
    machine.passes(1)
    assert second.deadline_now() == first.deadline_now() == machine.wall


def test_a_hold_is_told_of_when_it_begins_and_ends(
    machine: TurnedMachine, caplog: pytest.LogCaptureFixture
) -> None:
    """An operator finds both in the log, with how far the clock jumped; also over a restart."""
    clock = machine.clock()
    clock.deadline_now()
    machine.wall -= 10 * MINUTE
    clock.deadline_now()
    clock.deadline_now()
    after = machine.clock()
    after.deadline_now()
    machine.passes(HOLD_MS)
    after.deadline_now()
    after.deadline_now()
    begun, over = caplog.records
    assert (begun.msg, begun.by_s) == ("the wall clock jumped; deadlines are held", -600)
    assert over.msg == "deadlines follow the wall clock again"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"boot": "", "seen": 1, "known": {"a": 1}}'])
def test_a_file_that_cannot_be_read_is_none(
    machine: TurnedMachine, tmp_path: Path, text: str
) -> None:
    """What is known is a help, never a reason not to start."""
    (tmp_path / "clock.json").write_text(text)
    assert machine.clock().service_now() == machine.wall


def test_the_wall_clock_is_told_in_milliseconds_of_the_epoch() -> None:
    """What is stored means the same instant to every other program of the machine."""
    before = time.time_ns()
    now = SystemClock().now()
    assert before // 1_000_000 <= now <= time.time_ns() // 1_000_000


def test_an_id_is_28_characters_that_begin_with_its_time() -> None:
    """Ids of different processes have one length and order by time, as texts."""
    ids = SystemIds("m3")
    first, second = (ids.new("exec", EpochMs(0x123)) for _ in range(2))
    assert first.startswith("exec_00000000123000m3")
    assert second.startswith("exec_00000000123001m3")
    assert {len(id) for id in (first, second)} == {len("exec_") + 28}
