"""Webhooks that other services call: their own libraries sign, and are given what we sign."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import time
from urllib.parse import quote

import httpx
import pytest
import stripe
from slack_sdk.signature import Clock, SignatureVerifier
from standardwebhooks import Webhook, WebhookVerificationError

from tests.support.http_world import World
from wfcore.model.access import OPERATOR
from wfcore.model.execution import Execution
from wfcore.model.webhook import Scheme
from wfcore.model.workflow import Variable, VariableType
from wfcore.rules.webhooks.scheme import sender_headers
from wfcore.time import HOUR, EpochMs
from wfcore.usecases.workflows import workflows

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
BODY = b'{"returnDays": 60, "note": "\xc3\xbc"}'
UNAUTHORIZED = b'{"error":"Unauthorized"}'
FORM = "application/x-www-form-urlencoded"
SENDERS = Path(__file__).with_name("senders")
NODE = shutil.which("node")

Sign = Callable[[bytes, int], Mapping[str, str]]
"""What a sender's library adds to a body at a Unix time in seconds."""


def by_standard_webhooks(
    body: bytes, at: int, secret: str = SECRET, id: str = "msg_1"
) -> dict[str, str]:
    signature = Webhook(secret).sign(id, datetime.fromtimestamp(at, UTC), body.decode())
    return {"webhook-id": id, "webhook-timestamp": str(at), "webhook-signature": signature}


def by_stripe(body: bytes, at: int) -> dict[str, str]:
    signature = stripe.WebhookSignature._compute_signature(f"{at}.{body.decode()}", SECRET)
    return {"Stripe-Signature": f"t={at},v1={signature}"}


def by_slack(body: bytes, at: int) -> dict[str, str]:
    signature = SignatureVerifier(SECRET).generate_signature(timestamp=str(at), body=body)
    return {"X-Slack-Request-Timestamp": str(at), "X-Slack-Signature": str(signature)}


def octokit(deed: str, body: bytes, *more: str) -> str:
    """GitHub's library in Node. It is installed with the other tools (`make test`)."""
    if NODE is None or not (SENDERS / "node_modules").is_dir():
        pytest.skip(
            "Node, or @octokit/webhooks-methods in tests/adapters_http/senders, is not installed"
        )
    argv = [NODE, str(SENDERS / "octokit.mjs"), deed, SECRET, *more]
    done = subprocess.run(argv, input=body, capture_output=True, check=True, timeout=60)
    return done.stdout.decode().strip()


def by_octokit(body: bytes, at: int) -> dict[str, str]:
    return {"X-Hub-Signature-256": octokit("sign", body), "X-GitHub-Delivery": "72d3162e"}


LIBRARIES = [
    pytest.param(Scheme.STANDARD, by_standard_webhooks, id="standardwebhooks"),
    pytest.param(Scheme.GITHUB, by_octokit, id="octokit"),
    pytest.param(Scheme.STRIPE, by_stripe, id="stripe"),
    pytest.param(Scheme.SLACK, by_slack, id="slack_sdk"),
]


async def hook(world: World, scheme: Scheme, **more: object) -> str:
    return await world.webhook(api_key_id=None, secret=SECRET, scheme=scheme, **more)


async def send(world: World, id: str, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
    return await world.http.post(f"/api/webhooks/{id}/trigger", content=body, headers=headers)


def seconds(world: World) -> int:
    return world.clock.now() // 1_000


async def deliveries(world: World, id: str) -> list[dict[str, object]]:
    session = await world.sign_in()
    answer = await world.get(f"/api/webhooks/{id}/deliveries?size=200", headers=session)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["deliveries"])


async def executions(world: World) -> int:
    return int((await world.get("/api/v1/executions")).json()["total"])


@pytest.mark.parametrize(("scheme", "sign"), LIBRARIES)
async def test_what_a_senders_library_signs_starts_once(world: World, scheme: Scheme, sign: Sign):
    """Accepted as it is, the first answer again when it is sent again. SG-4, SG-6, IK-1."""
    id = await hook(world, scheme)
    headers = {**sign(BODY, seconds(world)), "Content-Type": "application/json"}
    first = await send(world, id, BODY, headers)
    assert first.status_code == 202, first.text
    again = await send(world, id, BODY, {**headers, "Idempotency-Key": "another"})
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    assert await executions(world) == 1
    shown = [(one["status"], one["executionId"]) for one in await deliveries(world, id)]
    assert shown == [(202, first.json()["executionId"])] * 2


