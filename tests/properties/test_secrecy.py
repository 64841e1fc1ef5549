"""Masking: no secret survives in what is shown. Contract §4."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.model.json import Json
from wfcore.rules.secrecy import MASK, mask, mask_text, secret_values
from wfcore.rules.variables import compact
from wfcore.testing import builders
from wfcore.testing.strategies import json_values, numbers, texts

LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="*")
secret_texts = st.lists(
    st.text(LETTERS, min_size=4, max_size=10).filter(str.strip), min_size=1, max_size=3
)
secret_objects = st.dictionaries(texts(1), st.text(LETTERS, min_size=4) | numbers(), min_size=1)


def leaves(value: Json) -> list[str]:
    """Every text, key and scalar of a value, as it would be shown."""
    if isinstance(value, dict):
        return [text for k, v in value.items() for text in (k, *leaves(v))]
    if isinstance(value, list):
        return [text for item in value for text in leaves(item)]
    return [value if isinstance(value, str) else compact(value)]


def hidden(*values: Json) -> tuple[str, ...]:
    """What is to be masked where variables of these values are secret."""
    named = {f"v{number}": value for number, value in enumerate(values)}
    return secret_values(builders.execution(variables=named, secrets=tuple(named)))


@st.composite
def leaks(draw, secrets) -> Json:
    """A value in which some of *secrets* turn up: as texts, inside texts, as keys."""
    inside = st.builds("{}{}{}".format, texts(), st.sampled_from(secrets), texts())
    text = inside | st.sampled_from(secrets) | texts()
    return draw(
        st.recursive(
            text | numbers(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
            max_leaves=6,
        )
    )


@given(secret_texts, st.data())
def test_no_secret_text_survives(secrets, data):
    """SC-1: neither as a whole, nor inside a text, nor in a key, at any depth."""
    masked = mask(data.draw(leaks(secrets)), hidden(*secrets))
    for text in leaves(masked):
        assert not any(secret in text for secret in secrets)


@given(secret_texts, st.data())
def test_no_secret_survives_as_json_writes_it(secrets, data):
    """SC-1: a secret printed by a JSON writer, escapes and all, is masked too."""
    secret = data.draw(st.sampled_from(secrets))
    for ascii_only in (True, False):
        written = json.dumps({"token": secret}, ensure_ascii=ascii_only)
        assert json.dumps(secret, ensure_ascii=ascii_only)[1:-1] not in mask_text(
            f"got {written}\n", hidden(*secrets)
        )


@given(secret_objects)
def test_no_part_of_a_secret_object_survives(value):
    """SC-2: an object is secret as a whole, as text, and in each of its texts and numbers."""
    secrets = hidden(value)
    shown = leaves(mask({"out": value, "log": compact(value), "list": [value]}, secrets))
    for secret in value.values():
        text = secret if isinstance(secret, str) else compact(secret)
        assert text not in shown
        if isinstance(secret, str):
            assert not any(secret in other for other in shown)


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ('tök"n', (r"t\u00f6k\"n", r"tök\"n", 'tök"n')),
        ("abcd\nabc\n1234", (r"abcd\nabc\n1234", "abcd\nabc\n1234", "1234", "abcd")),
        (7, ("7",)),
        (False, ("false",)),
        ({}, ()),
        ([], ()),
        (
            {"k": [1, None, True]},
            (r"{\"k\":[1,null,true]}", '{"k":[1,null,true]}', "[1,null,true]", "1"),
        ),
        (
            ["a", {"b": 2}],
            (r"[\"a\",{\"b\":2}]", '["a",{"b":2}]', r"{\"b\":2}", '{"b":2}', "2", "a"),
        ),
    ],
)
def test_what_is_masked_of_a_secret(value, texts):
    """SC-1, SC-2: the value as text, escaped, by line and by part; the longest first."""
    assert hidden(value) == texts


@given(st.lists(st.text("abcdef", min_size=4), min_size=2, max_size=4))
def test_no_line_of_a_secret_of_many_lines_survives(lines):
    """SC-1: logs show lines, so each line of a key file is a secret of its own."""
    secrets = hidden("\n".join(lines))
    for line in lines:
        assert line not in mask_text(f"read: {line}", secrets)


@given(st.text(LETTERS, min_size=1, max_size=3), texts())
def test_a_short_secret_is_masked_where_it_stands_alone(secret, text):
    """SC-3: inside other texts it would mask half the alphabet."""
    secrets = hidden(secret)
    assert mask(secret, secrets) == MASK
    assert mask([{secret: secret}], secrets) == [{MASK: MASK}]
    if text != secret:
        assert mask(text, secrets) == text


@given(numbers() | st.booleans())
def test_a_secret_that_is_no_text_is_masked_as_value_and_as_text(value):
    """SC-1: a secret number is no less secret than a text."""
    secrets = hidden(value)
    assert mask({"n": value, "t": compact(value)}, secrets) == {"n": MASK, "t": MASK}


@given(json_values())
def test_nothing_is_masked_where_nothing_is_secret(value):
    """Masking is no change by itself; null and empty secrets hide nothing."""
    assert mask(value, ()) == value
    assert hidden(None, "") == ()


@given(json_values())
def test_only_secrets_are_masked(value):
    """What holds no secret is shown as it is."""
    assert mask(value, hidden("a secret nobody would draw")) == value


@given(secret_texts, st.data())
def test_masking_twice_is_masking_once(secrets, data):
    """A masked value can pass a second masking sink unchanged."""
    once = mask(data.draw(leaks(secrets)), hidden(*secrets))
    assert mask(once, hidden(*secrets)) == once
