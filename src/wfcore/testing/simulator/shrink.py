"""Shrinks a failing world: leaves out every part without which the same promise is still broken."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from attrs import evolve

from wfcore.testing.simulator.catalogue import violation_kind
from wfcore.testing.simulator.extensions import Invariant, NewStore, in_memory, no_invariant
from wfcore.testing.simulator.scenario import Act, WorldScenario
from wfcore.testing.simulator.world import WorldResult, play

T = TypeVar("T")
MOST_PLAYS = 400
Option = tuple[int, str, str]
"""A field of a step: the number of the flow, the name of the step and the name of the field."""


class _Shrinker:
    """Tries smaller scenarios up to a limit, and keeps the last one that fails in the same way."""

    def __init__(
        self,
        scenario: WorldScenario,
        kind: str,
        plays: int,
        again: Callable[[WorldScenario], WorldResult],
    ) -> None:
        self.best = scenario
        self._kind = kind
        self._left = plays
        self._play = again

    def tries(self, scenario: WorldScenario) -> bool:
        """
        Play *scenario* and, if it fails in the same way, keep it as the best; return whether it
        does.
        """
        if self._left <= 0 or scenario == self.best:
            return False
        self._left -= 1
        if violation_kind(self._play(scenario).broken) != self._kind:
            return False
        self.best = scenario
        return True

    def leave_out(
        self,
        things: Callable[[WorldScenario], Sequence[T]],
        with_things: Callable[[Sequence[T]], WorldScenario],
    ) -> None:
        """Leave out as many of *things* as possible, first many at once, then one by one."""
        size = len(things(self.best))
        while size:
            at = 0
            while at < len(now := things(self.best)):
                if not self.tries(with_things([*now[:at], *now[at + size :]])):
                    at += size
            size //= 2

    def settle(self) -> None:
        """Choose the plainest order in which the promise is still broken."""
        for order in range(min(self.best.order, 6)):
            if self.tries(evolve(self.best, order=order)):
                break
        if self.best.levels > 2:
            self.tries(evolve(self.best, levels=2))


def shrink_scenario(
    scenario: WorldScenario,
    broken: str,
    plays: int = MOST_PLAYS,
    *,
    watch: Invariant = no_invariant,
    store: NewStore = in_memory,
) -> WorldScenario:
    """
    Return a smaller scenario that breaks the same kind of promise: with fewer faults, acts, steps,
    fields of steps and nodes, and a plainer order. At most *plays* worlds are played to find it.
    """
    again = partial(play, watch=watch, store=store)
    shrinker = _Shrinker(scenario, violation_kind(broken), plays, again)
    before: WorldScenario | None = None
    while before != shrinker.best:
        before = shrinker.best
        shrinker.leave_out(_faults, lambda faults: evolve(shrinker.best, faults=dict(faults)))
        shrinker.leave_out(_acts, lambda acts: evolve(shrinker.best, acts=tuple(acts)))
        for nodes in range(1, shrinker.best.nodes):
            shrinker.tries(evolve(shrinker.best, nodes=nodes))
        for flow in range(len(shrinker.best.flows)):
            shrinker.leave_out(
                lambda scenario, flow=flow: _steps(scenario, flow),  # type: ignore[misc]
                lambda steps, flow=flow: _with_steps(shrinker.best, flow, steps),  # type: ignore[misc]
            )
        shrinker.leave_out(_options, partial(_with_options, shrinker))
        shrinker.settle()
    return shrinker.best


def _faults(scenario: WorldScenario) -> Sequence[tuple[str, Any]]:
    return tuple(scenario.faults.items())


def _acts(scenario: WorldScenario) -> Sequence[Act]:
    return scenario.acts


def _steps(scenario: WorldScenario, flow: int) -> Sequence[Any]:
    steps: Any = scenario.flows[flow]["steps"]
    return tuple(steps)


def _with_steps(scenario: WorldScenario, flow: int, steps: Sequence[Any]) -> WorldScenario:
    if not steps:
        return scenario
    flows: list[Mapping[str, Any]] = list(scenario.flows)
    flows[flow] = {**flows[flow], "steps": list(steps)}
    return evolve(scenario, flows=tuple(flows))


def _options(scenario: WorldScenario) -> Sequence[Option]:
    """The fields of the outermost steps except `name` and `kind`."""
    steps = ((flow, step) for flow in range(len(scenario.flows)) for step in _steps(scenario, flow))
    return [
        (flow, step["name"], field)
        for flow, step in steps
        for field in step
        if field not in ("name", "kind")
    ]


def _with_options(shrinker: _Shrinker, options: Sequence[Option]) -> WorldScenario:
    scenario = shrinker.best
    for flow in range(len(scenario.flows)):
        steps = [
            {
                field: value
                for field, value in step.items()
                if field in ("name", "kind") or (flow, step["name"], field) in options
            }
            for step in _steps(scenario, flow)
        ]
        scenario = _with_steps(scenario, flow, steps)
    return scenario
