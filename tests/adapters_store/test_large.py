"""Looking at an execution reads none of its large outputs, and a step reads those that it names."""

import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from wfcore import Principal, Services, apply_workflow, ensure_account, on_sqlite, start_execution
from wfcore.errors import Unreadable
from wfcore.model.access import OPERATOR
from wfcore.model.approval import DecisionSource
from wfcore.model.execution import Execution, ExecutionStatus, StepStatus
from wfcore.model.json import Json
from wfcore.model.page import PageRequest
from wfcore.model.workflow import ApprovalStep, CodeStep, DataStep, Definition, Language
from wfcore.ports.runtime import StepEnd
from wfcore.ports.store import head_of
from wfcore.rules.approval.machine import Approve
from wfcore.usecases.approvals.approvals import approvals_of
from wfcore.usecases.approvals.deciding import Decide, decide_approval
from wfcore.usecases.executions import executions, worker

LARGE: Json = [{"id": number, "name": "x" * 20} for number in range(2_000)]
FLOW = Definition(
    "flow",
    (
        CodeStep("one", Language.COMMAND, command=("true",)),
        CodeStep("two", Language.COMMAND, command=("true",)),
        ApprovalStep("look", "Look"),
        DataStep("sum", value="{{ steps.one.output | length }}"),
    ),
    (),
)


async def waiting(services: Services, who: Principal) -> str:
    """An execution that waits for its approval behind two steps with large outputs."""
    workflow = await apply_workflow(services, who.account.id, FLOW)
    started = await start_execution(services, who, workflow.id, {})
    (lease,) = await worker.claim(services, "test", 1)
    await worker.begin(services, lease)
    for name in ("one", "two"):
        await worker.complete_step(services, lease, name, StepEnd(output=LARGE))
    return started.execution_id


HUGE = "~00000000." + "A" * 4_000_000
"""A cell that no key opens."""


def spoil(folder: Path, position: int) -> None:
    """The output of a step can no longer be opened."""
    with closing(sqlite3.connect(folder / "wfcore.db")) as database, database:
        sql = "UPDATE step_results SET output = ? WHERE position = ?"
        assert database.execute(sql, (HUGE, position)).rowcount == 1


def bytes_read() -> int:
    """What this process has read from files so far, the cache of the system included."""
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.fixture
async def somebody(tmp_path: Path) -> AsyncIterator[tuple[Services, Principal, str]]:
    """Services whose store has just been opened, and a waiting execution; *two* is spoilt."""
    async with on_sqlite(tmp_path) as services:
        who = Principal(await ensure_account(services, "ann@example.org"))
        id = await waiting(services, who)
    spoil(tmp_path, 1)
    async with on_sqlite(tmp_path) as services:
        yield services, who, id


async def test_looking_reads_no_large_output(somebody: tuple[Services, Principal, str]) -> None:
    """Polls, waits, lists, logs and cancel work where an output cannot even be opened. ST-7."""
    services, who, id = somebody
    run = await executions.read_execution(services, who, id, outputs=False)
    assert run.completed_steps == 2
    assert await executions.wait_for_rest(services, who, id, 10, outputs=False) == run
    assert (await executions.list_executions(services, who, PageRequest())).rows[0].id == id
    await executions.read_logs(services, who, id)
    await executions.read_events(services, who, id, 0)
    with pytest.raises(Unreadable):
        await executions.read_execution(services, who, id)
    ended = await executions.cancel_execution(services, who, id)
    assert ended.status is ExecutionStatus.CANCELLED


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what a process reads")
async def test_the_file_is_not_read_where_a_large_output_lies(
    somebody: tuple[Services, Principal, str],
) -> None:
    """A list, a poll and a cancel read less of the file than the output takes up. ST-7."""
    services, who, id = somebody
    before = bytes_read()
    assert (await executions.list_executions(services, who, PageRequest())).rows[0].id == id
    await executions.read_execution(services, who, id, outputs=False)
    await executions.cancel_execution(services, who, id)
    assert bytes_read() - before < len(HUGE) // 4


async def test_a_step_reads_what_it_names(somebody: tuple[Services, Principal, str]) -> None:
    """A template that names one step costs the output of that step, whatever the others hold."""
    services, who, id = somebody
    (approval,) = await approvals_of(services, who, id)
    await decide_approval(
        services, OPERATOR, Decide(approval.id, Approve(), DecisionSource.API, alone=True)
    )
    (lease,) = await worker.claim(services, "test", 1)
    await worker.begin(services, lease)
    async with services.store.view() as view:
        run = await head_of(view, id)
    assert run is not None
    assert run.step_results["sum"].output == len(LARGE)
    assert run.step_results["two"].status is StepStatus.COMPLETED
    assert run.status is ExecutionStatus.COMPLETED


async def test_a_store_that_has_dropped_its_cache_loses_nothing(tmp_path: Path) -> None:
    """An execution goes on from its head without a read in between, and every output stays."""
    async with on_sqlite(tmp_path) as services:
        who = Principal(await ensure_account(services, "ann@example.org"))
        workflow = await apply_workflow(services, who.account.id, FLOW)
        started = await start_execution(services, who, workflow.id, {})
        (lease,) = await worker.claim(services, "test", 1)
        await worker.begin(services, lease)
        for name in ("one", "two"):
            await services.store.drop_caches()  # type: ignore[attr-defined]
            await worker.complete_step(services, lease, name, StepEnd(output=LARGE))
        async with services.store.view() as view:
            run = await view.get(Execution, started.execution_id)
    assert run is not None
    assert [run.step_results[name].output for name in ("one", "two")] == [LARGE, LARGE]
