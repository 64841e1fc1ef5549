"""
Requests made by the OpenAPI document, to every operation: what comes back is described there.

`FUZZ_EXAMPLES=100 pytest tests/proofs/clients/test_fuzzed.py` (in `make clients`) asks for longer.
"""

import asyncio
import json
import os
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from adapters_http.config import HttpConfig
from adapters_http.openapi.document import document
from adapters_http.route import Auth
from adapters_http.routes import ROUTES
from tests.support.http_world import World, a_world, bearer, code
from tests.support.http_world import review as review_step
from wfcore.model.access import OPERATOR, Scope, Tier
from wfcore.model.notice import NoticeStatus
from wfcore.model.trigger import Chain
from wfcore.model.workflow import OnRevise
from wfcore.ports.runtime import StepEnd
from wfcore.testing import builders
from wfcore.time import MINUTE
from wfcore.usecases.accounts import accounts, keys
from wfcore.usecases.services import Policy
from wfserver.definitions.read import checked

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "10"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SCHEMA = schemathesis.openapi.from_dict(json.loads(json.dumps(document(HttpConfig()))))
OPERATIONS = {
    f"{operation.method.upper()} {operation.path}": operation
    for operation in (result.ok() for result in SCHEMA.get_all_operations())
}
ROW = {f"{row.method} {row.path}": row for row in ROUTES}
BY_SESSION = {f"{row.method} {row.path}" for row in ROUTES if row.auth is Auth.SESSION}
"""What a key does not open."""


def test_every_row_is_an_operation() -> None:
    """Nothing that the server answers is left out: session endpoints neither."""
    assert OPERATIONS.keys() == {f"{row.method} {row.path}" for row in ROUTES}
    assert len(BY_SESSION) > 9


class Caller:
    """Sends cases to a world from another thread: by key or session, many to what is there."""

    def __init__(self, world: World, name: str, known: dict[str, list[Any]]) -> None:
        self.world = world
        self.name = name
        self.known = known
        self.loop = asyncio.get_running_loop()
        self.session: dict[str, str] = {}
        self.count = count(1)
        self.statuses: set[int] = set()

    def send(self, case: Any, there: int | None) -> None:
        """Send *case*, with ids of what is there where *there* chooses one; check the response."""
        if next(self.count) % 20 == 0:
            self.world.clock.advance(MINUTE)
        if there is not None:
            for given, kind in (
                (case.path_parameters, self._kind),
                (case.body if isinstance(case.body, dict) else {}, str),
            ):
                for name in given or {}:
                    if things := self.known.get(kind(name)):
                        given[name] = things[there % len(things)]
        if str((case.query or {}).get("wait", "")).isdigit():
            del case.query["wait"]  # nobody works on what is started: it would take so long
        response = case.call(base_url=self.world.url, headers=self._headers(), timeout=30)
        self.statuses.add(response.status_code)
        if response.status_code == 401 or self.name == "DELETE /api/session":
            self.session = {}
        # OpenAPI 3.1 has a string for a stream; this check looks for the schema of each event
        stream = "text/event-stream" in response.headers.get("content-type", [""])[0]
        checks = [one for one in CHECKS if not (stream and one is response_schema_conformance)]
        case.validate_response(response, checks=checks)

    def _kind(self, name: str) -> str:
        if name != "id":
            return name
        of, _, _ = ROW[self.name].path.partition("/{id}")
        kinds = {"keys": "apiKeyId", "webhook-trigger": "webhook"}
        return kinds.get(of.rpartition("/")[2], of.rpartition("/")[2].removesuffix("s"))

    def _headers(self) -> dict[str, str]:
        if ROW[self.name].auth is Auth.ADMIN:
            return bearer(self.known["admin"][0])
        if self.name == "POST /api/v1/gates":
            return self.known["asker"][0]
        if self.name not in BY_SESSION:
            return self.world.bearer
        if not self.session:
            signing = asyncio.run_coroutine_threadsafe(self.world.sign_in(), self.loop)
            self.session = signing.result(30)
        return self.session


