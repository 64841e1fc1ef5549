"""Webhooks, as their owners and the operator manage them, and what is kept of deliveries."""

import pytest

from wfcore.errors import InvalidInput
from wfcore.model.access import OPERATOR, Scope
from wfcore.model.json import JsonObject
from wfcore.model.page import PageRequest
from wfcore.model.webhook import Webhook
from wfcore.time import DurationMs
from wfcore.usecases.accounts import keys
from wfcore.usecases.webhooks import webhooks
from wfcore.usecases.webhooks.deliveries import list_deliveries, note_refused_delivery
from wfcore.usecases.webhooks.webhooks import NewWebhook, WebhookChange

from .conftest import World, code

FIRST = PageRequest()


async def a_webhook(world: World, email: str) -> Webhook:
    """One with a secret of its own, of a new account."""
    who = await world.account(email)
    new = NewWebhook(await world.workflow(who, code("a")), "orders", makes_secret=True)
    return await webhooks.create_webhook(world.services, who, new)


async def test_the_operator_sees_everybody_s_webhooks(world: World) -> None:
    """An account its own alone. AC-6."""
    made = [await a_webhook(world, f"{name}@example.org") for name in ("ann", "bob")]
    everybody_s = await webhooks.list_webhooks(world.services, OPERATOR, FIRST)
    assert {one.id for one in everybody_s.rows} == {one.id for one in made}
    eve = await world.account("eve@example.org")
    assert not (await webhooks.list_webhooks(world.services, eve, FIRST)).rows


async def test_a_webhook_is_bound_to_a_key_that_is_alive(world: World) -> None:
    """A key works until it expires, also for a change of a webhook. WH-6, WH-7."""
    hook = await a_webhook(world, "ann@example.org")
    made = await keys.create_key(
        world.services, hook.owner_id, "k", {Scope.WORKFLOW_READ}, DurationMs(1_000)
    )
    change = WebhookChange(api_key_id=made.key.id)
    bound = await webhooks.update_webhook(world.services, OPERATOR, hook.id, change)
    assert (bound.api_key_id, bound.updated_at) == (made.key.id, world.clock.now())
    world.clock.advance(1_000)
    with pytest.raises(InvalidInput, match=r"^apiKeyId: is revoked or expired$"):
        await webhooks.update_webhook(world.services, OPERATOR, hook.id, change)


@pytest.mark.parametrize(("authenticated", "kept"), [(True, {"a": 1}), (False, None)])
async def test_of_a_refused_delivery_what_the_sender_said_is_kept(
    world: World, authenticated: bool, kept: JsonObject | None
) -> None:
    """To be replayed; not what strangers say, and nothing that is too large. WH-21."""
    hook = await a_webhook(world, "ann@example.org")
    for size in (7, 10_000_000):
        about = 409, "disabled", authenticated, {"a": 1}, size
        await note_refused_delivery(world.services, hook, *about)
        world.clock.advance(1)
    large, small = (await list_deliveries(world.services, OPERATOR, hook.id, FIRST)).rows
    assert (large.payload, small.payload, small.reason) == (None, kept, "disabled")
