"""Server processes to measure: the bundled server, its HTTP part alone, and the yardstick."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

RESTED_S = 60
"""How long after a load a server may keep its memory."""
TICKS = os.sysconf("SC_CLK_TCK")


@frozen
class Server:
    """A running process and its port."""

    port: int
    process: "subprocess.Popen[bytes]"
    ready_s: float

    def cpu_s(self) -> float:
        """CPU seconds of the process and of the children it has waited for."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, stat[11:15])) / TICKS

    def memory_mb(self) -> float:
        """Resident memory of the process alone."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def rested_mb(self, most_mb: float) -> float:
        """Resident memory once it is *most_mb* or less; what it is if it never gets there."""
        until = time.perf_counter() + RESTED_S
        while (found := self.memory_mb()) > most_mb and time.perf_counter() < until:
            time.sleep(0.5)
        return found


@contextmanager
def running(
    argv: list[str],
    path: str = "/healthz",
    *,
    program: Path | str = sys.executable,
    **env: str,
) -> Iterator[Server]:
    """*argv* with `{port}` filled in, once it answers *path*; ended on leaving."""
    port = free_port()
    command = [program, *(part.format(port=port) for part in argv)]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _await_answer(process, f"http://127.0.0.1:{port}{path}", began + 30)
        yield Server(port, process, time.perf_counter() - began)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _await_answer(process: "subprocess.Popen[bytes]", url: str, deadline: float) -> None:
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            if process.poll() is not None or time.perf_counter() > deadline:
                raise
            time.sleep(0.01)


async def _serve_http_alone(data: str, port: int) -> None:
    """The application without worker and scheduler: what is accepted stays PENDING."""
    import uvicorn

    from adapters_http.app import create_app
    from adapters_http.transport.uvicorn_protocol import server_config
    from wfserver.compose import open_system
    from wfserver.serving.memory import settle_memory
    from wfserver.settings.record import settings_from

    async with open_system(settings_from(data=data)) as system:
        app = create_app(system.services)
        config = server_config(app, host="127.0.0.1", port=port, log_config=None)
        settle_memory()
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    import uvloop

    from bench.parts import leave_out

    leave_out()
    uvloop.run(_serve_http_alone(sys.argv[1], int(sys.argv[2])))
