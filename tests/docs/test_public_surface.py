"""What embedders rely on: a list that changes only when somebody means it."""

from importlib import import_module

import pytest

from wfdocs import surface
from wfdocs.unnamed import undescribed, unnamed

CURE = "if the change is meant: make surface, and look at the difference"
PACKAGES = sorted(path.name for path in surface.SRC.iterdir() if (path / "__init__.py").exists())
MOST_NAMES = 200
"""The number of names that `from wfcore import …` may give."""


def test_the_public_surface_is_as_written_down() -> None:
    """Names, members and signatures; `make surface` writes them anew, and the change is seen."""
    assert surface.surface().splitlines() == surface.SNAPSHOT.read_text().splitlines(), CURE


@pytest.mark.parametrize("group", surface.GROUPS)
def test_every_public_name_can_be_had_from_its_group(group: str) -> None:
    """`from GROUP import …` gives each listed name, `dir` lists them, and no other is there."""
    module = import_module(group)
    names = [name for found in surface.exports(group).values() for name in found]
    assert all(getattr(module, name) is not None for name in names)
    groups = [one.removeprefix("wfcore.") for one in surface.GROUPS[1:]]
    below = ["sync", *groups] if group == "wfcore" else []
    assert dir(module) == module.__all__ == sorted([*names, *below])
    with pytest.raises(AttributeError):
        _ = module.nothing_of_that_name


def test_a_public_name_is_in_one_group() -> None:
    """Nobody has to choose between two places of one name; what most programs need is short."""
    names = [
        name for one in surface.GROUPS for found in surface.exports(one).values() for name in found
    ]
    assert sorted(names) == sorted(set(names))
    assert sum(map(len, surface.exports("wfcore").values())) <= MOST_NAMES


def test_every_class_in_a_public_signature_is_public() -> None:
    """A program can write down the type of each argument and result that a public name has."""
    assert unnamed() == {}


def test_every_public_class_and_function_has_a_docstring() -> None:
    """An editor that shows a public name shows what it is."""
    assert undescribed() == []


@pytest.mark.parametrize("package", PACKAGES)
def test_types_are_shipped(package: str) -> None:
    """Type checkers of embedders see the annotations."""
    assert (surface.SRC / package / "py.typed").is_file()
