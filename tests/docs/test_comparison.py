"""The page that compares: its figures are those that a script measured, of the programs shown."""

import json
from datetime import date

import pytest

from bench.peers import PEERS, PROGRAMS, RESULTS
from bench.peers.program import code_lines, foreign_imports
from wfdocs import peers

from .pages import DOCS

MEASURED = json.loads(RESULTS.read_text())


def test_every_figure_on_the_page_was_measured() -> None:
    """The tables are the file of results, which says when, of all peers, each with its version."""
    assert peers.measured() in (DOCS / "comparison.md").read_text()
    assert set(MEASURED["peers"]) == set(PEERS)
    assert all(one["version"] for one in MEASURED["peers"].values())
    assert date.fromisoformat(MEASURED["date"])


def test_work_is_shown_as_it_was_measured_side_by_side() -> None:
    """The table is the file of results: of every server the same figures, from the same run."""
    work = MEASURED["work"]
    assert peers.work() in (DOCS / "comparison.md").read_text()
    assert date.fromisoformat(work["date"])
    names = [one["title"].split()[0] for one in work["servers"]]
    assert names == ["wfcore", "Restate", "DBOS", "DBOS"]
    assert len({tuple(one) for one in work["servers"]}) == 1


@pytest.mark.parametrize("name", PEERS)
def test_what_was_measured_is_the_program_that_is_there(name: str) -> None:
    """Nobody changes a program, or the way in which lines are counted, without measuring anew."""
    source = (PROGRAMS / PEERS[name].program).read_text()
    assert code_lines(source) == MEASURED["peers"][name]["lines"]
    assert foreign_imports(source)


@pytest.mark.parametrize("name", [name for name, one in PEERS.items() if one.needs is None])
def test_only_programs_that_continued_are_shown(name: str) -> None:
    """A program that lost or repeated a step proves nothing about its library."""
    assert MEASURED["peers"][name]["continued"] is True


def test_lines_of_code_are_counted_without_what_is_none() -> None:
    """No docstring, comment or blank line counts; each line of a call over several does."""
    source = (
        '"""Doc."""\n\n# why\nx = f(\n    1,\n)\n\n\ndef g():\n    """Doc."""\n    return 1  # so\n'
    )
    assert code_lines(source) == 5