async def asked(world: World) -> tuple[str, str]:
    """An execution that waits at an approval with every way out, and the approval's id."""
    review = review_step(
        on_revise=OnRevise("fetch"), approvers=("ann@example.org",), delegable=True
    )
    execution = await world.start(await world.workflow(code(), review))
    await world.run(StepEnd(None))
    answer = await world.get(f"/api/v1/approvals/execution/{execution}")
    return execution, str(answer.json()["approvals"][0]["id"])


async def things(world: World) -> dict[str, list[Any]]:
    """What is there, by the name of the path parameter or of the field of a body."""
    finished, artifact = await world.with_artifact()
    paused = [await asked(world) for _ in range(4)]
    over = await world.start(await world.workflow())
    await world.post(f"/api/v1/executions/{over}/cancel")
    executions = [finished, over, *(execution for execution, _ in paused)]
    await accounts.set_account(world.services, OPERATOR, world.ann.id, operator=True)
    admin = await keys.create_key(world.services, world.ann.id, "ops", [Scope.ADMIN], on_host=True)
    async with world.services.store.unit() as unit:
        unit.put(lost := builders.notice(status=NoticeStatus.FAILED, due_at=None))
        await unit.commit()
    cannot_decide = {*Scope.ordinary()} - {Scope.APPROVAL_RESPOND}
    asker = bearer((await world.new_key(None, *cannot_decide)).text)
    gate = await world.http.post("/api/v1/gates", headers=asker, json={"message": "?"})
    open_hook, bound = await world.webhook(api_key_id=None), await world.webhook()
    for hook in (open_hook, bound):
        await world.post(f"/api/webhooks/{hook}/trigger", {"a": 1})
    deliveries = await world.get(f"/api/webhooks/{bound}/deliveries", headers=await world.sign_in())
    approvals, workflows = [one for _, one in paused], [await world.workflow(name="known")]
    nightly = await world.workflow(name="nightly", triggers=(Chain("known"),))
    async with world.services.store.view() as view:
        triggers = [one.id for one in await view.triggers.of_workflow(nightly)]
    return {
        "admin": [admin.text],
        "asker": [asker],
        "gate": [gate.json()["executionId"]],
        "operation": ["account.list", "workflow.list"],
        "execution": executions,
        "executionId": executions,
        "approval": approvals,
        "approvalId": approvals,
        "webhook": [open_hook, bound],
        "trigger": triggers,
        "account": [(await world.account("bob")).id],
        "workflow": workflows,
        "workflowId": workflows,
        "apiKeyId": [world.key.key.id],
        "inputs": [{}],
        "callbackUrl": [None],
        "channel": ["mail"],
        "text": ["name: known\nsteps: [{name: fetch, kind: delay, duration: 1s}]\n"],
        "version": [1, 2],
        "number": [1],
        "aid": [artifact],
        "notice": [lost.id],
        "key": ["fetch", "review"],
        "decision": ["approve", "REJECT"],
        "deliveryId": [one["id"] for one in deliveries.json()["deliveries"]],
    }


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("name", sorted(OPERATIONS))
async def test_responses_are_as_described(tmp_path: Path, name: str, mode: GenerationMode) -> None:
    """No 5xx, no status, header, media type or shape that the description does not know."""
    operation = OPERATIONS[name]
    if mode is GenerationMode.NEGATIVE and not (ROW[name].query or ROW[name].body):
        pytest.skip("nothing to get wrong")
    policy = Policy(channels=frozenset({"mail"}))
    config = HttpConfig(read_definition=lambda text: checked(text, ""))
    async with a_world(tmp_path, config, Tier.ENTERPRISE, policy=policy) as world:
        known = await things(world)
        if name.endswith("/events"):
            known["execution"] = known["execution"][:1]  # of the others the stream does not end
        caller = Caller(world, name, known)

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(
            case=operation.as_strategy(generation_mode=mode),
            there=st.none() | st.integers(0, 5),
        )
        def ask(case: Any, there: int | None) -> None:
            caller.send(case, there)

        await asyncio.to_thread(ask)
        if mode is GenerationMode.POSITIVE and EXAMPLES >= 100:
            assert min(caller.statuses) < 400, "it was never done, only refused"
