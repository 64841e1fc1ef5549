"""
Hints between the parts of one process, and between processes: who sleeps on what, and who wakes
them.

Between processes a hint takes a moment and may arrive late or twice. By then another worker, or
another lease, may run the execution, so `stop` is passed on as `reload`: whoever runs steps for the
execution loads it, and finds its lease lost or a step no longer in flight. Decision 172.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from adapters_runtime.engine.loops import wait_for
from wfcore.ports.hints import Hint, HintKind, Hints, Rest

POLL_MS = 500
"""Followers look again at least this often: a hint may be lost, or there is nobody to send it."""
COALESCE_S = 0.01
"""Hints that come within so long after others were told are told together."""
CLOSING_S = 2.0


class Wakeups:
    """The `Wakeup` port for one event loop: worker, scheduler and callback loop listen."""

    def __init__(self) -> None:
        self._runner: list[Callable[[], None]] = []
        self._timer: list[Callable[[], None]] = []
        self._stop: list[Callable[[str], None]] = []
        self._reload: list[Callable[[str], None]] = []
        self._followers: dict[str, set[asyncio.Event]] = {}

    def listen(
        self,
        *,
        runner: Callable[[], None] | None = None,
        timer: Callable[[], None] | None = None,
        stop: Callable[[str], None] | None = None,
        reload: Callable[[str], None] | None = None,
    ) -> None:
        self._runner += [runner] if runner else []
        self._timer += [timer] if timer else []
        self._stop += [stop] if stop else []
        self._reload += [reload] if reload else []

    def runner(self) -> None:
        for hear in self._runner:
            hear()

    def timer(self) -> None:
        for hear in self._timer:
            hear()

    def stop(self, execution_id: str) -> None:
        for hear in self._stop:
            hear(execution_id)

    def reload(self, execution_id: str) -> None:
        for hear in self._reload:
            hear(execution_id)

    def events(self, execution_id: str) -> None:
        for grown in self._followers.get(execution_id, ()):
            grown.set()

    def release(self) -> None:
        """Wake the followers of this process: each looks again, and sees that it ends."""
        for followers in self._followers.values():
            for grown in followers:
                grown.set()

    @contextmanager
    def follow(self, execution_id: str) -> Iterator[Rest]:
        grown = asyncio.Event()
        followers = self._followers.setdefault(execution_id, set())
        followers.add(grown)

        async def rest(timeout_ms: int) -> None:
            await wait_for(grown, min(timeout_ms, POLL_MS) / 1_000)

        try:
            yield rest
        finally:
            followers.discard(grown)
            if not followers:
                del self._followers[execution_id]

    async def close(self) -> None:
        """Nothing is left to be told."""


class SharedWakeups(Wakeups):
    """
    The `Wakeup` port of one of several processes: what is told here is heard here at once and
    passed on by *hints*; what others pass on is heard from the first `listen` or `follow` on, so
    that a process which only tells opens no connection to listen.
    """

    def __init__(self, hints: Hints) -> None:
        super().__init__()
        self.hints = hints
        self._untold: set[Hint] = set()
        self._telling: asyncio.Task[None] | None = None
        self._hearing: asyncio.Task[None] | None = None

    def listen(
        self,
        *,
        runner: Callable[[], None] | None = None,
        timer: Callable[[], None] | None = None,
        stop: Callable[[str], None] | None = None,
        reload: Callable[[str], None] | None = None,
    ) -> None:
        super().listen(runner=runner, timer=timer, stop=stop, reload=reload)
        self._hear()

    @contextmanager
    def follow(self, execution_id: str) -> Iterator[Rest]:
        self._hear()
        with super().follow(execution_id) as rest:
            yield rest

    def runner(self) -> None:
        super().runner()
        self._pass_on(Hint(HintKind.DUE))

    def timer(self) -> None:
        super().timer()
        self._pass_on(Hint(HintKind.TIMER))

    def stop(self, execution_id: str) -> None:
        super().stop(execution_id)
        self._pass_on(Hint(HintKind.RELOAD, execution_id))

    def reload(self, execution_id: str) -> None:
        super().reload(execution_id)
        self._pass_on(Hint(HintKind.RELOAD, execution_id))

    def events(self, execution_id: str) -> None:
        super().events(execution_id)
        self._pass_on(Hint(HintKind.EVENTS, execution_id))

    def _hear(self) -> None:
        if self._hearing is None:
            self._hearing = asyncio.create_task(self.hints.hear(self._heard), name="hints")

    def _heard(self, hint: Hint) -> None:
        match hint.kind:
            case HintKind.DUE:
                super().runner()
            case HintKind.TIMER:
                super().timer()
            case HintKind.RELOAD:
                super().reload(hint.execution_id)
            case HintKind.EVENTS:
                super().events(hint.execution_id)

    def _pass_on(self, hint: Hint) -> None:
        self._untold.add(hint)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        """The first hints after a silence at once, what follows gathered."""
        while self._untold:
            told, self._untold = self._untold, set()
            await self.hints.tell(told)
            await asyncio.sleep(COALESCE_S)

    async def close(self) -> None:
        """Tell what is untold, for a moment; then hear nothing more."""
        if self._hearing is not None:
            self._hearing.cancel()
            await asyncio.wait((self._hearing,))
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_S):
                if self._telling is not None:
                    await self._telling
