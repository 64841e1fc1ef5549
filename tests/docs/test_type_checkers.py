"""Type checkers know what `wfcore` offers to programs, and nothing else."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wfdocs.surface import SRC

PROGRAM = """
from collections.abc import Mapping

import wfcore
import wfcore.sync
from wfcore import *
from wfcore import {name}
from wfcore.memory import *
from wfcore.memory import {store}
from wfcore.sync import {door} as door
from wfcore.testing import *

FunctionRunner, MemoryFiles, ManualClock
wfcore.{name}


def over(store: MemoryStore) -> None:
    wfcore.in_memory(store=store)


def hand_over(rows: Mapping[str, object]) -> tuple[Approve, Redrive]:
    return Approve(edited=rows, answers=rows), Redrive(inputs=rows)


async def start(services: Services, who: Principal, inputs: dict[str, object]) -> None:
    await start_execution(services, who, "wf_1", inputs)
    await list_executions(services, OPERATOR, PageRequest())


status = values_of(Execution).example().{field}
"""
RIGHT = {"name": "start_execution", "store": "MemoryStore", "door": "on_sqlite", "field": "status"}
WRONG = {"name": "start_exekution", "store": "MemoryStor", "door": "on_sqlight", "field": "statuz"}


def mypy(folder: Path) -> list[str]:
    """What mypy says: the names that are not there."""
    config = ("--strict", "--config-file=", f"--cache-dir={folder}", "--follow-imports=silent")
    words = [sys.executable, "-m", "mypy", *config, "program.py"]
    run = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    assert re.fullmatch(r"Found \d+ errors? .*|Success.*", run.stdout.splitlines()[-1]), run.stdout
    return [line for line in run.stdout.splitlines() if ": error: " in line]


def strictly(folder: Path, *programs: str, python: Path | None = None) -> list[dict[str, Any]]:
    """
    What pyright in its strict mode finds in *programs*, with a file in *folder* for settings.
    *python*: the Python of an environment with the wheel; None: this tree.
    """
    binary = Path(sys.executable).with_name("basedpyright")
    if not binary.exists() and not (found := shutil.which("pyright")):
        pytest.skip("neither basedpyright nor pyright is installed")
    else:
        binary = binary if binary.exists() else Path(str(found))
    paths = {"extraPaths": [] if python else [str(SRC), str(SRC.parent)], "include": programs}
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", **paths}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    words = [binary, "--outputjson", "--pythonpath", python or sys.executable]
    run = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    found = json.loads(run.stdout)
    assert found["summary"]["filesAnalyzed"] > 0
    return found["generalDiagnostics"]


def pyright(folder: Path) -> list[str]:
    """The same by pyright, which basedpyright is with another name."""
    found = strictly(folder, "program.py")
    matters = ("reportAttributeAccessIssue", "reportUndefinedVariable", "reportArgumentType")
    return [one["message"] for one in found if one.get("rule") in matters]


@pytest.mark.parametrize("checker", [mypy, pyright])
@pytest.mark.parametrize(("names", "errors"), [(RIGHT, 0), (WRONG, 5)], ids=["right", "wrong"])
def test_checkers_know_every_name_and_no_other(checker, names, errors, tmp_path: Path) -> None:
    """A misspelt import is an error, not `Any`; `import *` brings what is there, with its type."""
    (tmp_path / "program.py").write_text(PROGRAM.format(**names))
    found = checker(tmp_path)
    assert len(found) == errors, found


UNTYPED = {"dramatiq_engine.py", "embed_django.py", "lmdb_store.py", "network_store.py"}
"""The programs over libraries without types, whose values are unknown to a type checker."""


def test_programs_of_the_documentation_are_strict(tmp_path: Path) -> None:
    """The strict mode of pyright finds no fault in a program, and no type of wfcore unknown."""
    found = [
        (Path(one["file"]).name, one.get("rule"), one["message"])
        for one in strictly(tmp_path, str(SRC.parent / "examples"))
    ]
    unknown = ("reportUnknown", "reportAttributeAccessIssue", "reportMissingTypeStubs")
    assert [one for one in found if one[0] not in UNTYPED or not one[1].startswith(unknown)] == []
    assert [one for one in found if "wfcore" in one[2]] == []
