"""
`python -m bench.cells`: how many machines so many executions a second need, and what breaks first.

A queueing model on paper: each cell is a database, with servers and the processors of steps beside
it, and cells share nothing (decision 221). What is measured stands first, each with the command
that measures it; what is assumed of machines follows. Nothing here was tried at this size.
"""

from collections.abc import Iterator, Mapping
from math import ceil, exp, lgamma, log

from attrs import frozen

STEP_MS = 12.0
"""CPU of a contained Bash step that does nothing: `python -m bench contained`."""
SERVER_MS = 4.5
"""CPU of a server for an execution of one step: `python -m bench postgres`."""
HTTP_MS = 0.4
"""The same, for the request that starts it: `make profile`."""
DATABASE_MS = 4.0
"""CPU of PostgreSQL for an execution: `python -m bench postgres`."""
LOG_BYTES = 11_000
"""What an execution adds to the log of PostgreSQL: `python -m bench postgres`."""

CORES, DATABASE_CORES = 16, 32
"""Of a machine for servers and steps, and of a database's."""
DISK_BYTES = 400_000_000
"""Bytes a second that the database's disk takes, flushed, beside those of its tables."""
FLUSH_MS = 1.0
"""A commit that nobody shares. Only the end of the audit log is held as long: one row of a cell."""
BUSY = 0.6
"""The part of each resource that the average may use: the rest is for peaks and for what fails."""

RATES = (100, 1_000, 3_000, 10_000, 30_000, 100_000)
PEAKS = (0.6, 0.9, 0.95, 0.99)
STATEMENTS = 6
"""Writes of an execution of one step with its claims: each is a turn at the database."""


def limits() -> Mapping[str, float]:
    """Executions a second of a cell at which what it has once is as busy as it may be."""
    return {
        "the processors of its database": DATABASE_CORES * BUSY / DATABASE_MS * 1_000,
        "the log's disk of its database": DISK_BYTES * BUSY / LOG_BYTES,
        "the end of its audit log, where somebody decides about each execution": (
            BUSY / FLUSH_MS * 1_000
        ),
    }


def first_limit() -> float:
    """Executions a second of one cell, without decisions of people."""
    return min(list(limits().values())[:2])


def waiting_ms(rate: float, servers: int, service_ms: float) -> float:
    """Mean wait of an M/M/c queue (Erlang C); infinite where more arrives than leaves."""
    load = rate * service_ms / 1_000
    if load >= servers:
        return float("inf")
    terms = [number * log(load) - lgamma(number + 1) for number in range(servers + 1)]
    last = exp(terms[-1]) * servers / (servers - load)
    all_busy = last / (sum(map(exp, terms[:-1])) + last)
    return all_busy * service_ms / (servers - load)


@frozen
class Plan:
    """What *rate* executions a second need, in all cells together."""

    rate: int
    cells: int
    databases: int
    servers: int
    steps: int
    log_mb: float

    @property
    def machines(self) -> int:
        """All of them."""
        return self.databases + self.servers + self.steps


def plan(rate: int) -> Plan:
    """The least cells that hold it, each with a standby of its database, and equal shares."""
    cells = ceil(rate / first_limit())
    each = rate / cells

    def machines(ms: float) -> int:
        return cells * ceil(each * ms / 1_000 / BUSY / CORES)

    return Plan(
        rate,
        cells,
        2 * cells,
        machines(SERVER_MS + HTTP_MS),
        machines(STEP_MS),
        each * LOG_BYTES / 1e6,
    )


def steps_share(step_ms: float = STEP_MS) -> float:
    """The part of an execution's processor time that the processes of its steps take."""
    return step_ms / (step_ms + SERVER_MS + HTTP_MS + DATABASE_MS)


def table() -> str:
    """What the page shows, in Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    for ms in (STEP_MS, 100.0, 1_000.0):
        yield f"- steps of {ms:,.0f} ms of processor time: {steps_share(ms):.0%} is theirs"
    yield ""
    yield "| Executions/s | Cells | Databases | Servers | For steps | Machines | Log of a cell |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for one in map(plan, RATES):
        counts = (one.rate, one.cells, one.databases, one.servers, one.steps, one.machines)
        shown = " | ".join(f"{count:,}" for count in counts)
        yield f"| {shown} | {one.log_mb:.0f} MB/s |"
    yield ""
    yield "| What a cell has once | Executions/s of a cell |"
    yield "|---|---:|"
    for what, rate in sorted(limits().items(), key=lambda pair: pair[1]):
        yield f"| {what} | {rate:,.0f} |"
    yield ""
    yield "| Executions/s of a cell | Its database is busy | A statement waits for a processor |"
    yield "|---:|---:|---:|"
    for part in PEAKS:
        rate = part * DATABASE_CORES / DATABASE_MS * 1_000
        wait = waiting_ms(rate * STATEMENTS, DATABASE_CORES, DATABASE_MS / STATEMENTS)
        yield f"| {rate:,.0f} | {part:.0%} | {wait:.2f} ms |"
    yield ""


if __name__ == "__main__":
    print(table())
