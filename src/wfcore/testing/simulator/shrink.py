"""Shrinks a failing world: leaves out whatever can be left out while the same promise is broken."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from attrs import evolve

from wfcore.testing.simulator.catalogue import kind_of
from wfcore.testing.simulator.extensions import Invariant, NewStore, anything, in_memory
from wfcore.testing.simulator.scenario import Act, Recipe
from wfcore.testing.simulator.world import Played, play

T = TypeVar("T")
MOST_PLAYS = 400


class _Shrinker:
    """Tries smaller recipes up to a limit, and keeps the last one that fails in the same way."""

    def __init__(
        self, recipe: Recipe, kind: str, plays: int, again: Callable[[Recipe], Played]
    ) -> None:
        self.best = recipe
        self._kind = kind
        self._left = plays
        self._play = again

    def tries(self, recipe: Recipe) -> bool:
        """Whether *recipe* fails alike; then it is the best one."""
        if self._left <= 0 or recipe == self.best:
            return False
        self._left -= 1
        if kind_of(self._play(recipe).broken) != self._kind:
            return False
        self.best = recipe
        return True

    def leave_out(
        self, things: Callable[[Recipe], Sequence[T]], with_things: Callable[[Sequence[T]], Recipe]
    ) -> None:
        """Leave out as many of *things* as can be, first many at once, then one by one."""
        size = len(things(self.best))
        while size:
            at = 0
            while at < len(now := things(self.best)):
                if not self.tries(with_things([*now[:at], *now[at + size :]])):
                    at += size
            size //= 2

    def settle(self) -> None:
        """The plainest order in which it still happens."""
        for order in range(min(self.best.order, 6)):
            if self.tries(evolve(self.best, order=order)):
                break
        if self.best.levels > 2:
            self.tries(evolve(self.best, levels=2))


def shrunk(
    recipe: Recipe,
    broken: str,
    plays: int = MOST_PLAYS,
    *,
    watch: Invariant = anything,
    store: NewStore = in_memory,
) -> Recipe:
    """
    A smaller recipe that breaks a promise of the same kind as *recipe* does: fewer faults, acts,
    steps and nodes, a plainer order. At most *plays* worlds are played for it.
    """
    again = partial(play, watch=watch, store=store)
    shrinker = _Shrinker(recipe, kind_of(broken), plays, again)
    before: Recipe | None = None
    while before != shrinker.best:
        before = shrinker.best
        shrinker.leave_out(_faults, lambda faults: evolve(shrinker.best, faults=dict(faults)))
        shrinker.leave_out(_acts, lambda acts: evolve(shrinker.best, acts=tuple(acts)))
        for nodes in range(1, shrinker.best.nodes):
            shrinker.tries(evolve(shrinker.best, nodes=nodes))
        for flow in range(len(shrinker.best.flows)):
            shrinker.leave_out(
                lambda recipe, flow=flow: _steps(recipe, flow),  # type: ignore[misc]
                lambda steps, flow=flow: _with_steps(shrinker.best, flow, steps),  # type: ignore[misc]
            )
        shrinker.settle()
    return shrinker.best


def _faults(recipe: Recipe) -> Sequence[tuple[str, Any]]:
    return tuple(recipe.faults.items())


def _acts(recipe: Recipe) -> Sequence[Act]:
    return recipe.acts


def _steps(recipe: Recipe, flow: int) -> Sequence[Any]:
    steps: Any = recipe.flows[flow]["steps"]
    return tuple(steps)


def _with_steps(recipe: Recipe, flow: int, steps: Sequence[Any]) -> Recipe:
    if not steps:
        return recipe
    flows: list[Mapping[str, Any]] = list(recipe.flows)
    flows[flow] = {**flows[flow], "steps": list(steps)}
    return evolve(recipe, flows=tuple(flows))
