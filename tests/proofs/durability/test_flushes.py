"""
Flushed before answered, as the operating system sees it: real servers and commands under `strace`.

Each promise is judged twice: on the program as it is, and with the flush taken out that it rests
on, which must be found.
"""

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from tests.wfserver.conftest import environment

from . import tracing
from .tracing import FLUSHES, READS, WRITES, Call, Planted

DEADLINE_S = 90
DEFINITION = """
name: Flushes
steps:
  - {name: ask, kind: manual_approval, message: "Go on?"}
  - name: write
    kind: code
    language: command
    command: [sh, -c, 'echo report > "$WF_ARTIFACTS/mark-of-the-artifact.txt"']
"""

LOG = re.compile(r"/wfcore\.db-wal$")
KEPT = re.compile(r"/data/(?:[a-z]+\.key|wfcore\.db|artifacts(?:/.*)?)$")
ARCHIVE = re.compile(r"/all\.tar$")
RESTORED = re.compile(r"/again/(?:wfcore\.db|[a-z]+\.key|artifacts(?:/.*)?)$")


@frozen
class Asked:
    """A request as the server's calls show it: where it was read, where its answer was written."""

    read: Call
    answered: Call

    @classmethod
    def of(cls, record: Sequence[Call], mark: str) -> "Asked":
        """The request that carried *mark* in a header."""
        header = f"x-mark: {mark}\r\n".encode()
        read = next(
            one for one in record if one.name in READS and any(header in t for t in one.texts)
        )
        answered = next(
            one
            for one in record
            if one.begin > read.end and one.name in WRITES and one.file == read.file
        )
        return cls(read, answered)


class Server:
    """A server under `strace`, spoken to until it is ended; then its calls can be read."""

    def __init__(self, folder: Path, planted: Sequence[Planted]) -> None:
        self.data, self.record = folder / "data", folder / "record"
        arguments = ("--data", str(self.data), "up", "--port", "0", "--json")
        with (folder / "stderr").open("w") as log:
            self.process = subprocess.Popen(
                tracing.command(self.record, "wfcore", *arguments, planted=planted),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**environment(), "WFCORE_WARM": "0"},
            )
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line == "}\n":
                break
        self.said = json.loads("".join(lines) or (folder / "stderr").read_text())

    def ask(self, method: str, path: str, mark: str, body: Any = None) -> Any:
        """One request with a connection of its own."""
        host = self.said["url"].removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=DEADLINE_S)
        headers = {"X-Mark": mark, "Authorization": f"Bearer {self.said['apiKey']}"}
        content = None if body is None else json.dumps(body)
        headers |= {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, path, content, {k.lower(): v for k, v in headers.items()})
        answer = connection.getresponse()
        said = json.loads(answer.read())
        connection.close()
        assert answer.status < 300, said
        return said

    def end(self) -> None:
        """End it as Ctrl-C does. `strace` ends with it, and not the other way round."""
        pid = json.loads((self.data / "server.json").read_text())["pid"]
        subprocess.run(["kill", f"-{signal.SIGINT.value}", str(pid)], check=True)
        self.process.communicate(timeout=DEADLINE_S)


def served(folder: Path, *planted: Planted) -> tuple[Sequence[Call], Mapping[str, Any]]:
    """A server that made keys, started, decided and kept an artifact: its calls, what it said."""
    server = Server(folder, planted)
    try:
        applied = folder / "flow.yaml"
        applied.write_text(DEFINITION)
        wfcore = (sys.executable, "-m", "wfserver", "--data", str(server.data), "--json")
        owner = ("workflow", "apply", str(applied), "--owner", server.said["email"])
        done = subprocess.run([*wfcore[:-1], *owner, "--json"], capture_output=True, check=True)
        flow = json.loads(done.stdout)["id"]
        path = f"/api/v1/workflows/{flow}/executions"
        id = server.ask("POST", path, "start", {"inputs": {}})["executionId"]
        server.ask("GET", f"/api/v1/executions/{id}?wait=60", "wait")
        found = server.ask("GET", f"/api/v1/approvals/execution/{id}", "look")
        approval = found["approvals"][0]["id"]
        decision = {"comment": "mark-of-the-decision"}
        server.ask("POST", f"/api/v1/approvals/{approval}/approve", "decide", decision)
        until = time.monotonic() + DEADLINE_S
        while True:
            ended = server.ask("GET", f"/api/v1/executions/{id}?wait=60", "result")
            if ended["status"] == "COMPLETED" or time.monotonic() > until:
                break
        assert ended["status"] == "COMPLETED", ended
    finally:
        server.end()
    return list(tracing.calls(server.record)), {**server.said, "started": id}