@pytest.mark.parametrize(("scheme", "sign"), LIBRARIES)
async def test_a_tampered_delivery_starts_nothing(world: World, scheme: Scheme, sign: Sign):
    """Another body, header or secret: the same 401, byte for byte, and no execution. AU-6, SG-4."""
    id = await hook(world, scheme)
    good = sign(BODY, seconds(world))
    odd = [(BODY + b" ", good), (BODY, {}), (BODY[:-1], good)]
    for name, value in good.items():
        if name != "X-GitHub-Delivery":  # which GitHub does not sign
            odd.append((BODY, {**good, name: value[:-1] + ("0" if value[-1] != "0" else "1")}))
    for body, headers in odd:
        answer = await send(world, id, body, headers)
        assert (answer.status_code, answer.content) == (401, UNAUTHORIZED)
        assert answer.headers["www-authenticate"] == "Bearer"
    assert await executions(world) == 0
    told = await deliveries(world, id)
    assert len(told) == len(odd)
    assert all(one["reason"] and not one["canReplay"] for one in told)
    assert SECRET not in json.dumps(told)


@pytest.mark.parametrize(("scheme", "sign"), [LIBRARIES[0], LIBRARIES[2], LIBRARIES[3]])
async def test_an_old_delivery_is_refused(world: World, scheme: Scheme, sign: Sign):
    """Five minutes to either side; the owner is told how late it was, the sender is not. SG-5."""
    id = await hook(world, scheme)
    for late, status in ((300, 202), (301, 401), (-301, 401)):
        answer = await send(world, id, BODY, sign(BODY, seconds(world) - late))
        assert answer.status_code == status
    assert answer.content == UNAUTHORIZED
    future, past, _ = await deliveries(world, id)
    assert "301 s in the future" in str(future["reason"])
    assert "301 s in the past" in str(past["reason"])


def test_the_libraries_take_what_we_sign():
    """What a test delivery carries is what the senders' own verifiers accept. SG-4, WH-23."""
    now = EpochMs(int(time() * 1_000))

    def ours(scheme: Scheme) -> Mapping[str, str]:
        return sender_headers(scheme, SECRET, "msg_1", now, BODY)

    text = BODY.decode()
    assert Webhook(SECRET).verify(text, dict(ours(Scheme.STANDARD))) == json.loads(BODY)
    with pytest.raises(WebhookVerificationError):
        Webhook(OTHER).verify(text, dict(ours(Scheme.STANDARD)))
    header = ours(Scheme.STRIPE)["stripe-signature"]
    assert stripe.WebhookSignature.verify_header(text, header, SECRET, 300)
    assert SignatureVerifier(SECRET, Clock()).is_valid_request(BODY, dict(ours(Scheme.SLACK)))


def test_octokit_takes_what_we_sign():
    """GitHub's library verifies our header for its scheme, and no other. SG-4, WH-23."""
    signature = sender_headers(Scheme.GITHUB, SECRET, "id", EpochMs(0), BODY)["x-hub-signature-256"]
    assert octokit("verify", BODY, signature) == "true"
    assert octokit("verify", BODY + b" ", signature) == "false"


async def test_the_same_id_with_another_body_is_a_conflict(world: World):
    """`webhook-id` counts as `Idempotency-Key`. SG-6, IK-2."""
    id = await hook(world, Scheme.STANDARD)
    at = seconds(world)
    assert (await send(world, id, b'{"a":1}', by_standard_webhooks(b'{"a":1}', at))).is_success
    other = await send(world, id, b'{"a":2}', by_standard_webhooks(b'{"a":2}', at))
    assert other.status_code == 409
    assert await executions(world) == 1


async def test_of_many_at_once_with_one_id_one_starts(world: World):
    """Two senders, one message: one execution, and every answer is the first. SG-6."""
    id = await hook(world, Scheme.STANDARD)
    headers = by_standard_webhooks(BODY, seconds(world))
    answers = await asyncio.gather(*(send(world, id, BODY, headers) for _ in range(8)))
    assert {one.status_code for one in answers} == {202}
    assert len({one.content for one in answers}) == 1
    assert await executions(world) == 1


