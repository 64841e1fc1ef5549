"""Masking: no secret survives in what is shown."""

import json
import re
import shlex
import subprocess
from base64 import b64decode, b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from wfcore.model.json import Json
from wfcore.rules.masking import MASK, NO_SECRETS, Secrets, mask, mask_text, secret_values
from wfcore.rules.variables import compact
from wfcore.testing import builders
from wfcore.testing.strategies.values import json_values, numbers, texts

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


def hidden(*values: Json) -> Secrets:
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
        ("plain", {"plain", "%70%6C%61%69%6E", "%70%6c%61%69%6e"}),
        (7, {"7", "%37"}),
        (False, {"false", "%66%61%6C%73%65", "%66%61%6c%73%65"}),
        ({}, set()),
        ([], set()),
    ],
)
def test_what_is_masked_alone_of_a_plain_secret(value, texts):
    """SC-1: nobody escapes anything of it but who escapes every byte."""
    assert hidden(value).alone == texts


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ('tök"n', (r"t\u00f6k\"n", r"tök\"n", 'tök"n', "t%C3%B6k%22n", r"t\u00F6k\"n")),
        ("abcd\nabc\n1234", (r"abcd\nabc\n1234", "abcd\nabc\n1234", "1234", "abcd")),
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
    secrets = hidden(value)
    assert secrets.alone >= set(texts)
    assert [len(one) for one in secrets.inside] == sorted(map(len, secrets.inside), reverse=True)
    assert set(secrets.inside) == {one for one in secrets.alone if len(one) >= 4}


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
    assert mask(value, NO_SECRETS) == value
    assert not hidden(None, "")


@given(json_values())
def test_only_secrets_are_masked(value):
    """What holds no secret is shown as it is."""
    assert mask(value, hidden("a secret nobody would draw")) == value


@given(secret_texts, st.data())
def test_masking_twice_is_masking_once(secrets, data):
    """A masked value can pass a second masking sink unchanged."""
    once = mask(data.draw(leaks(secrets)), hidden(*secrets))
    assert mask(once, hidden(*secrets)) == once


def base64_of(before: bytes, secret: str, after: bytes, url: bool, padded: bool) -> str:
    encode = urlsafe_b64encode if url else b64encode
    text = encode(before + secret.encode() + after).decode()
    return text if padded else text.rstrip("=")


