"""The yardstick: a bare Starlette JSON endpoint on the same uvicorn settings as the server."""

import sys

import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def endpoint(request: Request) -> JSONResponse:
    if request.method == "POST":
        await request.json()
    return JSONResponse({"status": "PENDING", "executionId": "x", "startedAt": 1})


if __name__ == "__main__":
    app = Starlette(routes=[Route("/", endpoint, methods=["GET", "POST"])])
    config = uvicorn.Config(
        app, port=int(sys.argv[1]), http="httptools", access_log=False, log_level="warning"
    )
    uvloop.run(uvicorn.Server(config).serve())
