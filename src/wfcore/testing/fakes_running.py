"""
Fakes of ports that run or store: step runners, files, callbacks, and the store in memory.

Each fake passes the contract of its port.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from attrs import define, field, frozen

from wfcore import memory
from wfcore.model.workflow import Language
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.ports.notices import Message, NotDelivered, Receipt
from wfcore.ports.runtime import Job, LanguageState, Say, StepEnd
from wfcore.ports.system import Clock
from wfcore.testing.fakes import ManualClock

R = TypeVar("R")

EVERYTHING: Mapping[Language, LanguageState] = {
    language: LanguageState(language, True) for language in Language
}


async def in_turn(name: str, about: object, apply: Callable[[], R], *, writes: bool = False) -> R:
    """A `SchedulingPoint` for asyncio: other ready tasks run first, then *apply*."""
    await asyncio.sleep(0)
    return apply()


def store_in_memory(clock: Clock | None = None) -> memory.MemoryStore:
    """
    An empty store over dicts that is exact about races, versions and visibility. The store uses the
    time of *clock*; without *clock*, time stands still.
    """
    return memory.MemoryStore(in_turn, now=(clock or ManualClock()).service_now)


def counters_in_memory() -> memory.MemoryCounters:
    """Empty quota counters over a dict."""
    return memory.MemoryCounters(in_turn)


@frozen
class ScriptedRunner:
    """
    A step runner with a script: an async function of the job and `say` that returns the end of the
    attempt.

    `ScriptedRunner(script)`; the script may wait and be cancelled.
    """

    script: Callable[[Job, Say], Awaitable[StepEnd]]

    async def run(self, job: Job, say: Say) -> StepEnd:
        return await self.script(job, say)

    def languages(self) -> Mapping[Language, LanguageState]:
        return EVERYTHING

    async def close(self) -> None:
        """Do nothing: no process is left once `run` has returned."""


@define(eq=False)
class HeldRunner:
    """A step runner whose steps end when the test calls `let_go`."""

    started: list[Job] = field(factory=list)
    ended: list[Job] = field(factory=list)
    _held: dict[tuple[str, str], tuple[Job, "asyncio.Future[StepEnd]"]] = field(factory=dict)

    @property
    def running(self) -> list[Job]:
        """
        The steps that are held: started, but not ended or let go, in the order of their start.
        """
        return [job for job, _ in self._held.values()]

    async def run(self, job: Job, say: Say) -> StepEnd:
        gate: asyncio.Future[StepEnd] = asyncio.get_running_loop().create_future()
        key = (job.execution_id, job.step_name)
        self._held[key] = (job, gate)
        self.started.append(job)
        try:
            return await gate
        finally:
            self.ended.append(job)
            if self._held.get(key) == (job, gate):
                del self._held[key]

    def let_go(self, execution_id: str, step_name: str, end: StepEnd | None = None) -> None:
        """End a running step, successfully by default."""
        _, gate = self._held.pop((execution_id, step_name))
        gate.set_result(end or StepEnd("done"))

    def languages(self) -> Mapping[Language, LanguageState]:
        return EVERYTHING

    async def close(self) -> None:
        """Do nothing: no process is left once `run` has returned."""


DictFiles = memory.MemoryFiles
"""`ArtifactFiles` as a dict."""


@frozen
class Posted:
    """One callback that was sent."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class NotedNotifier:
    """
    A `Notifier` that keeps its messages. *outcomes*: the errors to raise for the next messages. A
    message is kept if its outcome is None or no outcome is left. *refuses*: the recipients that the
    other side refuses.
    """

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.outcomes: list[NotDelivered | None] = []
        self.refuses: tuple[str, ...] = ()

    async def send(self, message: Message) -> Receipt:
        failure = self.outcomes.pop(0) if self.outcomes else None
        if failure is not None:
            raise failure
        self.sent.append(message)
        return Receipt("noted", f"<{message.id}@noted.example>", self.refuses)


class NotedCallbacks:
    """A `CallbackClient` that records requests and answers as scripted (204 by default)."""

    def __init__(self) -> None:
        self.posted: list[Posted] = []
        self.answers: list[CallbackAnswer] = []

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> CallbackAnswer:
        self.posted.append(Posted(url, dict(headers), body))
        return self.answers.pop(0) if self.answers else CallbackAnswer(204)
