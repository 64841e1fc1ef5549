"""Serving: the ASGI application, the engine behind it, and signals, in one event loop."""

import asyncio
import ctypes
import gc
import resource
import signal
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

import uvicorn
import uvloop
from attrs import frozen

from adapters_http.app import HttpConfig, create_app
from adapters_http.protocol import server_config
from adapters_runtime.code_step import CodeStepRunner
from adapters_runtime.dispatcher import Dispatcher
from wfserver.compose import System, open_system
from wfserver.engine import engine, new_runner
from wfserver.isolation import IsolationReport, report, step_isolation
from wfserver.settings import Settings

_PR_SET_DUMPABLE = 4
_BACKLOG = 2_048
_LAST_ANSWERS_S = 5
"""How long open connections (event streams, say) may go on after SIGTERM."""


@frozen
class ServerInfo:
    """What is true once the socket answers."""

    url: str
    system: System
    runner: CodeStepRunner
    isolation: IsolationReport


def run(settings: Settings, on_ready: Callable[[ServerInfo], None]) -> None:
    """
    Serve until SIGTERM or SIGINT. *on_ready* is called once requests are answered.

    The process becomes undumpable: no other process of the same user reads its memory. It
    may open as many files as the system allows: each connection is one.

    Raises `OSError` when the port is taken, and what `open_system` raises.
    """
    with _listen(settings.host, settings.port) as listener:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        uvloop.run(_serve(settings, listener, on_ready))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


async def _serve(
    settings: Settings, listener: socket.socket, on_ready: Callable[[ServerInfo], None]
) -> None:
    async with open_system(settings) as system:
        runner = new_runner(system, listener.getsockname()[1])
        async with engine(system, runner) as dispatcher:
            url = settings.public_url or _own_url(listener)

            def gauges() -> Mapping[str, float]:
                return _gauges(settings, dispatcher)

            http = HttpConfig(public_url=settings.public_url, gauges=gauges)
            app = create_app(system.services, http)
            config = server_config(
                app,
                host=settings.host,
                port=settings.port,
                timeout_graceful_shutdown=_LAST_ANSWERS_S,
                log_config=None,
            )
            found = report(await runner.level(), step_isolation(settings))
            info = ServerInfo(url, system, runner, found)
            server = _Server(config, lambda: on_ready(info))
            server.obey(asyncio.get_running_loop())
            await server.serve([listener])


def _own_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _gauges(settings: Settings, dispatcher: Dispatcher) -> Mapping[str, float]:
    return {
        "wfcore_executions_running": dispatcher.running,
        "wfcore_places": settings.policy.places,
    }


def settle_memory() -> None:
    """
    What is loaded by now stays for good: the garbage collector need not look at it again, and
    less often at the rest: requests make few cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


class _Server(uvicorn.Server):
    """uvicorn, with signals that let the engine drain after it, and a word when it answers."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

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
        self._on_ready()
