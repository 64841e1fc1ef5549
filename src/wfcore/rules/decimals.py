"""
Numbers as people type them into fields: `1200,50`, `1 200.50`, `1.200,50`. AP-46.

The reader's languages decide which sign is the decimal sign. A text that may be two numbers is
refused. `values.js` has the same rule, and a test compares the two.
"""

import re
from collections.abc import Sequence


class Doubtful(ValueError):
    """
    A text that may be two values: `one` or `other`. `exact`: a spelling of `other` that is not in
    doubt.
    """

    def __init__(self, one: str, other: str, exact: str) -> None:
        super().__init__(one, other, exact)
        self.one, self.other, self.exact = one, other, exact


def decimal_signs(tags: Sequence[str]) -> str:
    """
    The decimal signs of languages such as `de-AT`, in their order; a point if there are no
    languages. Browsers send `es` after `es-MX` as a substitute: such a tag says nothing about the
    reader.
    """
    signs, regional = "", set[str]()
    for tag in tags:
        language, *rest = tag.split("-")
        if rest or language.lower() not in regional:
            signs += _sign_of(language, *rest)
        if rest:
            regional.add(language.lower())
    return signs or "."


def _sign_of(language: str, *rest: str) -> str:
    comma = f" {language.lower()} " in _COMMA
    region = next((part.upper() for part in rest if len(part) == 2 or part.isdigit()), "")
    return "," if comma != (region in _OTHERWISE.get(language.lower(), "").split()) else "."


_COMMA = (
    " af az be bg br bs ca cs cv da de el eo es et eu ff fi fo fr fy gl hr hu hy ia id ie is it jv "
    "ka kk kl ku ky lb ln lo lt lu lv mk mn nb nl nn no oc os pl ps pt rm rn ro ru rw sc se sg sk "
    "sl sq sr su sv tg tk tr tt uk uz vi wo "
)
"""Languages with a decimal comma, by CLDR; all other languages have a point."""
_OTHERWISE = {
    "ar": "DZ LB LY MA MR TN",
    "de": "CH LI",
    "en": "AT BE CZ DE DK EE ES FI FR GE HU ID IT LT LV NL NO PL PT RO SE SI SK UA ZA",
    "es": "BR BZ CU DO GT HN MX NI PA PE PR SV US 419",
    "it": "CH",
    "kk": "CN",
    "ku": "IQ",
    "ms": "BN ID",
    "qu": "BO",
    "sw": "CD",
}
"""The regions in which a language uses the other sign."""


def decimal_text(typed: str, signs: str) -> str | None:
    """
    The number of *typed* as JSON writes it; None if *typed* is no number. *signs*: the decimal
    signs of the reader's languages, in the order of the languages. Raises `Doubtful`.
    """
    text = _without_blanks(typed.strip().replace("\N{MINUS SIGN}", "-"))
    commas, dots = text.count(","), text.count(".")
    if commas and dots:
        last = max(",", ".", key=text.rindex)
        whole, _, part = text.rpartition(last)
        if last in whole or not _GROUPED.fullmatch(whole):
            return None
        text = f"{_SIGN.sub('', whole)}.{part}"
    elif commas > 1 or dots > 1:
        if not _GROUPED.fullmatch(text):
            return None
        text = _SIGN.sub("", text)
    elif (commas or "," in signs) and _DOUBTFUL.fullmatch(text):
        other = _SIGN.sub(signs[0], text)
        raise Doubtful(_SIGN.sub("", text), other, f"{other}0")
    found = _NUMBER.fullmatch(text.replace(",", "."))
    if not found or not (found[2] or found[3]):
        return None
    sign, whole, part, power = (found[at] or "" for at in range(1, 5))
    part = part.rstrip("0")
    whole = whole.lstrip("0") or "0"
    return f"{sign.strip('+')}{whole}{'.' if part else ''}{part}{power}"


def _without_blanks(text: str) -> str:
    """*text* without the separators between groups of thousands, points and commas excepted."""
    found = _SPACED.match(text)
    return re.sub(r"[\s'’]", "", found[0]) + text[found.end() :] if found else text


_SIGN = re.compile(r"[.,]")
_SPACED = re.compile(r"[+-]?[0-9]{1,3}(?:[\s'’][0-9]{3})+(?![0-9])")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:(?:,[0-9]{2,3})*,[0-9]{3}|(?:\.[0-9]{3})+)")
_DOUBTFUL = re.compile(r"[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}")
_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+)?")
