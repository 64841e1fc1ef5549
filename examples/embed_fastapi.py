"""
The whole HTTP interface below a path of your FastAPI application, with your own login.

    uvicorn --no-access-log embed_fastapi:app
    curl -c jar 'http://127.0.0.1:8000/login?name=ann'
    curl -b jar http://127.0.0.1:8000/flows/api/v1/workflows

Who is signed in to the application needs no API key below /flows. Keys go on working there,
for the systems that have one.
"""

import os
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request, Response
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from adapters_http.app import HttpConfig, create_app
from wfcore.model.access import Scope, Visitor
from wfcore.model.workflow import CodeStep, Definition, Language
from wfcore.usecases.accounts.accounts import ensure_account
from wfcore.usecases.services import Services
from wfcore.usecases.workflows.workflows import apply_workflow
from wfserver.compose import open_system
from wfserver.serving.engine import engine, new_runner
from wfserver.settings.record import settings_from

PEOPLE = {"ann": "ann@example.org", "bob": "bob@example.org"}
SESSIONS: dict[str, str] = {}
MAY = frozenset(Scope.ordinary()) - {Scope.EXECUTION_CANCEL}

SOURCE = """
import os
with open(os.environ["WF_ARTIFACTS"] + "/hello.txt", "w") as file:
    print("hello", file=file)
"""
HELLO = Definition("Hello", (CodeStep("greet", Language.PYTHON, SOURCE),))


async def our_login(scope: AsgiScope) -> Visitor | None:
    """Whom this application's own session cookie stands for, and what they may do."""
    name = SESSIONS.get(Request(scope).cookies.get("our_session", ""))
    return Visitor(PEOPLE[name], MAY) if name is not None else None


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    """Store, worker and interface, all in this process, from its start to its end."""
    settings = settings_from(data=os.environ.get("WFCORE_DATA"))
    async with open_system(settings) as system, engine(system, new_runner(system)):
        await people_and_workflows(system.services)
        app.state.flows = create_app(system.services, HttpConfig(login=our_login))
        yield


async def people_and_workflows(services: Services) -> None:
    """An account for each of our people, and a workflow for each account."""
    for email in PEOPLE.values():
        account = await ensure_account(services, email)
        await apply_workflow(services, account.id, HELLO)


app = FastAPI(lifespan=lifespan)


async def flows(scope: AsgiScope, receive: Receive, send: Send) -> None:
    """The interface; it is there from the application's start on."""
    await app.state.flows(scope, receive, send)


app.mount("/flows", flows)


@app.get("/login")
async def login(response: Response, name: str) -> dict[str, str]:
    """A login for this example; yours asks for a password."""
    if name not in PEOPLE:
        raise HTTPException(403)
    token = secrets.token_urlsafe()
    SESSIONS[token] = name
    response.set_cookie("our_session", token, httponly=True, samesite="lax")
    return {"hello": name}
