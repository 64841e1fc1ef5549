"""Strict JSON: what is read, what is refused, and that nothing else can happen."""

import json
from contextlib import suppress
from types import MappingProxyType

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters_http.json_text import dump_json, parse_json, parse_object
from wfcore.errors import InvalidInput
from wfcore.rules.json_text import MAX_DEPTH, exactly, refuse_repeated_keys
from wfcore.rules.numbers import kept
from wfcore.testing.strategies.values import json_values

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | st.sampled_from(["[", "{", '"', "\\", '\\"[', "]}", "\\\\"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=120
)
LAYOUTS = st.sampled_from([{}, {"indent": 1}, {"ensure_ascii": False}, {"separators": (",", ":")}])


def nested(depth: int, opening: str = "[", closing: str = "]") -> bytes:
    return (opening * depth + "1" + closing * depth).encode()


@given(value=VALUES, layout=LAYOUTS)
def test_every_valid_document_is_read_as_python_reads_it(value, layout):
    """Whatever Python writes as JSON comes back as the same value."""
    text = json.dumps(value, **layout)
    assert parse_json(text.encode()) == json.loads(text)


@given(value=VALUES)
def test_what_was_read_can_be_written(value):
    """Everything that was read can be written, and reads the same again."""
    assert parse_json(dump_json(value)) == value


@given(
    body=st.binary()
    | st.text('[]{}",:\\u01d8eE+-. \ntruefalsnNaIy').map(str.encode)
    | VALUES.map(lambda value: json.dumps(value)[:-1].encode())
)
@example(body=b"[" * 100_000)
@example(body=b'{"a":' * 2_000)
@example(body=b'"' + b"\\" * 101 + b"[" * 100)
def test_any_bytes_are_a_value_or_invalid_input(body):
    """Whatever bytes come in, the outcome is a value or `InvalidInput`."""
    with suppress(InvalidInput):
        dump_json(parse_json(body))


@pytest.mark.parametrize("body", [b"", b" ", b"\r\n\t "])
def test_an_empty_body_is_an_empty_object(body):
    """No body, or blanks alone, counts as {}."""
    assert parse_json(body) == {}
    assert parse_object(body) == {}


@pytest.mark.parametrize(
    "body",
    [
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"[1] x",
        b"{} {}",
        b"[1,]",
        b"01",
        b"'a'",
        b'{"a":1,}',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\xc0\xaf"',
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'{"\\ud800":1}',
        b'"\x01"',
        b'"\n"',
        b'"\\x"',
        b"\xef\xbb\xbf{}",
        '{"a":1}'.encode("utf-16"),
        '{"a":1}'.encode("utf-16-le"),
        '{"a":1}'.encode("utf-32"),
        b"1e309",
        b"-1e999999999",
        b"1" * 400,
        b"\x00",
        b"// c\n1",
    ],
)
def test_what_is_not_strict_json_is_refused(body):
    """NaN, other encodings, trailing text, lone surrogates, numbers beyond a double: 400."""
    with pytest.raises(InvalidInput):
        parse_json(body)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a":1,"b":0,"a":2}', {"a": 2, "b": 0}),
        (b'"\\u0000"', "\x00"),
        (b'"\\ud83d\\ude00"', "😀"),
        (b"9223372036854775807", 2**63 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"1e-400", 0.0),
    ],
)
def test_the_corners_of_strict_json_are_read(body, value):
    """Of equal keys the last wins; NUL, surrogate pairs and 64-bit integers are kept."""
    assert parse_json(body) == value


@pytest.mark.parametrize(
    "number", ["9223372036854775808", "-9223372036854775809", "9" * 300, "9" * 5_000, "1e400"]
)
def test_a_number_that_would_be_another_is_named(number):
    """An integer beyond 64 bits and a decimal beyond the doubles are refused with their path."""
    with pytest.raises(InvalidInput) as refused:
        parse_json(b'{"rows": [{"no": "12345678901234567890"}, {"n": [0, %s]}]}' % number.encode())
    assert refused.value.field == "rows[1].n[1]"


def test_digits_within_a_text_are_no_number():
    """However many there are, and whatever stands around them."""
    text = b'{"\\"a\\\\": "9223372036854775808\\" 1e400", "n": 1}'
    assert parse_json(text) == {'"a\\': '9223372036854775808" 1e400', "n": 1}


