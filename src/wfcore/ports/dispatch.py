"""Hints after commit. Losing one costs a polling delay, never work."""

from typing import Protocol


class Wakeup(Protocol):
    def runner(self) -> None:
        """Something may be due: look now."""

    def stop(self, execution_id: str) -> None:
        """That execution was moved from outside: stop what runs for it here."""

    def timer(self) -> None:
        """A deadline was set or moved: reconsider when to look next."""

    def events(self, execution_id: str) -> None:
        """The execution's log grew: wake those who follow it."""

    async def rest(self, execution_id: str, timeout_ms: int) -> None:
        """Return when the execution's log grew, or after *timeout_ms*."""