async def test_a_stripe_event_counts_once_however_it_is_signed(world: World):
    """Stripe signs a retry anew and may change the body: its event's `id` counts. SG-6."""
    id = await hook(world, Scheme.STRIPE)
    for pending in (2, 1):
        body = json.dumps({"id": "evt_1", "pending_webhooks": pending}).encode()
        world.clock.advance(60_000)
        assert (await send(world, id, body, by_stripe(body, seconds(world)))).status_code == 202
    assert await executions(world) == 1


async def test_slack_is_answered_when_it_asks(world: World):
    """The challenge of `url_verification`, once it is signed; nothing starts. SG-8."""
    id = await hook(world, Scheme.SLACK)
    body = json.dumps({"type": "url_verification", "token": "t", "challenge": "3eZbrw"}).encode()
    answer = await send(world, id, body, by_slack(body, seconds(world)))
    assert (answer.status_code, answer.json()) == (200, {"challenge": "3eZbrw"})
    assert (await send(world, id, body, {})).content == UNAUTHORIZED
    assert await executions(world) == 0


async def test_githubs_ping_starts_nothing(world: World):
    """A signed `ping` is answered, an unsigned one is 401, another scheme's starts. SG-9."""
    body, event = b'{"zen": "Design for failure."}', {"X-GitHub-Event": "ping"}
    id = await hook(world, Scheme.GITHUB)
    signature = sender_headers(Scheme.GITHUB, SECRET, "72d3162e", EpochMs(0), body)
    answer = await send(world, id, body, {**signature, **event})
    assert (answer.status_code, answer.json()) == (200, {"ok": True, "ping": True})
    assert (await send(world, id, body, event)).content == UNAUTHORIZED
    assert await executions(world) == 0
    signed = sender_headers(Scheme.WFCORE, SECRET, "", EpochMs(0), body)
    assert (
        await send(world, await hook(world, Scheme.WFCORE), body, {**signed, **event})
    ).is_success
    assert await executions(world) == 1


@pytest.mark.parametrize("header", ["webhook-id", "X-GitHub-Delivery"])
async def test_an_id_of_a_delivery_counts_under_every_scheme(world: World, header: str):
    """A retry with the same id starts nothing more; an `Idempotency-Key` counts first. SG-6."""
    id = await hook(world, Scheme.WFCORE)
    signed = {**sender_headers(Scheme.WFCORE, SECRET, "", EpochMs(0), BODY), header: "msg_1"}
    first, again = [await send(world, id, BODY, signed) for _ in range(2)]
    assert (first.status_code, again.content) == (202, first.content)
    keyed = [await send(world, id, BODY, {**signed, "Idempotency-Key": key}) for key in "ab"]
    assert len({one.json()["executionId"] for one in (first, *keyed)}) == 3
    assert await executions(world) == 3


async def test_slack_commands_and_interactions_are_forms(world: World):
    """A form's fields, or the JSON in `payload`, become variables; the answer is empty. SG-8."""
    id = await hook(world, Scheme.SLACK)
    interaction = quote(json.dumps({"type": "block_actions", "n": 1}))
    for body, wanted in (
        (b"command=%2Frefund&text=a+b", {"command": "/refund", "text": "a b"}),
        (f"payload={interaction}".encode(), {"type": "block_actions", "n": 1}),
    ):
        headers = {**by_slack(body, seconds(world)), "Content-Type": FORM}
        answer = await send(world, id, body, headers)
        assert (answer.status_code, answer.content) == (200, b"")
        (newest, *_) = await deliveries(world, id)
        async with world.services.store.view() as view:
            run = await view.get(Execution, str(newest["executionId"]))
        assert run is not None
        assert run.variables == wanted
    for body in (b"payload=%5B%5D", b"a=%FF", b"\xff=1", b"a&" * 1_001 + b"a"):
        signed = sender_headers(Scheme.SLACK, SECRET, "", world.clock.now(), body)
        headers = {**signed, "Content-Type": FORM}
        assert (await send(world, id, body, headers)).status_code == 400


