"""
`python -m bench.soak [MINUTES]`: does the memory of a server under load come to rest?

Starts, polls and triggers for as long as is asked, 60 minutes by default; a line every ten
seconds. Exit status 1: the last third took more than a twentieth above the third before it.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import http
from bench.load import load
from bench.servers import Server
from tests.proofs.record import note

CLIENTS = 8
TURN_S = 2.5
GROWTH = 1.05
POINTS = 120
"""The most points of the curve on the record."""


def soak(server: Server, seeded: http.Seeded, minutes: float) -> Sequence[float]:
    """Resident memory in MB, at the end of every turn of each kind of load."""
    began, series = time.perf_counter(), list[float]()
    polls = http.polls(server, seeded)
    while (passed := time.perf_counter() - began) < minutes * 60:
        done = [
            http.executions(server, seeded, name, CLIENTS, TURN_S).per_second
            for name in ("bash-3", "python-1")
        ]
        load(server.port, CLIENTS, TURN_S, polls)
        load(server.port, CLIENTS, TURN_S, http.triggers(seeded))
        series.append(server.memory_mb())
        rates = ", ".join(f"{rate:.0f}/s" for rate in done)
        print(f"{passed:7.0f} s  {series[-1]:6.1f} MB  executions {rates}", flush=True)
    return series


def has_come_to_rest(series: Sequence[float]) -> bool:
    """Whether the last third took hardly more than the one before it."""
    third = max(len(series) // 3, 1)
    return max(series[-third:]) <= GROWTH * max(series[-2 * third : -third] or series)


def record(began: float, minutes: float, series: Sequence[float], rests: bool) -> None:
    """Put the run on the record of long runs, if runs are recorded."""
    each = -(-len(series) // POINTS)
    points = [max(series[at : at + each]) for at in range(0, len(series), each)]
    broken = () if rests else ("memory still grows",)
    note("soak", 0, began, {"minutes": minutes}, broken, [round(one, 1) for one in points])


def main() -> int:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        seeded = http.seed(Path(folder))
        with http.whole(Path(folder)) as server:
            series = soak(server, seeded, minutes)
    rests = has_come_to_rest(series)
    record(began, minutes, series, rests)
    print(f"{series[0]:.1f} MB to {series[-1]:.1f} MB, {'at rest' if rests else 'STILL GROWING'}")
    return 0 if rests else 1


if __name__ == "__main__":
    sys.exit(main())
