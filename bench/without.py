"""
What each cleverness buys: CPU time and rate of requests or transitions without it, in relation to
those with it.

Two servers (for a transition two processes) run side by side, one of them with a part replaced by
its plain form; they get the same load in turns, and the ratio of the turn in the middle counts, so
that a busy moment meets both. `docs/performance.md` says what follows from the figures.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from attrs import frozen

from bench import http
from bench import writer as transitions
from bench.load import load
from bench.parts import PARTS
from bench.servers import Server

TURNS = 9
CLIENTS = 32


def _cpu_s(server: Server) -> float:
    """CPU seconds of all threads, to the nanosecond."""
    tasks = Path(f"/proc/{server.process.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


@frozen
class Cost:
    """CPU time of one request or transition, and how many there were in a second."""

    cpu_us: float
    per_second: float


def _requests(server: Server, seconds: float, ask: Callable[[], bytes]) -> Cost:
    before = _cpu_s(server)
    done = load(server.port, CLIENTS, seconds, ask)
    if done.bad:
        raise SystemExit(f"{done.bad} requests failed")
    return Cost((_cpu_s(server) - before) / done.good * 1e6, done.per_second)


def _transitions(name: str, seconds: float) -> Cost:
    argv = [sys.executable, "-m", "bench.without", name, str(seconds)]
    told = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return Cost(*map(float, told.split()))


@frozen
class Bought:
    """With the part: CPU µs each. Without it: CPU time and rate as parts of those with it."""

    cpu_us: float
    cpu: float
    rate: float


def _in_turns(whole: Callable[[], Cost], without: Callable[[], Cost]) -> Bought:
    turns = [(whole(), without()) for _ in range(TURNS)]
    return Bought(
        median(one.cpu_us for one, _ in turns),
        median(other.cpu_us / one.cpu_us for one, other in turns),
        median(other.per_second / one.per_second for one, other in turns),
    )


def measured(name: str, seconds: float, folder: Path) -> Iterator[tuple[str, Bought]]:
    """What the part buys under each of its loads."""
    part = PARTS[name]
    with ExitStack() as stack:
        servers, asks = [], []
        for left_out in ("", name) if set(part.loads) & {"poll", "start"} else ():
            data = folder / (left_out or "whole").replace(" ", "-")
            seeded = http.seed(data)
            server = stack.enter_context(http.http_alone(data, WITHOUT=left_out))
            servers.append(server)
            asks.append({"poll": http.polls(server, seeded), "start": http.starts(seeded)})
            for ask in asks[-1].values():
                load(server.port, CLIENTS, seconds / 4, ask)
        for kind in part.loads:
            if kind == "transition":
                found = _in_turns(
                    lambda: _transitions("", seconds), lambda: _transitions(name, seconds)
                )
            else:
                found = _in_turns(
                    *(
                        lambda server=server, ask=ask[kind]: _requests(server, seconds, ask)
                        for server, ask in zip(servers, asks, strict=True)
                    )
                )
            yield kind, found


async def _transition(seconds: float) -> Cost:
    before = time.process_time()
    rate = await transitions.transitions(seconds, CLIENTS)
    return Cost((time.process_time() - before) / (rate * seconds) * 1e6, rate)


if __name__ == "__main__":
    if sys.argv[1]:
        PARTS[sys.argv[1]].without()
    cost = asyncio.run(_transition(float(sys.argv[2])))
    print(cost.cpu_us, cost.per_second)
