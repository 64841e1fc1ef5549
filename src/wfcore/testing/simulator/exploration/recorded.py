"""
Ports that record what they return, so that a coroutine can be rebuilt from the record.

While a coroutine is rebuilt, a port returns the recorded values and does nothing else.
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from wfcore.errors import WfError
from wfcore.ports.hints import Rest
from wfcore.testing.simulator.calls import PortCall, Request
from wfcore.testing.simulator.exploration.states import PortAnswer, PortReading
from wfcore.testing.simulator.ports import SimClock
from wfcore.time import EpochMs

R = TypeVar("R")


class Recorder:
    """
    The record of the one coroutine that runs now. `quiet` becomes False when the coroutine uses a
    clock, an id or a hint besides the answers.
    """

    def __init__(self) -> None:
        self.tape: list[PortAnswer | PortReading] = []
        self.hints: list[tuple[str, str]] = []
        self.quiet = True
        self._at = 0
        self._replays = False
        self._applies = False

    def begin(self, tape: tuple[PortAnswer | PortReading, ...]) -> None:
        """Prepare for a coroutine that has received the answers on *tape*."""
        self.tape = list(tape)
        self.hints.clear()
        self._at = 0
        self._replays = bool(tape)

    def replayed(self, coroutine: Coroutine[Request, Any, Any]) -> Request:
        """Send the answers on the tape to *coroutine*; return its next request."""
        ask = coroutine.send(None)
        while self._at < len(self.tape):
            answer = self.tape[self._at]
            assert isinstance(answer, PortAnswer), (
                "the coroutine asks for something else than before"
            )
            self._at += 1
            ask = self.send(coroutine, answer)
        self._replays = False
        return ask

    @staticmethod
    def send(coroutine: Coroutine[Request, Any, Any], answer: PortAnswer) -> Request:
        """Continue with *answer*; return the next request."""
        if answer.refusal is not None:
            return coroutine.throw(answer.refusal)
        given = answer.value
        return coroutine.send(list(given) if type(given) is list else given)

    def perform(self, ask: PortCall) -> PortAnswer:
        """Carry out a request now."""
        self._applies = True
        try:
            return PortAnswer(ask.apply())
        except WfError as refusal:
            return PortAnswer(refusal=refusal)
        finally:
            self._applies = False

    def note(self, answer: PortAnswer) -> None:
        """Add an answer to the tape."""
        self.tape.append(answer)
        self._at = len(self.tape)

    def read(self, port: Callable[[], R]) -> R:
        """What *port* returns now, or what it returned before."""
        if self._replays and not self._applies and self._at < len(self.tape):
            known = self.tape[self._at]
            assert isinstance(known, PortReading), "the coroutine reads something else than before"
            self._at += 1
            value: R = known.value
            return value
        self.quiet = False
        value = port()
        if not self._applies:
            self.tape.append(PortReading(value))
            self._at = len(self.tape)
        return value

    def hint(self, kind: str, execution_id: str) -> None:
        """Keep a hint to the worker of this process."""
        if not self._replays:
            self.quiet = False
            self.hints.append((kind, execution_id))


class RecordedClock:
    """A `Clock` over the simulator's clock of the process."""

    def __init__(self, recorder: Recorder, clock: SimClock) -> None:
        self._recorder = recorder
        self._clock = clock

    def now(self) -> EpochMs:
        return self._recorder.read(self._clock.now)

    def deadline_now(self) -> EpochMs:
        return self._recorder.read(self._clock.deadline_now)

    def service_now(self) -> EpochMs:
        return self._recorder.read(self._clock.service_now)


class RecordedIds:
    """`Ids` and `Tokens`: numbered, unique in a world. `counts`: how many of each prefix exist."""

    def __init__(self, recorder: Recorder) -> None:
        self.counts: Counter[str] = Counter()
        self._recorder = recorder

    def new(self, prefix: str, now: EpochMs) -> str:
        return self._recorder.read(lambda: self._next(prefix))

    def text(self, length: int) -> str:
        return self._recorder.read(lambda: self._next("text").ljust(length, "0"))

    def _next(self, prefix: str) -> str:
        self.counts[prefix] += 1
        return f"{prefix}_{self.counts[prefix]:03d}"


class RecordedHints:
    """
    The `Wakeup` of one process. Hints that only shorten a wait do nothing: here a waiting task may
    continue at any time.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def listen(self, **hear: Callable[..., None] | None) -> None:
        """Do nothing: the explorer reads the recorded hints."""

    def release(self) -> None:
        """Do nothing: nobody waits."""

    def runner(self) -> None:
        """Do nothing."""

    def timer(self) -> None:
        """Do nothing."""

    def events(self, execution_id: str) -> None:
        """Do nothing."""

    def stop(self, execution_id: str) -> None:
        self._recorder.hint("stop", execution_id)

    def reload(self, execution_id: str) -> None:
        self._recorder.hint("look", execution_id)

    @contextmanager
    def follow(self, execution_id: str) -> Iterator[Rest]:
        async def rest(timeout_ms: int) -> None:
            raise AssertionError("an explored call must not wait for events")

        yield rest
