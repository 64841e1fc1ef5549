"""The README's tour, pasted as it is written, against the server that `wfcore up` starts."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.scenarios.process import free_port

ROOT = Path(__file__).parents[2]


def blocks(language: str, after: str = "") -> list[str]:
    """The fenced blocks of that language in the README, behind the marker."""
    text = (ROOT / "README.md").read_text()
    text = text[text.index(after) :] if after else text
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh `wfcore up`, its data in *tmp_path*."""
    port = free_port()
    argv = [sys.executable, "-m", "wfserver", "--data", "wfcore-data", "up", "--port", str(port)]
    process = subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "Ctrl-C" in line:
                break
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def pasted(api: str, tmp_path: Path) -> str:
    """What the tour prints."""
    (tour,) = blocks("bash", "<!-- tour -->")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", tour],
        cwd=tmp_path,
        env={**os.environ, "API": api, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_the_tour_does_what_it_says(api: str, tmp_path: Path) -> None:
    """
    Start, edit, approve, result, report and signed webhook, by copy and paste; also again, and by
    a reader who has applied the README's first workflow.
    """
    (tmp_path / "hello.yaml").write_text(blocks("yaml")[0])
    apply = ("workflow", "apply", "hello.yaml", "--owner", "you@example.org")
    argv = [sys.executable, "-m", "wfserver", "--data", "wfcore-data", *apply]
    subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    for _ in range(4):  # a plan has three webhooks
        shows_the_tour(pasted(api, tmp_path))


def shows_the_tour(stdout: str) -> None:
    """Each part of the tour did what its comment says."""
    assert '"status":"AWAITING_APPROVAL"' in stdout
    assert '"status":"APPROVED"' in stdout
    assert "A-1004,Edsger Dijkstra,60.00" in stdout
    assert "\nA-1003," not in stdout  # in the inputs the line breaks are escaped
    assert '"webhookId":"wh_' in stdout.splitlines()[-1]


def test_the_first_workflow_runs(tmp_path: Path) -> None:
    """`wfcore run hello.yaml` does what the README's definition says."""
    (tmp_path / "hello.yaml").write_text(blocks("yaml")[0])
    argv = [sys.executable, "-m", "wfserver", "run", "hello.yaml", "-i", "who=you", "--approve"]
    run = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "said it" in run.stdout


PROGRAMS = [("hello.py", 15, "Hello you"), ("refund.py", 25, "COMPLETED paid A-7")]


def program(name: str) -> str:
    """The program of that name in the README."""
    (found,) = (one for one in blocks("python") if one.startswith(f"# {name}\n"))
    return found


@pytest.mark.parametrize(("name", "most", "says"), PROGRAMS)
def test_a_program_is_as_small_as_it_is_said_to_be(
    name: str, most: int, says: str, tmp_path: Path
) -> None:
    """Durable in 15 lines, start, approve and finish in 25; the durable one also a second time."""
    (tmp_path / name).write_text(program(name))
    lines = [line for line in program(name).splitlines() if line.strip() and line[0] != "#"]
    assert len(lines) <= most
    for _ in range(2):
        argv = [sys.executable, "-W", "error", name]
        run = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert (run.returncode, run.stdout) == (0, f"{says}\n"), run.stderr


def test_a_rule_can_be_had_alone(tmp_path: Path) -> None:
    """What the README shows of the rules does something."""
    (rule,) = (one for one in blocks("python") if "signature_fits" in one)
    run = subprocess.run([sys.executable, "-c", rule], cwd=tmp_path, capture_output=True)
    assert run.returncode == 0, run.stderr
