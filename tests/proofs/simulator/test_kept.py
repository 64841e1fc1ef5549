"""What once was found stays found: worlds and seeds that broke a promise are played again."""

from collections.abc import Callable
from pathlib import Path

import pytest

from wfcore.testing.simulator import WorldScenario, play, scenario_from

from .planted_before import ONCE

HERE = Path(__file__).parent
KEPT = {plant.__name__: plant for plant in ONCE}
SEEDS = [
    int(line) for line in (HERE / "seeds.txt").read_text().splitlines() if not line.startswith("#")
]


def kept(name: str) -> WorldScenario:
    return WorldScenario.from_json((HERE / "kept" / f"{name}.json").read_text())


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_world_keeps_its_promises(name: str) -> None:
    """The world in which a mistake of ours was seen is in order now."""
    assert play(kept(name)).broken is None


@pytest.mark.parametrize(("name", "plant"), KEPT.items())
def test_a_kept_world_shows_its_mistake(
    monkeypatch: pytest.MonkeyPatch, name: str, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """With the mistake planted again the same world breaks a promise: it is no idle test."""
    plant(monkeypatch)
    assert play(kept(name)).broken is not None


def test_every_kept_world_has_its_mistake() -> None:
    """No file lies there for nothing."""
    assert {path.stem for path in (HERE / "kept").glob("*.json")} == set(KEPT)


def test_seeds_that_once_failed_are_in_order() -> None:
    """Each of them is played as it is today."""
    broken = {seed: play(*scenario_from(seed)).broken for seed in SEEDS}
    assert {seed: said for seed, said in broken.items() if said} == {}
