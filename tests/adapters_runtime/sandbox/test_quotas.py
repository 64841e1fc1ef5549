"""
What the kernel grants to a user, one step cannot use up for another: two steps beside one another.

The first takes all it can get of something and keeps it; the second must still get what it needs.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox.isolation.config import LANDLOCK, NAMESPACE, UID
from adapters_runtime.sandbox.isolation_level import Isolation, find_level
from wfcore.testing.contracts.steps import Lines, job, silent
from wfcore.testing.fakes_running import DictFiles

TAKES = {
    "inotify instances": """
def take():
    number = libc.inotify_init1(0)
    return number >= 0
""",
    "inotify watches": """
instance = libc.inotify_init1(0)
number = iter(range(1 << 20))
def take():
    path = "w%d" % (next(number) % 8_000)
    open(path, "w").close()
    return libc.inotify_add_watch(instance, path.encode(), 0x100) >= 0
""",
    "pending signals": """
def take():
    kept = ctypes.c_void_p()
    return libc.timer_create(1, None, ctypes.byref(kept)) == 0
""",
    "processes": """
def take():
    try:
        pid = os.fork()
    except OSError:
        return False
    if pid == 0:
        time.sleep(30)
        os._exit(0)
    return True
""",
}
PRELUDE = """
import ctypes, json, os, sys, time
libc = ctypes.CDLL(None)
"""
HOG = """
taken = 0
while taken < 200_000 and take():
    taken += 1
print("taken", taken, flush=True)
time.sleep(30)
"""
MODEST = """
with open(os.environ["WF_OUTPUT"], "w") as output:
    json.dump([take() for _ in range(4)], output)
"""
HELD = {
    NAMESPACE: set(TAKES),
    UID: set(TAKES) - {"inotify watches"},  # the filter lets nobody watch
    LANDLOCK: set(),
}


@pytest.fixture(params=[NAMESPACE, UID])
async def runner(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CodeStepRunner]:
    level = str(request.param)
    found = await find_level(level, tmp_path / "looked")
    if found.name != level:
        pytest.skip(f"this machine cannot be put into the level {level}: {found.missed[level]}")
    ids = (f"art_{number}" for number in range(100))
    isolation = Isolation(forced=level)
    made = CodeStepRunner(tmp_path / "steps", DictFiles(), ids.__next__, isolation=isolation)
    yield made
    await made.close()


@pytest.mark.parametrize("what", TAKES)
async def test_one_step_leaves_enough_for_another(runner: CodeStepRunner, what: str) -> None:
    """While one step holds all it could get, another gets its own."""
    if what not in HELD[(await runner.level()).name]:
        pytest.skip(f"steps have no {what} at this level")
    lines = Lines()
    source = PRELUDE + TAKES[what]
    hog = asyncio.create_task(runner.run(job(source + HOG, log=True), lines))
    try:
        async with asyncio.timeout(60):
            await lines.heard.wait()
            assert "taken" in lines.calls[0][1]
            end = await runner.run(job(source + MODEST), silent)
        assert (end.error, end.output) == (None, [True] * 4)
    finally:
        hog.cancel()
        await asyncio.wait([hog])
