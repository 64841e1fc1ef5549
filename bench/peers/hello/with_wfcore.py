"""wfcore: a workflow of two steps; accepted once, it is kept in a folder and carried out."""

import asyncio

from stage import say

import wfcore as wf

STEPS = tuple(
    wf.CodeStep(word, wf.Language.COMMAND, command=("say", word)) for word in ("hello", "world")
)


async def main() -> None:
    async with wf.on_sqlite("data") as flows, wf.Engine(flows, wf.FunctionRunner(say)):
        me = wf.Principal(await wf.ensure_account(flows, "me@example.org"))
        greet = await wf.apply_workflow(flows, me.account.id, wf.Definition("Greet", STEPS))
        once = "greeting"
        run = await wf.start_execution(
            flows, me, greet.id, {}, source=wf.TriggerSource.MANUAL, idempotency=once
        )
        await wf.wait_for_rest(flows, me, run.execution_id, 60_000)


asyncio.run(main())
