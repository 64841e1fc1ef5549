"""Approvals from the command line: the operator is one approver, unless he decides alone."""

import asyncio
import re
from io import StringIO
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console

from adapters_store import open_store
from wfcore.model.approval import Group
from wfcore.model.execution import ExecutionStatus, StepStatus
from wfcore.model.review import Column
from wfcore.testing import builders as make
from wfserver.data.seal_keys import sealer_of
from wfserver.settings.record import Settings
from wfserver.terminal.review import put_rows

from .conftest import Call

QUORUM = """\
name: Two keys
steps:
  - {name: review, kind: manual_approval, message: Look, requiredApprovals: 2}
output: "{{ steps.review.output.decidedBy }}"
"""


@pytest.fixture
def delegable(wfcore: Call, data: Path) -> str:
    """An approval of Ann's, who may let somebody else decide."""
    named = {"approvers": ("ann@example.org",), "delegable": True, "required_approvals": 1}
    return opened(wfcore, data, id="appr_2", **named)


@pytest.fixture
def asked(wfcore: Call, data: Path) -> str:
    """An approval that needs two, of an execution that waits for it."""
    return opened(wfcore, data)


def opened(wfcore: Call, data: Path, **more: object) -> str:
    id = str(more.get("id", "appr_1"))
    waiting = make.step_result(StepStatus.AWAITING_APPROVAL, approval_id=id)
    run = make.execution(
        status=ExecutionStatus.AWAITING_APPROVAL, due_at=None, step_results={"review": waiting}
    )
    group = Group("rows", "Rows", (), ({"id": 1},))
    far = {"created_at": 4_000_000_000_000, "required_approvals": 2, "groups": (group,), **more}

    async def put() -> None:
        opened = await open_store(None, data, sealer=sealer_of(Settings(data)))
        async with opened.store.unit() as unit:
            unit.put(run)
            unit.put(make.approval(**far))
            await unit.commit()
        await opened.counters.close()
        await opened.store.close()

    wfcore("account", "list")
    asyncio.run(put())
    return id


def test_the_operator_is_one_approver(wfcore: Call, asked: str) -> None:
    """A yes says how many there are; the same again fails; `--alone` approves. AP-15, AP-16."""
    first = wfcore("approval", "approve", asked)
    assert (first.status, first.out) == (0, "appr_1 is PENDING: 1 of 2 approvals\n")
    assert "1 of 2 operator" in wfcore("approval", "show", asked).out
    again = wfcore("approval", "approve", asked)
    assert again.status == 1
    assert "approved this already; it needs 1 more" in again.err
    alone = wfcore("approval", "approve", asked, "--alone")
    assert (alone.status, alone.out) == (0, "appr_1 is APPROVED\n")


def test_the_operator_may_say_what_he_saw(wfcore: Call, asked: str) -> None:
    """`--expect` with another hash than that of `show` decides nothing. AP-19."""
    shown = wfcore("approval", "show", asked, "--json").json
    wrong = wfcore("approval", "approve", asked, "--expect", "0" * 64)
    assert wrong.status == 1
    assert "what you saw has changed" in wrong.err
    right = wfcore("approval", "approve", asked, "--expect", shown["itemsHash"], "--json").json
    assert (right["status"], right["approvedBy"]) == ("PENDING", ["operator"])


def test_a_run_asks_once_whatever_the_quorum(wfcore: Call) -> None:
    """`run`, where one person answers for all, does not wait for a second one. AP-15."""
    said = wfcore("run", "-", "--approve", "--json", stdin=QUORUM)
    assert said.status == 0
    assert said.json["output"] == "operator"


def test_an_approver_is_stood_in_for(wfcore: Call, delegable: str) -> None:
    """`approval delegate` names who decides, for whom, until when; only an approver's. AP-36."""
    args = ("approval", "delegate", delegable, "--by", "ann@example.org", "--to")
    said = wfcore(*args, "dan@example.org").out
    assert "dan@example.org may decide appr_2 for ann@example.org until " in said
    shown = wfcore("approval", "show", delegable, "--json").json
    assert [(one["by"], one["to"]) for one in shown["delegatedTo"]] == [
        ("ann@example.org", "dan@example.org")
    ]
    wrong = wfcore("approval", "delegate", delegable, "--by", "eve@example.org", "--to", "dan")
    assert wrong.status != 0
    assert "--by: eve@example.org is not an approver of appr_2" in wrong.err


def test_an_approver_is_stood_in_for_while_rows_are_edited(wfcore: Call, delegable: str) -> None:
    """`d BY TO` at the question does as `approval delegate`; then the question is asked again."""
    lines = "\nd ann@example.org\nd eve@example.org dan\nd ann@example.org dan@example.org\nn\n"
    said = wfcore("approval", "approve", delegable, "--edit", stdin=lines)
    assert "say who lets whom decide" in said.err
    assert "eve@example.org is not an approver of appr_2" in said.err
    assert "dan@example.org may decide appr_2 for ann@example.org until " in said.err
    assert "nothing was decided" in said.err
    shown = wfcore("approval", "show", delegable, "--json").json
    assert (shown["status"], len(shown["delegatedTo"])) == ("PENDING", 1)


def test_a_star_marks_what_is_required_and_nothing_else() -> None:
    """In the rows of an approval as in its questions and on pages; editable columns say so."""
    out = Console(file=StringIO(), width=200)
    columns = (
        Column("id", "Id", editable=False, required=True),
        Column("sum", "Sum", required=True),
        Column("note", "Note"),
    )
    put_rows(Group("main", "Rows", columns, ({"id": "a"},)), {1: {"id": "a"}}, out)
    heads = cast("StringIO", out.file).getvalue().splitlines()[2]
    assert re.split(r"  +", heads.strip()) == ["#", "Id *", "Sum * (editable)", "Note (editable)"]
