"""Plays many worlds one after another and collects the failures."""

from collections import Counter
from collections.abc import Callable, Iterable

from attrs import define, evolve, field, frozen

from wfcore.testing.simulator.coverage import Coverage, coverage_of, noted
from wfcore.testing.simulator.extensions import Invariant, NewStore, in_memory, no_invariant
from wfcore.testing.simulator.faults import RandomFaults
from wfcore.testing.simulator.generate import scenario_from
from wfcore.testing.simulator.scenario import WorldScenario
from wfcore.testing.simulator.world import WorldResult, play


@frozen
class BrokenWorld:
    """A world that broke a promise: the promise, and everything needed to replay the world."""

    seed: int
    broken: str
    scenario: WorldScenario


@define
class CampaignSummary:
    """The counts of a campaign, and the worlds that broke a promise."""

    worlds: int = 0
    executions: int = 0
    turns: int = 0
    virtual_ms: int = 0
    answered: int = 0
    refused: int = 0
    unheard: int = 0
    faults: Counter[str] = field(factory=Counter)
    failures: list[BrokenWorld] = field(factory=list)
    coverage: Coverage = Coverage({})

    def add(self, played: WorldResult, chance: RandomFaults) -> None:
        """Count the world *played*; if it broke a promise, keep it with the faults of *chance*."""
        self.worlds += 1
        self.executions += played.executions
        self.turns += played.turns
        self.virtual_ms += played.virtual_ms
        self.answered += played.expectations.answered
        self.refused += played.expectations.refused
        self.unheard += played.expectations.unheard
        self.faults.update(fault.kind.value for fault in chance.faults.values())
        if played.broken is not None:
            scenario = with_drawn_faults(played.scenario, chance)
            self.failures.append(BrokenWorld(scenario.seed, played.broken, scenario))


def with_drawn_faults(scenario: WorldScenario, chance: RandomFaults) -> WorldScenario:
    """*scenario* with all faults of *chance* that occurred, so that the world can be replayed."""
    return evolve(scenario, faults=dict(chance.faults))


def simulate(
    seeds: Iterable[int],
    failures: int = 1,
    told: Callable[[CampaignSummary], None] | None = None,
    *,
    watch: Invariant = no_invariant,
    store: NewStore = in_memory,
) -> CampaignSummary:
    """
    Play the worlds of *seeds* until *failures* worlds have failed. *told* is called with the
    summary after each world. *watch* and *store* are those of `play`.
    """
    summary = CampaignSummary()
    with noted() as counting:
        for seed in seeds:
            scenario, chance = scenario_from(seed)
            summary.add(play(scenario, chance, watch=watch, store=store), chance)
            if told is not None:
                told(summary)
            if len(summary.failures) >= failures:
                break
        summary.coverage = coverage_of(counting)
    return summary
