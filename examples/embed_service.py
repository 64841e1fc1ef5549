"""
The use cases inside your own asyncio program: an approval that a rule of yours decides.

Nothing but `wfcore` itself is needed: the store is in memory, steps are a function of yours,
and the worker is the loop at the end. `wfcore.Engine` would do what that loop does.
"""

import asyncio

from wfcore import (
    Approval,
    ApprovalStatus,
    ApprovalStep,
    Approve,
    CodeStep,
    Decide,
    DecisionSource,
    Definition,
    GroupSpec,
    Json,
    Language,
    PageRequest,
    Policy,
    Principal,
    Reject,
    Services,
    apply_workflow,
    decide_approval,
    ensure_account,
    explain_execution,
    in_memory,
    json_at,
    list_approvals,
    read_approval,
    read_result,
    start_execution,
)
from wfcore.ports import ApprovalFilter, Job, StepEnd, StepJob
from wfcore.worker import begin, claim, complete_step

REFUNDS: Json = [{"order": "A-1", "amount": 20}, {"order": "A-2", "amount": 900}]
DEFINITION = Definition(
    name="Refunds",
    steps=(
        ApprovalStep("review", "Refunds of today", groups=(GroupSpec("rows", "Rows", REFUNDS),)),
        CodeStep("pay", Language.COMMAND, command=("pay",)),
    ),
)


def run_step(job: Job) -> StepEnd:
    """Your own way to do a step; here it just says what it was given."""
    assert isinstance(job, StepJob), "no AI steps here"
    return StepEnd(output=json_at(job.context, "steps", "review", "output", "groups", "rows"))


def decide(approval: Approval) -> Approve | Reject:
    """Your own rule: small refunds pass, large ones wait for another day."""
    small = [row for row in approval.groups[0].items if json_at(row, "amount") < 100]
    return Approve({"rows": small}) if small else Reject()


async def main() -> None:
    services = assembled()
    ann = Principal(await ensure_account(services, "ann@example.org"))
    workflow = await apply_workflow(services, ann.account.id, DEFINITION)
    started = await start_execution(services, ann, workflow.id, {})

    await work(services)
    for line in (await explain_execution(services, ann, started.execution_id)).lines:
        print(line.text)
    waiting = ApprovalFilter(statuses=(ApprovalStatus.PENDING,))
    page = await list_approvals(services, ann, PageRequest(), waiting)
    for listed in page.rows:  # without their rows: a list has the heads of approvals
        approval = await read_approval(services, ann, listed.id)
        asked = Decide(approval.id, decide(approval), DecisionSource.API, "by rule")
        await decide_approval(services, ann, asked)
    await work(services)

    run = await read_result(services, ann, started.execution_id)
    print(run.status, run.output)


class NoPasswords:
    """Nobody signs in here by password."""

    async def hash(self, password: str) -> str:
        raise RuntimeError("nobody has a password here")

    async def verify(self, password: str, hashed: str | None) -> bool:
        return False


def assembled() -> Services:
    """Every port has a default, and each can be one of yours."""
    return in_memory(passwords=NoPasswords(), policy=Policy(places=2))


async def work(services: Services) -> None:
    """A worker: claim, begin, run, complete, until nothing is due."""
    for lease in await claim(services, "me", 10):
        jobs = list((await begin(services, lease)).jobs)
        while jobs:
            job = jobs.pop()
            jobs += (await complete_step(services, lease, job.step_name, run_step(job))).jobs


if __name__ == "__main__":
    asyncio.run(main())
