"""What a step can never do, at every level that this machine can be put into."""

from pathlib import Path

import pytest

from adapters_runtime.sandbox.isolation.config import LADDER, LANDLOCK, NAMESPACE
from adapters_runtime.sandbox.isolation_level import find_level_now

from .page import pages
from .probes import GROUPS
from .trials import PROBES, Verdicts, contained, loose


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    """What the probes reach without containment."""
    return loose(tmp_path_factory.mktemp("loose"))


def test_there_are_enough() -> None:
    """At least forty probes, none twice."""
    assert len(PROBES) == sum(map(len, GROUPS.values())) >= 40


def test_the_pages_say_what_the_probes_say() -> None:
    """isolation.md and security.md are written from the table (`make tables`)."""
    for page, text in pages().items():
        assert page.read_text() == text


def test_every_probe_bites(without: Verdicts) -> None:
    """With the containment off each probe reaches what it tries to reach."""
    blunt = [name for name, probe in PROBES.items() if probe.bites() and not without[name]]
    assert blunt == []


@pytest.mark.parametrize(
    ("level", "warm"),
    [*((level, True) for level in LADDER), (NAMESPACE, False), (LANDLOCK, False)],
)
def test_level(level: str, warm: bool, without: Verdicts, tmp_path: Path) -> None:
    """
    Each probe is held exactly where the table says so, and reaches what it reaches without
    containment elsewhere, whether its interpreter was started before the job or with it. CS-11.
    """
    found = find_level_now(level, tmp_path / "looked")
    if found.name != level:
        pytest.skip(f"this machine cannot be put into the level {level}: {found.missed[level]}")
    said = contained(level, warm, tmp_path)
    expected = {
        name: without[name] and not probe.is_held_at(level, found.uncounted is None)
        for name, probe in PROBES.items()
    }
    assert said == expected
