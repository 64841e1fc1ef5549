"""Clients that ask for much and read nothing: what they cost the server in memory."""

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

from bench.http import Seeded, call
from bench.load import request
from bench.servers import Server

CLIENTS = 1_000
ASKS = 5
LOOKS = 100
PAUSE_S = 0.05


def slow_readers_mb(server: Server, seeded: Seeded) -> float:
    """
    Resident memory beyond idle, at most, while `CLIENTS` clients hang on; each has asked
    `ASKS` times for a result of a megabyte and reads nothing.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    start = f"/api/v1/workflows/{seeded.workflows['large']}/executions?wait=30"
    run = call(server, "POST", start, seeded.keys[0], {"inputs": {}})
    path = f"/api/v1/executions/{run['executionId']}/result"
    idle = server.memory_mb()
    with ExitStack() as stack:
        for n in range(CLIENTS):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.connect(("127.0.0.1", server.port))
            client.sendall(request("GET", path, seeded.keys[n % len(seeded.keys)]) * ASKS)
        return max(_looks(server)) - idle


def _looks(server: Server) -> Iterator[float]:
    for _ in range(LOOKS):
        yield server.memory_mb()
        time.sleep(PAUSE_S)
