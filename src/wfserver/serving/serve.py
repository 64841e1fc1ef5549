"""
Serving, from the port to the last step: what is opened, in which order, and when it is ready.

How steps can be isolated is tried out by other processes; meanwhile this one loads the half that
answers, which takes longer. No step begins before that is found: `CodeStepRunner`.

The first signal asks the server to stop, a second one ends the process there and then. From the
first one on a watchdog that needs neither the event loop nor the interpreter's lock counts down:
should a task, a thread or a close hang, it shows on stderr where every thread was, and ends the
process with status 1.
"""

import asyncio
import ctypes
import faulthandler
import logging
import os
import resource
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import FrameType
from typing import TYPE_CHECKING

import uvloop
from attrs import frozen

from adapters_runtime.code.runner import CodeStepRunner
from wfcore.ports.runtime import StepRunner
from wfserver.compose import System, open_system
from wfserver.doctor.isolation import IsolationReport, report
from wfserver.serving.engine import runner_of
from wfserver.serving.sockets import close, listen
from wfserver.settings.isolation import step_isolation
from wfserver.settings.record import Settings

if TYPE_CHECKING:
    from wfserver.serving.processes import ServerProcess

_PR_SET_DUMPABLE = 4


log = logging.getLogger("wfcore.server")

CLOSING_S = 5.0
"""How long the rest of a stop may take at most, after the drain."""
_WORDS_S = 0.5


class Stopping:
    """
    `asked` is set once this process is to stop. *drain_s*: how long running steps may continue.
    """

    def __init__(self, drain_s: float) -> None:
        self.asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._within_s = drain_s + CLOSING_S
        self._signalled = self._begun = False

    def obey(self) -> None:
        """
        Stop at SIGTERM and SIGINT.

        Not by the event loop's own handlers: these here run also where the loop does not turn.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def heed(self, leave: socket.socket) -> None:
        """Stop once *leave* is readable, too; one signal may come on top."""
        self._loop.add_reader(leave, self._left, leave)

    def _left(self, leave: socket.socket) -> None:
        self._loop.remove_reader(leave)
        self._begin()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._signalled:
            os._exit(128 + number)
        self._signalled = True
        self._begin()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            faulthandler.dump_traceback_later(self._within_s, exit=True)
            self._loop.call_soon_threadsafe(self._ask)

    def _ask(self) -> None:
        self.asked.set()
        log.info("stopping", extra={"at_most_s": self._within_s})
        self._loop.call_later(self._within_s - _WORDS_S, _name_what_hangs)


def _name_what_hangs() -> None:
    names = sorted(task.get_name() for task in asyncio.all_tasks())
    log.error("the stop takes too long; ending", extra={"tasks": names})


@frozen
class ServerInfo:
    """What is true once the socket answers."""

    url: str
    system: System
    runner: StepRunner
    isolation: IsolationReport | None
    """None: the runner is not the bundled one, and knows itself how steps are kept apart."""


def run(
    settings: Settings,
    on_ready: Callable[[ServerInfo], None],
    opened: AbstractAsyncContextManager[System] | None = None,
    process: "ServerProcess | None" = None,
) -> None:
    """
    Serve until SIGTERM or SIGINT; a second one ends the process. *on_ready* is called once
    requests are answered. *opened*: `open_system(settings, …)` with parts of one's own.
    *process*: which one of several this is; None: the only one.

    The process becomes undumpable: no other process of the same user reads its memory. It
    may open as many files as the system allows: each connection is one.

    Raises `OSError` when the port is taken, and what `open_system` raises.
    """
    listeners = process.listeners if process else listen(settings.host, settings.port)
    try:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        uvloop.run(_serve(settings, listeners, on_ready, opened, process))
    finally:
        close(listeners)


async def _serve(
    settings: Settings,
    listeners: tuple[socket.socket, ...],
    on_ready: Callable[[ServerInfo], None],
    opened: AbstractAsyncContextManager[System] | None,
    process: "ServerProcess | None",
) -> None:
    port = listeners[0].getsockname()[1]
    if process is not None:
        settings = process.share(settings)
    hints = process.hints if process else None
    async with opened or open_system(settings, hints=hints) as system:
        runner = runner_of(system, port)
        level = asyncio.create_task(_isolation_of(runner, settings))

        async def ready() -> None:
            url = settings.public_url or _own_url(listeners[0])
            info = ServerInfo(url, system, runner, await level)
            if process is None or await process.all_answer():
                on_ready(info)

        try:
            answer = await asyncio.to_thread(_load_the_rest)
            stopping = Stopping(settings.drain_ms / 1_000)
            stopping.obey()
            if process is not None:
                stopping.heed(process.leave)
            await answer(system, runner, listeners, ready, stopping.asked, process)
        finally:
            level.cancel()
            await runner.close()


async def _isolation_of(runner: StepRunner, settings: Settings) -> IsolationReport | None:
    if not isinstance(runner, CodeStepRunner):
        return None
    return report(await runner.level(), step_isolation(settings))


def _load_the_rest() -> "Callable[..., Awaitable[None]]":
    """What answers. Imported here because that is most of a start, and the probe needs no CPU."""
    from wfserver.serving.server import answer

    return answer


def _own_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
