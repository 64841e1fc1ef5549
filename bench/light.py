"""Light executions, of which nothing leaves the engine: what one costs, and many steps of one."""

import time
from collections.abc import Callable, Sequence

from attrs import frozen

from bench.http import LIGHT_STEPS, Seeded, call, executions, rotating
from bench.load import request
from bench.servers import Server

SINGLE = 200
"""So many delays one after another: a wake-up that is lost shows among them."""


@frozen
class Light:
    """Of one step: CPU time with many clients, p50 with one; many steps; single delays. All ms."""

    cpu_ms: float
    p50_ms: float
    row_ms: float
    delays_ms: Sequence[float]


def starts(seeded: Seeded) -> Callable[[], bytes]:
    """Requests that each start an execution of one step and are answered when it has ended."""
    path = f"/api/v1/workflows/{seeded.workflows['light-1']}/executions?wait=30"
    return rotating([request("POST", path, key, b'{"inputs":{}}') for key in seeded.keys])


def measured(server: Server, seeded: Seeded, clients: int, seconds: float) -> Light:
    alone = executions(server, seeded, "light-1", 1, seconds / 2).p50_ms
    cpu = executions(server, seeded, "light-1", clients, seconds).cpu_ms
    row = executions(server, seeded, f"light-{LIGHT_STEPS}", 1, seconds / 2).p50_ms
    return Light(cpu, alone, row, sorted(delay_ms(server, seeded) for _ in range(SINGLE)))


def delay_ms(server: Server, seeded: Seeded) -> float:
    """How long one delay of a millisecond takes, the start included."""
    path = f"/api/v1/workflows/{seeded.workflows['delay-1']}/executions?wait=30"
    began = time.perf_counter()
    run = call(server, "POST", path, seeded.keys[0], {"inputs": {}})
    assert run["status"] == "COMPLETED", run
    return (time.perf_counter() - began) * 1_000
