"""The page of security promises nothing without a test."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()


def test_every_promise_names_a_test_that_is_there() -> None:
    """Each row of a table of promises ends with tests, or folders of them, that exist."""
    rows = re.findall(r"^\| (?!Promise|---)([^|]+?) \| ([^|]+?) \|$", PAGE, re.M)
    assert len(rows) > 10
    for promise, held_by in rows:
        tests = re.findall(r"`(tests/[\w/]+(?:\.py)?)`", held_by)
        assert tests, f"no test holds: {promise}"
        assert all((ROOT / one).exists() for one in tests), promise
