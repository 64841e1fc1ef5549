"""What clients may send as a body: every row that reads one, against every bad one."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen
from httpx import Response

from adapters_http.app import HttpConfig
from adapters_http.route import Auth, Route
from adapters_http.routes import ROUTES
from tests.support.http_world import World, a_world
from wfcore.errors import InvalidInput
from wfcore.rules.limits import APPROVAL_BODY, EDITED_ROWS_BODY, KIB, MIB
from wfcore.wire.converter import structured
from wfcore.wire.requests import NOT_NULL, ApproveBody

READING = [route for route in ROUTES if route.body is not None or route.auth is Auth.TRIGGER]
SHAPED = [route for route in READING if route.body is not None]
BAD_JSON = {
    "no JSON": b"{",
    "text after it": b"{} x",
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":-Infinity}',
    "invalid UTF-8": b'{"a":"\xff"}',
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "a lone surrogate": b'{"a":"\\ud800"}',
    "too deep": b'{"a":' * 65 + b"1" + b"}" * 65,
    "far too deep": b"[" * 60_000,
    "an array": b"[]",
    "text": b'"x"',
    "null": b"null",
    "a number": b"1",
}


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


async def sender(world: World, route: Route):
    """A function that sends a body to the row, with credentials that open its door."""
    path = route.path
    if route.auth is Auth.TRIGGER:
        path = path.replace("{id}", await world.webhook())
    for name in route.names:
        path = path.replace(f"{{{name}}}", "x_1")
    headers = world.bearer
    if route.auth is Auth.SESSION:
        headers = await world.sign_in()

    async def send(content, **more) -> Response:
        return await world.http.request(
            route.method, path, content=content, headers={**headers, **more}
        )

    return send


@pytest.mark.parametrize("route", READING, ids=name_of)
async def test_what_is_no_strict_json_object_is_400(world: World, route: Route):
    """Bad JSON is the client's mistake, told as such, and never a 500. LM-3, ER-1."""
    send = await sender(world, route)
    for case, body in BAD_JSON.items():
        answer = await send(body)
        assert answer.status_code == 400, case
        assert answer.json()["error"].startswith("body: "), case
    assert (await send(b"{}", **{"Content-Encoding": "gzip"})).status_code == 400


@pytest.mark.parametrize("route", SHAPED, ids=name_of)
async def test_unknown_fields_are_refused_by_name(world: World, route: Route):
    """A field that nobody knows is 400, naming it and those that are known."""
    send = await sender(world, route)
    answer = await send(b'{"editedltems": {}}')
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("editedltems: unknown field; the known ones are: ")


LIMITS = {
    "/api/webhook-trigger/approval": APPROVAL_BODY,
    "/api/v1/approvals/{id}/approve": EDITED_ROWS_BODY,
    "/api/v1/gates": EDITED_ROWS_BODY,
    "/api/workflows/{id}/state": 2 * MIB,
}


@pytest.mark.parametrize("route", READING, ids=name_of)
async def test_bodies_over_their_limit_are_413(world: World, route: Route):
    """One byte over the limit is too much, with a Content-Length and without. LM-1, LM-2, LM-10."""
    limit = LIMITS.get(route.path, MIB)
    assert route.body_limit == limit
    send = await sender(world, route)
    at_limit = b'{"a":"' + b"x" * (limit - 8) + b'"}'
    assert len(at_limit) == limit
    assert (await send(at_limit)).status_code != 413
    for content in (at_limit + b" ", in_pieces(at_limit + b" ")):
        answer = await send(content)
        assert answer.status_code == 413
        assert "error" in answer.json()


async def in_pieces(body: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(body), 64 * KIB):
        yield body[at : at + 64 * KIB]


async def test_a_body_over_its_limit_is_not_read(world: World):
    """The answer comes although not a byte of the body was sent. LM-1."""
    webhook = await world.webhook()
    host, port = world.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"POST /api/webhooks/{webhook}/trigger HTTP/1.1\r\nHost: x\r\n"
        "Content-Length: 99999999999\r\n\r\n".encode()
    )
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    assert head.startswith(b"HTTP/1.1 413 ")
    writer.close()
    await writer.wait_closed()


async def test_credentials_go_before_a_v1_body(world: World):
    """Without a key, an oversized v1 body is 401: nobody reads it."""
    url = "/api/v1/workflows/x/executions"
    answer = await world.http.post(url, content=b"x" * (MIB + 1))
    assert answer.status_code == 401


