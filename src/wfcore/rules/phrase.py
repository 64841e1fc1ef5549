"""
Sentences that keep their parts, so that pages can translate them.

A phrase is its English text wherever a text is needed. A page translates the template, which `make
messages` collects, and shows the facts in its own way: a link, a time in the reader's zone.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from wfcore.time import EpochMs

INSTANTS = ("until", "since")
"""The names of facts that are `EpochMs`."""


class Phrase(str):
    """
    A text in English. `template`: the sentence with a place for each of the `facts`, by their
    names.
    """

    __slots__ = ("facts", "template")
    template: str
    facts: Mapping[str, object]


def phrase(template: str, **facts: object) -> Phrase:
    """
    *template* with its *facts*: a text, a number, an instant under one of the `INSTANTS`, or a
    phrase.
    """
    said_of = {name: _in_english(name, fact) for name, fact in facts.items()}
    made = Phrase(template.format_map(said_of))
    made.template, made.facts = template, facts
    return made


def translated(text: str, gettext: Callable[[str], str]) -> str:
    """*text* in the language of *gettext*; a text that is no phrase has no facts to fill in."""
    if not isinstance(text, Phrase):
        return gettext(text)
    facts = {
        name: translated(fact, gettext) if isinstance(fact, Phrase) else _in_english(name, fact)
        for name, fact in text.facts.items()
    }
    return gettext(text.template).format_map(facts)


def _in_english(name: str, fact: object) -> object:
    return instant_text(fact) if name in INSTANTS and isinstance(fact, int) else fact


def instant_text(at: int) -> str:
    """An instant (`EpochMs`) in words, in UTC and to the second."""
    return f"{datetime.fromtimestamp(EpochMs(at) / 1_000, UTC):%Y-%m-%d %H:%M:%SZ}"
