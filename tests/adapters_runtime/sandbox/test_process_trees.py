"""Whatever a step does to live on, nothing of it does."""

import asyncio
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox import client
from adapters_runtime.sandbox.isolation.config import PROCESS, SandboxConfig
from adapters_runtime.sandbox.process_tree import descendants_of, kill_families, memory_held
from wfcore.model.workflow import Language
from wfcore.testing.contracts.steps import Lines, alive, job, silent, until

FORK_AND_EXIT_FOR_EVER = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        while True:
            if os.fork():
                os._exit(0)
time.sleep(600)
"""
WIDE = """
import os, time
for _ in range(5):
    os.fork()
os.setsid() if os.getpid() != os.getpgid(0) else None
while True:
    try:
        if os.fork() == 0:
            time.sleep(0.05)
            os._exit(0)
    except BlockingIOError:  # as wide as it may be, on a machine that ends processes late
        pass
    time.sleep(0.1)
"""
DEEP = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(60):
    if os.fork():
        break
    os.setsid()
time.sleep(600)
"""
STOPPED = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(600)
"""
OWN_REAPER = """
import ctypes, os, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    os._exit(0)
time.sleep(600)
"""
DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize(
    "source",
    [FORK_AND_EXIT_FOR_EVER, WIDE, DEEP, STOPPED, OWN_REAPER, DAEMON + "time.sleep(600)"],
    ids=["fork and exit", "wide", "deep", "stopped", "own reaper", "daemon"],
)
async def test_horrors(runner: CodeStepRunner, source: str) -> None:
    """However a step hides: when its run returns after the timeout, nothing of it is alive."""
    asked = job(source, timeout_ms=700)
    await runner.run(job("1"), silent)  # the interpreter is found, the spawner runs
    spawner = runner.spawner_pid
    assert spawner
    spares = await _spares(spawner)
    end = await runner.run(asked, silent)
    assert end.timed_out
    assert alive(asked.execution_id) == []
    # Also those who are too quick to be looked at.
    await until(lambda: len(_children(spawner)) <= spares, within_s=60)


async def test_soon_after_the_timeout(runner: CodeStepRunner) -> None:
    """A step that forks and exits for ever is over half a second after its limit at the latest."""
    await runner.run(job("1"), silent)
    took = []
    for _ in range(20):  # of a busy machine the best counts
        began = time.monotonic()
        end = await runner.run(job(FORK_AND_EXIT_FOR_EVER, timeout_ms=300), silent)
        took.append(time.monotonic() - began)
        assert end.timed_out
        if took[-1] <= 0.8:
            return
    raise AssertionError(took)


@pytest.mark.parametrize("ends", ["", "time.sleep(600)"])
async def test_killed_supervisor(loose_runner: CodeStepRunner, ends: str) -> None:
    """A step that kills its supervisor dies with all it started, before the run returns."""
    asked = job(f"{DAEMON}\nos.kill(os.getppid(), signal.SIGKILL)\n{ends}")
    end = await loose_runner.run(asked, silent)
    assert "watched over" in (end.error or "")
    assert alive(asked.execution_id) == []


async def test_stopped_supervisor(
    loose_runner: CodeStepRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that stops its supervisor is ended by the spawner, some time after its timeout."""
    monkeypatch.setattr(client, "_GRACE_S", 0.3)
    asked = job(f"{DAEMON}\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(600)", timeout_ms=300)
    end = await loose_runner.run(asked, silent)
    assert end.error
    assert alive(asked.execution_id) == []