def logged(record: Sequence[Call], mark: str, asked: int, answered: int) -> list[str]:
    """What is missing between *asked* and *answered*: a row with *mark* in the log, its flush."""
    written = next(
        (
            one
            for one in record
            if one.begin > asked
            and one.name in WRITES
            and LOG.search(one.file)
            and any(mark.encode() in text for text in one.texts)
        ),
        None,
    )
    if written is None or written.end > answered:
        return [f"{mark} was not written to the log before the answer"]
    flushed = (
        one
        for one in record
        if one.name in FLUSHES and LOG.search(one.file) and one.begin > written.end
    )
    if any(one.end < answered for one in flushed):
        return []
    return [f"{mark} was written to the log, which was not flushed before the answer"]


def judged(record: Sequence[Call], said: Mapping[str, Any]) -> list[str]:
    """Everything that was answered before it was flushed."""
    start, decision = Asked.of(record, "start"), Asked.of(record, "decide")
    results = [
        Asked(one, answer)
        for one in record
        if one.name in READS and any(b"x-mark: result\r\n" in text for text in one.texts)
        for answer in [
            next(a for a in record if a.begin > one.end and a.name in WRITES and a.file == one.file)
        ]
    ]
    ready = next(one for one in record if one.name == "write" and b'"url"' in one.texts[0][:40])
    key = said["apiKey"].split("_")[1]
    end = results[-1].answered
    return [
        *logged(record, said["started"], start.read.end, start.answered.begin),
        *logged(record, "mark-of-the-decision", decision.read.end, decision.answered.begin),
        *logged(record, "mark-of-the-artifact", decision.read.end, end.begin),
        *logged(record, key, 0, ready.begin),
        *(f"{file}: {why}" for file, why in unflushed(record, ready, KEPT).items()),
        *(f"{file}: {why}" for file, why in unflushed(record, end, KEPT).items()),
    ]


def unflushed(record: Sequence[Call], answer: Call, wanted: re.Pattern[str]) -> Mapping[str, str]:
    """See `tracing.unflushed`; the content of the database itself is safe in its log."""
    found = tracing.unflushed(record, answer.begin, wanted)
    content = {"/data/wfcore.db": "its content"}
    return {f: what for f, what in found.items() if content.get(f[-15:]) != what}


SERVED: Mapping[str, tuple[Planted, str]] = {
    "no flush at commit": (
        ("adapters_store.sqlite.connection", "synchronous = FULL", "synchronous = NORMAL"),
        r"exec_\w+ was written .* not flushed(?s:.*)mark-of-the-decision",
    ),
    "no flush of an artifact": (
        ("adapters_store.files", "        os.fsync(file.fileno())\n", ""),
        r"data/artifacts/\w+/\w+: its content",
    ),
    "no flush of an artifact's folder": (
        ("adapters_store.files", "            flush_folder(folder)\n", ""),
        r"data/artifacts/\w+/\w+: its name",
    ),
    "no flush of a new folder": (
        ("adapters_store.private_folder", "        flush_folder(folder.parent)\n", ""),
        r"data/artifacts: its name",
    ),
    "no flush of a key": (
        ("wfserver.data.folder", "        os.fsync(file.fileno())\n", ""),
        r"first\.key: its content(?s:.*)signing\.key: its content",
    ),
}


def test_nothing_is_answered_before_it_is_flushed(tmp_path: Path) -> None:
    """Starts, decisions, keys and artifacts are on the disk with their names when they are told."""
    assert judged(*served(tmp_path)) == []


