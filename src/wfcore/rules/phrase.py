"""
Sentences that remember what they are made of, so that others can say them in another language.

A phrase is its English text wherever a text is wanted. A page translates the template, which
`make messages` collects, and shows the facts in its own way: a link, a time of the reader's zone.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from wfcore.time import EpochMs

INSTANTS = ("until", "since")
"""Facts of these names are `EpochMs`."""


class Phrase(str):
    """A text in English. `template`: with a place for each of the `facts`, by their names."""

    __slots__ = ("facts", "template")
    template: str
    facts: Mapping[str, object]


def phrase(template: str, **facts: object) -> Phrase:
    """*template* with its *facts*: text, a number, an instant under such a name, or a phrase."""
    said_of = {name: _in_english(name, fact) for name, fact in facts.items()}
    made = Phrase(template.format_map(said_of))
    made.template, made.facts = template, facts
    return made


def _in_english(name: str, fact: object) -> object:
    return said(fact) if name in INSTANTS and isinstance(fact, int) else fact


def said(at: int) -> str:
    """An instant (`EpochMs`) in words, in UTC and to the second."""
    return f"{datetime.fromtimestamp(EpochMs(at) / 1_000, UTC):%Y-%m-%d %H:%M:%SZ}"
