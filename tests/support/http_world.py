"""The real application on a real server and socket, over a real store, with httpx as client."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from attrs import define, evolve

from adapters_http.app import HttpConfig, create_app
from adapters_http.transport.uvicorn_protocol import server_config
from adapters_runtime.engine.wakeups import Wakeups
from adapters_store import open_store
from wfcore.model.access import Account, Principal, Scope, Tier
from wfcore.model.json import Json
from wfcore.model.workflow import (
    ApprovalStep,
    CodeStep,
    Column,
    ColumnType,
    Definition,
    GroupSpec,
    Language,
    Step,
)
from wfcore.ports.runtime import LeftFile, StepEnd
from wfcore.testing.fakes import (
    CountingIds,
    CountingTokens,
    ManualClock,
    PathTemplates,
    PlainPasswords,
)
from wfcore.usecases.accounts import accounts, keys
from wfcore.usecases.accounts.keys import IssuedKey
from wfcore.usecases.executions import worker
from wfcore.usecases.services import Services
from wfcore.usecases.webhooks import webhooks
from wfcore.usecases.webhooks.webhooks import NewWebhook
from wfcore.usecases.workflows import workflows

PASSWORD = "correct horse battery staple"
ROWS = [{"id": 1, "amount": 10}, {"id": 2, "amount": 20}]


def code(name: str = "fetch", **more: Any) -> CodeStep:
    return CodeStep(name, Language.BASH, ":", **more)


def review(rows: Json = ROWS, **more: Any) -> ApprovalStep:  # type: ignore[assignment]
    """An approval over rows with a key, a read-only column and a number."""
    columns = (
        Column("id", "Order", ColumnType.NUMBER, editable=False),
        Column("amount", "Amount", ColumnType.NUMBER, required=True),
    )
    group = GroupSpec("refunds", "Refunds", rows, columns, row_key="id")
    return ApprovalStep("review", "Please review", groups=(group,), **more)


@define
class World:
    """A served application, its services, and what nearly every test does first."""

    services: Services
    clock: ManualClock
    url: str
    http: httpx.AsyncClient
    ann: Account
    key: IssuedKey

    @property
    def bearer(self) -> dict[str, str]:
        return bearer(self.key.text)

    async def account(self, name: str, plan: Tier = Tier.PRO) -> Account:
        return await accounts.create_account(
            self.services, f"{name}@example.org", plan, password=PASSWORD
        )

    async def new_key(self, account: Account | None = None, *scopes: Scope) -> IssuedKey:
        owner = account or self.ann
        return await keys.create_key(self.services, owner.id, "key", scopes or Scope.ordinary())

    async def workflow(
        self, *steps: Step, name: str = "flow", owner: Account | None = None, **more: Any
    ) -> str:
        chosen = steps or (code(),)
        written = tuple({"name": step.name, "kind": "code"} for step in chosen)
        definition = Definition(name, chosen, written, **more)
        who = owner or self.ann
        return (await workflows.apply_workflow(self.services, who.id, definition)).id

    async def start(self, workflow_id: str, **inputs: Json) -> str:
        answer = await self.post(f"/api/v1/workflows/{workflow_id}/executions", {"inputs": inputs})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["executionId"])

    async def run(self, *ends: StepEnd) -> None:
        """
        Be the worker: claim the one due execution, and end its steps like this. One that only asks
        has done so already. EX-34.
        """
        leases = await worker.claim(self.services, "w1", 1)
        if not (leases or ends):
            return
        (lease,) = leases
        jobs = list((await worker.begin(self.services, lease)).jobs)
        for end in ends:
            (job,) = jobs
            work = await worker.complete_step(self.services, lease, job.step_name, end)
            jobs = list(work.jobs)

    async def finished(self, output: Json = None, **inputs: Json) -> str:
        """A COMPLETED execution of one step."""
        execution_id = await self.start(await self.workflow(), **inputs)
        await self.run(StepEnd(output))
        return execution_id

    async def paused(self, **step: Any) -> tuple[str, str]:
        """An execution that waits at an approval, and the approval's id."""
        execution_id = await self.start(await self.workflow(review(**step)))
        await self.run()
        answer = await self.get(f"/api/v1/approvals/execution/{execution_id}")
        return execution_id, str(answer.json()["approvals"][0]["id"])

    async def waiting(self, count: int, **step: Any) -> list[str]:
        """So many approvals of one workflow that are open."""
        workflow = await self.workflow(review(**step), name="Payout run")
        started = [await self.start(workflow) for _ in range(count)]
        while leases := await worker.claim(self.services, "w1", count):
            for lease in leases:
                await worker.begin(self.services, lease)
        found = [await self.get(f"/api/v1/approvals/execution/{id}") for id in started]
        return [str(answer.json()["approvals"][0]["id"]) for answer in found]

    async def with_artifact(
        self, name: str = "report.txt", content: bytes = b"hello", previewable: bool = False
    ) -> tuple[str, str]:
        """An execution that left one file, and the artifact's id."""

        execution_id = await self.start(await self.workflow())
        id = self.services.ids.new("art", self.services.clock.now())
        stored = await self.services.files.store(execution_id, id, BytesIO(content))
        file = LeftFile(
            id, name, stored.storage_key, stored.size, "text/plain", stored.sha256, previewable
        )
        await self.run(StepEnd(None, files=(file,)))
        return execution_id, id

    async def webhook(self, workflow_id: str | None = None, **more: Any) -> str:
        """A webhook bound to the key, unless *more* says otherwise."""
        target = workflow_id or await self.workflow()
        fields = {"api_key_id": self.key.key.id, **more}
        new = NewWebhook(target, "hook", **fields)
        return (await webhooks.create_webhook(self.services, Principal(self.ann), new)).id

    async def sign_in(self, name: str = "ann") -> dict[str, str]:
        """The headers of a console session."""
        body = {"email": f"{name}@example.org", "password": PASSWORD}
        answer = await self.http.post("/api/session", json=body)
        assert answer.status_code == 200, answer.text
        self.http.cookies.clear()
        return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}

    async def get(self, path: str, **more: Any) -> httpx.Response:
        return await self.http.get(path, **{"headers": self.bearer, **more})

    async def post(self, path: str, json: Any = None, **more: Any) -> httpx.Response:
        return await self.http.post(path, json=json, **{"headers": self.bearer, **more})


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


