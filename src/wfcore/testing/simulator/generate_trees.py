"""Workflows of simulated worlds whose steps hold steps, wait, and start one another."""

from random import Random
from typing import Any

from wfcore.model.json import JsonObject
from wfcore.testing.simulator.generate import VARIABLES, step

DEEPEST = 2
CHILD = "flow 1"
"""The name of the workflow that others start."""


def tree_flow(random: Random, number: int) -> JsonObject:
    """A workflow of any kinds of steps. All but the one that others start may start that one."""
    names = iter(f"s{at}" for at in range(1_000))
    tree = _Tree(random, names, f"flow {number}" != CHILD)
    return {"name": f"flow {number}", "variables": VARIABLES, "steps": tree.lane(0)}


class _Tree:
    def __init__(self, random: Random, names: Any, may_start: bool) -> None:
        self._random = random
        self._names = names
        self._may_start = may_start

    def lane(self, depth: int) -> list[JsonObject]:
        """Some steps, one after another."""
        return [self._step(depth) for _ in range(self._random.choice((1, 2, 2)))]

    def _step(self, depth: int) -> JsonObject:
        random, name = self._random, next(self._names)
        draw = random.random()
        if draw < 0.45 or depth == DEEPEST:
            return step(random, name)
        if draw < 0.55:
            return {"name": name, "kind": "delay", "duration": random.choice((1, 300, 2_500))}
        if draw < 0.65 and self._may_start:
            inputs = {"tag": "{{ execution.id }}"}
            return {"name": name, "kind": "workflow", "workflow": CHILD, "inputs": inputs}
        return self._container(name, depth)

    def _container(self, name: str, depth: int) -> JsonObject:
        random = self._random
        holder: dict[str, Any] = {"name": name, "maxParallel": random.choice((1, 2, 3))}
        if random.random() < 0.5:
            count = random.choice((2, 2, 3))
            branches = [{"name": f"b{n}", "steps": self.lane(depth + 1)} for n in range(count)]
            holder |= {"kind": "parallel", "branches": branches}
        else:
            items = list(range(random.choice((0, 1, 2, 3))))
            steps = self.lane(depth + 1)
            holder |= {"kind": "loop", "items": items, "as": f"i{depth}", "steps": steps}
        if random.random() < 0.25:
            holder["timeout"] = random.choice((100, 1_500, 6_000))
        if random.random() < 0.4:
            holder["continueOnError"] = True
        return holder
