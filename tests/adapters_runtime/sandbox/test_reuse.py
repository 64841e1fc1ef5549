"""A sandbox with namespaces serves one step after another, and no step finds what another left."""

import asyncio
import json
import os
import resource
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox import spawner, supervisor
from adapters_runtime.sandbox.isolation.config import NAMESPACE
from adapters_runtime.sandbox.isolation.syscalls import syscall
from wfcore.model.workflow import Language
from wfcore.testing.contracts.steps import alive, job, silent, until

IDLE_CLASS = 3 << 13


def _limit(which: int) -> Callable[[int], object]:
    def lower(pid: int) -> None:
        _, most = resource.prlimit(pid, which)
        resource.prlimit(pid, which, (1 << 20, most if most > 1 << 20 else 1 << 20))

    return lower


def _write(name: str, text: str) -> Callable[[int], object]:
    return lambda pid: Path(f"/proc/{pid}/{name}").write_text(text)


PLANTED: dict[str, Callable[[int], object]] = {
    "size of files": _limit(resource.RLIMIT_FSIZE),
    "time of processors": _limit(resource.RLIMIT_CPU),
    "nice": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 5),
    "affinity": lambda pid: os.sched_setaffinity(pid, {min(os.sched_getaffinity(pid))}),
    "scheduler": lambda pid: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
    "input and output": lambda pid: syscall("ioprio_set", 1, pid, IDLE_CLASS),
    "killed first": _write("oom_score_adj", "500"),
    "what is dumped": _write("coredump_filter", "0x11"),
}
"""What another process of the same user can change, by number of the process."""

NAMESPACES = ("mnt", "net", "pid", "cgroup", "uts")
WHERE = f"for kind in {' '.join(NAMESPACES)}; do readlink /proc/self/ns/$kind; done"
COUNT_AND_KNOCK = """
import socket
for name in ("netstat", "snmp", "snmp6"):
    print(open(f"/proc/net/{name}").read())
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
"""
LOOK_AND_LEAVE = f"""
{WHERE} | md5sum
find /step -type f ! -name main.sh ! -name context.json
ls /proc
for folder in work home tmp; do echo 1 > /step/$folder/left; done
sleep 600 &
"""
LOOK = """
import json, re
found = []
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
    for line in maps:
        place, rights = line.split()[:2]
        begin, end = (int(edge, 16) for edge in place.split("-"))
        if rights.startswith("rw") and end < 1 << 47:
            memory.seek(begin)
            found += re.findall(b"pass" + b"word-[a-z]+", memory.read(end - begin))
print(json.dumps(sorted({one.decode() for one in found})))
"""


@pytest.fixture
async def runner(runner: CodeStepRunner) -> CodeStepRunner:
    """At the level where sandboxes are used again; elsewhere there is nothing to try."""
    if (await runner.level()).name != NAMESPACE:
        pytest.skip("no namespaces here")
    return runner


async def out(runner: CodeStepRunner, source: str, language: Language = Language.BASH) -> str:
    end = await runner.run(job(source, language), silent)
    assert end.error is None, end
    return end.output if isinstance(end.output, str) else json.dumps(end.output)


async def busy(runner: CodeStepRunner) -> tuple[int, int]:
    """The supervisor and the init of the step that runs, and has started another process."""
    found: list[tuple[int, int]] = []

    def look() -> bool:
        for one in children(runner.spawner_pid or 0):
            found.extend(
                (one, init) for init in children(one) if any(map(children, children(init)))
            )
        return bool(found)

    await until(look, within_s=60)
    return found[0]


def children(pid: int) -> list[int]:
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in listed.split()]


def are_gone(pids: list[int]) -> bool:
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


async def test_steps_follow_one_another_in_few_sandboxes(runner: CodeStepRunner) -> None:
    """Twenty steps one by one, of two languages, are run by half as many supervisors at most."""
    await out(runner, "true")
    seen = set(children(runner.spawner_pid or 0))
    for number in range(20):
        await out(runner, *(("true",) if number % 2 else ("1", Language.PYTHON)))
        seen |= set(children(runner.spawner_pid or 0))
    assert len(seen) <= 10


