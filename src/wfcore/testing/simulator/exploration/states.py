"""
The states of an explored world, as data: nothing here runs.

A call that awaits a port is kept as the answers that the call has had so far. A coroutine is a
function of its answers, so the answers are its state, and the coroutine can be rebuilt.
"""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from wfcore.errors import WfError
from wfcore.memory.disk import Rows
from wfcore.model.execution import Execution
from wfcore.ports.runtime import Job
from wfcore.rules.clock_jumps import HeldTime
from wfcore.testing.simulator.runner import Attempt


@frozen(eq=False)
class PortAnswer:
    """The answer to a request at a scheduling point: a value or a refusal."""

    value: Any = None
    refusal: WfError | None = None


@frozen(eq=False)
class PortReading:
    """What a port returned without a wait: an instant, an id or a random text."""

    value: Any


@frozen
class PendingRequest:
    """The next request of a call: the operation, and whether it changes the store."""

    name: str
    writes: bool


@frozen(eq=False)
class OpenCall:
    """
    A use case that a process has begun. `purpose` and `about` say which; `lease` is the lease under
    which it works. `tape`: the answers so far. `name` is unique in a state.
    """

    name: str
    node: str
    purpose: str
    about: tuple[Any, ...] = ()
    tape: tuple[PortAnswer | PortReading, ...] = ()
    pending: PendingRequest = PendingRequest("", writes=False)

    @property
    def fresh(self) -> bool:
        """Whether no request of the call has been answered."""
        return not any(isinstance(one, PortAnswer) for one in self.tape)


@frozen(eq=False)
class OpenStep:
    """An attempt that a worker has to run. `running`: the attempt has started."""

    job: Job
    running: bool = False

    @property
    def key(self) -> tuple[str, int]:
        """The key of the step and the number of the attempt."""
        return self.job.step_name, self.job.attempt


@frozen(eq=False)
class OpenLease:
    """
    An execution that a worker holds. `last`: the record that the worker stored last, see `Lease`.
    `met`: the attempts that were ever started. `look_at`: the instant of the alarm. `next`: the
    unit of work that the worker begins next, with its arguments. `busy`: whether a unit is open;
    there is one at a time.
    """

    id: str
    fence: int
    last: Execution | None
    steps: tuple[OpenStep, ...] = ()
    met: frozenset[tuple[str, int]] = frozenset()
    look_at: int | None = None
    next: tuple[Any, ...] = ()
    busy: bool = False


@frozen(eq=False)
class ExploredNode:
    """
    A process. `worker` is new at each start. `frozen`: no task continues, and no lease is extended.
    `disturbed`: the process may rightly have lost a lease since its start. `retired`: the process
    claims nothing and sweeps nothing; it only finishes the executions that it holds.
    """

    name: str
    starts: int = 1
    up: bool = True
    frozen: bool = False
    disturbed: bool = False
    retired: bool = False
    leases: Mapping[str, OpenLease] = {}
    clock: HeldTime | None = None

    @property
    def worker(self) -> str:
        """The name of the worker."""
        return f"{self.name}.{self.starts}"

    @property
    def works(self) -> bool:
        """Whether tasks of the process continue."""
        return self.up and not self.frozen


@frozen(eq=False)
class WorldState:
    """
    Everything on which the rest of a world depends. `now`: virtual ms since the beginning.
    `jumped`: how far the wall clock has jumped. `left`: the faults that may still happen. `acts`:
    the numbers of the acts that no client has begun. `answers`: what clients know. `started`: the
    attempts that ever started. `ended`: the workers that the store knows to be dead. `ids`: the
    number of ids of each prefix.
    """

    tables: Mapping[str, Rows]
    now: int
    jumped: int
    nodes: Mapping[str, ExploredNode]
    calls: Mapping[str, OpenCall]
    left: Mapping[str, int]
    acts: tuple[int, ...]
    answers: frozenset[tuple[str, str, str]]
    started: frozenset[Attempt]
    ended: frozenset[str]
    ids: Mapping[str, int]
