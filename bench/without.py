"""
What each cleverness buys: CPU time and rate of requests or transitions without it, in relation to
those with it.

Two servers (for a transition two processes) run side by side, one of them with a part replaced by
its plain form; they get the same load in turns, and the ratio of the turn in the middle counts, so
that a busy moment meets both. `docs/performance.md` says what follows from the figures.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import attrs
from attrs import frozen

from adapters_http import dispatch
from adapters_http.body import Answers
from adapters_store.sqlite import execution_rows, writer
from adapters_store.sqlite.read_cache import Cache, Reads
from adapters_store.sqlite.statements import Batcher, Writes, perform
from adapters_store.sqlite.writer import Writer
from bench import http
from bench import writer as transitions
from bench.load import load
from bench.servers import Server
from wfcore.model import execution
from wfcore.rules.auth import api_key
from wfcore.rules.execution import fold, fold_steps, start
from wfserver.serving import memory

TURNS = 9
CLIENTS = 32


def _group_commit() -> None:
    """Each unit of work has a transaction and a flush of its own."""
    together = Writer._carry_out

    def apart(self: Writer, batch: Sequence[Any]) -> Any:
        *others, last = [together(self, [job]) for job in batch]
        for done in others:
            self._report(done)
        return last

    Writer._carry_out = apart  # type: ignore[method-assign]


def _waiting_for_company() -> None:
    """Each job goes to the writer in the turn in which it came."""
    writer.QUIET_TURNS = 0


def _statements_of_many_rows() -> None:
    """Each row is a statement."""

    def one_by_one(cursor: Any, units: Sequence[Writes]) -> bool:
        for unit in units:
            perform(cursor, unit.writes)
        return True

    writer.perform_together = one_by_one  # type: ignore[assignment]


def _decoded_records() -> None:
    """Every record is read and decoded again."""
    Cache.keep = lambda self, table, key, known: None  # type: ignore[method-assign]


def _following_own_commits() -> None:
    """A commit of this process is treated as one of another process."""
    committed = Reads.committed
    Reads.committed = lambda self, beat, *_: committed(self, beat, (), False)  # type: ignore[method-assign]


def _one_snapshot_a_turn() -> None:
    """Each read has a transaction of its own."""
    one = Reads._one

    def alone(self: Reads, fetch: Any, key: Any) -> Any:
        self._next_turn()
        return one(self, fetch, key)

    Reads._one = alone  # type: ignore[method-assign]


def _only_changed_steps() -> None:
    """All results of an execution's steps are written with every transition."""
    execution_rows.known_of = lambda unit, record: None


def _heads_that_stay() -> None:
    """Every column that an index looks at is written, whether it has changed or not."""
    head = execution_rows._head
    execution_rows._head = lambda run, base, *rest: head(run, None, *rest)


def _own_evolve() -> None:
    """`attrs.evolve`, which runs the whole `__init__`."""
    for module in (execution, execution_rows, fold, fold_steps, start, transitions):
        module.evolve = attrs.evolve  # type: ignore[attr-defined]


def _encoded_answers() -> None:
    """Every status is made and encoded again."""
    Answers.known = lambda self, id, state: None  # type: ignore[method-assign]
    Answers.keep = lambda self, id, state, body: body  # type: ignore[method-assign]


def _whole_answers() -> None:
    """Each answer is two messages to the transport, which writes both."""
    vars(dispatch)["WHOLE"] = "taken by nobody"


def _batched_counts() -> None:
    """Each request is counted by itself."""
    batched = Batcher.add

    def at_once(self: Batcher[Any], item: Any) -> None:
        batched(self, item)
        if self.quiet_turns != writer.QUIET_TURNS:
            self.flush()

    Batcher.add = at_once  # type: ignore[method-assign]


def _frozen_memory() -> None:
    """Garbage is collected as usual."""
    memory.settle_memory = lambda: None
    transitions.settle_memory = lambda: None  # type: ignore[attr-defined]


def _remembered_keys() -> None:
    """The key that a request carries is found, verified and hashed each time."""
    api_key.presented = api_key.presented.__wrapped__  # type: ignore[assignment]


@frozen
class Part:
    """A part, how it is left out, and under which loads."""

    without: Callable[[], None]
    loads: Sequence[str]


ALL = ("poll", "start", "transition")
PARTS: Mapping[str, Part] = {
    "group commit": Part(_group_commit, ("start", "transition")),
    "waiting for company": Part(_waiting_for_company, ("start", "transition")),
    "statements of many rows": Part(_statements_of_many_rows, ("start", "transition")),
    "decoded records": Part(_decoded_records, ALL),
    "following own commits": Part(_following_own_commits, ALL),
    "one snapshot a turn": Part(_one_snapshot_a_turn, ALL),
    "only changed steps": Part(_only_changed_steps, ("transition",)),
    "heads that stay": Part(_heads_that_stay, ("transition",)),
    "own evolve": Part(_own_evolve, ("start", "transition")),
    "encoded answers": Part(_encoded_answers, ("poll",)),
    "whole answers": Part(_whole_answers, ("poll", "start")),
    "batched counts": Part(_batched_counts, ("poll",)),
    "remembered keys": Part(_remembered_keys, ("poll", "start")),
    "frozen memory": Part(_frozen_memory, ALL),
}


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


def leave_out() -> None:
    """Replace the part that the environment names."""
    if name := os.environ.get("WITHOUT"):
        PARTS[name].without()


async def _transition(seconds: float) -> Cost:
    before = time.process_time()
    rate = await transitions.transitions(seconds, CLIENTS)
    return Cost((time.process_time() - before) / (rate * seconds) * 1e6, rate)


if __name__ == "__main__":
    if sys.argv[1]:
        PARTS[sys.argv[1]].without()
    cost = asyncio.run(_transition(float(sys.argv[2])))
    print(cost.cpu_us, cost.per_second)
