"""Webhooks: triggering them, and managing them from the console."""

import asyncio
import hashlib
import hmac

import pytest

from tests.support.http_world import World, bearer, code
from wfcore.model.access import OPERATOR, AccountStatus, Permission, Tier
from wfcore.model.execution import Execution
from wfcore.model.workflow import Variable, VariableType
from wfcore.rules.auth.rate_limit import windows
from wfcore.usecases.accounts import accounts
from wfcore.usecases.workflows import workflows

BOTH = pytest.mark.parametrize("path", ["/api/webhooks/{}/trigger", "/api/webhook-trigger/{}"])
SECRET = "s3cret-of-the-hook"


def signed(body: bytes, prefix: str = "sha256=") -> dict[str, str]:
    digest = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Webhook-Signature": prefix + digest}


async def variables_of(world: World, execution_id: str):
    async with world.services.store.view() as view:
        return (await view.get(Execution, execution_id)).variables


@BOTH
async def test_a_trigger_is_accepted(world: World, path: str):
    """202 with exactly the documented fields, on both paths. WH-13."""
    workflow = await world.workflow()
    id = await world.webhook(workflow)
    answer = await world.post(path.format(id), {"a": 1})
    assert answer.status_code == 202
    started = answer.json()
    assert started == {
        "executionId": started["executionId"], "webhookId": id, "workflowId": workflow,
        "status": "PENDING", "startedAt": world.clock.now(),
    }  # fmt: skip
    assert answer.headers["x-ratelimit-remaining"] == "299"
    view = (await world.get(f"/api/v1/executions/{started['executionId']}")).json()
    assert view["triggerSource"] == "webhook"


async def test_payload_fields_become_variables(world: World):
    """Without a mapping the scalars, with one exactly what it names. VM-1, VM-2, VM-3."""
    default = Variable("kept", has_default=True, default="default")
    workflow = await world.workflow(variables={"kept": default})
    plain = await world.webhook(workflow)
    mapped = await world.webhook(workflow, variable_mapping={"kept": "gone", "o": "obj"})
    payload = {"s": "x", "n": 1, "b": False, "obj": {"a": 1}, "l": [], "none": None}
    for id, wanted in (
        (plain, {"kept": "default", "s": "x", "n": 1, "b": False}),
        (mapped, {"kept": "default", "o": {"a": 1}}),
    ):
        started = (await world.post(f"/api/webhooks/{id}/trigger", payload)).json()
        assert await variables_of(world, started["executionId"]) == wanted


async def test_a_payload_that_breaks_a_declaration_is_400(world: World):
    """Naming the variable. VM-4, VM-5."""
    count = Variable("count", VariableType.NUMBER, required=True)
    id = await world.webhook(await world.workflow(variables={"count": count}))
    for payload, name in (({}, "count"), ({"count": "x"}, "count")):
        answer = await world.post(f"/api/webhooks/{id}/trigger", payload)
        assert answer.status_code == 400
        assert name in answer.json()["error"]


@BOTH
async def test_only_the_bound_key_triggers(world: World, path: str):
    """Another key, of the account or of another one, is 401. WH-1."""
    id = await world.webhook()
    other = await world.new_key()
    foreign = await world.new_key(await world.account("bob"))
    for key in (other.text, foreign.text):
        assert (await world.post(path.format(id), headers=bearer(key))).status_code == 401


async def test_a_signature_opens_a_webhook_without_key(world: World):
    """The HMAC of the raw bytes, its prefix optional; anything else is 401. SG-1, SG-2, SG-3."""
    id = await world.webhook(api_key_id=None, secret=SECRET)
    url = f"/api/webhooks/{id}/trigger"
    body = b'{ "a" : 1 }'

    async def status(content: bytes, headers) -> int:
        return (await world.http.post(url, content=content, headers=headers)).status_code

    assert await status(body, signed(body)) == 202
    assert await status(body, signed(body, "")) == 202
    assert await status(b'{"a":1}', signed(body)) == 401
    assert await status(body, {}) == 401
    assert await status(body, {"X-Webhook-Signature": "sha256=zz"}) == 401
    assert await status(body, world.bearer) == 401
    for digit in "0123456789abcdef":
        twice = [*signed(body).items(), ("X-Webhook-Signature", digit * 64)]
        assert await status(body, twice) == 401


async def test_a_bound_key_refuses_signatures(world: World):
    """A webhook with a key takes no signature, whatever its secret. WH-11."""
    id = await world.webhook(secret=SECRET)
    answer = await world.http.post(f"/api/webhooks/{id}/trigger", headers=signed(b""))
    assert answer.status_code == 401


