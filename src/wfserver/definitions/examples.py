"""The definitions that are shipped as examples."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from adapters_http.config import ExampleDefinition
from adapters_runtime.definition_yaml import load_definition_text

_PLACES = ("wfserver/examples", "../examples/workflows")
"""The folder in a wheel, and that of a development tree, from the folder of the packages."""


@cache
def shipped() -> Sequence[ExampleDefinition]:
    """The examples with their tests, by name; none if they are not installed."""
    packages = Path(__file__).parents[2]
    folder = next((at for one in _PLACES if (at := packages / one).is_dir()), None)
    if folder is None:
        return ()
    files = (one for one in sorted(folder.glob("*.yaml")) if not one.name.endswith(".test.yaml"))
    return [_example(one) for one in files]


def _example(file: Path) -> ExampleDefinition:
    text = file.read_text("utf-8")
    said, _ = load_definition_text(text, file.name)
    assert isinstance(said, dict)
    about = str(said.get("description") or "")
    return ExampleDefinition(file.stem, str(said["name"]), text, about, _tests(file))


def _tests(file: Path) -> str:
    tests = file.with_suffix(".test.yaml")
    return tests.read_text("utf-8") if tests.exists() else ""
