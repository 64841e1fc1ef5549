"""
The reader's language and the reader's notation of numbers and dates.

Every text of a page is translated by `_`; a text that a module holds is marked by `N_`. Each
request has its own language, in a context variable of its task.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from operator import itemgetter

from adapters_http.browsers import cookie
from adapters_http.request import Request
from wfcore.rules.decimals import decimal_signs
from wfcore.rules.phrase import translated
from wfcore.rules.written_dates import date_orders
from wfcore.wire.languages import ENGLISH, LANGUAGES, translations

_SPOKEN: ContextVar[str] = ContextVar("language", default=ENGLISH)
_SIGNS: ContextVar[str] = ContextVar("decimal signs", default=".")
_ORDERS: ContextVar[str] = ContextVar("orders of dates", default="")
CHOSEN = "wfcore_language"
"""The cookie with the language that the reader chose."""


def speak(request: Request) -> None:
    """Set the language and the conventions of the reader for the task of this request."""
    accepted = request.header(b"accept-language")
    _SPOKEN.set(tag_for(cookie(request, CHOSEN), accepted))
    tags = _preferred(accepted or "") or [tag()]
    _SIGNS.set(decimal_signs(tags))
    _ORDERS.set(date_orders(tags))


def tag_for(chosen: str | None, accepted: str | None) -> str:
    """
    The tag of an available language, with the region of the reader if known (`de-AT`): *chosen*,
    otherwise the first available language in *accepted*, otherwise English.
    """
    tags = [*_preferred(accepted or ""), ENGLISH]
    known = [tag for tag in tags if tag.partition("-")[0].lower() in LANGUAGES]
    if chosen in LANGUAGES:
        return next((tag for tag in known if tag.partition("-")[0].lower() == chosen), chosen)
    return known[0]


def _preferred(accepted: str) -> Sequence[str]:
    """The tags of an Accept-Language header, by preference."""
    found = list[tuple[float, str]]()
    for part in accepted.split(",")[:_MOST_TAGS]:
        tag, _, quality = part.strip().partition(";q=")
        if _TAG.fullmatch(tag):
            found.append((-float(quality) if _QUALITY.fullmatch(quality) else -1.0, tag))
    return [tag for weight, tag in sorted(found, key=itemgetter(0)) if weight < 0]


_MOST_TAGS = 20
_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}", re.ASCII)
_QUALITY = re.compile(r"[01](\.[0-9]{1,3})?", re.ASCII)


def tag() -> str:
    """The tag of the present language, for the page and its scripts."""
    return _SPOKEN.get()


def language() -> str:
    """The present language."""
    return tag().partition("-")[0].lower()


def _(text: str) -> str:
    """*text* in the present language."""
    return translations(language()).gettext(text)


def ngettext(one: str, many: str, count: int) -> str:
    """*one* or *many*, by *count*, in the present language."""
    return translations(language()).ngettext(one, many, count)


def N_(text: str) -> str:
    """
    *text* unchanged, but marked for translation: a module, which is loaded once, holds the text,
    and the text is translated when it is rendered.
    """
    return text


class TranslatedTexts(Mapping[str, str]):
    """Texts and phrases by key, translated into the present language on access."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def __getitem__(self, key: str) -> str:
        return translated(self._texts[key], _)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def has_comma() -> bool:
    """Whether the reader writes a decimal comma, and dots between groups of digits."""
    return signs()[0] == ","


def signs() -> str:
    """
    The decimal signs of the languages that the browser names, the first language first. The
    language of the page does not matter. AP-46.
    """
    return _SIGNS.get()


def orders() -> str:
    """The orders of dates in the reader's languages: see `date_orders`. AP-48."""
    return _ORDERS.get()
