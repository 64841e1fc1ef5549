"""The background service that approves by rule, as a process beside a real server."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .loading import EXAMPLES

ROBOT, ANN = "robot@example.org", "ann@example.org"
DEFINITION = """
name: Refunds
variables: {amount: {type: number, required: true}}
steps:
  - name: review
    kind: manual_approval
    message: Refund?
    approvers: [robot@example.org, ann@example.org]
    groups: [{name: refunds, title: Refunds, rows: [{amount: "{{ variables.amount }}"}]}]
"""
PATIENCE_S = 60


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def wfcore(data: Path) -> Callable[..., Any]:
    def wfcore(*arguments: str, stdin: str = "") -> Any:
        argv = [sys.executable, "-m", "wfserver", "--data", str(data), *arguments, "--json"]
        ended = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return wfcore


def process(*argv: str) -> "subprocess.Popen[str]":
    environment = {name: text for name, text in os.environ.items() if name[:7] != "WFCORE_"}
    return subprocess.Popen(
        [sys.executable, *argv], stdout=subprocess.PIPE, text=True, env=environment
    )


def end(running: "subprocess.Popen[str]") -> int:
    running.send_signal(signal.SIGTERM)
    try:
        return running.wait(30)
    finally:
        running.kill()
        assert running.stdout is not None
        running.stdout.close()


@pytest.fixture
def beside_a_server(data: Path, wfcore: Callable[..., Any]) -> Iterator[None]:
    """A server and the service, both on one data folder; both end when they are asked to."""
    for email in (ROBOT, ANN):
        wfcore("account", "create", email)
    server = process("-m", "wfserver", "--data", str(data), "serve", "--port", "0")
    service = process(str(EXAMPLES / "approve_by_rule.py"), str(data), ROBOT)
    try:
        assert service.stdout is not None
        assert service.stdout.readline() == "ready\n"
        yield
    finally:
        assert [end(service), end(server)] == [0, 0]


@pytest.mark.usefixtures("beside_a_server")
def test_small_amounts_pass_and_large_ones_wait(wfcore: Callable[..., Any]) -> None:
    """The rule decides in its own name what it may; the other execution waits for people. AP-10."""
    id = wfcore("workflow", "apply", "-", "--owner", ANN, stdin=DEFINITION)["id"]
    large = wfcore("execution", "start", id, "-i", "amount=900")["executionId"]
    small = wfcore("execution", "start", id, "-i", "amount=20")["executionId"]
    deadline = time.monotonic() + PATIENCE_S
    while (found := wfcore("execution", "show", small))["status"] != "COMPLETED":
        assert time.monotonic() < deadline, found
    (decision,) = [one for one in wfcore("approval", "list")["items"] if one["decidedBy"]]
    assert (decision["executionId"], decision["decidedBy"]) == (small, ROBOT)
    assert decision["comment"].startswith("by rule: Release rows up to 100")
    assert wfcore("execution", "show", large)["status"] == "AWAITING_APPROVAL"