@pytest.mark.parametrize("reader", [kept, exactly])
def test_only_a_decision_refuses_a_rounded_decimal(reader):
    """Elsewhere it is the nearest double, as in any JSON reader. NU-2."""
    body = b'{"a": 120.00, "b": 1e2, "c": 0.1, "d": 5e-324, "e": 0e-400, "f": %s}'
    for number, value in ((b"1.00000000000000000001", 1.0), (b"1e-400", 0.0)):
        if reader is kept:
            assert parse_object(body % number, reader)["f"] == value
        else:
            with pytest.raises(InvalidInput, match=r"^f: the number would become "):
                parse_object(body % number, reader)
    assert parse_object(body % b"1", reader)["a"] == 120


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"k":', "}"), ('[{"k":', "}]")])
def test_the_depth_limit_is_exact(opening, closing):
    """64 levels are read, one more is refused."""
    depth = MAX_DEPTH // (opening.count("[") + opening.count("{"))
    parse_json(nested(depth, opening, closing))
    with pytest.raises(InvalidInput, match="64 levels"):
        parse_json(b"[" + nested(depth, opening, closing) + b"]")


@given(text=st.text('[{\\"a', min_size=80, max_size=300))
def test_brackets_inside_strings_do_not_nest(text):
    """However many brackets, quotes and backslashes a string holds, it is flat."""
    document = [text, {text: text}]
    assert parse_json(json.dumps(document).encode()) == document


@given(depth=st.integers(1, 90), noise=st.lists(st.text('[]{}"\\'), min_size=1, max_size=4))
def test_depth_is_counted_around_hostile_strings(depth, noise):
    """Strings full of quotes, brackets and backslashes neither hide nor add levels."""
    document: object = noise
    for _ in range(depth):
        document = [noise, document, {}]
    body = json.dumps(document).encode()
    if depth + 1 <= MAX_DEPTH:
        assert parse_json(body) == document
    else:
        with pytest.raises(InvalidInput):
            parse_json(body)


OBJECTS = st.dictionaries(st.text('a":\\\\{é', max_size=3), json_values(), max_size=3)


def repeated(body: bytes) -> str | None:
    try:
        refuse_repeated_keys(body, parse_json(body))
    except InvalidInput as mistake:
        return mistake.field
    return None


@given(OBJECTS)
def test_a_document_without_repeats_passes(document):
    """Whatever its strings hold: quotes, colons, backslashes, braces."""
    assert repeated(json.dumps(document).encode()) is None
    assert repeated(json.dumps({'":"': "\\", '\\"a': ':"', "x": document}).encode()) is None


@given(OBJECTS.filter(bool), st.data(), st.integers(0, 5))
def test_a_key_that_stands_twice_is_named(document, data, depth):
    """AP-26: at any depth, beside any other keys, however its second writing is escaped."""
    key = data.draw(st.sampled_from(sorted(document)))
    text = json.dumps(document)[:-1] + f",{json.dumps(key, ensure_ascii=False)}:1}}"
    text = '{"a":[1,' * depth + text + "]}" * depth
    assert repeated(text.encode("utf-8", "surrogatepass")) == key[:80]


@pytest.mark.parametrize("body", [b"[]", b"null", b"1", b'"{}"', b"true"])
def test_an_object_is_asked_for_by_name(body):
    """Where an object is needed, another value is refused."""
    with pytest.raises(InvalidInput, match="must be a JSON object"):
        parse_object(body)


def test_any_mapping_and_sequence_can_be_written():
    """Frozen mappings and tuples, at any level, are objects and arrays."""
    value = MappingProxyType({"a": (MappingProxyType({"b": ()}), range(2))})
    assert dump_json(value) == b'{"a":[{"b":[]},[0,1]]}'


def test_the_deepest_accepted_document_can_be_written_inside_an_envelope():
    """64 levels inside twenty more can still be written."""
    value = parse_json(nested(MAX_DEPTH))
    for _ in range(20):
        value = MappingProxyType({"stepResults": value})
    assert orjson.loads(dump_json(value))


@pytest.mark.parametrize("odd", [2**64, -(2**63) - 1, 99999999999999999999123, "\ud83d"])
def test_what_earlier_releases_kept_can_be_written(odd):
    """Integers beyond 64 bits and halves of characters, also beside frozen mappings."""
    value = MappingProxyType({"a": (MappingProxyType({"b": odd}), "ä")})
    assert json.loads(dump_json(value)) == {"a": [{"b": odd}, "ä"]}


def test_what_has_no_json_form_is_a_programming_error():
    """An object that is no JSON raises `TypeError`, naming its type."""
    with pytest.raises(TypeError):
        dump_json({"a": object()})
