"""
Two processes of one command beside one, on SQLite: polls, and light executions.

Each has as many processors as it has processes, for itself and for its clients: with both for each,
the clients, which take a third of what polls take, would leave less of a second one to the second
process than the first one has.
"""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import http, light
from bench.servers import Server

Rate = Callable[[float], float]
"""What is done a second, measured for so many seconds."""


@contextmanager
def both(folder: Path, clients: int) -> Iterator[dict[str, tuple[Rate, Rate]]]:
    """By what is done: the rate of two processes and that of one, each with a store of its own."""
    ours, alone = folder / "two", folder / "one"
    two_seeded, one_seeded = http.seed(ours), http.seed(alone)
    pair = sorted(os.sched_getaffinity(0))[:2]
    with ExitStack() as stack:
        with _on(pair):
            two = stack.enter_context(http.whole(ours, WFCORE_PROCESSES="2"))
        with _on(pair[:1]):
            one = stack.enter_context(http.whole(alone))

        def rates(make: Callable[[Server, http.Seeded], Callable[[], bytes]]) -> tuple[Rate, Rate]:
            return (
                rate(two, pair, make(two, two_seeded)),
                rate(one, pair[:1], make(one, one_seeded)),
            )

        def rate(server: Server, processors: Collection[int], ask: Callable[[], bytes]) -> Rate:
            def measured(seconds: float) -> float:
                with _on(processors):
                    return http.measured(server, clients, seconds, ask).per_second

            return measured

        yield {
            "status polls": rates(http.polls),
            "light executions": rates(lambda _, seeded: light.starts(seeded)),
        }


@contextmanager
def _on(processors: Collection[int]) -> Iterator[None]:
    """This process, and those that it starts meanwhile, use these processors."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
