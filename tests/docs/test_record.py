"""The pages of long runs say what their record says."""

from pathlib import Path

import pytest

from tests.proofs.pages import pages

PAGES = pages()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_of_long_runs_is_that_of_the_record(path: Path) -> None:
    """`python -m tests.proofs.pages` would change nothing."""
    assert path.read_text() == PAGES[path]
