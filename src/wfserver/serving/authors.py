"""
What a server does for authors at its pages: it reads texts, plays scenarios, and has examples.

The modules behind it are loaded when an author needs them.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from adapters_http.config import ExampleDefinition
from wfcore.errors import InvalidDefinition
from wfcore.model.workflow import Definition, Runtime

if TYPE_CHECKING:
    from wfcore.scenarios.judging import ScenarioResult


def definition_in(javascript: Runtime, text: bytes) -> Definition:
    """The definition in *text*, checked as `wfcore workflow apply` does."""
    from wfserver.definitions.read import checked

    return checked(text, "", javascript=javascript)


@cache
def sample_definition() -> tuple[Definition, str]:
    """The definition and the text of the sample."""
    from wfserver import sample
    from wfserver.definitions.read import checked

    text = sample.text()
    return checked(text, sample.NAME, runs_here=False), text.decode()


def lines_in(text: bytes) -> Mapping[str, int]:
    """The line of each field in *text*, by its path; none if the text cannot be read."""
    from adapters_runtime.definition_yaml import load_definition_text

    try:
        return load_definition_text(text, "")[1]
    except InvalidDefinition:
        return {}


def played(
    text: bytes, definition: Definition, others: Sequence[Definition]
) -> "Sequence[ScenarioResult]":
    """The results of the scenarios in *text*, as `wfcore test` plays them."""
    from wfserver.definitions.scenarios import played_text

    return played_text(text, definition, others)


def examples() -> Sequence[ExampleDefinition]:
    """The definitions that are shipped, to begin with."""
    from wfserver.definitions.examples import shipped

    return shipped()


OFFERS: Mapping[str, Any] = {
    "sample": sample_definition,
    "read_lines": lines_in,
    "play_scenarios": played,
    "example_definitions": examples,
}
"""The settings of `HttpConfig` for authors."""
