"""Lanes in memory: who waits for a place, counted anew from all executions each time."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping

from attrs import frozen

from wfcore.memory.overlay import Overlay
from wfcore.memory.runs import FINISHED
from wfcore.memory.tables import EXECUTIONS, LIMITS, UnitOfWork
from wfcore.model.execution import Execution


@frozen
class Lanes:
    unit: UnitOfWork

    async def unfinished(self, lane: str) -> int:
        return len(await self.unit.select(EXECUTIONS, lambda run: _is_open(run, lane)))

    async def held(self, lane: str) -> int:
        found = await self.unit.select(EXECUTIONS, lambda run: _is_open(run, lane))
        return sum(run.fence > 0 for run in found)

    def limit(self, workflow_id: str, at_once: int | None) -> None:
        self.unit.collect(lambda overlay: overlay.set(LIMITS, workflow_id, at_once))

    def require_room(self, lane: str, at_once: int) -> None:
        def change(overlay: Overlay) -> None:
            taken = sum(_is_open(run, lane) for run in overlay.all(EXECUTIONS))
            overlay.expect(LIMITS, lane, taken < at_once)

        self.unit.collect(change)


def _is_open(run: Execution, lane: str) -> bool:
    return run.lane == lane and run.status not in FINISHED


def waiting_in_lanes(runs: Iterable[Execution], limits: Mapping[Hashable, int]) -> frozenset[str]:
    """Ids of the executions that have to wait until one of their lane ends."""
    held = Counter[str]()
    queues: defaultdict[str, list[Execution]] = defaultdict(list)
    for run in runs:
        if run.lane is None or run.status in FINISHED:
            continue
        if run.fence > 0:
            held[run.lane] += 1
        elif run.workflow_id in limits:
            queues[run.lane].append(run)
    late: list[Execution] = []
    for lane, queue in queues.items():
        queue.sort(key=lambda run: (run.due_at or 0, run.id))
        late += queue[max(0, limits[queue[0].workflow_id] - held[lane]) :]
    return frozenset(run.id for run in late)
