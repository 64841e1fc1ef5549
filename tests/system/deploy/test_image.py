"""
The image of `deploy/container`, built by following its file and run as containers run.

`make image`; skipped without IMAGE_BASE, the folder of a root file system (`.ci/image` makes one).
"""

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from wfserver.data.bootstrap import EMAIL

from .containerfile import (
    DEFAULT_CAPABILITIES,
    Container,
    Flags,
    Follower,
    Image,
    lines_of,
)

BASE = os.environ.get("IMAGE_BASE", "")
pytestmark = pytest.mark.skipif(not BASE, reason="make image")
LONG_S = 120
CODE = {
    "python": "print('from python')",
    "bash": "echo from bash",
    "javascript": "console.log('from javascript')",
    "typescript": "const word: string = 'typescript'; console.log('from', word)",
    "lua": "print('from lua')",
    "ruby": "puts 'from ruby'",
}
AS_ROOT = f"{DEFAULT_CAPABILITIES} sys_admin net_admin"
PROFILE = "deploy/container/seccomp.json"


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Every line of the file, executed."""
    return Follower(Path(BASE), tmp_path_factory.mktemp("image")).build(lines_of())


@contextmanager
def running(image: Image, volume: Path) -> Iterator[Container]:
    """`docker run --read-only --tmpfs /tmp IMAGE up`, from when it is healthy."""
    container = Container(image, volume)
    container.begin("up")
    process = container.process
    assert process is not None
    try:
        deadline = time.monotonic() + LONG_S
        while not container.pid or container.execute(*image.argv("HEALTHCHECK")).returncode:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield container
    finally:
        if process.poll() is None:
            os.kill(container.pid or process.pid, signal.SIGKILL)  # and with it its namespace
        process.wait()


@pytest.fixture
def container(image: Image, tmp_path: Path) -> Iterator[Container]:
    with running(image, tmp_path) as found:
        yield found


def _apply(container: Container, name: str, *steps: dict[str, str]) -> None:
    text = yaml.safe_dump({"name": name, "steps": [{"kind": "code", **step} for step in steps]})
    done = container.execute("wfcore", "workflow", "apply", "-", "--owner", EMAIL, stdin=text)
    assert done.returncode == 0, done.stderr


def test_the_sample_runs_to_its_end(container: Container) -> None:
    """The first five minutes, in a container: `up`, then `try`."""
    tried = container.execute("wfcore", "try", "--yes")
    assert tried.returncode == 0, tried.stdout + tried.stderr


def test_every_language_runs(container: Container) -> None:
    """A step in each language that the image says it has."""
    steps = [{"name": name, "language": name, "source": code} for name, code in CODE.items()]
    _apply(container, "All", *steps)
    done = container.execute("wfcore", "execution", "start", "All", "--wait", "--json")
    run = json.loads(done.stdout)
    assert run["status"] == "COMPLETED", run
    assert [f"from {name}" in done.stdout for name in CODE] == [True] * len(CODE)


def test_sigterm_lets_a_step_end(container: Container) -> None:
    """`docker stop`: the step that runs ends, and then the server, with status 0."""
    _apply(container, "Slow", {"name": "one", "language": "bash", "source": "sleep 2; echo rested"})
    started = container.execute("wfcore", "execution", "start", "Slow", "--json")
    id = json.loads(started.stdout)["executionId"]
    process = container.process
    assert process is not None
    shown = ("wfcore", "execution", "show", id, "--json")
    while json.loads(container.execute(*shown).stdout)["status"] == "PENDING":
        time.sleep(0.05)
    container.stop()
    assert process.wait(25 + 5) == 0
    after = subprocess.run(
        container.command(*shown), env=container.image.env, capture_output=True, timeout=LONG_S
    )
    assert json.loads(after.stdout)["status"] == "COMPLETED"


def test_nothing_is_left_in_the_image(image: Image) -> None:
    """No sources, no keys, no caches, no compilers; the folder of the data is empty and private."""
    root = image.root
    assert image.said["USER"] != "0:0"
    assert [str(path) for path in (root / "var/lib/wfcore").iterdir()] == []
    assert (root / "var/lib/wfcore").stat().st_mode & 0o777 == 0o700
    for path in ("source", "wheel", "build", "root/.cache", "usr/bin/gcc", "usr/bin/curl"):
        assert not (root / path).exists(), path
    secret = {path.name for path in (root / "opt/wfcore").rglob("*.[kp]e[ym]")}
    assert secret <= {"cacert.pem"}


def test_it_is_built_again_the_same(image: Image, tmp_path: Path) -> None:
    """What pip installs, and our own wheel, are the same byte for byte."""
    lines = lines_of()
    last = max(number for number, (word, _) in enumerate(lines) if word == "FROM")
    again = Follower(Path(BASE), tmp_path).build(lines[:last])
    assert _digests(again.root / "opt/wfcore") == _digests(image.root / "opt/wfcore")


def _digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        (Flags(), "landlock"),
        (Flags(capabilities="", gains=False), "landlock"),
        (Flags(filter="unconfined"), "landlock"),
        (Flags(masked=False), "landlock"),
        (Flags(filter=PROFILE, masked=False), "namespace"),
        (Flags(filter=PROFILE, masked=False, capabilities="", gains=False), "namespace"),
        (Flags(user="0:0"), "uid"),
        (Flags(user="0:0", filter=PROFILE, capabilities=AS_ROOT), "namespace"),
    ],
    ids=str,
)
def test_isolation_is_what_the_documentation_says(
    flags: Flags, level: str, image: Image, tmp_path: Path
) -> None:
    """The table of `docs/howto/run-in-containers.md`: which level `doctor` finds."""
    command = Container(image, tmp_path, flags).command("wfcore", "doctor", "--json")
    done = subprocess.run(command, env=image.env, capture_output=True, timeout=LONG_S)
    found = json.loads(done.stdout)["isolation"]
    assert (found["level"], found["refused"]) == (level, False), found
