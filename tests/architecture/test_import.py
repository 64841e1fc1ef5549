"""Importing the core is cheap and does nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest


def run(code: str, cwd: Path) -> str:
    """What *code* prints in an interpreter of its own."""
    ended = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=cwd, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def best_of(tries: int, code: str, cwd: Path, *, whole: bool = False) -> float:
    """
    The least CPU time that *code* took, if *whole* with the start of the interpreter: what others
    do on the machine only adds.
    """
    begin = "0" if whole else "time.process_time()"
    timed = f"import time; t = {begin}; {code}; print(time.process_time() - t)"
    return min(float(run(timed, cwd)) for _ in range(tries))


@pytest.mark.parametrize("code", ["import wfcore", "from wfcore import windows"])
def test_import_wfcore_costs_little(code: str, tmp_path: Path) -> None:
    """At most twice a bare interpreter with attrs: a rule brings along only what it needs."""
    bare = best_of(5, "import attrs", tmp_path, whole=True)
    assert best_of(5, code, tmp_path, whole=True) <= 2 * bare


def test_the_whole_core_costs_a_few_times_attrs(tmp_path: Path) -> None:
    """All public names together, some 300: a multiple of what attrs itself takes to load."""
    attrs = best_of(5, "import attrs", tmp_path)
    assert best_of(5, "from wfcore import *", tmp_path) < 25 * attrs


def test_importing_the_core_does_nothing_else(tmp_path: Path) -> None:
    """attrs and the standard library; no thread, file, socket, handler or hook of ours."""
    code = """
import os, signal, sys, warnings, threading, logging
before = (
    os.listdir("/proc/self/fd"), threading.active_count(), list(logging.root.handlers),
    {n: signal.getsignal(n) for n in (2, 15)}, list(sys.meta_path), list(warnings.filters),
    dict(os.environ), os.getcwd(), sys.excepthook, list(sys.path),
)
had = set(sys.modules)
import wfcore
from wfcore import Services, advance, explain_execution, start_execution
after = (
    os.listdir("/proc/self/fd"), threading.active_count(), list(logging.root.handlers),
    {n: signal.getsignal(n) for n in (2, 15)}, list(sys.meta_path), list(warnings.filters),
    dict(os.environ), os.getcwd(), sys.excepthook, list(sys.path),
)
assert before == after, (before, after)
new = {name.partition(".")[0] for name in set(sys.modules) - had}
print(*sorted(new - set(sys.stdlib_module_names)))
unwanted = {"asyncio", "sqlite3", "socket", "ssl", "subprocess"}
print(*sorted(new & unwanted))
"""
    packages, unwanted = run(code, tmp_path).splitlines()
    assert packages == "attr attrs wfcore"
    assert unwanted == ""
    assert list(tmp_path.iterdir()) == []
