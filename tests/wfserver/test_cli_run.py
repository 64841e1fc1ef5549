"""`wfcore run`: one workflow here and now."""

import io
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from rich.console import Console

from wfserver import sample
from wfserver.terminal import review

from .conftest import Call, environment

REFUNDS = str(Path(sample.__file__).with_name("refunds.yaml"))
HEAD = "order,customer,amount\n"

FAILING = """\
name: Fails
steps:
  - {name: a, kind: code, language: command, command: [sh, -c, "echo no such luck >&2; exit 3"]}
"""


def test_the_sample_pays_what_was_approved(call: Call, tmp_path: Path) -> None:
    """With --approve it COMPLETES, prints its output on stdout and leaves its report."""
    said = call("run", REFUNDS, "--approve", "--artifacts", str(tmp_path / "left"))
    assert said.status == 0, said.err
    assert '"paid": 5' in said.out
    assert "5 of 8 refunds are suspicious" in said.err
    assert "COMPLETED" in said.err
    report = (tmp_path / "left" / "refunds.csv").read_text()
    assert report.startswith(f"{HEAD}A-1003,Alan Turing,95.00\n")


def test_children_are_found_in_the_folder_of_the_file(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workflow that is started by name, at any depth, runs; WFCORE_URL has no part in it."""
    monkeypatch.setenv("WFCORE_URL", "http://127.0.0.1:9")
    step = "steps: [{{name: go, kind: workflow, workflow: {}}}]\n"
    (tmp_path / "top.yaml").write_text("name: Top\n" + step.format("Middle"))
    (tmp_path / "b.json").write_text(
        '{"name": "Middle", "steps": [{"name": "x", "kind": "workflow", "workflow": "Below"}]}'
    )
    (tmp_path / "c.yml").write_text(
        "name: Below\nsteps: [{name: a, kind: data, value: 7}]\n"
        'triggers: [{kind: SCHEDULE, cron: "* * * * *"}]\n'
    )
    (tmp_path / "broken.yaml").write_text("name: Broken\nsteps: 1\n")
    said = call("run", str(tmp_path / "top.yaml"), "--json")
    assert (said.status, said.json["output"]) == (0, 7), said.err
    (tmp_path / "top.yaml").write_text("name: Top\n" + step.format("Broken"))
    said = call("run", str(tmp_path / "top.yaml"))
    assert said.status == 1
    assert "broken.yaml:2: steps" in said.err
    (tmp_path / "top.yaml").write_text("name: Top\n" + step.format("Nowhere"))
    said = call("run", str(tmp_path / "top.yaml"))
    assert "there is no workflow 'Nowhere'" in said.err


def test_artifacts_survive_and_are_named(call: Call) -> None:
    """Without --artifacts they are kept in a folder of that run, each named on stderr."""
    kept = []
    for _ in range(2):
        said = call("run", REFUNDS, "--approve")
        assert said.status == 0, said.err
        (line,) = [line for line in said.err.splitlines() if line.startswith("saved ")]
        kept.append(Path(line.removeprefix("saved ")))
        assert kept[-1].parts[0] == "wfcore-artifacts"
        assert kept[-1].read_text().startswith(HEAD)
    assert kept[0] != kept[1]


def test_a_run_without_artifacts_leaves_no_folder(call: Call) -> None:
    """Nothing is made where nothing is to be kept."""
    call("run", "-", stdin=FAILING)
    assert list(Path().iterdir()) == []


def test_json_is_the_result_and_nothing_else(call: Call) -> None:
    """With --json stdout is the ExecutionResult and stderr is empty."""
    said = call("run", REFUNDS, "--approve", "--json", "-i", "returnDays=100")
    assert (said.status, said.err) == (0, "")
    assert set(said.json) == {
        *("executionId", "workflowId", "status", "stepResults", "duration", "output"),
        *("error", "usage", "completedAt", "earlierResults"),
    }
    assert said.json["output"] == {"paid": 4, "total": "237.95"}
    assert list(said.json["stepResults"]) == ["find", "review", "prepare", "pay"]


def test_a_rejected_one_fails(call: Call) -> None:
    """With --reject it is CANCELLED, no later step runs, and the exit status is 1."""
    said = call("run", REFUNDS, "--reject", "--json")
    assert said.status == 1
    assert said.json["status"] == "CANCELLED"
    assert list(said.json["stepResults"]) == ["find", "review"]


def test_without_anybody_nothing_is_approved(call: Call) -> None:
    """Without a terminal and without --approve it is CANCELLED and says what to give."""
    said = call("run", REFUNDS)
    assert said.status == 1
    assert "give --approve or --reject" in said.err
    assert "paying" not in said.err


def test_a_failing_step_is_told(call: Call) -> None:
    """A step that fails ends with exit status 1; its error and its output are shown."""
    said = call("run", "-", stdin=FAILING)
    assert (said.status, said.out) == (1, "")
    assert "FAILED" in said.err
    assert "no such luck" in said.err


def test_a_mistaken_definition_runs_nothing(call: Call) -> None:
    """Mistakes are listed with their lines, like at `apply`."""
    said = call("run", "-", stdin="name: x\nsteps:\n  - {name: a, kind: cod}\n")
    assert said.status == 1
    assert "stdin:3: steps[0].kind" in said.err


def _on_terminal(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    """Somebody sits at the terminal and types *answers*."""
    waiting = iter(answers)
    monkeypatch.setattr("wfserver.terminal.review._prompt", lambda *_: next(waiting))
    monkeypatch.setattr("wfserver.commands.run.sys", _Terminal)


class _Terminal:
    class stdin:
        @staticmethod
        def isatty() -> bool:
            return True


def test_rows_are_edited_and_dropped_at_the_terminal(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Exactly the rows that somebody left, with the values somebody gave, are paid."""
    _on_terminal(
        monkeypatch,
        *("what?", "e", "A-1003 amount 59", "A-1004 why because", "A-9 amount 1", "nonsense"),
        *("A-1004 amount x", "drop A-1006", "drop A-1007", "drop A-1009", "", "y"),
    )
    said = call("run", REFUNDS, "--artifacts", str(tmp_path))
    assert said.status == 0, said.err
    assert (tmp_path / "refunds.csv").read_text() == (
        f"{HEAD}A-1003,Alan Turing,59.00\nA-1004,Edsger Dijkstra,120.50\n"
    )
    assert "Why cannot be edited" in said.err
    assert "there is no row A-9" in said.err
    assert "x is not a number" in said.err
    assert "say KEY COLUMN VALUE" in said.err


def test_no_at_the_terminal_is_a_rejection(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answering no rejects."""
    _on_terminal(monkeypatch, "n")
    said = call("run", REFUNDS, "--json")
    assert (said.status, said.json["status"]) == (1, "CANCELLED")


def test_nothing_is_left_behind(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After a run the folder for what is transient is gone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert call("run", REFUNDS, "--approve").status == 0
    assert list(tmp_path.iterdir()) == []


def test_the_sample_refuses_an_amount_of_nothing(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edited amount of 0 fails the step that would pay, and nothing is paid."""
    _on_terminal(monkeypatch, "e", "A-1003 amount 0", "", "y")
    said = call("run", REFUNDS)
    assert said.status == 1
    assert "A-1003: the amount must be more than 0" in said.err
    assert "paying" not in said.err


WAITING = """\
name: Waits
steps:
  - {name: wait, kind: code, language: command, command: [sh, -c, "echo here I am; exec sleep 600"]}
"""
AWAITED = b"A-1003"
"""The first row of the sample: its table is shown before the question."""


def _interrupted(file: str, said: bytes, stdin: int) -> tuple[int, bytes]:
    """`wfcore run FILE`, and one Ctrl-C as soon as it has *said* that: its status, the rest."""
    running = subprocess.Popen(
        [sys.executable, "-m", "wfserver", "run", file],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job's may be ignored
    )
    assert running.stdout is not None
    with running:
        seen = b""
        while said not in seen:
            seen += os.read(running.stdout.fileno(), 65_536) or pytest.fail(seen.decode())
        running.send_signal(signal.SIGINT)
        try:
            rest, _ = running.communicate(timeout=60)
        finally:
            running.kill()
        return running.returncode, seen + rest


def test_one_ctrl_c_ends_a_run(tmp_path: Path) -> None:
    """The first Ctrl-C ends the step and the command, with a line and no traceback."""
    file = tmp_path / "waits.yaml"
    file.write_text(WAITING)
    status, said = _interrupted(str(file), b"here I am", subprocess.DEVNULL)
    assert (status, b"Traceback" in said) == (1, False), said.decode()


def test_one_ctrl_c_ends_a_question() -> None:
    """At the prompt of an approval the first Ctrl-C is heard at once, not after Enter."""
    ours, theirs = pty.openpty()
    try:
        status, said = _interrupted(REFUNDS, AWAITED, theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (status, b"Traceback" in said) == (1, False), said.decode()
    assert b"aborted" in said
    assert b"paying" not in said


def test_a_ctrl_c_is_heard_while_the_question_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Just before somebody can type, too, where `input` would forget it."""

    class Interrupted(io.StringIO):
        def flush(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr("sys.stderr", Interrupted())
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(click.Abort):
        review._prompt("Go on? ", Console(stderr=True))
