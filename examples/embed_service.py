"""
The use cases inside your own asyncio program: an approval decided by a rule of yours.

Nothing but `wfcore` itself is needed: the store is in memory, steps are functions of yours.
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from adapters_runtime.system import SystemClock, SystemIds, SystemTokens
from adapters_runtime.templates import MiniJinjaTemplates
from adapters_runtime.wakeups import Wakeups
from adapters_store import open_store
from wfcore.model.access import Plan, Principal
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.json import Json
from wfcore.model.page import PageRequest
from wfcore.model.workflow import ApprovalStep, CodeStep, Definition, GroupSpec, Language
from wfcore.ports.runtime import StepEnd, StepJob
from wfcore.rules.approval import Approve, Reject
from wfcore.testing.fakes import PlainPasswords
from wfcore.usecases import accounts, approvals, executions, running, starting, workflows
from wfcore.usecases.services import Services

REFUNDS: Json = [{"order": "A-1", "amount": 20}, {"order": "A-2", "amount": 900}]
DEFINITION = Definition(
    name="Refunds",
    steps=(
        ApprovalStep("review", "Refunds of today", groups=(GroupSpec("rows", "Rows", REFUNDS),)),
        CodeStep("pay", Language.COMMAND, command=("pay",)),
    ),
    steps_as_written=(),
)


def run_step(job: StepJob) -> StepEnd:
    """Your own way to do a step; here it just says what it was given."""
    return StepEnd(output=job.context["steps"]["review"]["output"]["groups"]["rows"])  # type: ignore[index,call-overload]


def decide(approval: Approval) -> Approve | Reject:
    """Your own rule: small refunds pass, large ones wait for another day."""
    small = [row for row in approval.groups[0].items if row["amount"] < 100]  # type: ignore[operator]
    return Approve({"rows": small}) if small else Reject()


async def main() -> None:
    with TemporaryDirectory() as folder:
        opened = await open_store("memory:", Path(folder))
        services = Services(
            store=opened.store,
            counters=opened.counters,
            files=opened.files,
            clock=SystemClock(),
            ids=SystemIds(),
            tokens=SystemTokens(),
            passwords=PlainPasswords(),
            templates=MiniJinjaTemplates(),
            wakeup=Wakeups(),
            signing_key=b"a secret of your own, 32 bytes..",
        )
        ann = Principal(await accounts.create_account(services, "ann@example.org", Plan.PRO))
        workflow = await workflows.apply_workflow(services, ann.account.id, DEFINITION)
        started = await starting.start_execution(services, ann, workflow.id, {})

        await work(services)
        page = await approvals.list_approvals(services, ann, PageRequest(), ApprovalStatus.PENDING)
        for approval in page.rows:
            asked = approvals.Decide(approval.id, decide(approval), DecisionSource.API, "by rule")
            await approvals.decide_approval(services, ann, asked)
        await work(services)

        run = await executions.read_result(services, ann, started.execution_id)
        print(run.status, run.output)


async def work(services: Services) -> None:
    """A worker in five lines: claim, begin, run, complete, until nothing is due."""
    for lease in await running.claim(services, "me", 10):
        jobs = list(await running.begin(services, lease))
        while jobs:
            job = jobs.pop()
            jobs += await running.complete_step(services, lease, job.step_name, run_step(job))


if __name__ == "__main__":
    asyncio.run(main())