async def test_an_open_webhook_asks_nobody(world: World):
    """With neither key nor secret the URL is the credential; the account still counts. WH-11."""
    id = await world.webhook(api_key_id=None)
    url = f"/api/webhooks/{id}/trigger"
    assert (await world.http.post(url)).status_code == 202
    await accounts.set_account(world.services, OPERATOR, world.ann.id, status=AccountStatus.LOCKED)
    assert (await world.http.post(url)).status_code == 403


@BOTH
async def test_a_trigger_is_looked_at_in_order(world: World, path: str):
    """Exists, size, credentials, rate, active, JSON: the first that fails is told. WH-13."""
    id = await world.webhook()
    session = await world.sign_in()
    url = path.format(id)
    huge, bad = b"x" * (1_048_576 + 1), b"["

    async def status(target: str, content: bytes, headers) -> int:
        return (await world.http.post(target, content=content, headers=headers)).status_code

    assert await status(path.format("wh_0"), huge, {}) == 404
    assert await status(url, huge, {}) == 413
    assert await status(url, bad, {}) == 401
    assert await status(url, bad, world.bearer) == 400
    await world.http.put(f"/api/webhooks/{id}", json={"status": "DISABLED"}, headers=session)
    assert await status(url, bad, {}) == 401
    assert await status(url, bad, world.bearer) == 409
    for _ in range(298):
        await world.services.counters.take(*await quota_of(world))
    assert await status(url, bad, world.bearer) == 429


async def quota_of(world: World):
    now = world.clock.now()
    return f"key:{world.key.key.id}", windows(Tier.PRO, now), now


async def test_a_trigger_can_be_repeated_safely(world: World):
    """The same Idempotency-Key gives the first answer again. IK-1, IK-2."""
    url = f"/api/webhooks/{await world.webhook()}/trigger"
    headers = {**world.bearer, "Idempotency-Key": "evt_1"}
    first = await world.post(url, {"a": 1}, headers=headers)
    again = await world.post(url, {"a": 1}, headers=headers)
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert (await world.post(url, {"a": 2}, headers=headers)).status_code == 409


async def test_every_answer_is_in_the_statistics(world: World):
    """Accepted and refused triggers, by status and day; unknown webhooks nowhere. WH-9."""
    id = await world.webhook()
    url = f"/api/webhooks/{id}/trigger"
    await world.post(url)
    await world.http.post(url)
    await world.http.post(url, content=b"[]", headers=world.bearer)
    await world.http.post(url, content=b"x" * 1_100_000, headers=world.bearer)
    session = await world.sign_in()
    stats = (await world.get(f"/api/webhooks/{id}/stats", headers=session)).json()
    assert stats == {
        "webhookId": id, "total": 4, "accepted": 1, "ignored": 0,
        "rejected": {"400": 1, "401": 1, "413": 1},
        "lastTriggeredAt": world.clock.now(),
        "daily": [{"date": "2023-11-14", "accepted": 1, "rejected": 3}],
    }  # fmt: skip


RECORD = {
    "id", "webhookId", "workflowId", "name", "apiKeyId", "variableMapping", "status",
    "disabledReason", "authMode", "triggerUrl", "createdAt", "updatedAt", "lastTriggeredAt",
    "scheme", "oldSecretUntil", "when", "headers",
}  # fmt: skip


async def test_a_webhook_lives_from_creation_to_deletion(world: World):
    """Create, list, change, delete: the record each time, and its URL works. WH-4, WH-7."""
    session = {"headers": await world.sign_in()}
    workflow = await world.workflow()
    body = {"workflowId": workflow, "name": "orders", "apiKeyId": world.key.key.id,
            "variableMapping": {"order": "id"}}  # fmt: skip
    made = await world.http.post("/api/webhooks", json=body, **session)
    assert made.status_code == 200
    record = made.json()
    assert record.keys() == RECORD
    assert {key: record[key] for key in body} == body
    assert (record["id"], record["status"]) == (record["webhookId"], "ACTIVE")
    assert (record["authMode"], record["lastTriggeredAt"]) == ("API_KEY", None)
    assert (await world.post(record["triggerUrl"])).status_code == 202
    url = f"/api/webhooks/{record['id']}"
    changed = (
        await world.http.put(url, json={"name": "new", "status": "DISABLED"}, **session)
    ).json()
    assert (changed["name"], changed["disabledReason"]) == ("new", "MANUAL")
    assert changed["variableMapping"] == {"order": "id"}
    assert (await world.post(record["triggerUrl"])).status_code == 409
    again = {"status": "ACTIVE", "variableMapping": None}
    changed = (await world.http.put(url, json=again, **session)).json()
    assert (changed["status"], changed["variableMapping"]) == ("ACTIVE", None)
    listed = (await world.get("/api/webhooks", **session)).json()
    assert listed == {"webhooks": [changed], "total": 1, "page": 1, "size": 50}
    gone = await world.http.delete(url, **session)
    assert (gone.status_code, gone.json()) == (200, {"ok": True, "webhookId": record["id"]})
    assert (await world.post(record["triggerUrl"])).status_code == 404


