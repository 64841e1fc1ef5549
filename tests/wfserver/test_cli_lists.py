"""Lists show what people call things, not only ids, and are narrowed by options."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adapters_store import open_store
from wfcore.model.approval import ApprovalStatus
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.testing import builders as make
from wfcore.time import DAY, EpochMs
from wfserver.data.seal_keys import sealer_of
from wfserver.settings.record import Settings
from wfserver.terminal.output import _aligned

from .conftest import Call


def test_lists_show_names_and_emails(wfcore: Call, applied: str) -> None:
    """Executions name workflow and starter, webhooks workflow and owner, approvals the step."""
    assert wfcore("execution", "start", applied).status == 0
    line = wfcore("execution", "list").out.splitlines()[1]
    assert "Greet" in line
    assert "ann@example.org" in line
    made = wfcore(
        "webhook", "create", "--workflow", applied, "--name", "orders", "--secret", "s3cret"
    )
    assert made.status == 0, made.err
    line = wfcore("webhook", "list").out.splitlines()[1]
    assert "Greet" in line
    assert "ann@example.org" in line


def test_keys_are_listed_with_their_account(wfcore: Call) -> None:
    """A key stands in the list with its account's email."""
    key = ("--account", "ann@example.org", "--name", "erp", "--scope", "WORKFLOW_READ")
    assert wfcore("key", "create", *key).status == 0
    id = wfcore("account", "list", "--json").json["items"][0]["id"]
    (line,) = wfcore("key", "list", "--account", id).out.splitlines()[1:]
    assert line.split()[1:3] == ["erp", "ann@example.org"]


def test_workflows_are_listed_with_their_owners(wfcore: Call, applied: str) -> None:
    """A workflow stands in the list with its owner's email."""
    assert "ann@example.org" in wfcore("workflow", "list").out


def keep(data: Path, *records: Any) -> None:
    """Put records into the store of a data folder."""

    async def put() -> None:
        opened = await open_store(None, data, sealer=sealer_of(Settings(data)))
        async with opened.store.unit() as unit:
            for record in records:
                unit.put(record)
            await unit.commit()
        await opened.counters.close()
        await opened.store.close()

    asyncio.run(put())


def test_executions_are_narrowed_and_turned_round(wfcore: Call, data: Path) -> None:
    """Several statuses and starters, a span of time, the order: each as the API has it. PG-4."""
    wfcore("account", "list")
    first = datetime(2026, 1, 31, 9, tzinfo=UTC)
    start = int(first.timestamp() * 1_000)
    kinds = (
        (ExecutionStatus.COMPLETED, TriggerSource.MANUAL),
        (ExecutionStatus.FAILED, TriggerSource.SCHEDULE),
        (ExecutionStatus.CANCELLED, TriggerSource.WEBHOOK),
        (ExecutionStatus.FAILED, TriggerSource.MANUAL),
    )
    runs = [
        make.execution(
            f"e{n}", status=status, trigger_source=by, accepted_at=EpochMs(start + n * 60_000)
        )
        for n, (status, by) in enumerate(kinds)
    ]
    keep(data, *runs)
    for options, shown in (
        ("--status failed --status cancelled", ["e3", "e2", "e1"]),
        ("--status failed --by manual", ["e3"]),
        ("--by manual --by webhook", ["e3", "e2", "e0"]),
        ("--from 2026-01-31T09:01", ["e3", "e2", "e1"]),
        (f"--to {start + 60_000}", ["e0"]),
        ("--from 2026-01-31T09:01 --to 2026-01-31T09:03+00:00", ["e2", "e1"]),
        ("--oldest --by manual", ["e0", "e3"]),
        ("--oldest --limit 2", ["e0", "e1"]),
        ("--from 1h", []),
    ):
        listed = wfcore("execution", "list", *options.split(), "--json").json
        assert [row["executionId"] for row in listed["items"]] == shown, options
        if "--limit" not in options:
            assert listed["total"] == len(shown)
    lines = wfcore("execution", "list", "--oldest", "--limit", "2").out.splitlines()
    assert (len(lines), lines[-1]) == (4, "2 of 4; --limit shows more")
    refused = wfcore("execution", "list", "--status", "done")
    assert (refused.status, "'done' is not one of" in refused.err) == (2, True)


def test_approvals_are_narrowed_and_turned_round(wfcore: Call, data: Path, applied: str) -> None:
    """Several statuses, a workflow by its name, an execution, a span of time, the order. PG-4."""
    start = 4_000_000_000_000
    kinds = (
        ("PENDING", applied, "e1"),
        ("APPROVED", applied, "e1"),
        ("REJECTED", "wf_9", "e2"),
        ("PENDING", "wf_9", "e2"),
    )
    made = [
        make.approval(
            f"a{n}",
            status=ApprovalStatus(status),
            workflow_id=workflow,
            execution_id=execution,
            created_at=EpochMs(start + n),
            expires_at=EpochMs(start + DAY),
        )
        for n, (status, workflow, execution) in enumerate(kinds)
    ]
    keep(data, *made)
    for options, shown in (
        ("--status approved --status rejected", ["a2", "a1"]),
        ("--workflow Greet", ["a1", "a0"]),
        ("--execution e2 --oldest", ["a2", "a3"]),
        (f"--from {start + 1} --to {start + 3}", ["a2", "a1"]),
        ("--status pending --execution e1", ["a0"]),
    ):
        listed = wfcore("approval", "list", *options.split(), "--json").json
        assert [row["id"] for row in listed["items"]] == shown, options
        assert listed["total"] == len(shown)


def test_a_long_name_does_not_push_other_columns_out() -> None:
    """A terminal gets it cut, with the columns behind it; a pipe gets all of it."""
    rows = [("id", "name", "by"), ("1", "n" * 200, "ann"), ("2", "short", "bob")]
    assert _aligned(rows, 80)[1].split() == ["1", "n" * 39 + "…", "ann"]
    assert _aligned(rows, None)[1].split() == ["1", "n" * 200, "ann"]
