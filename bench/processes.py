"""Two processes of one command beside one, on SQLite: polls, and light executions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    with (
        http.whole(ours, WFCORE_PROCESSES="2") as two,
        http.whole(alone) as one,
    ):

        def rates(make: Callable[[Server, http.Seeded], Callable[[], bytes]]) -> tuple[Rate, Rate]:
            return rate(two, make(two, two_seeded)), rate(one, make(one, one_seeded))

        def rate(server: Server, ask: Callable[[], bytes]) -> Rate:
            return lambda seconds: http.measured(server, clients, seconds, ask).per_second

        yield {
            "status polls": rates(http.polls),
            "light executions": rates(lambda _, seeded: light.starts(seeded)),
        }
