"""What of the kit is public, and that it needs its tools only where it uses them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from wfcore import testing

SRC = Path(__file__).parents[3] / "src"
CORE = [
    path
    for path in sorted((SRC / "wfcore").rglob("*.py"))
    if "testing" not in path.relative_to(SRC).parts and path.name != "pytest_plugin.py"
]
NO_TOOLS = ("builders", "fakes", "fakes_running", "models", "vectors", "simulator")
"""Of the kit what works without pytest and hypothesis."""

BLOCKED = """
import importlib, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pytest", "_pytest", "hypothesis", "pytest_asyncio"):
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, Blocked())
for module in sys.argv[1:]:
    importlib.import_module(module)
print("imported", len(sys.argv) - 1)
"""


def module_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(*modules: str) -> "subprocess.CompletedProcess[str]":
    """Import them in an interpreter that has neither pytest nor hypothesis."""
    return subprocess.run(
        [sys.executable, "-c", BLOCKED, *modules], capture_output=True, text=True, timeout=60
    )


def test_all_of_wfcore_but_the_kit_does_without_test_tools():
    """`import wfcore` and all but pytest's plugin work where neither pytest nor hypothesis is."""
    modules = [module_of(path) for path in CORE]
    run = imported(*modules)
    assert run.stdout == f"imported {len(modules)}\n", run.stderr


def test_what_needs_no_tools_asks_for_none():
    """Builders, fakes, vectors and the simulator work in a program, not only in tests."""
    kit = SRC / "wfcore/testing"
    modules = [
        module_of(path)
        for name in NO_TOOLS
        for path in ((kit / name).rglob("*.py") if (kit / name).is_dir() else [kit / f"{name}.py"])
        if path.name != "__main__.py"
    ]
    run = imported("wfcore.testing", *modules)
    assert run.stdout == f"imported {len(modules) + 1}\n", run.stderr


def test_a_missing_tool_is_named():
    """Who asks for a strategy without hypothesis is told what is missing."""
    run = imported("wfcore.testing.strategies.records")
    assert run.returncode == 1
    assert "hypothesis is blocked" in run.stderr


def test_every_public_name_can_be_had_from_the_package():
    """`from wfcore.testing import …` gives each listed name, and `dir` lists them."""
    assert dir(testing) == sorted(dir(testing))
    for name in dir(testing):
        assert getattr(testing, name) is not None
    with pytest.raises(AttributeError):
        _ = testing.nothing_of_that_name


MISSPELT = """
from wfcore import {name}
from wfcore.memory import {store}
from wfcore.testing import {kit}
import wfcore
import wfcore.testing
wfcore.{name}, wfcore.testing.{kit}
"""


@pytest.mark.parametrize(
    ("name", "store", "kit", "errors"),
    [("advance", "MemoryStore", "values_of", 0), ("advanse", "MemoryStor", "values_off", 5)],
)
def test_type_checkers_see_the_same_names(tmp_path, name, store, kit, errors):
    """A name that is there has its type, and one that is not is an error, not `Any`."""
    (tmp_path / "program.py").write_text(MISSPELT.format(name=name, store=store, kit=kit))
    config = ("--strict", "--config-file=", f"--cache-dir={tmp_path}", "--follow-imports=silent")
    words = [sys.executable, "-m", "mypy", *config, "program.py"]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert run.stdout.count("[attr-defined]") == errors, run.stdout
    assert run.returncode == (errors > 0), run.stdout


PARAMETRIZED = re.compile(r"parametrize\(\s*\(?((?:\"\w+\"(?:, )?)+)")


def test_no_suite_takes_the_name_of_a_users_fixture() -> None:
    """What a suite parametrizes begins with `given_`: a class that inherits it may have `path`."""
    suites = (SRC / "wfcore/testing/contracts").glob("*.py")
    found = "".join(" ".join(PARAMETRIZED.findall(path.read_text())) for path in suites)
    names = re.findall(r'"(\w+)"', found)
    assert len(names) > 40
    assert [name for name in names if not name.startswith("given_")] == []


def test_the_plainest_promise_of_a_store_fails_first(tmp_path: Path) -> None:
    """A store that keeps nothing is told that first, and not what its audit chains lack."""
    (tmp_path / "test_it.py").write_text(KEEPS_NOTHING)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-o", "asyncio_mode=auto", *OPTIONS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "test_a_record_comes_back_as_it_was_one_version_higher" in run.stdout
    assert "1 failed in" in run.stdout, run.stdout


OPTIONS = ("-o", "asyncio_default_fixture_loop_scope=function", "-p", "no:randomly")
KEEPS_NOTHING = """
import pytest
from wfcore.memory import Disk
from wfcore.testing import StoreContract, store_in_memory

class TestMine(StoreContract):
    @pytest.fixture
    async def store(self):
        store = store_in_memory()
        store.disk.settle = lambda changes: None
        return store
"""
