"""Workflows of simulated worlds whose steps hold steps, wait, and start one another."""

from collections.abc import Callable
from random import Random
from typing import Any

DEEPEST = 2

Leaf = Callable[[Random, str], dict[str, Any]]
"""Makes a step of that name that holds no others."""


def child_step(name: str, workflow: str) -> dict[str, Any]:
    """A step that starts that workflow; its child is known by the execution that started it."""
    inputs = {"tag": "{{ execution.id }}"}
    return {"name": name, "kind": "workflow", "workflow": workflow, "inputs": inputs}


class Tree:
    """Makes steps of every kind, *leaf* those that hold none. *child*: a workflow to start."""

    def __init__(self, random: Random, leaf: Leaf, child: str | None) -> None:
        self._random = random
        self._leaf = leaf
        self._child = child
        self._names = iter(f"s{at}" for at in range(1_000))

    def lane(self, depth: int) -> list[dict[str, Any]]:
        """Some steps, one after another."""
        return [self._step(depth) for _ in range(self._random.choice((1, 2, 2)))]

    def _step(self, depth: int) -> dict[str, Any]:
        random, name = self._random, next(self._names)
        draw = random.random()
        if draw < 0.45 or depth == DEEPEST:
            return self._leaf(random, name)
        if draw < 0.55:
            return {"name": name, "kind": "delay", "duration": random.choice((1, 500, 2_500))}
        if draw < 0.7 and self._child is not None:
            return child_step(name, self._child)
        return self._container(name, depth)

    def _container(self, name: str, depth: int) -> dict[str, Any]:
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
            holder["timeout"] = random.choice((500, 1_500, 6_000))
        if random.random() < 0.4:
            holder["continueOnError"] = True
        return holder
