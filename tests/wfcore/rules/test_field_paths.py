"""Paths of fields, as problems name them."""

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.rules.paths import below, parent

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]*", fullmatch=True)
keys = st.integers(0, 99) | names | st.text(max_size=5) | st.sampled_from(("a.b", 'q"]', "\\", "é"))


@pytest.mark.parametrize(
    ("path", "key", "joined"),
    [
        ("", "name", "name"),
        ("steps[2]", "on-fail_1", "steps[2].on-fail_1"),
        ("steps", 2, "steps[2]"),
        ("", 2, "[2]"),
        ("a", "b c", 'a["b c"]'),
        ("", "$ref", '["$ref"]'),
        ("a", "", 'a[""]'),
        ("a", "1b", 'a["1b"]'),
        ("a", "über", 'a["über"]'),
        ("a", 'say "x"\n', 'a["say \\"x\\"\\n"]'),
        ("a", "b\n", 'a["b\\n"]'),
    ],
)
def test_a_path_is_written_like_this(path: str, key: str | int, joined: str) -> None:
    """Names after a dot, numbers in brackets, all else as text in brackets."""
    assert below(path, key) == joined


@given(st.lists(keys, min_size=1, max_size=5))
def test_the_parent_is_what_a_path_was_made_from(chain: list[str | int]) -> None:
    """Whatever the keys are: what is below a path has it as its parent."""
    path = reduce(below, chain[:-1], "")
    assert parent(below(path, chain[-1])) == path
