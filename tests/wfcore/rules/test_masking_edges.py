"""Secrets at the edges of masking: cut ones, numbers, shells, base64. SC-1, SC-2."""

from base64 import b64encode

import pytest

from wfcore.rules.masking import MASK, mask, mask_cut, mask_text, secrets_of

LONG = secrets_of(["1abcdX2abcdY3abcdZ"])


@pytest.mark.parametrize(
    ("rest", "left"),
    [
        ("abcdX2abcdY3abcdZ!", f"{MASK}!"),
        ("abcdY3abcdZ!", f"{MASK}!"),
        ("abcdZ!", f"{MASK}!"),
        ("abcdY!", "abcdY!"),
        ("cdZ!", "cdZ!"),
    ],
)
def test_the_longest_rest_of_a_secret_is_masked(rest: str, left: str) -> None:
    """Even if it begins as other parts of the secret do. SC-2."""
    assert mask_cut(rest, LONG, start=True) == left
    assert mask_cut(rest, LONG, end=True) == rest


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("!1abcdX2abcdY3abcd", f"!{MASK}"),
        ("!1abc", f"!{MASK}"),
        ("!1ab", "!1ab"),
        ("1", "1"),
    ],
)
def test_the_beginning_of_a_secret_is_masked(text: str, left: str) -> None:
    """From four characters on. SC-2."""
    assert mask_cut(text, LONG, end=True) == left
    assert mask_cut(text, LONG, start=True) == text


def test_a_secret_is_masked_within_a_text_of_a_value() -> None:
    """And in a key; other texts stay as they are. SC-1."""
    secrets = secrets_of(["hunter22"])
    value = {"a": "say hunter22!", "hunter22": ["other"]}
    assert mask(value, secrets) == {"a": f"say {MASK}!", MASK: ["other"]}
    assert mask({"a": "say hunter22!"}, secrets) == {"a": f"say {MASK}!"}
    assert mask({"a": "other"}, secrets) == {"a": "other"}


def test_what_is_shorter_than_four_characters_remains() -> None:
    """It cannot be told from other text. SC-2."""
    assert mask_cut("ab", secrets_of(["xxab"]), start=True) == "ab"
    assert mask_cut("abc", secrets_of(["abcdef"]), end=True) == "abc"
    assert mask_cut("", LONG, start=True, end=True) == ""


def test_a_number_is_masked_where_it_stands_alone() -> None:
    """Whatever is around it. SC-1."""
    secrets = secrets_of(["12345"])
    assert mask({"pin": 12345, "n": 1}, secrets) == {"pin": MASK, "n": 1}
    assert mask([[12345]], secrets) == [[MASK]]


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        ("back\\slash", "back\\\\slash"),
        ("new\nline", "new\\nline"),
        ("tab\tstop", "tab\\tstop"),
        ("quo'te", "quo\\'te"),
        ("q'b\\s\nn\tt", "q\\'b\\\\s\\nn\\tt"),
        ("quo'te", "quo'\\''te"),
        ("X'y zX", "X'\"'\"'y zX"),
        ('a$b`c"d\\e!f', 'a\\$b\\`c\\"d\\\\e\\!f'),
    ],
)
def test_what_a_shell_shows_of_a_secret_is_masked(secret: str, shown: str) -> None:
    """As one: nothing of it is left beside the mask. SC-2."""
    assert mask_text(f"-{shown}-", secrets_of([secret])) == f"-{MASK}-"


@pytest.mark.parametrize("before", [b"", b"\x00", b"\xff", b"Z", b"\x00\xff", b"\xff\x00", b"zz"])
@pytest.mark.parametrize("after", [b"", b"\xff", b"\x00\x00", b"zzz"])
def test_base64_is_masked_beside_anything(before: bytes, after: bytes) -> None:
    """The characters that hold its bits, whatever shares the first and the last. SC-2."""
    secret = b"hunter2-hunter3"
    secrets = secrets_of([secret.decode()])
    shown = b64encode(b"aaa" + before + secret + after + b"bbb").decode()
    masked = mask_text(shown, secrets)
    assert MASK in masked
    assert len(masked) <= len(shown) - len(secret) * 8 // 6 + len(MASK)
