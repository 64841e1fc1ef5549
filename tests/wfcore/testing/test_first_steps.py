"""What the kit says to somebody who uses it for the first time, in a project of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

COUNTERS = """
import pytest
from wfcore.testing import CountersContract, counters_in_memory

class TestMine(CountersContract):
    @pytest.fixture
    async def counters(self):
        counters = counters_in_memory()
        counters.trim = counters.last_used  # which forgets nothing
        yield counters
"""
UNFINISHED = """
from wfcore.testing import ExecutionWalk, MachineContract, MachineWalk, StoreComparison

class Walk(MachineWalk):
    pass

class Folded(ExecutionWalk):
    fold = MachineWalk.fold

class Comparison(StoreComparison):
    pass

class TestRows(MachineContract):
    pass

TestWalk, TestFolded, TestComparison = Walk.TestCase, Folded.TestCase, Comparison.TestCase
"""
AUTO = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")


def said(folder: Path, source: str, *options: str) -> str:
    """What pytest says of that file, in a folder without any configuration."""
    (folder / "test_it.py").write_text(source)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--continue-on-collection-errors", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    return run.stdout


def test_who_has_nothing_that_awaits_is_told_what_to_write(tmp_path: Path) -> None:
    """Not one of pytest's inner assertions, but the line that pytest.ini lacks."""
    told = said(tmp_path, COUNTERS)
    assert "asyncio_mode = auto" in told
    assert "11 errors" in told
    assert "Traceback" not in told


def test_a_broken_promise_shows_what_was_compared(tmp_path: Path) -> None:
    """The assertions of installed suites are as telling as those of one's own tests."""
    told = said(tmp_path, COUNTERS, *AUTO)
    assert "where False = Admission(full=('minute',), counts=(1,)).admitted" in told
    assert "1 failed, 10 passed" in told


@pytest.fixture(scope="module")
def told_of_unfinished(tmp_path_factory: pytest.TempPathFactory) -> str:
    return said(tmp_path_factory.mktemp("unfinished"), UNFINISHED)


@pytest.mark.parametrize(
    "words",
    [
        "Walk does not name machine, first, facts",
        "Folded.fold must fold a fact into a record",
        "Comparison.open must give a new, empty store",
        "TestRows.walk must name a subclass of MachineWalk",
    ],
)
def test_what_a_subclass_forgot_is_named(told_of_unfinished: str, words: str) -> None:
    """The class, and what it must give."""
    assert words in told_of_unfinished
