"""
Suggestions for unknown words. Words and names may come from strangers, so the cost has a bound.
DF-16.
"""

from collections.abc import Collection
from difflib import get_close_matches

_LONGEST = 40
"""The characters of words that are compared. Nobody mistypes a longer one by a letter or two."""
_MOST_SHOWN = 2_000
"""The characters of a list of known words."""


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known word that is most like *word*, or None."""
    if len(word) > _LONGEST:
        return None
    short = [one for one in known if len(one) <= _LONGEST]
    return next(iter(get_close_matches(word, short, n=1)), None)


def listed(known: Collection[str]) -> str:
    """The *known* words in one line, which is cut if it is long."""
    text = ", ".join(known)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
