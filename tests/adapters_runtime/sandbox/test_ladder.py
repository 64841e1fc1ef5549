"""The level of isolation is what a probe step really finds."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters_runtime.code import runner as runners
from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox import isolation_level
from adapters_runtime.sandbox.isolation import landlock
from adapters_runtime.sandbox.isolation.config import LADDER, LANDLOCK, NAMESPACE, PROCESS, UID
from adapters_runtime.sandbox.isolation_level import Isolation, Level, find_level
from wfcore.model.workflow import Language
from wfcore.testing.contracts.steps import job, silent


@pytest.fixture(autouse=True)
def _nothing_found_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation_level, "_found", {})


@pytest.fixture
async def refusing(tmp_path: Path, files: Any) -> AsyncIterator[CodeStepRunner]:
    isolation = Isolation(forced=PROCESS, minimum=LANDLOCK)
    runner = CodeStepRunner(tmp_path / "steps", files, lambda: "art", isolation=isolation)
    yield runner
    await runner.close()


async def test_the_strongest_that_can_be_had(tmp_path: Path) -> None:
    """Without a word from the operator it is the first level that can be had when forced. CS-8."""
    found = await find_level(None, tmp_path)
    forced = [(await find_level(name, tmp_path)).name == name for name in LADDER]
    assert found.name == LADDER[forced.index(True)]
    assert set(found.missed) == set(LADDER[: forced.index(True)])
    assert all(found.missed.values())


def _can_make_namespaces() -> bool:
    """Whether the system's own tool can, as an ordinary program does."""
    kinds = ("--user", "--map-root-user", "--mount", "--net", "--ipc", "--uts", "--pid")
    argv = ["unshare", *kinds, "--fork", "--mount-proc", "true"]
    return (
        shutil.which("unshare") is not None
        and not subprocess.run(argv, capture_output=True, check=False).returncode
    )


CAN = {
    NAMESPACE: _can_make_namespaces,
    UID: lambda: os.geteuid() == 0 and landlock.version() > 0,
    LANDLOCK: lambda: landlock.version() > 0,
    PROCESS: lambda: True,
}


@pytest.mark.parametrize("level", LADDER)
async def test_what_the_machine_can_is_had(tmp_path: Path, level: str) -> None:
    """Where the kernel gives what a level needs, the level is there: our fault if it is not."""
    if not await asyncio.to_thread(CAN[level]):
        pytest.skip(f"this machine cannot be put into the level {level}")
    found = await find_level(level, tmp_path)
    assert (found.name, found.missed) == (level, {})


async def test_a_probe_that_sees_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A level whose probe sees what it must not is not taken, and each fault is said. CS-8."""
    monkeypatch.setitem(isolation_level._UNSEEN, PROCESS, tuple(isolation_level._SEEN))
    level = await find_level(PROCESS, tmp_path)
    faults = set(level.missed[PROCESS].split("; "))
    kept_anyway = set() if os.geteuid() == 0 else {isolation_level._SEEN["privileges"]}
    assert faults >= {isolation_level._SEEN[name] for name in ("file", "port", "process")}
    assert faults | kept_anyway >= set(isolation_level._SEEN.values()) - {
        isolation_level._SEEN["new namespaces"]
    }


@pytest.mark.parametrize("level", [NAMESPACE, UID, LANDLOCK])
@pytest.mark.parametrize("fact", ["file", "port", "privileges", "all system calls", "root"])
def test_any_fault_is_one_too_many(level: str, fact: str) -> None:
    """One thing seen that must not be seen, and the level is not the one."""
    nothing = dict.fromkeys(isolation_level._SEEN, False)
    good = {**nothing, "process number": 2, "disk": 1 << 20, "user": -1}
    assert isolation_level._fault(level, good) is None
    assert isolation_level._fault(level, {**good, fact: True})


async def test_nothing_is_left(tmp_path: Path) -> None:
    """Looking leaves no folder, and what was found is remembered."""
    found = await find_level(None, tmp_path / "steps")
    assert list((tmp_path / "steps").iterdir()) == []
    assert await find_level(None, tmp_path / "elsewhere") is found
    assert not (tmp_path / "elsewhere").exists()


async def test_below_the_minimum(refusing: CodeStepRunner) -> None:
    """Steps are refused for good, with the level and the setting in the error. CS-9."""
    end = await refusing.run(job("echo 1", Language.BASH), silent)
    assert (end.output, end.permanent) == (None, True)
    assert "'process'" in (end.error or "")
    assert "WFCORE_MIN_ISOLATION=landlock" in (end.error or "")
    assert refusing.spawner_pid is None


_ALONE_WITH_ROOT = """
import pathlib, sys
from adapters_runtime.sandbox.isolation_level import Isolation, find_level_now
pathlib.Path("/proc/sys/user/max_user_namespaces").write_text("0")
level = find_level_now(None, pathlib.Path(sys.argv[1]))
print(level.name, level.is_below(Isolation().least), level.missed["uid"], sep="|")
"""


def test_root_without_other_ids(tmp_path: Path) -> None:
    """
    A container whose only user is root and that may not make namespaces gets `landlock`, where a
    step would be root: so steps are refused, and the reason is said. CS-9.
    """
    argv = ["unshare", "--user", "--map-root-user", sys.executable, "-c", _ALONE_WITH_ROOT]
    ran = subprocess.run([*argv, str(tmp_path / "x")], capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.skip(f"this machine has no such container: {ran.stderr[-200:]}")
    level, refused, reason = ran.stdout.strip().split("|")
    assert (level, refused) == (LANDLOCK if landlock.version() else PROCESS, "True")
    assert "no other user ids" in reason


def test_who_forces_a_level_accepts_it() -> None:
    """The minimum is Landlock, or the level that was forced, or what the operator says."""
    assert Isolation().least == (UID if os.geteuid() == 0 else LANDLOCK)
    assert Isolation(forced=LANDLOCK).least == LANDLOCK
    assert Isolation(minimum=LANDLOCK).least == LANDLOCK
    assert Isolation(forced=PROCESS).least == PROCESS
    assert Isolation(forced=NAMESPACE).least == Isolation().least
    assert Isolation(forced=PROCESS, minimum=UID).least == UID


@pytest.fixture
def private_ruby(tmp_path: Path) -> str:
    """The path of an interpreter in a folder that nobody else may enter."""
    ruby = tmp_path / "ruby"
    ruby.write_text(f"#!/bin/sh\nprintf '3.1.2\t{ruby}'\n")
    ruby.chmod(0o755)
    tmp_path.chmod(0o700)
    return str(ruby)


async def test_another_user_gets_only_interpreters_that_all_may_run(
    tmp_path: Path, private_ruby: str, files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where steps have a user id of their own, what lies in a private folder is not there. CS-8."""
    for level, available in ((PROCESS, True), (UID, False)):

        async def found(*_: object, level: str = level) -> Level:
            return Level(level, {})

        monkeypatch.setattr(runners, "find_level", found)
        path = {"PATH": os.path.dirname(private_ruby)}
        runner = CodeStepRunner(tmp_path / level, files, lambda: "art", environment=path)
        await runner.level()
        assert runner.languages()[Language.RUBY].available is available
        await runner.close()
