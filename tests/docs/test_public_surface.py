"""What embedders rely on: a list that changes only when somebody means it."""

import pytest

import wfcore
from wfdocs import surface

CURE = "if the change is meant: make surface, and look at the difference"
PACKAGES = sorted(path.name for path in surface.SRC.iterdir() if (path / "__init__.py").exists())


def test_the_public_surface_is_as_written_down() -> None:
    """Names, members and signatures; `make surface` writes them anew, and the change is seen."""
    assert surface.surface().splitlines() == surface.SNAPSHOT.read_text().splitlines(), CURE


def test_every_public_name_can_be_had_from_the_package() -> None:
    """`from wfcore import …` gives each listed name, `dir` lists them, and no other is there."""
    names = [name for found in surface.exports().values() for name in found]
    assert len(set(names)) == len(names)
    assert all(getattr(wfcore, name) is not None for name in names)
    assert dir(wfcore) == wfcore.__all__ == sorted([*names, "sync"])
    with pytest.raises(AttributeError):
        _ = wfcore.nothing_of_that_name  # type: ignore[attr-defined]


@pytest.mark.parametrize("package", PACKAGES)
def test_types_are_shipped(package: str) -> None:
    """Type checkers of embedders see the annotations."""
    assert (surface.SRC / package / "py.typed").is_file()
