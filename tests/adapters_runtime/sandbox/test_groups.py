"""Control groups of steps: found by trying, and gone with the step."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox.isolation import cgroups
from adapters_runtime.sandbox.isolation.cgroups import ControlGroups, Hierarchy, Uncounted
from adapters_runtime.sandbox.isolation.config import SandboxConfig
from wfcore.testing.contracts.steps import job, silent


@pytest.fixture
def found() -> ControlGroups:
    try:
        return cgroups.find(SandboxConfig("process"), 1 << 27)
    except Uncounted as reason:
        pytest.skip(f"no control groups here: {reason}")


def _left() -> Iterator[str]:
    for _, folder in cgroups._places():
        for name in os.listdir(folder):
            if name.startswith(cgroups.STEP):
                yield name


def test_who_joins_is_in_it_and_it_goes(found: ControlGroups) -> None:
    """A process that joins is counted there; removed, nothing of the group is left."""
    group = found.make(7)
    pid = os.fork()
    if pid == 0:
        os._exit(not group.join_checked())
    assert os.waitpid(pid, 0)[1] == 0
    assert not group.ran_out()
    group.remove()
    assert not any(name.startswith(f"{cgroups.STEP}{os.getpid()}-") for name in _left())


def test_what_a_killed_spawner_left_goes_with_the_next(found: ControlGroups) -> None:
    """Groups are named for their spawner; those of dead ones are removed."""
    pid = os.fork()
    if pid == 0:
        cgroups.find(SandboxConfig("process"), 1 << 27).make(3)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert f"{cgroups.STEP}{pid}-3" in set(_left())
    cgroups.find(SandboxConfig("process"), 1 << 27)
    assert f"{cgroups.STEP}{pid}-3" not in set(_left())


async def test_no_group_outlives_its_runner(found: ControlGroups, runner: CodeStepRunner) -> None:
    """Used or spare: when the runner is closed, the groups of its spawner are gone."""
    assert (await runner.run(job("print(1)"), silent)).error is None
    spawner = runner.spawner_pid
    assert any(name.startswith(f"{cgroups.STEP}{spawner}-") for name in _left())
    await runner.close()
    assert not any(name.startswith(f"{cgroups.STEP}{spawner}-") for name in _left())


def test_a_folder_that_may_not_be_written_is_no_group(tmp_path: Path) -> None:
    """A folder where limits cannot be set is refused, with a reason."""
    with pytest.raises(Uncounted, match="No such file"):
        ControlGroups((Hierarchy(str(tmp_path), {"memory.max": 1}, "memory.events"),))


def test_a_group_of_version_2_is_shared_only_when_it_is_ours(tmp_path: Path) -> None:
    """Without controllers, or with strangers in it, nothing is moved; with ourselves, we are."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "cgroup.controllers").write_text("cpu")
    (own / "cgroup.subtree_control").write_text("")
    with pytest.raises(Uncounted, match="was not given"):
        cgroups._of_version_2(str(own), 1, 1)
    (own / "cgroup.controllers").write_text("cpu memory pids")
    (own / "cgroup.procs").write_text("999999999\n")
    with pytest.raises(Uncounted, match="others are in"):
        cgroups._of_version_2(str(own), 1, 1)
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
    (own / cgroups.SERVER).mkdir()
    (own / cgroups.SERVER / "cgroup.procs").write_text("")
    made = cgroups._of_version_2(str(own), 5, 6)
    assert (made.folder, made.settings["memory.max"], made.settings["pids.max"]) == (str(own), 5, 6)
    assert (own / cgroups.SERVER / "cgroup.procs").read_text() == str(os.getpid())
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert cgroups._of_version_2(str(own / cgroups.SERVER), 5, 6).folder == str(own)
