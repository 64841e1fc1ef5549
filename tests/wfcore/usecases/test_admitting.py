"""Deliveries that are admitted without a server: the same checks, in the same order, all noted."""

import json

import pytest

from wfcore.errors import Conflict, InvalidInput, NotFound, TooLarge, Unauthenticated
from wfcore.model.access import OPERATOR, Scope
from wfcore.model.page import PageRequest
from wfcore.model.webhook import Delivery, Scheme, Webhook, WebhookStatus
from wfcore.rules.limits import TRIGGER_BODY
from wfcore.rules.webhooks.scheme import sender_headers
from wfcore.usecases.accounts import keys
from wfcore.usecases.executions.idempotency import Idempotency
from wfcore.usecases.webhooks import webhooks
from wfcore.usecases.webhooks.admitting import AdmittedDelivery, admit_webhook
from wfcore.usecases.webhooks.deliveries import list_deliveries
from wfcore.usecases.webhooks.triggering import trigger_webhook
from wfcore.usecases.webhooks.webhooks import NewWebhook, WebhookChange

from .conftest import World, code

SECRETS = {Scheme.STRIPE: "whsec_stripe", Scheme.SLACK: "slack-secret"}


async def a_webhook(world: World, scheme: Scheme = Scheme.STANDARD) -> Webhook:
    who = await world.account()
    id, secret = await world.workflow(who, code("a")), SECRETS.get(scheme)
    new = NewWebhook(id, "orders", secret=secret, scheme=scheme, makes_secret=secret is None)
    return await webhooks.create_webhook(world.services, who, new)


def signed(world: World, hook: Webhook, body: bytes, id: str = "msg_1") -> dict[str, str]:
    assert hook.secret_key is not None
    made = sender_headers(hook.scheme, hook.secret_key, id, world.clock.now(), body)
    return {name.title(): value for name, value in made.items()}


async def deliver(
    world: World, hook: Webhook, body: bytes, headers: dict[str, str] | None = None
) -> AdmittedDelivery:
    carried = signed(world, hook, body) if headers is None else headers
    return await admit_webhook(world.services, hook.id, carried, body)


async def last_delivery(world: World, hook: Webhook) -> Delivery:
    return (await list_deliveries(world.services, OPERATOR, hook.id, PageRequest())).rows[0]


async def test_an_admitted_delivery_starts_one_execution(world: World) -> None:
    """The sender's id starts an execution once, however often it is delivered. SG-6."""
    hook, body = await a_webhook(world), b'{"order": 7}'
    started = []
    for _ in range(2):
        admitted = await deliver(world, hook, body)
        assert admitted.payload == {"order": 7}
        assert admitted.quota.remaining < admitted.quota.limit
        found = await trigger_webhook(
            world.services, hook.id, admitted.payload, idempotency=admitted.idempotency
        )
        started.append((found.execution_id, found.replayed))
    (first, replayed), (second, again) = started
    assert (first == second, replayed, again) == (True, False, True)


async def test_each_refusal_is_noted_for_the_owner(world: World) -> None:
    """The payload of a known sender is kept for a replay, that of a stranger is not. WH-20."""
    hook, body = await a_webhook(world), b'{"order": 7}'
    with pytest.raises(Unauthenticated):
        await deliver(world, hook, body, signed(world, hook, b"another"))
    refused = await last_delivery(world, hook)
    assert (refused.status, refused.authenticated, refused.payload) == (401, False, None)
    world.clock.advance(1)
    with pytest.raises(InvalidInput):
        await deliver(world, hook, b"[]")
    assert (await last_delivery(world, hook)).status == 400
    world.clock.advance(1)
    with pytest.raises(TooLarge):
        await deliver(world, hook, b" " * (TRIGGER_BODY + 1))
    assert (await last_delivery(world, hook)).status == 413
    world.clock.advance(1)
    change = WebhookChange(status=WebhookStatus.DISABLED)
    await webhooks.update_webhook(world.services, OPERATOR, hook.id, change)
    with pytest.raises(Conflict):
        await deliver(world, hook, body)
    refused = await last_delivery(world, hook)
    assert (refused.status, refused.authenticated, refused.payload) == (409, True, {"order": 7})


async def test_checks_have_an_order(world: World) -> None:
    """Existence, size, credentials, active, JSON: the first that fails decides. WH-13."""
    with pytest.raises(NotFound):
        await admit_webhook(world.services, "wh_none", {}, b" " * (TRIGGER_BODY + 1))
    hook = await a_webhook(world)
    change = WebhookChange(status=WebhookStatus.DISABLED)
    await webhooks.update_webhook(world.services, OPERATOR, hook.id, change)
    with pytest.raises(TooLarge):
        await deliver(world, hook, b" " * (TRIGGER_BODY + 1), {})
    with pytest.raises(Unauthenticated):
        await deliver(world, hook, b"[]", {})
    with pytest.raises(Conflict):
        await deliver(world, hook, b"[]")


async def test_a_key_in_a_header_admits(world: World) -> None:
    """Names of headers have any case; an `Idempotency-Key` counts for the body. WH-1, IK-1."""
    ann = await world.account()
    made = await keys.create_key(world.services, ann.account.id, "k", [Scope.WEBHOOK_TRIGGER])
    new = NewWebhook(await world.workflow(ann, code("a")), "orders", made.key.id)
    hook = await webhooks.create_webhook(world.services, ann, new)
    headers = {"AUTHORIZATION": f"Bearer {made.text}", "Idempotency-Key": "once"}
    admitted = await deliver(world, hook, b"{}", headers)
    assert isinstance(admitted.idempotency, Idempotency)
    assert admitted.idempotency.key == "once"
    with pytest.raises(InvalidInput, match=r"^Idempotency-Key: "):
        await deliver(world, hook, b"{}", headers | {"Idempotency-Key": ""})


@pytest.mark.parametrize(
    ("scheme", "body", "more", "reply"),
    [
        (Scheme.SLACK, {"type": "url_verification", "challenge": "c"}, {}, {"challenge": "c"}),
        (Scheme.GITHUB, {}, {"X-GitHub-Event": "ping"}, {"ok": True, "ping": True}),
        (Scheme.GITHUB, {}, {"X-GitHub-Event": "push"}, None),
    ],
)
async def test_questions_of_senders_have_a_reply(
    world: World, scheme: Scheme, body: object, more: dict[str, str], reply: object
) -> None:
    """Slack's challenge and GitHub's ping are answered and start nothing. SG-8, SG-9."""
    hook, raw = await a_webhook(world, scheme), json.dumps(body).encode()
    admitted = await deliver(world, hook, raw, signed(world, hook, raw) | more)
    assert admitted.reply == reply