@pytest.mark.parametrize("name", SERVED)
def test_a_flush_that_is_missing_is_found(tmp_path: Path, name: str) -> None:
    """One line less, and what was told is not on the disk."""
    planted, told = SERVED[name]
    assert re.search(told, "\n".join(judged(*served(tmp_path, planted))))


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A data folder with an account and an artifact."""
    data = tmp_path / "data"
    create = ("account", "create", "ann@example.org")
    tracing.run(tmp_path / "before", "wfcore", "--data", str(data), *create)
    (data / "artifacts" / "exec_1").mkdir(parents=True)
    (data / "artifacts" / "exec_1" / "art_1").write_bytes(b"report")
    return data


def told(record: Sequence[Call], text: bytes) -> Call:
    """Where a command says on stdout that it is done."""
    return next(one for one in record if one.name == "write" and text in one.texts[0])


def backed_up(data: Path, *planted: Planted) -> list[str]:
    file = data.parent / "all.tar"
    arguments = ("--data", str(data), "backup", str(file), "--with-key")
    record = tracing.run(data.parent / "record", "wfcore", *arguments, planted=planted)
    found = unflushed(record, told(record, b"Keep it safe"), ARCHIVE)
    assert file.stat().st_size > 10_000
    return [f"{file}: {why}" for file, why in found.items()]


def restored(data: Path, *planted: Planted) -> list[str]:
    file, again = data.parent / "all.tar", data.parent / "again"
    if not file.exists():
        assert backed_up(data) == []
    arguments = ("--data", str(again), "restore", str(file))
    record = tracing.run(data.parent / "record", "wfcore", *arguments, planted=planted)
    found = unflushed(record, told(record, b"is restored"), RESTORED)
    assert (again / "artifacts" / "exec_1" / "art_1").read_bytes() == b"report"
    return [f"{file}: {why}" for file, why in found.items()]


def keyed_anew(data: Path, *planted: Planted) -> list[str]:
    (data / "signing.key").unlink()
    arguments = ("--data", str(data), "account", "list")
    record = tracing.run(data.parent / "record", "wfcore", *arguments, planted=planted)
    found = unflushed(record, told(record, b"ann@example.org"), KEPT)
    return [f"{file}: {why}" for file, why in found.items()]


COMMANDS: Mapping[str, tuple[Callable[..., list[str]], Planted, str]] = {
    "backup without a flush": (
        backed_up,
        ("wfserver.data.archive", "        os.fsync(raw.fileno())\n", ""),
        r"all\.tar: its content",
    ),
    "backup without a flush of its folder": (
        backed_up,
        ("wfserver.data.archive", "    flush_folder(file.parent)\n", ""),
        r"all\.tar: its name",
    ),
    "key without a flush of its folder": (
        keyed_anew,
        ("wfserver.data.folder", "    flush_folder(path.parent)\n", ""),
        r"signing\.key: its name",
    ),
    "restore without a flush": (
        restored,
        (
            "wfserver.data.archive",
            "                os.fsync(file.fileno())\n",
            "                pass\n",
        ),
        r"signing\.key: its content",
    ),
    "restore without a flush of folders": (
        restored,
        ("wfserver.data.archive", "        flush_folder(Path(parent))\n", ""),
        r"artifacts/exec_1/art_1: its name",
    ),
    "restore without a flush of the data folder": (
        restored,
        ("wfserver.data.archive", "    flush_folder(data)\n", ""),
        r"again/wfcore\.db: its name",
    ),
}


def test_what_commands_write_is_flushed_before_they_tell(filled: Path) -> None:
    """A command that says "done" has nothing left to write: backups, restores, keys."""
    assert keyed_anew(filled) == []
    assert backed_up(filled) == []
    assert restored(filled) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_without_its_flush_is_found(filled: Path, name: str) -> None:
    """One line less, and what was told is not on the disk."""
    command, planted, told = COMMANDS[name]
    assert re.search(told, "\n".join(command(filled, planted)))