async def test_size_goes_before_an_approval_responses_credentials(world: World):
    """POST approval looks at size, then credentials, then the body."""
    url = "/api/webhook-trigger/approval"
    assert (await world.http.post(url, content=b"x" * (APPROVAL_BODY + 1))).status_code == 413
    assert (await world.http.post(url, content=b"nope")).status_code == 401
    assert (await world.post(url, {})).status_code == 400


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"inputs": []}, "inputs: must be an object"),
        ({"inputs": None}, "inputs: must be an object"),
        ({"enableMonitoring": "no"}, "enableMonitoring: must be true or false"),
        ({"enableMonitoring": 1}, "enableMonitoring: must be true or false"),
        ({"enableMonitoring": None}, "enableMonitoring: must be true or false"),
    ],
)
async def test_nothing_is_coerced(world: World, body, error):
    """ "no" is not false, 1 is not true, and null is no object."""
    answer = await world.post(f"/api/v1/workflows/{await world.workflow()}/executions", body)
    assert (answer.status_code, answer.json()) == (400, {"error": error})


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"editedItems": None}, "editedItems: must be an object"),
        ({"expectedItemsHash": None}, "expectedItemsHash: must be a string"),
        ({"answers": None}, "answers: must be an object"),
        ({"comment": 1}, "comment: must be a string of at most 4000 characters"),
    ],
)
def test_null_is_no_way_to_leave_a_field_out(body: dict[str, Any], error: str):
    """Where it would say neither yes nor no; null is fine where it means nothing."""
    with pytest.raises(InvalidInput) as refused:
        structured(ApproveBody, body)
    assert str(refused.value) == error
    given = {"comment": None, "editedItems": {"rows": [{"a": 1}]}, "answers": {"b": 2}}
    assert structured(ApproveBody, given) == ApproveBody(None, {"rows": [{"a": 1}]}, None, {"b": 2})


def test_whoever_declares_that_null_is_no_value_is_held_to_it():
    """Field by field; what is left out is not null."""

    @frozen
    class Body:
        one_thing: int | None = field(default=None, metadata=NOT_NULL)
        other: int | None = None

    assert structured(Body, {}) == Body()
    assert structured(Body, {"oneThing": 1, "other": None}) == Body(1)
    with pytest.raises(InvalidInput, match="oneThing: must be a whole number"):
        structured(Body, {"oneThing": None})


async def test_an_empty_body_counts_as_an_empty_object(world: World):
    """No body, blanks and `{}` mean the same."""
    url = f"/api/v1/workflows/{await world.workflow()}/executions"
    for content in (b"", b" \n", b"{}"):
        answer = await world.http.post(url, content=content, headers=world.bearer)
        assert answer.status_code == 202


async def test_large_numbers_and_deep_values_survive(world: World):
    """What was accepted comes back as JSON sees it, to the deepest level that is allowed."""
    deep: object = 1
    for _ in range(62):
        deep = [deep]
    inputs = {"deep": deep, "big": 2**63 - 1, "text": "\u0001 \U0001f600", "__proto__": {}}
    workflow = await world.workflow()
    url = f"/api/v1/workflows/{workflow}/executions"
    answer = await world.http.post(
        url, content=json.dumps({"inputs": inputs}), headers=world.bearer
    )
    assert answer.status_code == 202, answer.text


async def test_text_with_a_nul_is_refused_by_its_name(world: World):
    """400, not a variable that is silently unset: inputs, payloads, comments, names. VM-7."""
    workflow = await world.workflow()
    answer = await world.post(f"/api/v1/workflows/{workflow}/executions", {"inputs": {"a": "\0"}})
    assert (answer.status_code, answer.json()["error"][:9]) == (400, "inputs.a:")
    hook = await world.webhook(workflow)
    answer = await world.post(f"/api/webhooks/{hook}/trigger", {"field": "x\0y"})
    assert (answer.status_code, answer.json()["error"][:13]) == (400, "inputs.field:")
    _, approval = await world.paused()
    answer = await world.post(f"/api/v1/approvals/{approval}/approve", {"comment": "a\0"})
    assert (answer.status_code, answer.json()["error"][:8]) == (400, "comment:")
    link = f"/api/webhook-trigger/approval/{approval}/approve?confirm=1&comment=%00"
    assert (await world.get(link)).status_code == 400
    session = {"headers": await world.sign_in()}
    for change in ({"name": "\0"}, {"variableMapping": {"a\0": "b"}}):
        url = f"/api/webhooks/{hook}"
        assert (await world.http.put(url, json=change, **session)).status_code == 400


async def test_a_nul_in_a_query_is_400(world: World, tmp_path: Path) -> None:
    """As in a body: there are databases that keep no such text, and would seem to be away."""
    for path, name in (
        ("/api/v1/executions?workflowId=%00", "workflowId"),
        ("/api/v1/executions/counts?workflowId=a%00", "workflowId"),
        ("/api/v1/approvals?executionId=%00", "executionId"),
    ):
        answer = await world.get(path)
        assert (answer.status_code, f"{name}: must not have NUL" in answer.text) == (400, True)
    async with a_world(tmp_path / "console", HttpConfig(console=True)) as console:
        session = await console.sign_in()
        for path in (
            "/inbox?workflow=%00",
            "/executions?q=%00",
            "/executions/cancel?id=x&id=%00",
            "/inbox/decide?id=x&id=%00",
        ):
            answer = await console.http.get(path, headers=session)
            assert (answer.status_code, "must not have NUL" in answer.text) == (400, True), path
