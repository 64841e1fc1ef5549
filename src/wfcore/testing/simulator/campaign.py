"""Plays many worlds one after the other and collects the failures."""

from collections import Counter
from collections.abc import Callable, Iterable

from attrs import define, evolve, field, frozen

from wfcore.testing.simulator.coverage import Coverage, coverage_of, noted
from wfcore.testing.simulator.extensions import Invariant, NewStore, anything, in_memory
from wfcore.testing.simulator.faults import Drawn
from wfcore.testing.simulator.generate import recipe_from
from wfcore.testing.simulator.scenario import Recipe
from wfcore.testing.simulator.world import Played, play


@frozen
class Failure:
    """A world that broke a promise: which one, and everything needed to replay it."""

    seed: int
    broken: str
    recipe: Recipe


@define
class Summary:
    """What a campaign has done so far."""

    worlds: int = 0
    executions: int = 0
    turns: int = 0
    virtual_ms: int = 0
    answered: int = 0
    refused: int = 0
    unheard: int = 0
    faults: Counter[str] = field(factory=Counter)
    failures: list[Failure] = field(factory=list)
    coverage: Coverage = Coverage({})

    def add(self, played: Played, chance: Drawn) -> None:
        """Count one world."""
        self.worlds += 1
        self.executions += played.executions
        self.turns += played.turns
        self.virtual_ms += played.virtual_ms
        self.answered += played.promises.answered
        self.refused += played.promises.refused
        self.unheard += played.promises.unheard
        self.faults.update(fault.kind.value for fault in chance.faults.values())
        if played.broken is not None:
            recipe = as_played(played.recipe, chance)
            self.failures.append(Failure(recipe.seed, played.broken, recipe))


def as_played(recipe: Recipe, chance: Drawn) -> Recipe:
    """*recipe* with all faults that occurred, so that it can be replayed."""
    return evolve(recipe, faults=dict(chance.faults))


def simulate(
    seeds: Iterable[int],
    failures: int = 1,
    told: Callable[[Summary], None] | None = None,
    *,
    watch: Invariant = anything,
    store: NewStore = in_memory,
) -> Summary:
    """
    Play the worlds of *seeds* until *failures* failures were found. *told* is called with the
    summary after each world. *watch* and *store* as in `play`.
    """
    summary = Summary()
    with noted() as counting:
        for seed in seeds:
            recipe, chance = recipe_from(seed)
            summary.add(play(recipe, chance, watch=watch, store=store), chance)
            if told is not None:
                told(summary)
            if len(summary.failures) >= failures:
                break
        summary.coverage = coverage_of(counting)
    return summary
