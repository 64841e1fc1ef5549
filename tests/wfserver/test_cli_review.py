"""Approvals edited at a real terminal, through a pipe, and from a file."""

import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters_store import open_store
from wfcore.model.approval import Group
from wfcore.model.execution import ExecutionStatus, StepStatus
from wfcore.model.workflow import Column, ColumnType
from wfcore.testing import builders as make
from wfserver.data.seal_keys import sealer_of
from wfserver.settings.record import Settings

from .conftest import Call, environment

ROWS = tuple(
    {"order no": f"A {number}", "pay to": "Ann", "amount": number, "iban": f"DE{number}"}
    for number in range(1, 46)
)
COLUMNS = (
    Column("order no", "Order no", editable=False),
    Column("pay to", "Pay to"),
    Column("amount", "Amount", ColumnType.NUMBER, required=True),
)
FLOW = """\
name: Pay
steps:
  - name: review
    kind: manual_approval
    message: Pay these?
    groups:
      - name: orders
        title: Orders to pay
        rowKey: order no
        rows:
          - {"order no": A 1, "pay to": Ann, amount: 5}
          - {"order no": A 2, "pay to": Bob, amount: 6}
        columns:
          - {key: order no, title: Order no, editable: false}
          - {key: pay to, title: Pay to}
          - {key: amount, title: Amount, type: number}
output: "{{ steps.review.output }}"
"""


class Terminal:
    """A process on a terminal of its own, and somebody who types."""

    def __init__(self, process: "subprocess.Popen[bytes]", end: int) -> None:
        self._process = process
        self._end = end
        self.seen = ""

    def until(self, text: str) -> str:
        """What is printed until *text* is there, from the last time on."""
        start = len(self.seen)
        limit = time.monotonic() + 60
        while text not in self.seen[start:]:
            assert select.select([self._end], [], [], max(0, limit - time.monotonic()))[0], (
                self.seen
            )
            try:
                self.seen += os.read(self._end, 65_536).decode(errors="replace")
            except OSError:  # the other end is closed
                raise AssertionError(f"it ended before {text!r}: {self.seen}") from None
        return self.seen[start:]

    def type(self, line: str, then: str) -> str:
        """Type *line* and Enter; what is printed until *then*."""
        os.write(self._end, line.encode() + b"\n")
        return self.until(then)

    def end(self) -> int:
        """The exit status."""
        try:
            while data := os.read(self._end, 65_536):
                self.seen += data.decode(errors="replace")
        except OSError:
            pass
        return self._process.wait(60)


