"""Whatever a client sends: an answer of the documented shape, never a 500, never a secret."""

import asyncio
import json
import logging
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters_http.routes import ROUTES
from tests.support.http_world import PASSWORD, World, code
from wfcore.model.access import Scope
from wfcore.ports.runtime import StepEnd

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "inputs", "enableMonitoring", "comment", "editedItems", "approvalId", "decision",
    "workflowId", "name", "apiKeyId", "variableMapping", "status", "email", "password",
)  # fmt: skip
BODIES = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4) | JSON
PARAMETERS = (
    "page", "size", "status", "workflowId", "wait", "confirm", "comment", "api_key",
    "signature", "expires",
)  # fmt: skip
HEADERS = (
    "Idempotency-Key", "Last-Event-ID", "Range", "If-Range", "X-Webhook-Signature", "Cookie",
    "Origin", "Sec-Fetch-Site", "X-Request-Id", "Accept", "Content-Type",
)  # fmt: skip
PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)


@st.composite
def requests(draw: st.DrawFn) -> dict:
    """A request to a row of the table, or near it, with odd ids, queries, headers and bodies."""
    route = draw(st.sampled_from(ROUTES))
    path = route.path
    for name in route.names:
        path = path.replace(f"{{{name}}}", draw(st.sampled_from(IDS) | TEXT))
    query = draw(st.dictionaries(st.sampled_from(PARAMETERS), TEXT | st.just("1"), max_size=3))
    headers = draw(st.dictionaries(st.sampled_from(HEADERS), PRINTABLE, max_size=3))
    if query.get("wait") == "1":
        del query["wait"]
    return {
        "method": draw(st.sampled_from([route.method, "HEAD", "POST", "PUT", "DELETE"])),
        "path": path,
        "params": query,
        "headers": headers,
        "json": draw(BODIES),
        "as": draw(st.sampled_from(["key", "session", "nobody"])),
    }


IDS = ["{execution}", "{approval}", "{webhook}", "{workflow}", "approve", "execution"]


@settings(max_examples=400, suppress_health_check=list(HealthCheck), deadline=None)
@given(one=requests())
def ask_much(ask, one) -> None:
    ask(one)


async def test_nothing_that_a_client_sends_is_a_500(world: World):
    """Every answer is a documented status; every JSON error is `{error: string}`. ER-1, ER-2."""
    execution, approval = await world.paused()
    known = {
        "{execution}": execution,
        "{approval}": approval,
        "{webhook}": await world.webhook(api_key_id=None),
        "{workflow}": await world.workflow(name="other"),
    }
    session = await world.sign_in()

    async def ask(one: dict) -> None:
        path = one["path"]
        for name, value in known.items():
            path = path.replace(name, value)
        credentials = {"key": world.bearer, "session": session, "nobody": {}}[one["as"]]
        async with world.http.stream(
            one["method"],
            quote(path),
            params=one["params"],
            headers={"content-type": "application/json", **one["headers"], **credentials},
            content=json.dumps(one["json"]),
        ) as answer:
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                await answer.aread()
                check(answer, one["method"])
        world.clock.advance(300)

    await exhaust(ask)


def check(answer: httpx.Response, method: str) -> None:
    assert answer.status_code < 500, answer.text
    assert answer.headers["x-request-id"]
    html = answer.headers.get("content-type", "").startswith("text/html")
    if answer.status_code >= 400 and method != "HEAD" and not html:
        body = answer.json()
        assert isinstance(body["error"], str)
        assert body.keys() == {"error"} or answer.status_code == 429


async def exhaust(ask) -> None:
    """Run *ask* over generated requests: Hypothesis in a thread, the requests in this loop."""
    loop = asyncio.get_running_loop()

    def in_loop(one: dict) -> None:
        asyncio.run_coroutine_threadsafe(ask(one), loop).result(30)

    await asyncio.to_thread(ask_much, in_loop)


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture):
    """Everything that the server logs; the client's own log is not its business."""
    caplog.set_level(logging.INFO)
    return lambda: "".join(
        f"{record.getMessage()}{vars(record)}"
        for record in caplog.records
        if not record.name.startswith(("httpx", "httpcore"))
    )


async def test_no_secret_comes_out_anywhere(world: World, said):
    """Keys, secrets, passwords and signatures are in no answer, log or audit entry. SC-4."""
    secret = "s3cret-of-the-hook"
    hook = await world.webhook(api_key_id=None, secret=secret)
    bound = await world.webhook()
    execution, approval = await world.paused()
    session = await world.sign_in()
    key, narrow = world.key.text, (await world.new_key(None, Scope.ARTIFACT_READ)).text
    link = f"/api/webhook-trigger/approval/{approval}/approve"
    texts = [
        (await world.http.get(f"/api/v1/workflows?api_key={narrow}")).text,
        (await world.http.get(f"{link}?api_key={narrow}")).text,
        (await world.http.get(f"{link}?api_key={key}&confirm=1")).text,
        (await world.get(f"/api/v1/workflows?api_key={key}")).text,
        (await world.get(f"/api/webhook-trigger/approval/appr_0/approve?api_key={key}")).text,
        (await world.http.get(f"/api/v1/executions/{key}", headers=world.bearer)).text,
        (await world.http.post(f"/api/webhooks/{hook}/trigger")).text,
        (await world.post(f"/api/webhooks/{bound}/trigger", {"a": 1})).text,
        (await world.get("/api/webhooks", headers=session)).text,
        (await world.get("/api/session", headers=session)).text,
        (await world.http.post("/api/session", json={"email": key, "password": PASSWORD})).text,
        (await world.get(f"/api/v1/executions/{execution}")).text,
        (await world.get("/metrics")).text,
    ]
    async with world.services.store.view() as view:
        texts += map(repr, await view.audit.list(0, None, 1_000))
    token = session["Cookie"].partition("=")[2]
    everything = "".join(texts) + said()
    for hidden in (
        key.rpartition("_")[2],
        narrow.rpartition("_")[2],
        secret,
        PASSWORD,
        token,
        "plain:",
    ):
        assert hidden not in everything.replace(f"/api/v1/executions/{key}", "")


async def test_a_finished_world_stays_readable(world: World):
    """After all of it, an execution still runs and reads."""
    id = await world.start(await world.workflow(code("a"), code("b")))
    await world.run(StepEnd(1), StepEnd(2))
    assert (await world.get(f"/api/v1/executions/{id}/result")).json()["output"] == 2
