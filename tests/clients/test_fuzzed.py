"""
Requests made by the OpenAPI document, to every operation: what comes back is described there.

`FUZZ_EXAMPLES=100 pytest tests/clients/test_fuzzed.py` (in `make clients`) asks for longer.
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
from adapters_http.openapi import document
from adapters_http.route import Auth
from adapters_http.routes import ROUTES
from http_world import World, a_world
from wfcore.model.access import Plan
from wfcore.time import MINUTE

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

    def __init__(self, world: World, name: str, known: dict[str, list[str]]) -> None:
        self.world = world
        self.name = name
        self.known = known
        self.loop = asyncio.get_running_loop()
        self.session: dict[str, str] = {}
        self.count = count(1)

    def send(self, case: Any, there: int | None) -> None:
        """Send *case*, with ids of what is there where *there* chooses one; check the response."""
        if next(self.count) % 20 == 0:
            self.world.clock.advance(MINUTE)
        if there is not None:
            for name in case.path_parameters or {}:
                ids = self.known.get(self._kind(name), [])
                if ids:
                    case.path_parameters[name] = ids[there % len(ids)]
        if str((case.query or {}).get("wait", "")).isdigit():
            del case.query["wait"]  # nobody works on what is started: it would take so long
        response = case.call(base_url=self.world.url, headers=self._headers(), timeout=30)
        if response.status_code == 401 or self.name == "DELETE /api/session":
            self.session = {}
        # OpenAPI 3.1 has a string for a stream; this check looks for the schema of each event
        stream = "text/event-stream" in response.headers.get("content-type", [""])[0]
        checks = [one for one in CHECKS if not (stream and one is response_schema_conformance)]
        case.validate_response(response, checks=checks)

    def _kind(self, name: str) -> str:
        if name != "id":
            return name
        path = ROW[self.name].path
        return next(
            word for word in ("execution", "approval", "webhook", "workflow", "") if word in path
        )

    def _headers(self) -> dict[str, str]:
        if self.name not in BY_SESSION:
            return self.world.bearer
        if not self.session:
            signing = asyncio.run_coroutine_threadsafe(self.world.sign_in(), self.loop)
            self.session = signing.result(30)
        return self.session


async def things(world: World) -> dict[str, list[str]]:
    """Ids of what is there, by the name of the path parameter."""
    finished, artifact = await world.with_artifact()
    paused = [await world.paused() for _ in range(4)]
    executions = [finished, *(execution for execution, _ in paused)]
    open_hook, bound = await world.webhook(api_key_id=None), await world.webhook()
    for hook in (open_hook, bound):
        await world.post(f"/api/webhooks/{hook}/trigger", {"a": 1})
    deliveries = await world.get(f"/api/webhooks/{bound}/deliveries", headers=await world.sign_in())
    return {
        "execution": executions,
        "executionId": executions,
        "approval": [approval for _, approval in paused],
        "webhook": [open_hook, bound],
        "workflow": [await world.workflow(name="known")],
        "aid": [artifact],
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
    async with a_world(tmp_path, HttpConfig(), Plan.ENTERPRISE) as world:
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
            there=st.none() | st.integers(0, 3),
        )
        def ask(case: Any, there: int | None) -> None:
            caller.send(case, there)

        await asyncio.to_thread(ask)
