"""
What servers do side by side, in turns: light executions, many steps in a row, polls, approvals.

All of them run all the time and share the machine; only one of them is asked at a time.
"""

import os
import platform
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench.load import Load, load
from bench.peers.doors import STEPS, Ask, Door, opened
from bench.servers import TICKS

CLIENTS = 16
TURNS = 7
SECONDS = 1.5
"""Of each load in each turn."""
WARM_S = 0.3
APPROVALS = 5
"""In each turn."""

Figures = Mapping[str, float]


def measured() -> Mapping[str, Any]:
    """Of each server the median of the turns. `ratio`: wfcore's rate to its own in a turn."""
    turns: dict[str, list[Figures]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as doors:
        busy = os.getloadavg()[0]
        for _ in range(TURNS):
            of_turn = in_turn(doors)
            first = of_turn[doors[0].title]["per_second"]
            for title, figures in of_turn.items():
                turns[title].append({**figures, "ratio": first / figures["per_second"]})
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
            "python": platform.python_version(),
            "busy": round(busy, 1),
            "clients": CLIENTS,
            "steps": STEPS,
            "servers": [{"title": door.title, **middle(turns[door.title])} for door in doors],
        }


def in_turn(doors: Collection[Door]) -> Mapping[str, Figures]:
    """One turn: each load at one server after another, before the next load."""
    found: dict[str, dict[str, float]] = {door.title: {} for door in doors}
    for door in doors:
        many, cpu_ms = loaded(door, CLIENTS, door.steps(1))
        found[door.title] |= {"per_second": many.per_second, "cpu_ms": cpu_ms}
    for door in doors:
        found[door.title]["p50_ms"] = loaded(door, 1, door.steps(1))[0].percentile(0.5)
    for door in doors:
        found[door.title]["row_ms"] = loaded(door, 1, door.steps(STEPS))[0].percentile(0.5)
    for door in doors:
        polls, cpu_ms = loaded(door, CLIENTS, door.polls())
        found[door.title] |= {"polls_per_second": polls.per_second, "poll_cpu_ms": cpu_ms}
    for door in doors:
        found[door.title]["approval_ms"] = median(approval_ms(door) for _ in range(APPROVALS))
    return found


def middle(turns: Collection[Figures]) -> Figures:
    names = next(iter(turns))
    return {name: round(median(turn[name] for turn in turns), 3) for name in names}


def loaded(door: Door, clients: int, ask: Ask) -> tuple[Load, float]:
    """A load of which nothing is refused, and the CPU time of one request in ms."""
    door.hang_up()
    load(door.port, clients, WARM_S, ask)
    before = cpu_s(door.processes)
    found = load(door.port, clients, SECONDS, ask)
    used = cpu_s(door.processes) - before
    if found.bad:
        raise SystemExit(f"{door.title}: {found.bad} of {found.bad + found.good} requests failed")
    return found, used / found.good * 1_000


def approval_ms(door: Door) -> float:
    """From a decision until its caller has seen the end."""
    decide = door.ask()
    began = time.perf_counter()
    decide()
    return (time.perf_counter() - began) * 1_000


def cpu_s(processes: Collection[int]) -> float:
    """CPU seconds of processes, of all below them, and of those that they have waited for."""
    parents, used = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            facts = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        pid = int(path.parent.name)
        parents[pid], used[pid] = int(facts[1]), sum(map(int, facts[11:15])) / TICKS

    def counts(pid: int) -> bool:
        return pid in processes or (pid in parents and counts(parents[pid]))

    return sum(seconds for pid, seconds in used.items() if counts(pid))
