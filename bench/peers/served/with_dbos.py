"""DBOS: durable functions, behind one route each of a bare Starlette; argument: the port."""

import asyncio
import os
import sys

import uvicorn
from dbos import DBOS, WorkflowHandleAsync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

waiting: dict[str, WorkflowHandleAsync[str]] = {}


@DBOS.step()
async def add() -> int:
    return 1 + 2


@DBOS.workflow()
async def steps(count: int) -> int:
    for _ in range(count):
        await add()
    return count


@DBOS.workflow()
async def approval() -> str:
    await DBOS.set_event_async("asked", True)
    return str(await DBOS.recv_async())


async def start(request: Request) -> JSONResponse:
    handle = await DBOS.start_workflow_async(steps, await request.json())
    await handle.get_result()
    return JSONResponse(handle.get_workflow_id())


async def status(request: Request) -> JSONResponse:
    found = await DBOS.get_workflow_status_async(request.path_params["id"])
    return JSONResponse(found and found.status)


async def ask(request: Request) -> JSONResponse:
    handle = await DBOS.start_workflow_async(approval)
    waiting[handle.get_workflow_id()] = handle
    await DBOS.get_event_async(handle.get_workflow_id(), "asked")
    return JSONResponse(handle.get_workflow_id())


async def approve(request: Request) -> JSONResponse:
    await DBOS.send_async(request.path_params["id"], "yes")
    return JSONResponse(None)


async def result(request: Request) -> JSONResponse:
    return JSONResponse(await waiting.pop(request.path_params["id"]).get_result())


async def main() -> None:
    DBOS(config={"name": "work", "system_database_url": os.environ["DATABASE"]})
    DBOS.launch()
    routes = [
        Route("/health", lambda request: JSONResponse(None)),
        Route("/steps", start, methods=["POST"]),
        Route("/status/{id}", status),
        Route("/ask", ask, methods=["POST"]),
        Route("/approve/{id}", approve, methods=["POST"]),
        Route("/result/{id}", result),
    ]
    config = uvicorn.Config(Starlette(routes=routes), port=int(sys.argv[1]), log_level="warning")
    await uvicorn.Server(config).serve()


asyncio.run(main())
