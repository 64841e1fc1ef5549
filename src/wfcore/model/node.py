"""Processes that run executions, as they announce themselves to one another through the store."""

from attrs import frozen

from wfcore.model.execution import Execution
from wfcore.time import EpochMs


@frozen
class Node:
    """
    A process. `id`: the worker that executions name. `address`: the URL of its API, empty if it
    serves none. `release`: the version of the program.

    `able`: the capabilities of the executions that the process takes (None: all), see
    `Store.claim`; `present`: those of them that are installed (None: all). `places`: how many
    executions it runs at once; 0 if it only serves the API. `seen_until`: until then, by the
    store's time, the process counts as alive; it renews this instant in time. `draining`: an
    operator has stopped new executions for it.
    """

    id: str
    host: str
    places: int
    started_at: EpochMs
    seen_until: EpochMs = EpochMs(0)
    able: tuple[str, ...] | None = None
    draining: bool = False
    present: tuple[str, ...] | None = None
    address: str = ""
    release: str = ""
    pid: int = 0
    version: int = 0

    def takes(self, run: Execution) -> bool:
        """Whether the process would take *run* if it were due and a place were free."""
        return not self.draining and (self.able is None or {*run.capabilities} <= {*self.able})