async def test_a_secret_rotates_with_an_overlap(world: World):
    """Both are good until the chosen time, then the new one alone; each is shown once. WH-19."""
    session = {"headers": await world.sign_in()}
    body = {"workflowId": await world.workflow(), "name": "n", "scheme": "standard"}
    made = (await world.http.post("/api/webhooks", json=body, **session)).json()
    old, url = made["secretKey"], f"/api/webhooks/{made['id']}"
    assert (made["scheme"], made["oldSecretUntil"]) == ("standard", None)
    change = {"secret": None, "overlap": HOUR}
    turned = (await world.http.put(url, json=change, **session)).json()
    new = turned["secretKey"]
    assert new != old
    assert turned["oldSecretUntil"] == world.clock.now() + HOUR
    shown = await world.get("/api/webhooks", **session)
    assert not {old, new} & set(shown.text.split('"'))

    async def status(secret: str) -> int:
        at = seconds(world)
        headers = by_standard_webhooks(b"{}", at, secret, f"msg_{secret[-4:]}{at}")
        return (await send(world, made["id"], b"{}", headers)).status_code

    world.clock.advance(HOUR - 1_000)
    assert [await status(old), await status(new)] == [202, 202]
    world.clock.advance(1_000)
    assert [await status(old), await status(new)] == [401, 202]


async def test_webhooks_are_made_with_a_key_or_a_scheme(world: World):
    """400 for both, neither, an unknown scheme, a secret that does not fit or is missing. SG-7."""
    session = {"headers": await world.sign_in()}
    key = world.key.key.id
    good = {"workflowId": await world.workflow(), "name": "n"}

    async def told(**more: object) -> str:
        answer = await world.http.post("/api/webhooks", json={**good, **more}, **session)
        assert answer.status_code == 400, answer.text
        return str(answer.json()["error"])

    assert "apiKeyId" in await told()
    assert "apiKeyId" in await told(apiKeyId=key, scheme="github")
    assert "secret" in await told(apiKeyId=key, secret="s")
    assert "standard" in await told(scheme="standrad")
    assert "base64" in await told(scheme="standard", secret="short")
    assert "Stripe" in (await told(scheme="stripe")).title()
    given = {**good, "scheme": "stripe", "secret": "whsec_abc"}
    made = await world.http.post("/api/webhooks", json=given, **session)
    assert (made.status_code, made.json()["secretKey"]) == (200, "whsec_abc")
    url = f"/api/webhooks/{await world.webhook()}"
    for change, status in (
        ({"scheme": "github"}, 409),
        ({"secret": "s"}, 409),
        ({"overlap": 1}, 400),
        ({"scheme": None}, 400),
        ({"overlap": "1", "secret": "s"}, 400),
        ({"overlap": True, "secret": "s"}, 400),
        ({"overlap": None, "secret": "s"}, 400),
    ):
        assert (await world.http.put(url, json=change, **session)).status_code == status


async def test_a_refused_delivery_is_replayed(world: World):
    """What was refused with good credentials starts when it is replayed. WH-21, WH-22."""
    id = await hook(world, Scheme.STANDARD)
    session = {"headers": await world.sign_in()}
    url = f"/api/webhooks/{id}"
    await world.http.put(url, json={"status": "DISABLED"}, **session)
    refused = await send(world, id, BODY, by_standard_webhooks(BODY, seconds(world)))
    assert refused.status_code == 409
    (first,) = await deliveries(world, id)
    assert (first["reason"], first["canReplay"]) == ("The webhook is disabled", True)
    replay = f"{url}/deliveries/{first['id']}/replay"
    assert (await world.http.post(replay, **session)).status_code == 409
    await world.http.put(url, json={"status": "ACTIVE"}, **session)
    answers = [await world.http.post(replay, **session) for _ in range(2)]
    second, third = (one.json()["executionId"] for one in answers)
    again, _, _ = await deliveries(world, id)
    assert (again["kind"], again["replayOf"], again["executionId"]) == (
        "replay",
        first["id"],
        third,
    )
    repeat = await world.http.post(f"{url}/deliveries/{again['id']}/replay", **session)
    async with world.services.store.view() as view:
        for one in (second, third, repeat.json()["executionId"]):
            run = await view.get(Execution, one)
            assert run is not None
            assert run.variables == json.loads(BODY)
    assert (await world.http.post(f"{url}/deliveries/dlv_0/replay", **session)).status_code == 404


