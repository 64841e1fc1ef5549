"""A process that takes executions, as it announces itself to the others on the store."""

from attrs import frozen

from wfcore.model.execution import Execution
from wfcore.time import EpochMs


@frozen
class Node:
    """
    `id`: the worker that its executions name. `able`: the capabilities of what it takes (None:
    everything), see `Store.claim`; `present`: those of them that are installed (None: all).
    `places`: how many it works on at once, 0 if it only serves the API. It is alive until
    `seen_until` by the store's time, and announces itself again before. `draining`: an operator
    asked it to take nothing new. `address`: where it serves the API, empty if it does not.
    `release`: the version of the program.
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
        """Whether it would take *run*, were it due and a place free."""
        return not self.draining and (self.able is None or {*run.capabilities} <= {*self.able})
