"""Hints between the parts of one process: who sleeps on what, and who wakes them."""

import asyncio
from collections.abc import Callable

POLL_MS = 500
"""Followers look again at least this often: other processes do not wake them."""


class Wakeups:
    """The `Wakeup` port for one event loop: worker, scheduler and callback loop listen."""

    def __init__(self) -> None:
        self._runner: list[Callable[[], None]] = []
        self._timer: list[Callable[[], None]] = []
        self._stop: list[Callable[[str], None]] = []
        self._look: list[Callable[[str], None]] = []
        self._followers: dict[str, set[asyncio.Future[None]]] = {}

    def listen(
        self,
        *,
        runner: Callable[[], None] | None = None,
        timer: Callable[[], None] | None = None,
        stop: Callable[[str], None] | None = None,
        look: Callable[[str], None] | None = None,
    ) -> None:
        self._runner += [runner] if runner else []
        self._timer += [timer] if timer else []
        self._stop += [stop] if stop else []
        self._look += [look] if look else []

    def runner(self) -> None:
        for hear in self._runner:
            hear()

    def timer(self) -> None:
        for hear in self._timer:
            hear()

    def stop(self, execution_id: str) -> None:
        for hear in self._stop:
            hear(execution_id)

    def look(self, execution_id: str) -> None:
        for hear in self._look:
            hear(execution_id)

    def events(self, execution_id: str) -> None:
        for follower in self._followers.pop(execution_id, ()):
            if not follower.done():
                follower.set_result(None)

    def release(self) -> None:
        """Wake all followers: who waits looks again, and sees that this process ends."""
        for execution_id in list(self._followers):
            self.events(execution_id)

    async def rest(self, execution_id: str, timeout_ms: int) -> None:
        follower: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._followers.setdefault(execution_id, set()).add(follower)
        try:
            await asyncio.wait((follower,), timeout=min(timeout_ms, POLL_MS) / 1_000)
        finally:
            waiting = self._followers.get(execution_id)
            if waiting is not None:
                waiting.discard(follower)
                if not waiting:
                    del self._followers[execution_id]
