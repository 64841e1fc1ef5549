"""Numbers as people write them: by their own decimal sign, and asked back where it is in doubt."""

import pytest
from babel import Locale, localedata
from babel.numbers import get_decimal_symbol

from wfcore.rules.decimals import Doubtful, decimal_signs, decimal_text

UNSETTLED = ("ht", "mn", "nr", "oc", "os", "rm", "ss", "ts", "ve")
"""Languages whose sign differs from one edition of CLDR to the next."""


def test_every_language_has_its_sign():
    """As CLDR says, with and without a region."""
    wrong = set[str]()
    for name in localedata.locale_identifiers():
        locale = Locale.parse(name)
        if len(locale.language) == 2 and not (locale.script or locale.language in UNSETTLED):
            sign = get_decimal_symbol(locale, numbering_system="latn")
            if decimal_signs([name.replace("_", "-")]) != sign:
                wrong.add(f"{name} {sign}")
    assert wrong == set()
    assert decimal_signs([]) == "."
    assert decimal_signs(["es-MX", "de", "zh-Hant-TW"]) == ".,."
    assert decimal_signs(["es-MX", "es", "en"]) == ".."
    assert decimal_signs(["de", "de-CH"]) == ",."


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("12", "12"), ("1200,50", "1200.5"), ("1 200.50", "1200.5"), ("1.200,50", "1200.5"),
        ("1,200.50", "1200.5"), ("1,200,300", "1200300"), ("1.200.300", "1200300"), ("-.5", "-0.5"),
        ("12,34,567.5", "1234567.5"), ("1’200’300", "1200300"), ("\u22125", "-5"), ("+5", "5"),
        ("007", "7"), ("1e3", "1e3"), ("2,0", "2"), (" 5. ", "5"), ("1\u202f200", "1200"),
        ("9007199254740993,0", "9007199254740993"), ("0,123", "0.123"), ("1000,123", "1000.123"),
        ("", None), ("abc", None), ("1.2.3", None), ("--1", None), ("1 2", None), ("1 2005", None),
        ("1.200,300.4", None), ("1,2.300,4", None), ("12 34", None), (".", None), ("NaN", None),
        ("0x10", None), ("1_000", None), ("١٢", None), ("5 %", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("signs", [".", ",", ",."])
def test_what_can_be_one_number_only_is_that(typed: str, text: str | None, signs: str):
    """Whatever the reader's sign: blanks, points and commas between groups of digits are read."""
    assert decimal_text(typed, signs) == text


@pytest.mark.parametrize(
    ("typed", "signs", "asked"),
    [
        ("1.200", ",", ("1200", "1,200", "1,2000")), ("1,200", ",", ("1200", "1,200", "1,2000")),
        ("-12.345", ",.", ("-12345", "-12,345", "-12,3450")),
        ("1.200", ".,", ("1200", "1.200", "1.2000")), ("1,200", ".", ("1200", "1.200", "1.2000")),
    ],
)  # fmt: skip
def test_what_can_be_two_numbers_is_asked_back(typed: str, signs: str, asked: tuple[str, ...]):
    """Thousands or a decimal: the answer says how to write either, and is none itself. AP-46."""
    with pytest.raises(Doubtful) as found:
        decimal_text(typed, signs)
    doubt = found.value
    assert (doubt.one, doubt.other, doubt.exact) == asked
    exact = decimal_text(doubt.exact, signs)
    assert decimal_text(doubt.one, signs) == asked[0]
    assert exact is not None
    assert float(exact) == float(asked[1].replace(",", "."))


def test_a_point_is_a_point_to_who_writes_points():
    """`1.200` is in doubt only where one of the reader's languages has a comma."""
    assert decimal_text("1.200", ".") == "1.2"
