"""
Serving: what is opened in which order, when the server is ready, and how it stops.

Child processes probe the isolation of steps. Meanwhile this process loads the HTTP half, which
takes longer. No step begins before the level of isolation is known: see `CodeStepRunner`.

The first signal stops the server in order, a second signal ends the process at once. The first
signal also starts a watchdog that needs neither the event loop nor the interpreter's lock: if a
task, a thread or a close hangs, it prints the stack of every thread on stderr and ends the process
with status 1.
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
from contextlib import AbstractAsyncContextManager, suppress
from types import FrameType
from typing import TYPE_CHECKING

import uvloop
from attrs import frozen

from adapters_runtime.code.runner import CodeStepRunner
from wfcore.errors import StoreUnavailable
from wfcore.ports.runtime import StepRunner
from wfcore.rules.auth.passkeys import lost_passkeys
from wfcore.usecases.accounts.passkeys import all_passkeys, party_of
from wfcore.usecases.services import Services
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
"""The longest time for a stop, after the drain."""
_WORDS_S = 0.5


class Stopping:
    """
    The stop of this process; `requested` is set at its beginning. *drain_s*: time for running
    steps.
    """

    def __init__(self, drain_s: float) -> None:
        self.requested = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._within_s = drain_s + CLOSING_S
        self._signalled = self._begun = False

    def obey(self) -> None:
        """
        Stop at SIGTERM and SIGINT.

        The handlers are set with `signal.signal` and not in the event loop, so that they run even
        if the loop hangs.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def heed(self, leave: socket.socket) -> None:
        """Stop also once *leave* is readable; one signal may come as well."""
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
            self._loop.call_soon_threadsafe(self._request)

    def _request(self) -> None:
        self.requested.set()
        log.info("stopping", extra={"at_most_s": self._within_s})
        self._loop.call_later(self._within_s - _WORDS_S, _name_what_hangs)


def _name_what_hangs() -> None:
    names = sorted(task.get_name() for task in asyncio.all_tasks())
    log.error("the stop takes too long; ending", extra={"tasks": names})


@frozen
class ServerInfo:
    """A server that answers: its URL and its parts."""

    url: str
    system: System
    runner: StepRunner
    isolation: IsolationReport | None
    """None: the runner is not the bundled one, and isolates steps in its own way."""


def run(
    settings: Settings,
    on_ready: Callable[[ServerInfo], None],
    opened: AbstractAsyncContextManager[System] | None = None,
    process: "ServerProcess | None" = None,
) -> None:
    """
    Serve until SIGTERM or SIGINT; a second signal ends the process. *on_ready* is called once
    requests are answered. *opened*: `open_system(settings, …)` with parts of the caller.
    *process*: this child among several; None: there is only this process.

    The process becomes undumpable, so that other processes of the same user cannot read its memory.
    Its limit on open files is raised as far as the system allows, one for each connection.

    Raises `OSError` if the port is taken, and the errors of `open_system`.
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
                await _warn_of_lost_passkeys(system.services)

        try:
            answer = await asyncio.to_thread(_load_the_rest)
            stopping = Stopping(settings.drain_ms / 1_000)
            stopping.obey()
            if process is not None:
                stopping.heed(process.leave)
            await answer(system, runner, listeners, ready, stopping.requested, process)
        finally:
            level.cancel()
            await runner.close()


async def _warn_of_lost_passkeys(services: Services) -> None:
    """Log how many passkeys another WFCORE_PUBLIC_URL has left behind. SR-7."""
    with suppress(StoreUnavailable):
        lost = lost_passkeys(await all_passkeys(services), party_of(services))
        if lost is not None:
            log.warning("passkeys: %s", lost)


async def _isolation_of(runner: StepRunner, settings: Settings) -> IsolationReport | None:
    if not isinstance(runner, CodeStepRunner):
        return None
    return report(await runner.level(), step_isolation(settings))


def _load_the_rest() -> "Callable[..., Awaitable[None]]":
    """`server.answer`. The import is most of a start; meanwhile the probe of isolation runs."""
    from wfserver.serving.server import answer

    return answer


def _own_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
