"""
Dates as people and their spreadsheets write them into fields: `31.12.2026`, `12/31/2026`. AP-48.

The reader's languages decide whether the day or the month comes first. A text that may be two dates
is refused. `values.js` has the same rule, and a test compares the two.
"""

import re
from collections.abc import Sequence
from datetime import date

from wfcore.rules.decimals import Doubtful

DAY, MONTH = "d", "m"


def is_date(text: str) -> bool:
    """Whether *text* is a date in the stored form: YYYY-MM-DD."""
    return _KEPT.fullmatch(text) is not None and _date(*text.split("-")) is not None


def date_orders(tags: Sequence[str]) -> str:
    """
    The orders of day and month in languages such as `en-GB`: `d` day first, `m` month first, `dm`
    either; empty if no language decides. `en` adds nothing to `en-GB`.
    """
    telling = [one for one in tags if not any(other.startswith(f"{one}-") for other in tags)]
    found = {_first_of(*one.split("-")) for one in telling}
    return "".join(one for one in (DAY, MONTH) if one in found)


def _first_of(language: str, *rest: str) -> str:
    language = language.lower()
    region = next((part.upper() for part in rest if len(part) == 2 or part.isdigit()), "")
    if region in _YEAR_REGIONS.get(language, "").split():
        return ""
    in_months = _MONTH_REGIONS.get(language, "").split()
    if f" {language} " in _MONTH_FIRST:
        return MONTH if not (in_months and region) or region in in_months else DAY
    if region in in_months:
        return MONTH
    return DAY if f" {language} " in _DAY_FIRST else ""


_DAY_FIRST = (
    " ab am an ar as az be bg bm bn br bs ca co cs cv cy da de el es et fi fo fr fy ga gd gl gu he "
    "hi hr ht hy ia id ie ig is it jv ka kk km kn ku lb ln lo lu lv mi mk ml mr ms my nb nl nn no "
    "oc pa pl pt qu rm rn ro ru rw sa sc sk sl sq sr su sw ta te tg th tk to tr tt uk ur uz vi wo "
    "yi yo "
)
"""Languages that write the day first, by CLDR."""
_MONTH_FIRST = " ee en fil iu ks mt om or so ti xh "
"""Languages that write the month first, by CLDR; the others begin with the year."""
_MONTH_REGIONS = {"en": "AS BI GU MH MP PH PR UM US VI", "es": "PA PR", "fa": "AF"}
"""Regions with the month first; in all others English has the day first."""
_YEAR_REGIONS = {"en": "SE ZA", "fr": "CA"}


def date_text(typed: str, orders: str) -> str | None:
    """
    The date of *typed* as YYYY-MM-DD; None if *typed* is no date. *orders*: see `date_orders`. A
    time of day is refused, except midnight, which spreadsheets add. Raises `Doubtful` for a text
    that may be two dates.
    """
    found = _WRITTEN.fullmatch(typed.strip())
    if found is None:
        return None
    one, sign, other, last = found.groups()
    if sign == ".":  # nobody writes points behind a month that comes first
        orders = DAY if DAY in orders else ""
    by_year = _date(one, other, last)
    return by_year or _chosen(_date(last, other, one), _date(last, one, other), orders)


def _chosen(by_day: str | None, by_month: str | None, orders: str) -> str | None:
    if by_day is None or by_month is None or by_day == by_month:
        return by_day or by_month
    if orders not in (DAY, MONTH):
        raise Doubtful(by_day, by_month, by_month)
    return by_day if orders == DAY else by_month


def _date(year: str, month: str, day: str) -> str | None:
    try:
        return date.fromisoformat(f"{year}-{month:0>2}-{day:0>2}").isoformat()
    except ValueError:
        return None


_KEPT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WRITTEN = re.compile(
    r"([0-9]{1,2}|[0-9]{4})([-/.])\s?([0-9]{1,2})\2\s?([0-9]{1,2}|[0-9]{4})\.?"
    r"(?:,?[T\s]\s*(?:0?0[:.]00[:.0]*|12:00[:0]*\s?AM)Z?)?"
)
