"""The adapters of the runtime keep the contracts that wfcore ships."""

from collections.abc import Callable, Iterator

import pytest

from adapters_runtime.courier import HttpCourier
from adapters_runtime.cron import CronCalendar
from adapters_runtime.dispatcher import Dispatcher
from adapters_runtime.passwords import Argon2Passwords
from adapters_runtime.system import SystemClock, SystemIds, SystemTokens
from adapters_runtime.templates import MiniJinjaTemplates
from adapters_runtime.wakeups import Wakeups
from receiver import Receiver, a_receiver
from wfcore.ports.runtime import JobRunner
from wfcore.testing.contracts import (
    CalendarContract,
    ClockContract,
    CourierContract,
    DispatcherContract,
    IdsContract,
    PasswordsContract,
    TemplatesContract,
    TokensContract,
    WakeupContract,
)
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


class TestSystemTokens(TokensContract):
    @pytest.fixture
    def tokens(self) -> SystemTokens:
        return SystemTokens()


class TestArgon2Passwords(PasswordsContract):
    @pytest.fixture
    def passwords(self) -> Argon2Passwords:
        return Argon2Passwords()


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
    def wakeup(self) -> Wakeups:
        return Wakeups()


class TestDispatcher(DispatcherContract):
    @pytest.fixture
    def wakeup(self) -> Wakeups:
        return Wakeups()

    @pytest.fixture
    def dispatch(self, wakeup: Wakeups) -> Callable[[Services, JobRunner, str], Dispatcher]:
        return lambda services, runner, worker: Dispatcher(services, runner, wakeup, worker)


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


class TestHttpCourier(CourierContract):
    @pytest.fixture
    def peer(self) -> Iterator[ReceivingPeer]:
        with a_receiver() as receiver:
            receiver.location = receiver.url
            yield ReceivingPeer(receiver)

    @pytest.fixture
    def courier(self) -> HttpCourier:
        return HttpCourier(allow_private=True, timeout_s=20)