class _Server(uvicorn.Server):
    """uvicorn, which ends at once instead of at its next look at a flag."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up, self.enough = asyncio.Event(), asyncio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        self.up.set()
        await self.enough.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Its own waits a tenth of a second, also for nobody: as long as most of these tests."""
        for server in self.servers:
            server.close()
        for _ in range(9):  # looks of the event loop: what clients have closed is gone soon
            if not (self.server_state.connections or self.server_state.tasks):
                await self.lifespan.shutdown()
                return
            await asyncio.sleep(0)
        await super().shutdown(sockets)


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """The base URL of *app*, served on a free port."""
    config = server_config(
        app, host="127.0.0.1", port=0, log_config=None, timeout_graceful_shutdown=2
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve())
    await server.up.wait()
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.enough.set()
        await task


@asynccontextmanager
async def services_over(folder: Path, clock: ManualClock, **parts: Any) -> AsyncIterator[Services]:
    opened = await open_store(None, folder, now=clock.service_now)
    try:
        made = Services(
            store=opened.store,
            counters=opened.counters,
            files=opened.files,
            clock=clock,
            ids=CountingIds(),
            tokens=CountingTokens(),
            passwords=PlainPasswords(),
            templates=PathTemplates(),
            wakeup=Wakeups(),
            signing_key=b"k" * 32,
        )
        yield evolve(made, **parts)
    finally:
        await opened.counters.close()
        await opened.store.close()


NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody. All is plain HTTP here, and to read the system's certificates takes 20 ms."""


@asynccontextmanager
async def a_world(
    folder: Path, config: HttpConfig, plan: Tier = Tier.PRO, **parts: Any
) -> AsyncIterator[World]:
    """
    Ann, her key with every scope, and a served application over an empty store. *parts*: other
    fields of the services.
    """
    clock = ManualClock()
    async with (
        services_over(folder, clock, **parts) as services,
        serving(create_app(services, config)) as url,
        httpx.AsyncClient(base_url=url, timeout=60, verify=NO_TLS) as http,
    ):
        ann = await accounts.create_account(services, "ann@example.org", plan, PASSWORD)
        key = await keys.create_key(services, ann.id, "key", Scope.ordinary())
        yield World(services, clock, url, http, ann, key)
