"""A machine that lacks something delays steps and fails none, says what, and recovers. EX-27."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from adapters_runtime.code_step import CodeStepRunner
from adapters_runtime.confine.terms import PROCESS
from adapters_runtime.ladder import Isolation
from adapters_runtime.shortage import SEEN_FOR_S, Shortages
from wfcore.model.workflow import Language
from wfcore.testing.contracts.steps import job, silent
from wfcore.testing.fakes_running import DictFiles

HERE = Path(__file__).parent
LONG_S = 60


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """As many may be open as are open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def a_runner(root: Path) -> CodeStepRunner:
    return CodeStepRunner(root, DictFiles(), lambda: "art", isolation=Isolation(forced=PROCESS))


@pytest.mark.parametrize("language", [Language.BASH, Language.COMMAND])
@pytest.mark.parametrize("warm", [False, True])
async def test_without_descriptors(tmp_path: Path, language: Language, warm: bool) -> None:
    """Neither the first step nor a later one fails, and nothing is said to be missing."""
    runner = a_runner(tmp_path / "steps")
    source, argv = ("echo 1", ()) if language is Language.BASH else ("", ("echo", "1"))
    try:
        if warm:
            assert (await runner.run(job(source, language, argv=argv), silent)).output == 1
        with no_descriptor_left():
            end = await runner.run(job(source, language, argv=argv), silent)
        assert end.error is None
        assert end.postponed is not None
        assert end.postponed.startswith("the server has no file descriptors left")
        assert (await runner.run(job(source, language, argv=argv), silent)).output == 1
    finally:
        await runner.close()


def played(*command: str) -> str:
    """What a program beside this one printed; it may take rights from itself, or a new disk."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "src")}
    done = subprocess.run(
        [*command], capture_output=True, text=True, timeout=LONG_S, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


AS_NOBODY = """
for place in python source packages tests; do
    mkdir "$0/$place"; mount --bind "$1" "$0/$place"; shift
done
export PYTHONPATH="$0/source:$0/packages"
exec setpriv --reuid 54321 --regid 54321 --clear-groups \\
    "$0/python/bin/python3" "$0/tests/short_of.py" processes "$0/steps"
"""
"""Root's processes are not counted, and nobody else may read where root has its Python."""


def test_without_processes() -> None:
    """An ordinary user whose processes are used up: steps wait, and run when there are some."""
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid():
            program = str(HERE / "short_of.py")
            said = played(sys.executable, program, "processes", f"{folder}/steps")
        else:
            os.chmod(folder, 0o777)
            packages = Path(attrs.__file__).parents[1]
            seen = (sys.base_prefix, HERE.parents[1] / "src", packages, HERE)
            command = ["unshare", "-m", "sh", "-ec", AS_NOBODY, folder, *map(str, seen)]
            said = played(*command)
    assert said.splitlines() == ["ran", "no more processes may be started", "ran"]


@pytest.mark.parametrize("lacking", ["space", "inodes"])
def test_without_space(tmp_path: Path, lacking: str) -> None:
    """On a full disk steps wait, and run when there is room."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rm", "true"], capture_output=True).returncode:
        pytest.skip("this machine allows no mounts of one's own")
    program = [sys.executable, str(HERE / "short_of.py"), lacking, str(tmp_path / "disk")]
    said = played(unshare, "-rm", *program)
    full = "the disk has no space, or no room for more files, left"
    assert said.splitlines() == ["ran", full, "ran"]


def test_a_shortage_is_seen_until_something_begins_or_nobody_asks() -> None:
    """What began says that it is over, and so does time; another kind of step does not."""
    now = [0.0]
    shortages = Shortages(lambda: now[0])
    assert shortages.now is None
    shortages.note("code", "no room")
    shortages.note("ai", None)
    assert (shortages.now, shortages.total) == ("no room", 1)
    shortages.note("code", None)
    assert (shortages.now, shortages.total) == (None, 1)
    shortages.note("code", "no room")
    now[0] = SEEN_FOR_S
    assert shortages.now is None
