"""When the server dies, nothing of its steps lives on, and the next one cleans up after it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import adapters_runtime
from adapters_runtime.code.runner import CodeStepRunner
from wfcore.testing.contracts.steps import alive, until

SERVER = """
import asyncio, sys
from pathlib import Path
import adapters_runtime
from adapters_runtime.code.runner import CodeStepRunner
from wfcore.testing.contracts.steps import job

STEP = '''
import os, signal, time
for _ in range(4):
    os.fork()
os.setsid() if os.getpgid(0) != os.getpid() else None
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("on", flush=True)
time.sleep(600)
'''

async def say(stream, lines):
    print(asked.execution_id, runner.spawner_pid, flush=True)

asked = job(STEP, log=True)
runner = CodeStepRunner(Path(sys.argv[1]), None, lambda: "art")
asyncio.run(runner.run(asked, say))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    argv = [sys.executable, "-c", SERVER, str(tmp_path / "steps")]
    env = {**os.environ, "SERVER_SECRET": "hunter2"}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env) as server:
        try:
            yield server
        finally:
            server.kill()


async def test_killed_server(tmp_path: Path, files: Any, server: "subprocess.Popen[str]") -> None:
    """After kill -9 of the server, steps and spawner die at once; folders go at the next start."""
    assert server.stdout
    marker, spawner = server.stdout.readline().split()
    assert alive(marker)
    server.send_signal(signal.SIGKILL)
    await until(lambda: not alive(marker) and not _lives(int(spawner)), within_s=60)
    assert list((tmp_path / "steps").iterdir())
    runner = CodeStepRunner(tmp_path / "steps", files, lambda: "art")
    assert len(list((tmp_path / "steps").iterdir())) == 0
    await runner.close()
    assert list((tmp_path / "steps").iterdir()) == []


async def test_terminated_group(server: "subprocess.Popen[str]") -> None:
    """A SIGTERM to the spawner (as an init system sends to all) does not end running steps."""
    assert server.stdout
    marker, spawner = server.stdout.readline().split()
    os.kill(int(spawner), signal.SIGTERM)
    assert _lives(int(spawner))
    assert alive(marker)


def test_spawner_holds_no_secrets(server: "subprocess.Popen[str]") -> None:
    """The spawner's environment names a language and no more; its command line, nothing."""
    assert server.stdout
    _, spawner = server.stdout.readline().split()
    assert Path(f"/proc/{spawner}/environ").read_bytes() == b"LANG=C.UTF-8\0HOME=/\0"
    assert b"hunter2" not in Path(f"/proc/{spawner}/cmdline").read_bytes()


def test_spawner_is_standard_library_only() -> None:
    """The spawner runs on a bare interpreter, whatever is installed."""
    script = """
import sys
sys.path.append(sys.argv[1])
import adapters_runtime.sandbox.spawner
own = {name.partition(".")[0] for name in sys.modules} - {"__main__", "adapters_runtime"}
print(own - sys.stdlib_module_names)
"""
    (source,) = adapters_runtime.__path__
    argv = [sys.executable, "-I", "-S", "-c", script, str(Path(source).parent)]
    assert subprocess.check_output(argv, text=True) == "set()\n"


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
