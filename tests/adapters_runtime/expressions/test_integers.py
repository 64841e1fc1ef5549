"""Integers in templates: each that comes out is the same after it was stored and read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters_runtime.expressions.templates import MiniJinjaTemplates
from adapters_store.sql.cells import text_of, value_of
from wfcore.errors import TemplateFailed
from wfcore.model.json import Json
from wfcore.testing.strategies.values import json_values

TEMPLATES = MiniJinjaTemplates()
TOO_LONG = "the number does not fit 64 bits; keep it as text, or use float"
NAMES: dict[str, Json] = {
    "n": 2**53 + 1,
    "most": 2**63 - 1,
    "least": -(2**63),
    "digits": "99999999999999999999123",
    "beyond": 2**63,
    "ratio": 1e30,
}


@pytest.mark.parametrize(
    "expression",
    [
        "digits | int",
        "'-9223372036854775809' | int",
        "ratio | int",
        "ratio | round",
        "n * n",
        "most + 1",
        "least - 1",
        "-least",
        "most * most // most",
        "[most, 1] | sum",
        "9223372036854775808",
        "n < 9223372036854775808",
        "[1, {'a': [digits | int]}]",
        "beyond",
        "beyond | int",
        "[1, {'a': [beyond]}]",
        "9" * 5_000,
    ],
)
def test_an_integer_beyond_64_bits_fails(expression: str) -> None:
    """Wherever it stands and wherever it comes from, with words that say what to do."""
    with pytest.raises(TemplateFailed) as failed:
        TEMPLATES.render({"a": [f"{{{{ {expression} }}}}"]}, NAMES)
    assert failed.value.why == TOO_LONG


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("most", 2**63 - 1),
        ("'9223372036854775807' | int", 2**63 - 1),
        ("9223372036854775806 + 1", 2**63 - 1),
        ("-most", 1 - 2**63),
        ("-9223372036854775808", -(2**63)),
        ("least | int", -(2**63)),
        ("digits | float", 99999999999999999999123.0),
        ("(n | float) * n", float(2**53) * (2**53 + 1)),
    ],
)
def test_what_fits_is_given(expression: str, value: Json) -> None:
    """To the last integer of 64 bits, its sign included; beyond as a double on request."""
    found = TEMPLATES.render(f"{{{{ {expression} }}}}", NAMES)
    assert (found, type(found)) == (value, type(value))


def test_a_literal_beyond_64_bits_is_found_in_the_text() -> None:
    """Before anything runs, as one in the definition is."""
    assert TEMPLATES.problems("{{ 9223372036854775808 }}", {}) == [TOO_LONG]


INTEGERS = st.sampled_from([2**32, 2**53 + 1, 2**63, 2**64]).flatmap(
    lambda edge: st.integers(-edge - 1, edge + 1)
)
PARTS = st.recursive(
    INTEGERS.map(str) | INTEGERS.map("'{}'".format) | st.sampled_from(["0.5", "1e20", "x", "y"]),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "//"]), inner),
        st.builds("(-{})".format, inner),
        st.builds("({} | {})".format, inner, st.sampled_from(["int", "float", "round", "first"])),
        st.builds("([{}, {}] | {})".format, inner, inner, st.sampled_from(["sum", "max", "first"])),
        st.builds("[{}, {{'a': {}}}]".format, inner, inner),
    ),
    max_leaves=5,
)


@given(PARTS, json_values(), INTEGERS)
@settings(max_examples=500)
def test_what_an_expression_gives_outlasts_storing(expression: str, x: Json, y: int) -> None:
    """It is the same, of the same types, after it was stored and read; or the template fails."""
    try:
        found = TEMPLATES.render({"a": f"{{{{ {expression} }}}}"}, {"x": x, "y": y})
    except TemplateFailed:
        return
    again = value_of(text_of(found))
    assert again == found
    assert repr(again) == repr(found)
