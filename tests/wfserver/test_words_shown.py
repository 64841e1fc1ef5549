"""The words that people read on pages and in the terminal, and what a mark means."""

import io
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from attrs import evolve
from rich.console import Console

from wfcore.model.approval import Group
from wfcore.model.workflow import Column, ColumnType
from wfcore.testing import builders as make
from wfserver.cli import cli
from wfserver.commands.execution import _put
from wfserver.terminal.review import answer_lines, put_rows

ROOT = Path(__file__).parents[2]
CATALOG = ROOT / "src/wfcore/locale/wfcore.pot"
OURS = re.compile(r"\b(rests?|rested|fires?|fired|voices?|places|keeps? places?)\b", re.IGNORECASE)
"""Words that the sources use in a meaning of their own: a state, the start of a trigger, a slot."""
PLAIN = ("the rest is in the download",)


def helps(command: click.Command, name: str = "wfcore") -> Iterator[tuple[str, str]]:
    """The help of each command, by its name."""
    context = click.Context(command, info_name=name)
    yield name, command.get_help(context)
    if isinstance(command, click.Group):
        for one in command.list_commands(context):
            found = command.get_command(context, one)
            assert found is not None
            yield from helps(found, f"{name} {one}")


def ours(text: str) -> list[str]:
    """The words of our own in *text*."""
    for one in PLAIN:
        text = text.replace(one, "")
    return OURS.findall(text)


def test_pages_and_commands_use_plain_words() -> None:
    """An execution waits or has ended, a trigger starts, a slot is free."""
    texts = [*helps(cli), ("pages", "\n".join(re.findall(r'"(.*)"', CATALOG.read_text())))]
    assert {name: found for name, text in texts if (found := ours(text))} == {}


def test_a_star_means_required() -> None:
    """On fields and columns; what may be edited is said in words."""
    plain = Column("note", "Note", ColumnType.STRING, editable=True)
    must = evolve(plain, key="amount", title="Amount", required=True)
    group, out = Group("rows", "Rows", (plain, must), ()), io.StringIO()
    put_rows(group, {1: {"note": "n", "amount": "a"}}, Console(file=out, width=100))
    head = out.getvalue()
    assert "Note (editable)" in head
    assert "Amount * (editable)" in head
    asked = make.approval(fields=(plain, must))
    assert [line.partition(" (")[0] for line in answer_lines(asked)] == ["note", "amount *"]


RUN = {
    "executionId": "exec_1", "workflowName": "Nightly", "workflowId": "wf_1", "reference": None,
    "triggerSource": "manual", "startedBy": {"email": "ann@example.org", "accountId": "acc_1"},
    "workflowVersion": 3, "status": "FAILED", "completedSteps": 0, "totalSteps": 1,
    "currentStep": None, "rounds": None, "startedAt": 0, "redriveOf": None, "redrivenAs": None,
    "callback": None, "error": "Traceback:\n  File x, line 1\nValueError: no\x1b[2J",
    "stepResults": {},
}  # fmt: skip


def test_an_error_has_its_lines_and_ids_have_names(capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback is read as it was written, without what moves the cursor."""
    _put(RUN)
    said = capsys.readouterr().out
    assert said.endswith("error\n  Traceback:\n    File x, line 1\n  ValueError: no�[2J\n")
    assert "Nightly (wf_1)" in said
    assert "ann@example.org" in said
