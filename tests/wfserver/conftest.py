"""The command line as tests call it: in this process, or as a process of its own."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from wfserver.cli import main

STEP = "steps: [{name: a, kind: code, language: command, command: [echo, hello]}]"


@frozen
class Said:
    """What a call said, and how it ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


Call = Callable[..., Said]


@pytest.fixture
def call(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Call:
    """Call the command line in this process, in an empty folder of its own."""
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))

    def call(*arguments: str, stdin: str = "") -> Said:
        text = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", text)
        capsys.readouterr()
        status = main(arguments)
        said = capsys.readouterr()
        return Said(status, said.out, said.err)

    return call


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def wfcore(call: Call, data: Path) -> Call:
    """Call it on a data folder that has an account, ann@example.org on PRO."""
    assert (
        call("--data", str(data), "account", "create", "ann@example.org", "--plan", "PRO").status
        == 0
    )

    def wfcore(*arguments: str, stdin: str = "") -> Said:
        return call("--data", str(data), *arguments, stdin=stdin)

    return wfcore


@pytest.fixture
def applied(wfcore: Call) -> str:
    """The id of Ann's workflow "Greet"."""
    said = wfcore(
        "workflow",
        "apply",
        "-",
        "--owner",
        "ann@example.org",
        "--json",
        stdin=f"name: Greet\n{STEP}",
    )
    return str(said.json["id"])


def environment() -> dict[str, str]:
    """The environment of a process of its own: no settings of whoever runs the tests."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WFCORE_")}


def program(*arguments: str, timeout: float = 120) -> Said:
    """Call the command line as a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-m", "wfserver", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=environment(),
        timeout=timeout,
    )
    return Said(ended.returncode, ended.stdout, ended.stderr)


@frozen
class Running:
    """A server as a process of its own, and what it said when it answered."""

    process: "subprocess.Popen[str]"
    said: Any
    data: Path

    @property
    def url(self) -> str:
        return str(self.said["url"])


def start(
    *arguments: str, data: Path, python: Sequence[str] = (), **settings: str
) -> "subprocess.Popen[str]":
    """A process that serves on *data*; what it says on stderr is kept beside it."""
    with log_of(data).open("w") as log:
        return subprocess.Popen(
            [sys.executable, *python, "-m", "wfserver", "--data", str(data), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**environment(), **settings},
        )


def log_of(data: Path) -> Path:
    return data.parent / f"{data.name}.stderr"


def said_until(process: "subprocess.Popen[str]", last: Callable[[str], bool], data: Path) -> str:
    """What a server says on stdout, to the first line that is the *last* one."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if last(line):
            return "".join(lines)
    raise AssertionError(
        f"the server ended with {process.wait()}: {log_of(data).read_text()}{''.join(lines)}"
    )


def document(process: "subprocess.Popen[str]", data: Path) -> Any:
    """The JSON document that a server prints when it answers."""
    return json.loads(said_until(process, lambda line: line == "}\n", data))


def end(process: "subprocess.Popen[str]") -> int:
    """Ask it to end as Ctrl-C does; its exit status."""
    process.send_signal(signal.SIGINT)
    try:
        return process.wait(60)
    finally:
        process.kill()
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """`wfcore up` on a new folder and a free port."""
    data = tmp_path_factory.mktemp("up") / "data"
    process = start("up", "--port", "0", "--json", data=data)
    try:
        yield Running(process, document(process, data), data)
    finally:
        end(process)
