"""The half of a server that answers: the application and uvicorn, with the engine at work."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager

import uvicorn

from adapters_http.app import HttpConfig, create_app
from adapters_http.config import Stage
from adapters_http.transport.connections import Room
from adapters_http.transport.uvicorn_protocol import (
    forgive_lost_clients,
    protocol_with,
    server_config,
)
from adapters_runtime.engine.engine import Engine
from wfcore.ports.runtime import StepRunner
from wfserver.compose import System
from wfserver.serving.engine import engine, notifier_of
from wfserver.serving.listening import settle_memory
from wfserver.sign_on import sign_on_with

_LAST_ANSWERS_S = 2
"""How long answers that have begun may go on after the drain."""

Ready = Callable[[], Coroutine[None, None, None]]


async def answer(
    system: System,
    runner: StepRunner,
    listener: socket.socket,
    ready: Ready,
    asked: asyncio.Event,
) -> None:
    """
    Answer at *listener* and run what is to be run, until *asked* to stop; *runner* is closed.

    *ready* is awaited once requests are answered; what it raises ends the server. Running steps
    are drained while requests are still answered, all but those that start something.
    """
    notifier, settings = notifier_of(system), system.settings
    async with engine(system, runner, notifier) as working:
        leaving = _Leaving(system, working)
        room = Room.of_process(
            settings.policy.places, settings.connections, settings.connections_each
        )
        protocol = protocol_with(room)
        http = HttpConfig(
            public_url=settings.public_url,
            trusted_proxies=settings.trusted_proxies,
            allowed_hosts=settings.allowed_hosts,
            ready=leaving.check_ready,
            gauges=lambda: {**working.gauges(), **protocol.ledger.gauges()},
            stage=leaving.stage,
            console=settings.console,
            login=system.login,
            mail=notifier if settings.mails_links else None,
            sign_on=sign_on_with(settings.sign_on, system.services.clock),
        )
        forgive_lost_clients(asyncio.get_running_loop())
        config = server_config(
            create_app(system.services, http),
            host=settings.host,
            port=settings.port,
            timeout_graceful_shutdown=_LAST_ANSWERS_S,
            log_config=None,
            http=protocol,
        )
        await _Server(config, ready, asked, leaving.leave).serve([listener])


class _Leaving:
    """What the server still does, and the way out."""

    def __init__(self, system: System, working: Engine) -> None:
        self._system = system
        self._working = working
        self._stage = Stage.SERVING

    def stage(self) -> Stage:
        return self._stage

    async def check_ready(self) -> None:
        """Raises `StoreUnavailable`, `NotReady`."""
        await self._system.services.store.ping()
        self._working.check()

    async def leave(self) -> None:
        """Drain; then nobody is kept waiting any longer."""
        self._stage = Stage.DRAINING
        await self._working.drain()
        self._stage = Stage.ENDING
        self._system.services.wakeup.release()


class _Server(uvicorn.Server):
    """uvicorn that leaves when it is *asked*, and says when it answers."""

    def __init__(
        self, config: uvicorn.Config, ready: Ready, asked: asyncio.Event, leave: Ready
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._asked = asked
        self._leave = leave

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """uvicorn would raise the signal again and end the process before the engine drained."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        settle_memory()

    async def main_loop(self) -> None:
        """Asked to stop before it was ready, it stops in order like at any other time."""
        saying = asyncio.create_task(self._ready())
        saying.add_done_callback(self._heard)
        leaving = asyncio.create_task(self._until_left())
        await super().main_loop()
        await leaving
        if not saying.cancel():
            saying.result()

    async def _until_left(self) -> None:
        try:
            await self._asked.wait()
            await self._leave()
        finally:
            self.should_exit = True

    def _heard(self, said: "asyncio.Task[None]") -> None:
        if not said.cancelled() and said.exception():
            self._asked.set()
