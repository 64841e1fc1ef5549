"""
A FastAPI service whose work survives its process: orders come by webhook, a person approves them.

    pip install 'path/to/wfcore[sqlite]' fastapi uvicorn
    REFUNDS_SECRET=s3cret uvicorn fastapi_service:app

No server of wfcore runs, and no page of it: store, worker and routes are in this process.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

import wfcore as wf
from wfcore.errors import AlreadyDecided, Forbidden, NotFound, Unauthenticated, WfError
from wfcore.ports import ApprovalFilter
from wfcore.webhooks import (
    NewWebhook,
    admit_webhook,
    create_webhook,
    list_webhooks,
    trigger_webhook,
)

REFUND = wf.Definition(
    "Refund",
    (
        wf.ApprovalStep("review", "Refund order {{ variables.order }}?"),
        wf.CodeStep("pay", wf.Language.COMMAND, command=("pay", "{{ variables.order }}")),
    ),
    variables={"order": wf.Variable("order")},
)
STATUS: dict[type[WfError], int] = {
    AlreadyDecided: 409,
    Forbidden: 403,
    NotFound: 404,
    Unauthenticated: 401,
}


def pay(order: str) -> str:
    """The payment; here a line in a file."""
    with open("paid.txt", "a") as file:
        print(order, file=file)
    return f"paid {order}"


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    """Store and worker from the start of this process to its end; one workflow, one webhook."""
    async with wf.on_sqlite("refunds") as services, wf.Engine(services, wf.FunctionRunner(pay)):
        who = wf.Principal(await wf.ensure_account(services, "ann@example.org"))
        workflow = await wf.apply_workflow(services, who.account.id, REFUND)
        hooks = (await list_webhooks(services, who, wf.PageRequest())).rows
        new = NewWebhook(workflow.id, "orders", secret=os.environ["REFUNDS_SECRET"])
        hook = hooks[0] if hooks else await create_webhook(services, who, new)
        app.state.services, app.state.who, app.state.hook = services, who, hook.id
        yield


app = FastAPI(lifespan=lifespan)


@app.exception_handler(WfError)
async def refused(request: Request, error: WfError) -> JSONResponse:
    """The sentence of an error is fit to be shown to the caller."""
    return JSONResponse({"error": str(error)}, STATUS.get(type(error), 400))


@app.post("/orders", status_code=202)
async def order(request: Request) -> Any:
    """A delivery of the shop, signed; a repeated one starts nothing."""
    services, hook = request.app.state.services, request.app.state.hook
    admitted = await admit_webhook(services, hook, request.headers, await request.body())
    if admitted.reply is not None:
        return admitted.reply
    started = await trigger_webhook(
        services, hook, admitted.payload, idempotency=admitted.idempotency
    )
    return {"id": started.execution_id, "replayed": started.replayed}


@app.get("/approvals")
async def approvals(request: Request) -> Any:
    """What waits for a person."""
    waiting = ApprovalFilter(statuses=(wf.ApprovalStatus.PENDING,))
    state = request.app.state
    page = await wf.list_approvals(state.services, state.who, wf.PageRequest(), waiting)
    return [{"id": one.id, "message": one.message} for one in page.rows]


@app.post("/approvals/{id}/approve")
async def approve(request: Request, id: str) -> Any:
    """The decision of a person; your own login says who that is."""
    state = request.app.state
    decided = wf.Decide(id, wf.Approve(), wf.DecisionSource.API)
    await wf.decide_approval(state.services, state.who, decided)
    return {"approved": id}


@app.get("/orders/{id}")
async def result(request: Request, id: str) -> Any:
    """The state of an order, as soon as it rests."""
    state = request.app.state
    run = await wf.wait_for_rest(state.services, state.who, id, wait_ms=20_000)
    return {"status": run.status, "output": run.output}
