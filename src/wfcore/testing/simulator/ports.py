"""The small ports of a simulated process: clock, ids, hints, and files that hold nothing."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from typing import BinaryIO

from wfcore.errors import NotFound
from wfcore.ports.files import FoundFile, StoredFile
from wfcore.ports.hints import Rest
from wfcore.rules.clock_jumps import HeldTime, agreed, held_time, service_time
from wfcore.testing.simulator.calls import Signal
from wfcore.testing.simulator.scheduler import WorldScheduler
from wfcore.time import EpochMs

BIRTH = 1_700_000_000_000
"""The wall clock when a world begins."""


class WallClock:
    """
    The clocks of one machine: the scheduler's time, and a wall clock that may have jumped away from
    that time. *ahead*: the initial error of the wall clock in ms. `known`: the times that the
    processes of the machine keep in a file.
    """

    def __init__(self, scheduler: WorldScheduler, ahead: int = 0) -> None:
        self.jumped = ahead
        self.known: HeldTime | None = None
        self._scheduler = scheduler

    def steady(self) -> int:
        return self._scheduler.now

    def wall(self) -> int:
        return BIRTH + self._scheduler.now + self.jumped


class SimClock:
    """
    The clock of one process. The jumps that the process has seen are kept for the next process.
    """

    def __init__(self, machine: WallClock) -> None:
        self._machine = machine
        self._known = self.remembered() or HeldTime.started(machine.wall(), machine.steady())

    @property
    def known(self) -> HeldTime:
        """The times that this process knows."""
        return self._known

    def restart(self, known: HeldTime | None) -> None:
        """Continue as a process that knows *known*, or that starts now."""
        machine = self._machine
        self._known = known or HeldTime.started(machine.wall(), machine.steady())

    def remembered(self) -> HeldTime | None:
        """The times that an earlier process of this machine kept."""
        return self._machine.known

    def now(self) -> EpochMs:
        return EpochMs(self._machine.wall())

    def deadline_now(self) -> EpochMs:
        return self._told_by(held_time)

    def service_now(self) -> EpochMs:
        return self._told_by(service_time)

    def _told_by(self, rule: Callable[[HeldTime, int, int], tuple[HeldTime, EpochMs]]) -> EpochMs:
        wall, steady = self._machine.wall(), self._machine.steady()
        known, now = rule(self._known, wall, steady)
        if known.hold_until != self._known.hold_until:
            known, now = rule(agreed(known, self.remembered(), steady), wall, steady)
        self._known = self._machine.known = known
        return now


class SimCalendar:
    """A calendar of fast days: `*/5 * * * *` names every fifth second, in UTC."""

    def problems(self, cron: str, timezone: str) -> Mapping[str, str]:
        return {}

    def next_local(self, cron: str, after: datetime) -> datetime | None:
        every = int(cron.split()[0].removeprefix("*/"))
        return after + timedelta(seconds=every - after.second % every)

    def zone(self, name: str) -> tzinfo:
        return UTC


class SimIds:
    """
    Short ids in the order of their creation, unique in a world. Each prefix has its own count.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def new(self, prefix: str, now: EpochMs) -> str:
        self._counts[prefix] += 1
        return f"{prefix}_{self._counts[prefix]:03d}"


class SimWakeup:
    """The hints of one process. *passes* returns how often a hint arrives: 0, 1 or 2 times."""

    def __init__(
        self,
        passes: Callable[[str], int],
        stop: Callable[[str], None],
        look: Callable[[str], None],
    ) -> None:
        self.runner_due = Signal()
        self.timer_due = Signal()
        self._passes = passes
        self._stop = stop
        self._look = look
        self._followers: list[tuple[str, Signal]] = []

    def listen(self, **hear: Callable[..., None] | None) -> None:
        """Do nothing: a simulated process passes its listeners to the constructor."""

    def release(self) -> None:
        """Do nothing: a simulated process ends without waking its followers."""

    def runner(self) -> None:
        if self._passes("runner"):
            self.runner_due.set()

    def timer(self) -> None:
        if self._passes("timer"):
            self.timer_due.set()
            self.runner_due.set()

    def stop(self, execution_id: str) -> None:
        for _ in range(self._passes(f"stop {execution_id}")):
            self._stop(execution_id)

    def reload(self, execution_id: str) -> None:
        for _ in range(self._passes(f"look {execution_id}")):
            self._look(execution_id)

    def events(self, execution_id: str) -> None:
        for followed, grown in self._followers:
            if followed == execution_id:
                grown.set()

    @contextmanager
    def follow(self, execution_id: str) -> Iterator[Rest]:
        follower = execution_id, Signal()
        self._followers.append(follower)
        try:
            yield lambda timeout_ms: follower[1].wait(min(timeout_ms, 500))
        finally:
            self._followers.remove(follower)


_NOTHING: Sequence[bytes] = ()
_NO_FILES: Sequence[FoundFile] = ()


class EmptyFiles:
    """Artifact files without contents: a file of a simulated step is nothing but a name."""

    async def store(
        self, execution_id: str, artifact_id: str, content: BinaryIO, name: str = ""
    ) -> StoredFile:
        raise NotFound("Artifact")

    async def copy(self, storage_key: str, execution_id: str, artifact_id: str) -> str:
        return artifact_id

    def local_path(self, storage_key: str) -> None:
        """Returns None: there is no content."""

    async def read(self, storage_key: str, start: int, end: int) -> AsyncIterator[bytes]:
        for chunk in _NOTHING:
            yield chunk
        raise NotFound("Artifact")

    async def delete_executions(self, *execution_ids: str) -> None:
        """Do nothing: there is no content to delete."""

    async def find_all(self) -> AsyncIterator[FoundFile]:
        for found in _NO_FILES:
            yield found

    async def direct_url(self, storage_key: str) -> str | None:
        return None
