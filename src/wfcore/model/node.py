"""A process that takes executions, as it announces itself to the others on the store."""

from attrs import frozen

from wfcore.model.execution import Execution
from wfcore.time import EpochMs


@frozen
class Node:
    """
    `id`: the worker that its executions name. `able`: the capabilities of what it takes (None:
    everything), see `Store.claim`. `places`: how many it works on at once. It is alive until
    `seen_until` by the store's time, and announces itself again before. `draining`: an operator
    asked it to take nothing new.
    """

    id: str
    host: str
    places: int
    started_at: EpochMs
    seen_until: EpochMs = EpochMs(0)
    able: tuple[str, ...] | None = None
    draining: bool = False
    version: int = 0

    def takes(self, run: Execution) -> bool:
        """Whether it would take *run*, were it due and a place free."""
        return not self.draining and (self.able is None or {*run.capabilities} <= {*self.able})
