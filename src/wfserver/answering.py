"""The half of a server that answers: the application and uvicorn, with the engine at work."""

import asyncio
import signal
import socket
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager

import uvicorn

from adapters_http.app import HttpConfig, create_app
from adapters_http.protocol import server_config
from adapters_runtime.code_step import CodeStepRunner
from adapters_runtime.dispatcher import Dispatcher
from wfserver.collecting import settle_memory
from wfserver.compose import System
from wfserver.engine import engine
from wfserver.settings import Settings

_LAST_ANSWERS_S = 5
"""How long open connections (event streams, say) may go on after SIGTERM."""

Ready = Callable[[], Coroutine[None, None, None]]


async def answer(
    system: System, runner: CodeStepRunner, listener: socket.socket, ready: Ready
) -> None:
    """
    Answer at *listener* and run what is to be run, until SIGTERM or SIGINT; *runner* is closed.

    *ready* is awaited once requests are answered; what it raises ends the server.
    """
    settings = system.settings
    async with engine(system, runner) as dispatcher:

        def gauges() -> Mapping[str, float]:
            return _gauges(settings, dispatcher)

        http = HttpConfig(public_url=settings.public_url, gauges=gauges)
        config = server_config(
            create_app(system.services, http),
            host=settings.host,
            port=settings.port,
            timeout_graceful_shutdown=_LAST_ANSWERS_S,
            log_config=None,
        )
        server = _Server(config, ready)
        server.obey(asyncio.get_running_loop())
        await server.serve([listener])


def _gauges(settings: Settings, dispatcher: Dispatcher) -> Mapping[str, float]:
    return {
        "wfcore_executions_running": dispatcher.running,
        "wfcore_places": settings.policy.places,
    }


class _Server(uvicorn.Server):
    """uvicorn, with signals that let the engine drain after it, and a word when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Ready) -> None:
        super().__init__(config)
        self._ready = ready

    def obey(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop at SIGTERM and SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)

    def _stop(self) -> None:
        self.should_exit = True

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
        await super().main_loop()
        if not saying.cancel():
            saying.result()

    def _heard(self, said: "asyncio.Task[None]") -> None:
        if not said.cancelled() and said.exception():
            self._stop()
