"""A machine that lacks something delays steps and fails none, says what, and recovers. EX-27."""

import asyncio
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

from adapters_runtime.ai.models import WireModels
from adapters_runtime.ai.providers import providers_from
from adapters_runtime.code.outputs import fault_of
from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.engine.callbacks import HttpCallbackClient
from adapters_runtime.sandbox.client import LaunchOrder, Spawner
from adapters_runtime.sandbox.isolation.config import NAMESPACE, PROCESS, STEP_DIR, SandboxConfig
from adapters_runtime.sandbox.isolation_level import Isolation
from adapters_runtime.sandbox.shortage import SEEN_FOR_S, Shortages
from adapters_runtime.sandbox.step_folders import StepFolder
from tests.support.receiver import a_receiver
from wfcore.model.workflow import Language
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.ports.models import ModelRequest, NotAsked
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
    "$0/python/bin/python3" "$0/tests/under_shortage.py" processes "$0/steps"
"""
"""Root's processes are not counted, and nobody else may read where root has its Python."""


def test_without_processes() -> None:
    """An ordinary user whose processes are used up: steps wait, and run when there are some."""
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid():
            program = str(HERE / "under_shortage.py")
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
    program = [sys.executable, str(HERE / "under_shortage.py"), lacking, str(tmp_path / "disk")]
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
    assert shortages.total == 2
    now[0] = SEEN_FOR_S
    assert shortages.now is None


async def test_what_cannot_be_confined_is_told_from_what_passes(tmp_path: Path) -> None:
    """A mount that fails for good is lasting, in true words; a folder that is missing is not."""
    spawners = []
    try:
        for base, lasting in ((tmp_path / "file", True), (tmp_path / "missing", False)):
            (tmp_path / "file").touch()
            spawners.append(Spawner(SandboxConfig(NAMESPACE, base=str(base), disk=1 << 20)))
            ended = await spawners[-1].run(order(), silent)
            end = fault_of(ended, 5, 5)
            assert end is not None
            assert (end.error, end.lasting) == (None, lasting)
            assert str(end.postponed).startswith("it could not be confined: mount tmpfs")
    finally:
        for spawner in spawners:
            await spawner.close()


def order() -> LaunchOrder:
    place = StepFolder.at(STEP_DIR)
    return LaunchOrder(
        argv=["/bin/sh", "-c", ":"], env={}, folder=place.path, cwd=place.work, limits={},
        timeout_s=5, stdout_bytes=10, stderr_bytes=10, output_bytes=10, memory=1 << 28,
    )  # fmt: skip


async def test_calls_without_descriptors_are_not_made() -> None:
    """A callback and a question that find no descriptor were not sent, and say so. EX-27."""
    providers = providers_from({"WFCORE_AI_LOCAL_BASE_URL": "http://127.0.0.1:9/v1"})
    with a_receiver() as receiver, a_receiver() as model:
        callback_client, models = HttpCallbackClient(allow_private=True), WireModels(providers)
        assert await callback_client.post(receiver.url, {}, b"{}") == CallbackAnswer(
            204
        )  # now it is imported
        await asyncio.to_thread(int)  # and there are threads
        for url in (receiver.url, receiver.url.replace("127.0.0.1", "localhost")):
            with no_descriptor_left():
                answer = await callback_client.post(url, {}, b"{}")
            assert (answer.status, answer.error) == (None, None)
            assert str(answer.postponed).startswith("the server has no file descriptors left")
        assert len(receiver.received) == 1
        with no_descriptor_left(), pytest.raises(NotAsked, match="no file descriptors left"):
            await models.ask(ModelRequest("local:m", "Say it"))
        assert model.received == []