@contextmanager
def terminal(*arguments: str, folder: Path) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "wfserver", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env={**environment(), "TERM": "dumb", "COLUMNS": "120"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(ours)


@pytest.fixture
def asked(wfcore: Call, data: Path) -> str:
    """An approval of 45 rows, of an execution that waits for it."""
    waiting = make.step_result(StepStatus.AWAITING_APPROVAL, approval_id="appr_1")
    run = make.execution(
        status=ExecutionStatus.AWAITING_APPROVAL, due_at=None, step_results={"review": waiting}
    )
    group = Group("orders", "Orders", COLUMNS, ROWS, "order no")

    async def put() -> None:
        opened = await open_store(None, data, sealer=sealer_of(Settings(data)))
        async with opened.store.unit() as unit:
            unit.put(run)
            unit.put(make.approval(created_at=4_000_000_000_000, groups=(group,)))
            await unit.commit()
        await opened.counters.close()
        await opened.store.close()

    wfcore("account", "list")
    asyncio.run(put())
    return "appr_1"


def rows_of(wfcore: Call, id: str) -> list[dict[str, object]]:
    shown = wfcore("approval", "show", id, "--json").json
    return list(shown["reviewableGroups"][0]["items"])


def test_run_is_edited_at_a_terminal(tmp_path: Path) -> None:
    """Blanks in names, a mistake, undo, a comment: what is released is what was typed."""
    (tmp_path / "pay.yaml").write_text(FLOW)
    with terminal("run", "pay.yaml", folder=tmp_path) as at:
        at.until("[?]: ")
        assert "a comment for the history" in at.type("what?", "[?]: ")
        at.type("e", "Orders to pay> ")
        at.type("clear A 1 amount", "Orders to pay> ")
        assert "much is not a number" in at.type("A 1 amount much", "Orders to pay> ")
        assert "Order no cannot be edited" in at.type("A 1 Order no B 1", "Orders to pay> ")
        at.type('"A 1" "Pay to" Zoe Zu', "Orders to pay> ")
        at.type("drop A 1", "Orders to pay> ")
        at.type("undo", "Orders to pay> ")
        at.type("drop A 2", "Orders to pay> ")
        at.type("", "[?]: ")
        at.type("c as agreed", "[?]: ")
        at.type("y", "COMPLETED")
        assert at.end() == 0
    output = json.loads(at.seen[at.seen.index("{", at.seen.index("COMPLETED")) :])
    assert output["comment"] == "as agreed"
    assert output["groups"]["orders"] == [{"order no": "A 1", "pay to": "Zoe Zu", "amount": None}]


def test_many_rows_come_in_pages(wfcore: Call, asked: str, data: Path, tmp_path: Path) -> None:
    """20 rows are shown at once; `rows` goes on; a row of the last page is edited and approved."""
    approve = ("--data", str(data), "approval", "approve", asked, "--edit")
    with terminal(*approve, folder=tmp_path) as at:
        first = at.until("Orders> ")
        assert "A 20 " in first
        assert "A 21 " not in first
        assert "20 of 45 rows" in first
        at.type("rows 21", "Orders> ")
        last = at.type("rows", "Orders> ")
        assert "A 45 " in last
        assert "A 40 " not in last
        at.type("A 45 Amount 450", "Orders> ")
        at.type("comment  fits", "Orders> ")
        at.type("", "[?]: ")
        at.type("y", "APPROVED")
        assert at.end() == 0
    rows = rows_of(wfcore, asked)
    assert rows == [*ROWS[:-1], {**ROWS[-1], "amount": 450}]
    assert wfcore("approval", "show", asked, "--json").json["comment"] == "fits"


def test_a_list_says_who_asks_what(wfcore: Call, asked: str, applied: str) -> None:
    """An approval in a list stands as workflow › step, the id where the workflow is gone."""
    line = wfcore("approval", "list").out.splitlines()[1]
    assert " › review" in line


def test_no_at_the_terminal_decides_nothing(
    wfcore: Call, asked: str, data: Path, tmp_path: Path
) -> None:
    """`approve --edit` answered with no leaves the approval open, with exit status 1."""
    approve = ("--data", str(data), "approval", "approve", asked, "--edit")
    with terminal(*approve, folder=tmp_path) as at:
        at.until("Orders> ")
        at.type("", "[?]: ")
        at.type("n", "nothing was decided")
        assert at.end() == 1
    assert wfcore("approval", "show", asked, "--json").json["status"] == "PENDING"


def test_lines_may_come_from_a_pipe(wfcore: Call, asked: str) -> None:
    """The same lines do the same through a pipe."""
    lines = 'clear "A 1" "Pay to"\ndrop A 2\n\ny\n'
    said = wfcore("approval", "approve", asked, "--edit", stdin=lines)
    assert (said.status, said.out.strip()) == (0, "appr_1 is APPROVED")  # click pads or not
    assert rows_of(wfcore, asked) == [{**ROWS[0], "pay to": None}, *ROWS[2:]]


def test_a_pipe_that_ends_early_decides_nothing(wfcore: Call, asked: str) -> None:
    """The end of input before an answer decides nothing."""
    said = wfcore("approval", "approve", asked, "--edit", stdin="A 1 Pay to Zoe\n\n")
    assert said.status == 1
    assert wfcore("approval", "show", asked, "--json").json["status"] == "PENDING"


def test_rows_come_from_a_file(wfcore: Call, asked: str, tmp_path: Path) -> None:
    """What `show --json` printed, edited, is released exactly, with the hash of what it showed."""
    document = wfcore("approval", "show", asked, "--json").json
    document["reviewableGroups"][0]["items"] = [{**ROWS[1], "amount": 20}]
    file = tmp_path / "rows.json"
    file.write_text(json.dumps({**document, "itemsHash": "0" * 64}))
    stale = wfcore("approval", "approve", asked, "--rows", str(file))
    assert stale.status == 1
    assert "what you saw has changed" in stale.err
    file.write_text(json.dumps(document))
    assert wfcore("approval", "approve", asked, "--rows", str(file)).status == 0
    assert rows_of(wfcore, asked) == [{**ROWS[1], "amount": 20}]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"orders": [{"order no": "A 1", "amount": "x"}]}', "[0].amount: must be a number"),
        ('{"orders": [{"order no": "A 1", "colour": 1}]}', "[0].colour"),
        ('{"orders": [{"amount": 1, "amount": 2}]}', "amount stands twice in one object"),
        ('{"other": []}', "unknown group; the groups are: orders"),
        ('{"reviewableGroups": [{}], "itemsHash": "5"}', "--rows: must be"),
        ('{"orders": [{"order no": "A 1", "amount": NaN}]}', "NaN is no number"),
        ("[]", "must be"),
        ("no JSON", "is not JSON"),
    ],
)
def test_a_mistaken_file_decides_nothing(wfcore: Call, asked: str, text: str, why: str) -> None:
    """A file with rows that break a rule, or that is none, is refused by name."""
    said = wfcore("approval", "approve", asked, "--rows", "-", stdin=text)
    assert said.status == 1
    assert why in said.err
    assert wfcore("approval", "show", asked, "--json").json["status"] == "PENDING"
