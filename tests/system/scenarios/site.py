"""A server with its operator (the use cases, beside it on the same folder) and its callers."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.system.scenarios.process import Server
from wfcore.model.access import OPERATOR, Account, Permission, Principal, Scope, Tier
from wfcore.model.webhook import Webhook
from wfcore.usecases.accounts import accounts, keys
from wfcore.usecases.accounts.keys import IssuedKey
from wfcore.usecases.services import Services
from wfcore.usecases.webhooks import webhooks
from wfcore.usecases.webhooks.webhooks import NewWebhook
from wfcore.usecases.workflows import workflows
from wfserver.compose import open_system
from wfserver.definitions.read import checked
from wfserver.settings.record import Settings

T = TypeVar("T")
PASSWORD = "correct horse battery staple"


class Site:
    """A data folder, the server on it, and what its operator does beside the server."""

    def __init__(
        self, data: Path, settings: Mapping[str, str] | None = None, store: str | None = None
    ) -> None:
        self.data = data
        self.settings = {**(settings or {}), **({"WFCORE_STORE": store} if store else {})}
        self._stack = AsyncExitStack()
        self._thread = ThreadPoolExecutor(1)  # a test's own thread may have a loop already
        self._loop = asyncio.Runner()
        system = self._stack.enter_async_context(open_system(Settings(data, store=store)))
        self._services = self._awaited(system).services
        self._count = 0
        self.serve()

    def serve(self) -> None:
        """Start a server, the first one or one after the last has ended."""
        self.server = Server(self.data, self.settings)
        self.http = httpx.Client(base_url=self.server.url, timeout=90)

    @property
    def shared(self) -> Path:
        """A folder that steps may write to."""
        return self.server.shared

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.http.close()
        return self.server.terminate()

    def kill(self) -> None:
        """kill -9."""
        self.http.close()
        self.server.kill()

    def close(self) -> None:
        """End everything."""
        if self.server.process.poll() is None:
            self.kill()
        self._awaited(self._stack.aclose())
        self._thread.submit(self._loop.close).result()
        self._thread.shutdown()

    def do(self, job: Callable[[Services], Awaitable[T]]) -> T:
        """Do something as the operator, in this process, not the server's."""
        return self._awaited(job(self._services))

    def _awaited(self, work: Awaitable[T]) -> T:
        return self._thread.submit(self._loop.run, _awaited(work)).result()

    def account(self, plan: Tier = Tier.ENTERPRISE) -> Account:
        """A new account, without a password."""
        email = f"{self.fresh('someone')}@example.org"
        return self.do(lambda services: accounts.create_account(services, email, plan))

    def key(self, account: Account, *scopes: Scope) -> IssuedKey:
        wanted = scopes or Scope.ordinary()
        return self.do(lambda services: keys.create_key(services, account.id, "key", wanted))

    def caller(self, plan: Tier = Tier.ENTERPRISE) -> "ApiCaller":
        """Somebody new with a key for everything."""
        account = self.account(plan)
        return ApiCaller(self, account, self.key(account))

    def set_account(self, account: Account, **changes: Any) -> None:
        self.do(lambda services: accounts.set_account(services, OPERATOR, account.id, **changes))

    def share(self, workflow_id: str, account: Account, permission: Permission) -> None:
        self.do(
            lambda services: workflows.share_workflow(
                services, OPERATOR, workflow_id, account.id, permission
            )
        )

    def fresh(self, word: str) -> str:
        """A name that nobody has here."""
        self._count += 1
        return f"{word}{self._count}"


class ApiCaller:
    """An account that calls the API with one of its keys."""

    def __init__(self, site: Site, account: Account, key: IssuedKey) -> None:
        self.site = site
        self.account = account
        self.key = key

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key.text}"}

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.site.http.get(path, **{"headers": self.bearer, **more})

    def post(self, path: str, body: Any = None, **more: Any) -> httpx.Response:
        headers = {**self.bearer, **more.pop("headers", {})}
        return self.site.http.post(path, json=body, headers=headers, **more)

    def workflow(self, text: str, name: str = "") -> str:
        """Apply a definition under that name, or one of its own; its id."""
        named = f"name: {name or self.site.fresh('flow')}\n{text}".encode()
        definition = checked(named, "test.yaml")
        applied = self.site.do(
            lambda services: workflows.apply_workflow(services, self.account.id, definition)
        )
        return applied.id

    def start(self, workflow_id: str, **inputs: Any) -> str:
        """Start an execution; its id."""
        answer = self.post(f"/api/v1/workflows/{workflow_id}/executions", {"inputs": inputs})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["executionId"])

    def view(self, execution_id: str, wait: int | None = None) -> dict[str, Any]:
        """The status view; with *wait* once the execution rests."""
        query = f"?wait={wait}" if wait else ""
        answer = self.get(f"/api/v1/executions/{execution_id}{query}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def rested(self, execution_id: str) -> dict[str, Any]:
        """The status view of an execution that rests, waited for."""
        return self.view(execution_id, wait=60)

    def result(self, execution_id: str) -> dict[str, Any]:
        """The result of an execution, waited for."""
        answer = self.get(f"/api/v1/executions/{execution_id}/result?wait=60")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def paused(self, workflow_id: str, **inputs: Any) -> tuple[str, str]:
        """An execution that waits for an approval, and that approval's id."""
        execution_id = self.start(workflow_id, **inputs)
        assert self.rested(execution_id)["status"] == "AWAITING_APPROVAL"
        return execution_id, self.open_approval(execution_id)

    def open_approval(self, execution_id: str) -> str:
        answer = self.get(f"/api/v1/approvals/execution/{execution_id}").json()
        (approval,) = [one for one in answer["approvals"] if one["status"] == "PENDING"]
        return str(approval["id"])

    def events(self, execution_id: str) -> list[dict[str, Any]]:
        """The whole event log of an ended execution, as its stream tells it."""
        return told(self.get(f"/api/v1/executions/{execution_id}/events").text)

    def webhook(self, workflow_id: str, **more: Any) -> Webhook:
        """A webhook as the operator makes them: by key, by secret, or open."""
        new = NewWebhook(workflow_id, "hook", **more)
        who = Principal(self.account)
        return self.site.do(lambda services: webhooks.create_webhook(services, who, new))

    def sign_in(self) -> dict[str, str]:
        """The headers of a console session; the account gets a password."""
        self.site.set_account(self.account, password=PASSWORD)
        body = {"email": self.account.email, "password": PASSWORD}
        answer = self.site.http.post("/api/session", json=body)
        assert answer.status_code == 200, answer.text
        self.site.http.cookies.clear()
        return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


def told(stream: str) -> list[dict[str, Any]]:
    """The events in the text of an event stream, each under its number."""
    found = []
    for block in stream.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] not in ":r")
        if "data" in lines:
            event = {"id": int(lines["id"]), "event": lines["event"]}
            found.append({**event, "data": json.loads(lines["data"])})
    return found


def signed(secret: str, body: bytes) -> dict[str, str]:
    """The header of the signature mode."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Webhook-Signature": f"sha256={digest}", "Content-Type": "application/json"}


async def _awaited(work: Awaitable[T]) -> T:
    return await work
