"""
Serving, from the port to the last step: what is opened, in which order, and when it is ready.

How steps can be isolated is tried out by other processes; meanwhile this one loads the half that
answers, which takes longer. No step begins before that is found: `CodeStepRunner`.
"""

import asyncio
import ctypes
import resource
import socket
from collections.abc import Awaitable, Callable

import uvloop
from attrs import frozen

from adapters_runtime.code.runner import CodeStepRunner
from wfserver.compose import System, open_system
from wfserver.isolation import IsolationReport, report, step_isolation
from wfserver.serving.engine import new_runner
from wfserver.serving.shutdown import Stopping
from wfserver.settings import Settings

_PR_SET_DUMPABLE = 4
_BACKLOG = 2_048


@frozen
class ServerInfo:
    """What is true once the socket answers."""

    url: str
    system: System
    runner: CodeStepRunner
    isolation: IsolationReport


def run(settings: Settings, on_ready: Callable[[ServerInfo], None]) -> None:
    """
    Serve until SIGTERM or SIGINT; a second one ends the process. *on_ready* is called once
    requests are answered.

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
    port = listener.getsockname()[1]
    async with open_system(settings) as system:
        runner = new_runner(system, port)
        level = asyncio.create_task(runner.level())

        async def ready() -> None:
            found = report(await level, step_isolation(settings))
            url = settings.public_url or _own_url(listener)
            on_ready(ServerInfo(url, system, runner, found))

        try:
            answer = await asyncio.to_thread(_load_the_rest)
            stopping = Stopping(settings.drain_ms / 1_000)
            stopping.obey()
            await answer(system, runner, listener, ready, stopping.asked)
        finally:
            level.cancel()
            await runner.close()


def _load_the_rest() -> "Callable[..., Awaitable[None]]":
    """What answers. Imported here because that is most of a start, and the probe needs no CPU."""
    from wfserver.serving.server import answer

    return answer


def _own_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
