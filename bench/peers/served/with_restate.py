"""Restate: handlers of a service; its server keeps the journal of what they did."""

import restate

sums = restate.Service("sums")
approval = restate.Workflow("approval")


def add() -> int:
    return 1 + 2


@sums.handler()
async def steps(ctx: restate.Context, count: int) -> int:
    for number in range(count):
        await ctx.run_typed(f"s{number}", add)
    return count


@approval.main()
async def run(ctx: restate.WorkflowContext) -> str:
    ctx.set("asked", True)
    return await ctx.promise("decision", type_hint=str).value()


@approval.handler()
async def asked(ctx: restate.WorkflowSharedContext) -> bool:
    return await ctx.get("asked", type_hint=bool) or False


@approval.handler()
async def approve(ctx: restate.WorkflowSharedContext) -> None:
    await ctx.promise("decision", type_hint=str).resolve("yes")


app = restate.app([sums, approval])
