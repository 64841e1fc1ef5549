"""Dates as people write them: by their own order of day and month, and asked back in doubt."""

import re

import pytest
from babel import Locale, localedata

from wfcore.rules.decimals import Doubtful
from wfcore.rules.written_dates import date_orders, date_text, is_date

UNSETTLED = ("ff", "ga", "sa", "se", "ti")
"""Languages whose order differs from one edition of CLDR to the next."""


def test_every_language_has_its_order():
    """As CLDR says, with and without a region. AP-48."""
    wrong = set[str]()
    for name in localedata.locale_identifiers():
        locale = Locale.parse(name)
        if len(locale.language) != 2 or locale.script or locale.variant:
            continue
        if locale.language in UNSETTLED:
            continue
        form = locale.datetime_skeletons.get("yMd") or locale.date_formats["short"]
        order = "".join(dict.fromkeys(re.findall("[yMd]", form.pattern))).lower()
        first = order[0] if order in ("dmy", "mdy") else ""
        if date_orders([name.replace("_", "-")]) != first:
            wrong.add(f"{name} {order}")
    assert wrong == set()


@pytest.mark.parametrize(
    ("tags", "orders"),
    [
        ([], ""), (["en"], "m"), (["en-AU", "en"], "d"), (["en-GB", "en-US", "en"], "dm"),
        (["de-DE", "de", "en-US", "en"], "dm"), (["es-MX"], "d"), (["es-PR"], "m"), (["ja"], ""),
        (["ja", "en-US"], "m"), (["sv-SE", "de"], "d"), (["zh-Hant-TW"], ""), (["fr-CA"], ""),
    ],
)  # fmt: skip
def test_the_orders_of_several_languages(tags: list[str], orders: str):
    """All that say one count; `en` beside `en-AU` says none, nor do those with the year first."""
    assert date_orders(tags) == orders


@pytest.mark.parametrize("orders", ["", "d", "m", "dm"])
@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("2026-12-31", "2026-12-31"), ("2026/12/31", "2026-12-31"), ("2026. 12. 31.", "2026-12-31"),
        ("2026-1-5", "2026-01-05"), ("31.12.2026", "2026-12-31"), ("12/31/2026", "2026-12-31"),
        ("31/12/2026", "2026-12-31"), ("31-12-2026", "2026-12-31"), ("31. 12. 2026", "2026-12-31"),
        (" 31.12.2026 ", "2026-12-31"), ("7/7/2026", "2026-07-07"), ("07.07.2026", "2026-07-07"),
        ("31.12.2026 00:00", "2026-12-31"), ("12/31/2026 0:00:00", "2026-12-31"),
        ("12/31/2026 12:00:00\u202fAM", "2026-12-31"), ("2026-12-31T00:00:00.000Z", "2026-12-31"),
        ("31.12.2026, 00:00:00", "2026-12-31"), ("29/2/2028", "2028-02-29"),
        ("", None), ("abc", None), ("31.12.2026 14:30", None), ("12/31/2026 12:00 PM", None),
        ("31.12.26", None), ("31.12", None), ("31/12.2026", None), ("29.2.2026", None),
        ("31.13.2026", None), ("13/13/2026", None), ("0000-01-01", None), ("1.1.0000", None),
        ("12-11-12", None), ("2026-11-2026", None), ("٣١.١٢.٢٠٢٦", None), ("20261231", None),
        ("2026-W01-1", None), ("31.12.2026x", None),
    ],
)  # fmt: skip
def test_what_can_be_one_date_only_is_that(typed: str, text: str | None, orders: str):
    """Whatever the reader's order; a time of day other than midnight is no part of a date."""
    assert date_text(typed, orders) == text


@pytest.mark.parametrize(
    ("typed", "orders", "text"),
    [
        ("12/11/2026", "d", "2026-11-12"), ("12/11/2026", "m", "2026-12-11"),
        ("12.11.2026", "d", "2026-11-12"), ("12.11.2026", "dm", "2026-11-12"),
        ("12-11-2026", "d", "2026-11-12"), ("1/2/2026 0:00", "m", "2026-01-02"),
        ("12/11/2026", "dm", None), ("12/11/2026", "", None), ("12-11-2026", "dm", None),
        ("12.11.2026", "m", None), ("12.11.2026", "", None),
    ],
)  # fmt: skip
def test_what_can_be_two_dates_is_the_readers_or_asked_back(
    typed: str, orders: str, text: str | None
):
    """With points the day comes first wherever anybody writes points. AP-48."""
    if text is not None:
        assert date_text(typed, orders) == text
        return
    with pytest.raises(Doubtful) as found:
        date_text(typed, orders)
    assert (found.value.one, found.value.other) == ("2026-11-12", "2026-12-11")
    assert found.value.exact == found.value.other


@pytest.mark.parametrize(
    ("text", "fits"),
    [("2026-12-31", True), ("2026-02-29", False), ("2026-1-5", False), ("31.12.2026", False)],
)
def test_a_date_as_it_is_kept(text: str, fits: bool):
    """It has four digits, two and two, and is in the calendar."""
    assert is_date(text) is fits