async def test_stopped_spawner(
    loose_runner: CodeStepRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With supervisor and spawner stopped, the runner goes on with a new spawner."""
    monkeypatch.setattr(client, "_GRACE_S", 0.3)
    await loose_runner.run(job("true", Language.BASH), silent)
    spawner = loose_runner.spawner_pid
    source = f"setsid sleep 600 & kill -STOP {spawner} $PPID; sleep 600"
    asked = job(source, Language.BASH, timeout_ms=700)
    end = await loose_runner.run(asked, silent)
    assert end.error
    await until(lambda: not alive(asked.execution_id), within_s=60)
    assert (await loose_runner.run(job("echo 1", Language.BASH), silent)).output == 1
    assert loose_runner.spawner_pid != spawner


async def test_killed_spawner(runner: CodeStepRunner) -> None:
    """When the spawner is killed, running steps end as errors, and the next has a new one."""
    said = Lines()
    asked = job(f"{DAEMON}\nprint('on', flush=True)\ntime.sleep(600)", log=True)
    running = asyncio.ensure_future(runner.run(asked, said))
    await asyncio.wait_for(said.heard.wait(), 60)
    spawner = runner.spawner_pid
    assert spawner
    os.kill(spawner, signal.SIGKILL)
    end = await asyncio.wait_for(running, 20)
    assert end.error
    assert alive(asked.execution_id) == []
    assert (await runner.run(job("echo 1", Language.BASH), silent)).output == 1
    assert runner.spawner_pid != spawner


@pytest.fixture
async def spawner() -> AsyncIterator[client.Spawner]:
    spawner = client.Spawner(SandboxConfig(PROCESS))
    yield spawner
    await spawner.close()


def bash(folder: Path, script: str, **more: Any) -> client.LaunchOrder:
    """An order to run *script*, with the folder of the step in *folder*."""
    given: dict[str, Any] = {"env": {}, "limits": {}, **more}
    return client.LaunchOrder(
        argv=["/bin/bash", "-c", script],
        folder=str(folder / "folder"),
        cwd="/",
        timeout_s=30,
        stdout_bytes=1_000,
        stderr_bytes=1_000,
        output_bytes=1_000,
        memory=1 << 30,
        **given,
    )


async def test_impatience(spawner: client.Spawner, tmp_path: Path) -> None:
    """A run that is cancelled several times does not return before the tree is dead."""
    said = Lines()
    marker = f"marker_{secrets.token_hex(12)}"
    script = "echo on; for n in {1..30}; do sleep 600 & done; wait"
    order = bash(tmp_path, script, env={"MARKER": marker}, log=True)
    running = asyncio.ensure_future(spawner.run(order, said))
    await asyncio.wait_for(said.heard.wait(), 60)
    await until(lambda: len(alive(marker)) == 31, within_s=60)
    sleepers = alive(marker)
    for _ in range(4):
        running.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert alive(marker, among=sleepers) == []


async def test_a_job_that_does_not_arrive_whole(
    spawner: client.Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step whose context was cut off, because its server went away, never begins."""
    begun = tmp_path / "begun"
    order = bash(tmp_path, f"touch {begun}", context=(b"x" * 600_000, b"y" * 600_000))
    joined = client._joined

    def cut_off(pieces: Iterable[bytes]) -> Iterator[bytes]:
        yield from islice(joined(pieces), 2)
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(client, "_joined", cut_off)
        with pytest.raises(asyncio.CancelledError):
            await spawner.run(order, silent)
    assert not begun.exists()
    end = await spawner.run(evolve(order, folder=str(tmp_path / "another")), silent)
    assert (end.exit, begun.exists()) == (0, True)
    assert (tmp_path / "another" / "context.json").stat().st_size == 1_200_000


async def test_killed_spare(runner: CodeStepRunner) -> None:
    """A killed spare supervisor costs nothing but its place."""
    await runner.run(job("true", Language.BASH), silent)
    spawner = runner.spawner_pid
    assert spawner
    assert await _spares(spawner)
    for _ in range(3):
        await until(lambda: _children(spawner), within_s=60)
        for spare in _children(spawner):
            with suppress(ProcessLookupError):  # the last step's, which has ended meanwhile
                os.kill(spare, signal.SIGKILL)
            await until(partial(_is_gone, spawner, spare), within_s=60)
        assert (await runner.run(job("echo 1", Language.BASH), silent)).output == 1


async def test_closed_stdout(runner: CodeStepRunner) -> None:
    """A step that closes stdout and stderr goes on to its own end."""
    source = """
import os, time
os.close(1); os.close(2)
time.sleep(0.2)
open(os.environ["WF_OUTPUT"], "w").write("5")
"""
    assert (await runner.run(job(source), silent)).output == 5


async def test_much_stderr(runner: CodeStepRunner) -> None:
    """Of any amount of stderr the last 64 KiB are kept, and it does not fail the step."""
    source = "import sys\nfor _ in range(50): sys.stderr.write('x' * 200_000)\nprint(1)"
    end = await runner.run(job(source), silent)
    assert (end.output, end.error) == (1, None)


async def test_many_lines(runner: CodeStepRunner) -> None:
    """Lines beyond 1 MiB of a stream are not kept, and the last of them says so."""
    said = Lines()
    source = "import sys\nfor _ in range(60): sys.stderr.write('x' * 99_999 + '\\n')\nprint(1)"
    end = await runner.run(job(source, log=True), said)
    assert end.output == 1
    assert 900_000 < len(said.of("stderr")) < 1_400_000
    assert said.of("stderr").endswith("[no further lines are stored]\n")


async def test_clean_start(runner: CodeStepRunner) -> None:
    """A step has three descriptors, a session of its own, default signals, no way to privilege."""
    source = """
import json, os
facts = dict(line.split(":", 1) for line in open("/proc/self/status"))
signals = [int(facts[name], 16) for name in ("SigBlk", "SigIgn")]
python_ignores = 1 << 12 | 1 << 24
libc_owns = 1 << 31 | 1 << 32  # left ignored where make (posix_spawn) started us
print(json.dumps([
    sorted(os.listdir("/proc/self/fd")), os.getsid(0) == os.getpid(),
    signals[0], signals[1] & ~(python_ignores | libc_owns), int(facts["NoNewPrivs"]),
]))
"""
    end = await runner.run(job(source), silent)
    assert end.output == [["0", "1", "2", "3"], True, 0, 0, 1]  # 3 is the listing's own


async def test_broken_pipes(runner: CodeStepRunner) -> None:
    """SIGPIPE ends a pipeline quietly, as everywhere."""
    end = await runner.run(job('yes | head -1; echo "${PIPESTATUS[0]}"', Language.BASH), silent)
    assert end.output == f"y\n{128 + signal.SIGPIPE}"


async def _spares(spawner: int) -> int:
    """How many supervisors wait for a step, when none runs and all are ready."""
    seen: list[int] = []
    await until(lambda: seen[-6:].count(_seen(spawner, seen)) == 6, within_s=60)
    return seen[-1]


def _seen(spawner: int, seen: list[int]) -> int:
    seen.append(len(_children(spawner)))
    return seen[-1]


def _is_gone(parent: int, child: int) -> bool:
    return child not in _children(parent)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


HELD = 32 << 20
FAMILY = f"""
import os, signal
held = bytearray(b"x") * {HELD}
if os.fork() == 0:
    signal.pause()
print(flush=True)
signal.pause()
"""


def test_what_a_family_shares_counts_once() -> None:
    """All below a process are found; what they share counts for each only at a rough look."""
    argv = [sys.executable, "-I", "-c", FAMILY]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as parent:
        try:
            assert parent.stdout is not None
            parent.stdout.readline()
            (child,) = descendants_of(parent.pid)
            family = (parent.pid, child)
            assert descendants_of(os.getpid()) >= {*family}
            assert memory_held(family, limit=sys.maxsize) > 2 * HELD > memory_held(family, 0) > HELD
            end_of_child = os.pidfd_open(child)
        finally:
            kill_families([parent.pid])
    select.select([end_of_child], [], [])  # nobody here is its parent, so it cannot be waited for
    os.close(end_of_child)
    assert not memory_held(family, 0)


NOBODY = 65_534
UNREAD = "libc.prctl(4, 0, 0, 0, 0); hidden.set(); signal.pause()"
HEADLESS = "hidden.set(); libc.syscall(93 if os.uname().machine == 'aarch64' else 60, 0)"
HIDDEN = f"""
import ctypes, os, signal, threading
libc = ctypes.CDLL(None)
held = bytearray(b"x") * {HELD}
if os.geteuid() == 0:
    os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
    libc.prctl(4, 1, 0, 0, 0)
def hold():
    hidden.wait()
    print(flush=True)
    signal.pause()
hidden = threading.Event()
threading.Thread(target=hold).start()
"""


@pytest.mark.parametrize(("how", "state"), [(UNREAD, "S"), (HEADLESS, "Z")])
def test_who_hides_its_memory_is_counted(how: str, state: str) -> None:
    """What cannot be measured exactly counts with its rough sum."""
    argv = [sys.executable, "-I", "-c", HIDDEN + how]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as hiding:
        try:
            assert hiding.stdout is not None
            hiding.stdout.readline()
            while _state(hiding.pid) != state:
                time.sleep(0.001)
            assert _seen_by_nobody(hiding.pid, sys.maxsize) > HELD
            assert _seen_by_nobody(hiding.pid, 0) > HELD
        finally:
            hiding.kill()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _seen_by_nobody(pid: int, limit: int) -> int:
    """The memory of a process as another one of its user sees it, who is not root."""
    ours, theirs = os.pipe()
    reader = os.fork()
    if reader == 0:
        if os.geteuid() == 0:
            os.setresuid(NOBODY, NOBODY, NOBODY)
        os.write(theirs, b"%d" % memory_held([pid], limit))
        os._exit(0)
    os.waitpid(reader, 0)
    os.close(theirs)
    with os.fdopen(ours) as said:
        return int(said.read())
