"""
The loops of a server, which continue after any failure, and report when they do not.

A loop consists of rounds. A round that raises is logged and tried again after a pause. Only `stop`,
or a cancellation of the loop's own task, ends a loop.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from math import inf

from attrs import define, field

from adapters_runtime.tasks import is_cancelled
from wfcore.errors import StoreUnavailable, Unreadable
from wfcore.rules.backoff import Backoff
from wfcore.time import EpochMs
from wfcore.usecases.unit_of_work import DutyFailure

log = logging.getLogger("wfcore.loops")

BACKOFF = Backoff(first=0.25, longest=5.0)
"""The seconds before the next round, after a round that failed."""
REPEAT_S = 60.0
"""The time between two lines of a loop on a store that stays unavailable."""


async def wait_for(event: asyncio.Event, seconds: float) -> bool:
    """
    Wait until *event* is set, for *seconds* at most, and clear it.

    Returns whether the event was set.
    """
    was_set = True

    def end() -> None:
        nonlocal was_set
        was_set = event.is_set()
        event.set()

    late = asyncio.get_running_loop().call_later(max(seconds, 0), end)
    try:
        await event.wait()
    finally:
        late.cancel()
    event.clear()
    return was_set


@define(eq=False)
class Loop:
    """
    A loop that calls `round`, which does what is due and returns how many seconds to sleep.

    `due` ends that sleep early. `oldest_due`: when the loop's oldest work is or was due, as of its
    last round, or None if it has no work. `failure`: the type of the error of the last round.
    `hinted`: whether `due` ended the sleep before this round.
    """

    name: str
    round: Callable[[], Awaitable[float]]
    due: asyncio.Event
    oldest_due: EpochMs | None = None
    failure: str | None = None
    running: bool = False
    stopping: bool = False
    hinted: bool = True
    at_rest: asyncio.Event = field(factory=asyncio.Event)
    """Set while the loop does not run."""
    _stop: asyncio.Event = field(factory=asyncio.Event)
    _busy_since: float | None = None
    _failures: int = 0
    _logged_at: float = -inf

    def __attrs_post_init__(self) -> None:
        self.at_rest.set()

    async def run(self) -> None:
        """Run round after round, until `stop`."""
        self.running = True
        self.at_rest.clear()
        try:
            while not self.stopping:
                pause = await self._once()
                self.hinted = await wait_for(self._stop if self.failure else self.due, pause)
        finally:
            self.running = False
            self.at_rest.set()

    def stop(self) -> None:
        """Begin no further round. The present one may end."""
        self.stopping = True
        self._stop.set()
        self.due.set()

    @property
    def up(self) -> bool:
        """Whether the loop runs, and its last round did not fail."""
        return self.running and self.failure is None

    def overdue_s(self, now: EpochMs) -> float:
        """The seconds for which the oldest work has been due."""
        return 0.0 if self.oldest_due is None else max(now - self.oldest_due, 0) / 1_000

    def trouble(self, bound_s: float) -> str | None:
        """
        Why the loop does not do its work, or None if the loop does. A round may take up to
        *bound_s*.
        """
        if not self.running:
            return f"the {self.name} does not run"
        if self.failure is not None:
            return f"the {self.name} is down ({self.failure})"
        since = self._busy_since
        if since is not None and asyncio.get_running_loop().time() - since > bound_s:
            return f"the {self.name} is stuck"
        return None

    async def _once(self) -> float:
        self._busy_since = asyncio.get_running_loop().time()
        try:
            pause = await self.round()
        except asyncio.CancelledError as cancelled:
            if is_cancelled():
                raise
            return self._failed(cancelled)
        except Exception as error:
            return self._failed(error)
        finally:
            self._busy_since = None
        if self.failure is not None:
            log.info("a loop is up again", extra={"loop": self.name})
        self.failure, self._failures = None, 0
        return pause

    def _failed(self, error: BaseException) -> float:
        """Log *error*, with a trace if its type is new; returns how many seconds to wait."""
        self._failures += 1
        pause, now = BACKOFF.wait(self._failures), asyncio.get_running_loop().time()
        kind = type(error).__name__
        about = {"loop": self.name, "error": kind, "again_in_s": pause}
        if isinstance(error, StoreUnavailable):
            if kind != self.failure or now >= self._logged_at + REPEAT_S:
                self._logged_at = now
                log.warning("store unavailable", extra={**about, "detail": error.detail})
        elif kind != self.failure:
            log.error("a loop failed", extra=about, exc_info=error)
        else:
            log.error("a loop failed again", extra=about)
        self.failure = kind
        return pause


class FailureLog:
    """The `Report` of a loop. Logs each failure once, until a round passes without that failure."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._known: set[tuple[str, str, str]] = set()
        self.failed: list[DutyFailure] = []

    def begin(self) -> None:
        """Begin a round."""
        self._known = {_as_known(one) for one in self.failed}
        self.failed = []

    def __call__(self, failed: DutyFailure) -> None:
        self.failed.append(failed)
        if _as_known(failed) in self._known:
            return
        error = failed.error
        about = {"loop": self._name, "kind": failed.kind, "id": failed.id}
        about["error"] = type(error).__name__
        is_known = isinstance(error, Unreadable | StoreUnavailable)  # no defect: needs no trace
        if isinstance(error, StoreUnavailable):
            about["detail"] = error.detail
        log.error(
            "skipped in this maintenance pass", extra=about, exc_info=None if is_known else error
        )


def _as_known(failed: DutyFailure) -> tuple[str, str, str]:
    return failed.kind, failed.id, type(failed.error).__name__