def decoded(text: str) -> bytes:
    """Whatever is left of base64, as the bytes that it still tells."""
    plain = text.replace("-", "+").replace("_", "/").replace("=", "")
    return b64decode(plain[: len(plain) // 4 * 4])


@given(
    st.text(LETTERS, min_size=4, max_size=24),
    st.binary(max_size=7),
    st.binary(max_size=7),
    st.booleans(),
    st.booleans(),
)
def test_no_secret_survives_in_base64(secret, before, after, url, padded):
    """SC-1: in both alphabets, padded or not, and wherever in the encoded bytes it begins."""
    text = mask_text(f"<{base64_of(before, secret, after, url, padded)}>", hidden(secret))
    kept_before, mask_, kept_after = text.partition(MASK)
    assert mask_ == MASK
    assert decoded(kept_before[1:]) in before
    bits_before = 6 * len(kept_before[1:])
    assert bits_before <= 8 * len(before)  # not one bit of the secret is left in front of it
    assert 6 * len(kept_after[:-1].rstrip("=")) <= 8 * len(after) + 5


ENCODERS = {
    "component": lambda text: quote(text, safe="!*'()~"),
    "form": quote_plus,
    "path": quote,
    "all": lambda text: quote(text, safe=""),
    "small letters": lambda text: re.sub("%..", lambda one: one[0].lower(), quote(text, safe="")),
    "every byte": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "query": lambda text: urlencode({"": text})[1:],
    "shell": lambda text: shlex.quote(text).strip("'"),
    "double quotes": lambda text: re.sub(r'([$`"\\!])', r"\\\1", text),
    "python": lambda text: repr(text)[1:-1],
    "json in json": lambda text: json.dumps(json.dumps(text))[3:-3],
    "json for html": lambda text: re.sub(
        "[<>&]", lambda one: f"\\u{ord(one[0]):04x}", json.dumps(text)[1:-1]
    ),
    "php": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
}


@pytest.mark.parametrize("name", ENCODERS)
@given(st.text(LETTERS, min_size=4, max_size=24), texts(), texts())
def test_no_secret_survives_escaped(name, secret, before, after):
    """SC-1: as URLs, shells and JSON writers escape it."""
    written = ENCODERS[name](secret)
    assume(written not in before + after and len(written) >= 4)
    masked = mask_text(f"{before}{written}{after}", hidden(secret))
    assert written not in masked
    assert MASK in masked


SCRIPTS = ('printf %q "$1"', 'set -x; : "$1"', 'printf %s "$1" | base64 -w0')
PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=4, max_size=12)


@pytest.mark.parametrize("script", SCRIPTS)
@given(secret=PRINTABLE | st.sampled_from(["p#ss wörd!", "it's $HOME", "~root", "#a b c"]))
@settings(max_examples=25, deadline=None)
def test_no_secret_survives_what_bash_prints(script, secret):
    """SC-1: traced, quoted and encoded by the real shell of this machine."""
    assume(MASK[0] not in secret and secret.strip() == secret)
    shell = ("bash", "-c", script, "x", secret)
    said = subprocess.run(
        shell, capture_output=True, text=True, check=True, env={"LANG": "C.UTF-8"}
    )
    masked = mask_text(said.stdout + said.stderr, hidden(secret)).strip()
    assert masked in (MASK, f"+ : '{MASK}'", f"+ : {MASK}")


def test_base64_of_other_texts_stays():
    """What merely looks like base64 is shown."""
    text = b64encode(b"nothing secret in here, only words").decode()
    assert mask_text(text, hidden("hunter2hunter2")) == text


ODD = 'it\'s\t"a\\b"/é<\n$x'
"""A secret with something in it for every writer to escape."""


@pytest.mark.parametrize(
    "form",
    [
        json.dumps(ODD)[1:-1],
        json.dumps(ODD, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(ODD)[1:-1])[1:-1],
        json.dumps(json.dumps(ODD, ensure_ascii=False)[1:-1], ensure_ascii=False)[1:-1],
        json.dumps(ODD)[1:-1].replace("/", "\\/"),
        json.dumps(ODD)[1:-1].replace("<", "\\u003c"),
        json.dumps(ODD)[1:-1].replace("\\u00e9", "\\u00E9"),
        repr(ODD)[1:-1],
        quote(ODD),
        quote_plus(ODD),
        quote(ODD).lower(),
        "".join(f"%{byte:02X}" for byte in ODD.encode()),
        shlex.quote(ODD)[1:-1],
        "it'\\''s\t\"a\\b\"/é<\n$x",
        'it\'s\t\\"a\\\\b\\"/é<\n\\$x',
        'it\\\'s\\t"a\\\\b"/é<\\n$x',
    ],
)
def test_each_form_of_a_secret_is_masked_whole(form: str):
    """As JSON, a URL or a shell has it, nothing of it is left. SC-2."""
    assert mask_text(f"before {form} behind", hidden(ODD)) == f"before {MASK} behind"


@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
@pytest.mark.parametrize("before", ["", "x", "xy", "xyz"])
def test_base64_of_a_secret_is_masked_wherever_it_begins(before: str, encode):
    """At each offset, in both alphabets, hardly more is left than what is around it. SC-2."""
    secret = "~~~???>>>ÿÿ"
    whole = encode(f"{before}{secret}behind".encode()).decode()
    assert {"-", "_"} & set(whole) or {"+", "/"} & set(whole)
    head, mask, tail = mask_text(whole, hidden(secret)).partition(MASK)
    assert mask == MASK
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) <= 8 * len(before) // 6
    assert len(tail.rstrip("=")) <= 8 * len("behind") // 6


def test_what_is_no_utf_8_can_be_secret():
    """Half of a character that JSON lets in is masked like any other text."""
    assert mask_text("before \ud800half behind", hidden("\ud800half")) == f"before {MASK} behind"


@pytest.mark.parametrize(
    ("secret", "traced"),
    [
        ("tab\there it is", "tab\\there it is"),
        ("line\nand line", "line\\nand line"),
        ("it's\ta secret", "it\\'s\\ta secret"),
        ("back\\slash\ttab", "back\\\\slash\\ttab"),
    ],
)
def test_a_secret_that_bash_traces_with_its_escapes_is_masked(secret: str, traced: str) -> None:
    """SC-1: as `set -x` writes a text with a tab or an end of line, in `$'...'`."""
    assert mask_text(f"+ curl -H $'{traced}'", hidden(secret)) == f"+ curl -H $'{MASK}'"