async def test_what_a_step_leaves_is_gone(runner: CodeStepRunner) -> None:
    """No file, no process of an earlier step is there for the next, in the same namespaces."""
    places: list[str] = []
    for _ in range(12):
        place, *found = (await out(runner, LOOK_AND_LEAVE)).splitlines()
        places.append(place)
        assert not [path for path in found if path.startswith("/step")]
        assert len([name for name in found if name.isdigit()]) <= 2  # its own Bash, and ls
    assert len(set(places)) < len(places)


async def test_no_step_reads_what_an_earlier_one_held(runner: CodeStepRunner) -> None:
    """Neither a job nor the output of an earlier step is in the memory a step is forked from."""
    for _ in range(4):
        await out(runner, "echo password-printed; echo password-kept > work; # password-coded")
        await out(runner, "print('password-printed')  # password-coded", Language.PYTHON)
        assert await out(runner, LOOK, Language.PYTHON) == "[]"
    held = "held = 'password-' + 'own'" + LOOK
    assert await out(runner, held, Language.PYTHON) == '["password-own"]'  # it does look


async def test_who_used_the_network_is_followed_by_nobody(runner: CodeStepRunner) -> None:
    """Every step counts from nought, whatever those before it sent to themselves."""
    counted = [await out(runner, COUNT_AND_KNOCK, Language.PYTHON) for _ in range(8)]
    assert len(set(counted)) == 1


@pytest.mark.parametrize(
    "source", ["echo 1 > $WF_ARTIFACTS/kept", "head -c 9000000 /dev/zero; exit 1", "kill -9 $$"]
)
async def test_only_what_ended_by_itself_is_followed(runner: CodeStepRunner, source: str) -> None:
    """A step that left files to fetch, or was ended, has no successor; and the next is well."""
    await runner.run(job(source, Language.BASH), silent)
    assert await out(runner, "echo 7") == "7"


async def init_of_next(
    runner: CodeStepRunner, meanwhile: Callable[[int], object] = lambda _: None
) -> int:
    """The init of the step that comes next, after it has ended well; *meanwhile*: done to it."""
    running = asyncio.ensure_future(out(runner, "sleep 600 & wait; echo 7"))
    _, init = await busy(runner)
    meanwhile(init)
    for shell in children(init):
        for waiting in children(shell):
            os.kill(waiting, signal.SIGKILL)
    assert await running == "7"
    return init


@pytest.mark.parametrize("change", PLANTED)
async def test_who_changed_the_init_is_followed_by_nobody(
    runner: CodeStepRunner, change: str
) -> None:
    """A limit, a priority or the like that changes during a step ends the sandbox. CS-12."""
    await out(runner, "true")
    changed = await init_of_next(runner, PLANTED[change])
    assert changed not in [await init_of_next(runner) for _ in range(4)]


async def test_who_changed_nothing_is_followed(runner: CodeStepRunner) -> None:
    """With nothing planted one of the next four steps has the same sandbox."""
    await out(runner, "true")
    unchanged = await init_of_next(runner)
    assert unchanged in [await init_of_next(runner) for _ in range(4)]


@pytest.mark.parametrize("which", [0, 1], ids=["supervisor", "init"])
async def test_killed_watchers(runner: CodeStepRunner, which: int) -> None:
    """Whoever of the two that watch over a step is killed, the step dies before the run returns."""
    await out(runner, "true")
    asked = job("sleep 600 & sleep 600", Language.BASH)
    running = asyncio.ensure_future(runner.run(asked, silent))
    os.kill((await busy(runner))[which], signal.SIGKILL)
    assert "watched over" in ((await running).error or "")
    assert alive(asked.execution_id) == []
    assert await out(runner, "echo 7") == "7"


async def test_killed_spares(runner: CodeStepRunner) -> None:
    """An init that is killed while it waits fails no step: one is postponed at most."""
    for _ in range(3):
        await out(runner, "true")
        waiting = children(runner.spawner_pid or 0)
        inits = [init for supervisor_pid in waiting for init in children(supervisor_pid)]
        for init in inits:
            os.kill(init, signal.SIGKILL)
        await until(partial(are_gone, inits), within_s=60)
        end = await runner.run(job("echo 7", Language.BASH), silent)
        assert end.output == 7 or end.postponed, end


def test_what_is_old_is_followed_by_nobody() -> None:
    """A sandbox does not outlive what it was made from by much: a minute."""
    assert supervisor.FRESH_S <= 60
    assert spawner.START != supervisor.FREE
