"""Processes that run executions, as each process announces itself through the store."""

from attrs import frozen

from wfcore.model.execution import Execution
from wfcore.time import EpochMs


@frozen
class Node:
    """
    A process. `id`: the id of the worker, which executions name. `address`: the URL of the
    process's API; empty if the process serves no API. `release`: the version of the program.

    `able`: the capabilities of the executions that the process takes (None: all), see
    `Store.claim`; `present`: the capabilities in `able` that are installed (None: all). `places`:
    how many executions the process runs at once; 0 if the process only serves the API.
    `seen_until`: the instant, in the store's time, up to which the process counts as alive; the
    process extends this instant in time. `draining`: an operator has stopped new executions for the
    process.
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
        """Whether the process would take *run* if *run* were due and a place were free."""
        return not self.draining and (self.able is None or {*run.capabilities} <= {*self.able})