async def test_what_may_hold_a_secret_is_not_kept(world: World):
    """No payload of a workflow with a secret variable, and none of a stranger. WH-21."""
    token = Variable("token", VariableType.STRING, secret=True, required=True)
    id = await hook(
        world, Scheme.WFCORE, workflow_id=await world.workflow(variables={"token": token})
    )
    body = b'{"tokken": "hunter2"}'
    signed = dict(sender_headers(Scheme.WFCORE, SECRET, "", world.clock.now(), body))
    assert (await send(world, id, body, signed)).status_code == 400
    assert (await send(world, id, body, {})).status_code == 401
    stranger, refused = await deliveries(world, id)
    assert (stranger["canReplay"], refused["canReplay"]) == (False, False)
    async with world.services.store.view() as view:
        assert "hunter2" not in str(await view.webhooks.deliveries(id))
    session = {"headers": await world.sign_in()}
    replay = f"/api/webhooks/{id}/deliveries/{refused['id']}/replay"
    answer = await world.http.post(replay, **session)
    assert (answer.status_code, "not stored" in answer.text) == (409, True)


@pytest.mark.parametrize("scheme", Scheme)
async def test_a_test_goes_the_whole_way(world: World, scheme: Scheme):
    """Signed, admitted, counted and started, each time anew; a disabled one says so. WH-23."""
    id = await hook(world, scheme)
    session = {"headers": await world.sign_in()}
    url = f"/api/webhooks/{id}/test"
    started = [await world.http.post(url, **session) for _ in range(2)]
    assert [one.status_code for one in started] == [202, 202]
    assert len({one.json()["executionId"] for one in started}) == 2
    mine = await world.http.post(url, json={"payload": {"a": 1}}, **session)
    newest, *_ = await deliveries(world, id)
    assert (newest["kind"], newest["executionId"]) == ("test", mine.json()["executionId"])
    await world.http.put(f"/api/webhooks/{id}", json={"status": "DISABLED"}, **session)
    assert (await world.http.post(url, **session)).status_code == 409


async def test_a_test_of_a_bound_webhook(world: World):
    """In key mode the owner stands for the key's bearer; an unknown field is 400. WH-23."""
    id = await world.webhook()
    session = {"headers": await world.sign_in()}
    url = f"/api/webhooks/{id}/test"
    assert (await world.http.post(url, **session)).status_code == 202
    assert (await world.http.post(url, json={"paylod": {}}, **session)).status_code == 400


async def test_strangers_push_out_no_delivery_of_the_senders(world: World):
    """Fifty of each kind stay, whatever knocks. WH-20."""
    id = await world.webhook()
    url = f"/api/webhooks/{id}/trigger"
    assert (await world.post(url, {"a": 1})).status_code == 202
    for _ in range(55):
        assert (await world.http.post(url, content=b"{}")).status_code == 401
    listed = await deliveries(world, id)
    assert [one["authenticated"] for one in listed] == [False] * 50 + [True]
    assert listed[0]["reason"] == "the request carries no API key"


async def test_only_its_owner_sees_deliveries(world: World):
    """Others get the 404 of a webhook that is not there. AC-6."""
    id = await world.webhook()
    await world.account("bob")
    session = {"headers": await world.sign_in("bob")}
    paths = {"/deliveries": "GET", "/deliveries/dlv_1/replay": "POST", "/test": "POST"}
    for path, method in paths.items():
        seen = await world.http.request(method, f"/api/webhooks/{id}{path}", **session)
        none = await world.http.request(method, f"/api/webhooks/wh_0{path}", **session)
        assert (seen.status_code, seen.content) == (404, none.content)
    assert await executions(world) == 0


async def test_a_deleted_workflow_replays_nothing(world: World):
    """The webhook is disabled with its workflow, so is every replay. WH-10, WH-22."""
    workflow = await world.workflow()
    id = await world.webhook(workflow)
    await world.post(f"/api/webhooks/{id}/trigger", {"a": 1})
    (first,) = await deliveries(world, id)
    await workflows.delete_workflow(world.services, OPERATOR, workflow)
    session = {"headers": await world.sign_in()}
    answer = await world.http.post(f"/api/webhooks/{id}/deliveries/{first['id']}/replay", **session)
    assert answer.status_code == 409
