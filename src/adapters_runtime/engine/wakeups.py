"""
Hints that wake sleeping loops and followers, within one process and between processes.

Between processes a hint takes a moment, and may arrive late or twice. By then another worker, or
another lease, may run the execution, so `stop` is sent to other processes as `reload`: the worker
that runs the execution loads it, and finds its lease lost or a step no longer in flight. Decision
172.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from adapters_runtime.engine.loops import wait_for
from wfcore.ports.hints import Hint, HintKind, Hints, Rest

POLL_MS = 500
"""The longest pause between two polls of a follower: a hint may be lost, or have no sender."""
COALESCE_S = 0.01
"""The time after sending hints in which further hints are gathered."""
CLOSING_S = 2.0


class Wakeups:
    """The `Wakeup` port of a single process."""

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
        for listener in self._runner:
            listener()

    def timer(self) -> None:
        for listener in self._timer:
            listener()

    def stop(self, execution_id: str) -> None:
        for listener in self._stop:
            listener(execution_id)

    def reload(self, execution_id: str) -> None:
        for listener in self._reload:
            listener(execution_id)

    def events(self, execution_id: str) -> None:
        for grown in self._followers.get(execution_id, ()):
            grown.set()

    def release(self) -> None:
        """Wake all followers of this process, so that each notices the process's end."""
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
        """Do nothing: hints within a process are never late."""


class SharedWakeups(Wakeups):
    """
    The `Wakeup` port of one of several processes.

    Hints of this process wake its own listeners at once, and are sent to other processes by
    *hints*. Hints of other processes are received from the first `listen` or `follow` on, so a
    process that only sends opens no connection for receiving.
    """

    def __init__(self, hints: Hints) -> None:
        super().__init__()
        self.hints = hints
        self._unsent: set[Hint] = set()
        self._sending: asyncio.Task[None] | None = None
        self._receiving: asyncio.Task[None] | None = None

    def listen(
        self,
        *,
        runner: Callable[[], None] | None = None,
        timer: Callable[[], None] | None = None,
        stop: Callable[[str], None] | None = None,
        reload: Callable[[str], None] | None = None,
    ) -> None:
        super().listen(runner=runner, timer=timer, stop=stop, reload=reload)
        self._receive()

    @contextmanager
    def follow(self, execution_id: str) -> Iterator[Rest]:
        self._receive()
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

    def _receive(self) -> None:
        if self._receiving is None:
            self._receiving = asyncio.create_task(self.hints.hear(self._on_hint), name="hints")

    def _on_hint(self, hint: Hint) -> None:
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
        self._unsent.add(hint)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        """Send the first hint at once, and gather the hints that follow."""
        while self._unsent:
            batch, self._unsent = self._unsent, set()
            await self.hints.tell(batch)
            await asyncio.sleep(COALESCE_S)

    async def close(self) -> None:
        """Receive nothing more, and wait a moment until all hints are sent."""
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.wait((self._receiving,))
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_S):
                if self._sending is not None:
                    await self._sending
