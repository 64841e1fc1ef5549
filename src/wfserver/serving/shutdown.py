"""
How a server is asked to stop, and that it ends whatever hangs. Decision 58.

The first signal asks, a second one ends the process there and then. From the first one on a
watchdog that needs neither the event loop nor the interpreter's lock counts down: should a task,
a thread or a close hang, it shows on stderr where every thread was, and ends the process with
status 1.
"""

import asyncio
import faulthandler
import logging
import os
import signal
from types import FrameType

log = logging.getLogger("wfcore.server")

CLOSING_S = 5.0
"""How long the rest of a stop may take at most, after the drain."""
_WORDS_S = 0.5


class Stopping:
    """`asked` is set once this process is to stop. *drain_s*: how long running steps may go on."""

    def __init__(self, drain_s: float) -> None:
        self.asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._within_s = drain_s + CLOSING_S
        self._signalled = False

    def obey(self) -> None:
        """
        Stop at SIGTERM and SIGINT.

        Not by the event loop's own handlers: these here run also where the loop does not turn.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._signalled:
            os._exit(128 + number)
        self._signalled = True
        faulthandler.dump_traceback_later(self._within_s, exit=True)
        self._loop.call_soon_threadsafe(self._ask)

    def _ask(self) -> None:
        self.asked.set()
        log.info("stopping", extra={"at_most_s": self._within_s})
        self._loop.call_later(self._within_s - _WORDS_S, _name_what_hangs)


def _name_what_hangs() -> None:
    names = sorted(task.get_name() for task in asyncio.all_tasks())
    log.error("the stop takes too long; ending", extra={"tasks": names})