async def test_creation_is_refused_for_its_reasons(world: World):
    """400 for the key, 403 without EDIT or on FREE, 404 unseen, 409 over the plan. WH-3 to WH-6."""
    bob = await world.account("bob")
    workflow, foreign = await world.workflow(), await world.workflow(owner=bob)
    session = {"headers": await world.sign_in()}
    good = {"workflowId": workflow, "name": "n", "apiKeyId": world.key.key.id}

    async def status(**changes: object) -> int:
        body = {**good, **changes}
        return (await world.http.post("/api/webhooks", json=body, **session)).status_code

    assert await status(apiKeyId=(await world.new_key(bob)).key.id) == 400
    assert await status(apiKeyId="nope") == 400
    assert await status(name=" ") == 400
    assert await status(variableMapping={"a": 1}) == 400
    assert await status(variableMapping=[]) == 400
    assert await status(workflowId=foreign) == 404
    await workflows.share_workflow(world.services, OPERATOR, foreign, world.ann.id, Permission.VIEW)
    assert await status(workflowId=foreign) == 403
    assert [await status() for _ in range(4)] == [200, 200, 200, 409]
    await accounts.set_account(world.services, OPERATOR, world.ann.id, plan=Tier.FREE)
    assert await status() == 403


async def test_racing_creations_keep_to_the_plan(world: World):
    """Of many at once exactly as many are made as the plan allows. WH-4."""
    session = {"headers": await world.sign_in()}
    body = {"workflowId": await world.workflow(), "name": "n", "apiKeyId": world.key.key.id}
    answers = await asyncio.gather(
        *(world.http.post("/api/webhooks", json=body, **session) for _ in range(8))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [409] * 5


async def test_disabled_webhooks_count_and_come_back_with_the_plan(world: World):
    """409 for one more and for enabling what is over the plan; an upgrade revives. WH-4, WH-16."""
    await accounts.set_account(world.services, OPERATOR, world.ann.id, plan=Tier.TEAM)
    ids = [await world.webhook(await world.workflow(name=f"flow {n}")) for n in range(4)]
    gone = await world.webhook(await world.workflow(name="gone"))
    session = {"headers": await world.sign_in()}

    async def put(id: str, status: str) -> int:
        answer = await world.http.put(f"/api/webhooks/{id}", json={"status": status}, **session)
        return answer.status_code

    async def shown() -> list[str]:
        listed = (await world.http.get("/api/webhooks", **session)).json()["webhooks"]
        return [str(one["disabledReason"] or one["status"]) for one in reversed(listed)]

    assert await put(ids[0], "DISABLED") == 200
    await accounts.set_account(world.services, OPERATOR, world.ann.id, plan=Tier.PRO)
    assert await shown() == ["MANUAL", "ACTIVE", "ACTIVE", "PLAN_LIMIT", "PLAN_LIMIT"]
    record = {"workflowId": await world.workflow(), "name": "n", "apiKeyId": world.key.key.id}
    assert (await world.http.post("/api/webhooks", json=record, **session)).status_code == 409
    assert [await put(id, "ACTIVE") for id in (ids[3], ids[0])] == [409, 200]
    listed = (await world.http.get("/api/webhooks", **session)).json()["webhooks"]
    (lost,) = [one["workflowId"] for one in listed if one["id"] == gone]
    await workflows.delete_workflow(world.services, OPERATOR, lost)
    await accounts.set_account(world.services, OPERATOR, world.ann.id, plan=Tier.TEAM)
    assert await shown() == ["ACTIVE"] * 4 + ["PLAN_LIMIT"]


async def test_the_move_to_key_mode_is_one_way(world: World):
    """A key may be set on a signature webhook and never be taken away again. WH-7."""
    id = await world.webhook(api_key_id=None, secret=SECRET)
    session = {"headers": await world.sign_in()}
    url = f"/api/webhooks/{id}"
    kept = await world.http.put(url, json={"apiKeyId": None}, **session)
    assert (kept.status_code, kept.json()["authMode"]) == (200, "SIGNATURE")
    assert SECRET not in kept.text
    bound = await world.http.put(url, json={"apiKeyId": world.key.key.id}, **session)
    assert bound.json()["authMode"] == "API_KEY"
    assert (await world.http.put(url, json={"apiKeyId": None}, **session)).status_code == 409
    answer = await world.http.post(f"{url}/trigger", headers=signed(b""))
    assert answer.status_code == 401


async def test_only_its_owner_sees_a_webhook(world: World):
    """Others get the same 404 as for one that is not there. AC-6."""
    id = await world.webhook()
    await world.account("bob")
    session = {"headers": await world.sign_in("bob")}
    assert (await world.get("/api/webhooks", **session)).json()["total"] == 0
    for method, path in (("PUT", ""), ("DELETE", ""), ("GET", "/stats")):
        seen = await world.http.request(method, f"/api/webhooks/{id}{path}", **session)
        none = await world.http.request(method, f"/api/webhooks/wh_0{path}", **session)
        assert (seen.status_code, seen.content) == (404, none.content)


async def test_losing_the_workflow_disables(world: World):
    """A deleted workflow and a lost EDIT disable the webhooks on it. WH-10."""
    workflow = await world.workflow()
    id = await world.webhook(workflow)
    await workflows.delete_workflow(world.services, OPERATOR, workflow)
    session = {"headers": await world.sign_in()}
    (record,) = (await world.get("/api/webhooks", **session)).json()["webhooks"]
    assert (record["status"], record["disabledReason"]) == ("DISABLED", "WORKFLOW_DELETED")
    assert (await world.post(f"/api/webhooks/{id}/trigger")).status_code == 409


async def test_a_webhook_needs_edit_on_its_workflow(world: World):
    """An EDIT share is enough to make one. WH-12."""
    bob = await world.account("bob")
    foreign = await world.workflow(code(), owner=bob)
    await workflows.share_workflow(world.services, OPERATOR, foreign, world.ann.id, Permission.EDIT)
    body = {"workflowId": foreign, "name": "n", "apiKeyId": world.key.key.id}
    session = {"headers": await world.sign_in()}
    assert (await world.http.post("/api/webhooks", json=body, **session)).status_code == 200


async def test_an_ignored_delivery_is_answered_and_starts_nothing(world: World):
    """200 with the documented fields; managed by its owner's session. WH-24, WH-25."""
    session, workflow = await world.sign_in(), await world.workflow()
    body = {
        "workflowId": workflow, "name": "hook", "apiKeyId": world.key.key.id,
        "when": "{{ payload.opened }}", "headers": {"kind": "X-Kind"},
    }  # fmt: skip
    made = (await world.post("/api/webhooks", body, headers=session)).json()
    assert (made["when"], made["headers"]) == (body["when"], body["headers"])
    url, id = f"/api/webhooks/{made['id']}", made["id"]
    ignored = await world.post(f"{url}/trigger", {"opened": False})
    assert ignored.status_code == 200
    answer = {"webhookId": id, "executionId": None, "status": None}
    assert ignored.json() == {"ok": True, "ignored": True, **answer}
    assert ignored.headers["x-ratelimit-remaining"] == "299"
    kind = {**world.bearer, "X-Kind": "issue"}
    started = await world.post(f"{url}/trigger", {"opened": True}, headers=kind)
    assert started.status_code == 202
    found = await variables_of(world, started.json()["executionId"])
    assert found == {"opened": True, "kind": "issue"}
    sample = await world.post(f"{url}/test", {}, headers=session)
    assert (sample.status_code, sample.json()["ignored"]) == (200, True)
    listed = (await world.get(f"{url}/deliveries", headers=session)).json()["deliveries"]
    assert [(one["status"], one["ignored"]) for one in listed] == [
        (200, True), (202, False), (200, True),
    ]  # fmt: skip
    wrong = await world.http.put(url, json={"headers": {"a": "Cookie"}}, headers=session)
    assert (wrong.status_code, "headers.a" in wrong.json()["error"]) == (400, True)
    gone = await world.http.put(url, json={"when": None}, headers=session)
    assert (gone.json()["when"], gone.json()["headers"]) == (None, body["headers"])
