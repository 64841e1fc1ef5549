"""The deliveries that start anything, and the headers that become variables. WH-24, WH-25."""

import json
from typing import Any

import pytest
from attrs import evolve

from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidInput
from wfcore.model.access import OPERATOR
from wfcore.model.page import PageRequest
from wfcore.model.webhook import Delivery, Scheme, Webhook
from wfcore.usecases.executions import executions
from wfcore.usecases.executions.starting import StartReceipt
from wfcore.usecases.webhooks import webhooks
from wfcore.usecases.webhooks.admitting import AdmittedDelivery, admit_webhook
from wfcore.usecases.webhooks.deliveries import deliver_test, list_deliveries, replay_delivery
from wfcore.usecases.webhooks.triggering import trigger_webhook
from wfcore.usecases.webhooks.webhooks import NewWebhook, WebhookChange

from .conftest import World, code
from .test_admitting import signed
from .triggering import PAGE

OPENED = "{{ payload.action == 'opened' }}"


@pytest.fixture
def world(world: World) -> World:
    return evolve(world, services=evolve(world.services, templates=MiniJinjaTemplates()))


async def a_webhook(world: World, **more: Any) -> Webhook:
    who = await world.account()
    id = await world.workflow(who, code("a"))
    new = NewWebhook(id, "hook", scheme=Scheme.GITHUB, makes_secret=True, **more)
    return await webhooks.create_webhook(world.services, who, new)


async def deliver(
    world: World, hook: Webhook, payload: Any, **headers: str
) -> tuple[AdmittedDelivery, StartReceipt | None]:
    body = json.dumps(payload).encode()
    carried = {**signed(world, hook, body), **headers}
    admitted = await admit_webhook(world.services, hook.id, carried, body)
    if admitted.reply is not None:
        return admitted, None
    found = await trigger_webhook(
        world.services,
        hook.id,
        admitted.payload,
        idempotency=admitted.idempotency,
        from_headers=admitted.from_headers,
    )
    return admitted, found


async def last(world: World, hook: Webhook) -> Delivery:
    return (await list_deliveries(world.services, OPERATOR, hook.id, PageRequest())).rows[0]


@pytest.mark.parametrize(
    ("when", "payload", "starts"),
    [
        (OPENED, {"action": "opened"}, True),
        (OPENED, {"action": "closed"}, False),
        (OPENED, {}, False),
        ("{{ payload.pull_request.merged }}", {"issue": 1}, False),
        ("{{ 'issue' in payload }}", {"issue": 1}, True),
        ("{{ headers['x-github-event'] == 'ISSUES' | lower }}", {}, True),
        ("{{ headers['X-GitHub-Event'] == headers['X-GITHUB-EVENT'] }}", {}, True),
        ("{{ headers['X-Nope'] }}", {}, False),
        ("{{ headers['X-Hub-Signature-256'] }}", {}, False),
        ("{{ headers.authorization }}", {}, False),
        ("{{ headers['Cookie'] }}", {}, False),
    ],
)
async def test_only_wanted_deliveries_start_anything(
    world: World, when: str, payload: Any, starts: bool
) -> None:
    """A missing field is null; credentials are unknown. What is ignored is listed so. WH-24."""
    hook = await a_webhook(world, when=when)
    carried = {"X-GitHub-Event": "issues", "Cookie": "a=b", "Authorization": "Bearer x"}
    admitted, found = await deliver(world, hook, payload, **carried)
    assert (found is not None) is starts
    one = await last(world, hook)
    assert (one.ignored, one.status) == ((False, 202) if starts else (True, 200))
    if not starts:
        assert admitted.reply == {
            "ok": True,
            "ignored": True,
            "webhookId": hook.id,
            "executionId": None,
            "status": None,
        }
        assert not (await executions.list_executions(world.services, OPERATOR, PAGE)).rows


async def test_what_is_ignored_is_counted_by_itself(world: World) -> None:
    """Neither as accepted nor as refused; it uses the rate and no idempotency key. WH-24."""
    hook = await a_webhook(world, when=OPENED)
    ignored, _ = await deliver(world, hook, {"action": "closed"})
    started, found = await deliver(world, hook, {"action": "opened"})
    assert found is not None
    assert not found.replayed
    assert started.quota.remaining == ignored.quota.remaining - 1
    stats = await webhooks.webhook_stats(world.services, OPERATOR, hook.id)
    assert (stats.total, stats.accepted, stats.ignored, stats.rejected) == (2, 1, 1, {})


async def test_a_condition_that_fails_is_refused(world: World) -> None:
    """400 with the reason for the owner, and nothing starts. WH-24."""
    hook = await a_webhook(world, when="{{ payload.n > 'x' }}")
    with pytest.raises(InvalidInput) as caught:
        await deliver(world, hook, {"n": 1})
    assert caught.value.field == "when"
    one = await last(world, hook)
    assert (one.status, one.ignored) == (400, False)


async def test_headers_become_variables(world: World) -> None:
    """One that is missing sets nothing. WH-25."""
    headers = {"event": "X-GitHub-Event", "other": "X-Other"}
    hook = await a_webhook(world, headers=headers)
    _, found = await deliver(world, hook, {"n": 1}, **{"x-github-event": "issues"})
    assert found is not None
    run = await executions.read_execution(world.services, OPERATOR, found.execution_id)
    assert run.variables == {"n": 1, "event": "issues"}


async def test_what_was_ignored_can_be_replayed(world: World) -> None:
    """With its headers, whatever `when` says: somebody asks for it. WH-22."""
    hook = await a_webhook(world, when=OPENED, headers={"event": "X-GitHub-Event"})
    await deliver(world, hook, {"n": 1}, **{"X-GitHub-Event": "issues"})
    delivery = await last(world, hook)
    found = await replay_delivery(world.services, OPERATOR, hook.id, delivery.id)
    run = await executions.read_execution(world.services, OPERATOR, found.execution_id)
    assert run.variables == {"n": 1, "event": "issues"}


async def test_a_test_is_judged_as_a_delivery_is(world: World) -> None:
    """WH-23."""
    hook = await a_webhook(world, when=OPENED)
    assert await deliver_test(world.services, OPERATOR, hook.id, {"action": "opened"})
    assert await deliver_test(world.services, OPERATOR, hook.id) is None
    one = await last(world, hook)
    assert (one.ignored, one.kind.value) == (True, "test")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"when": "payload.a"}, "when"),
        ({"when": "{{ payload.a }} and more"}, "when"),
        ({"when": "{{ paylod.a }}"}, "when"),
        ({"when": "{{ payload. }}"}, "when"),
        ({"headers": {"a": "Authorization"}}, "headers.a"),
        ({"headers": {"a": "proxy-authorization"}}, "headers.a"),
        ({"headers": {"a": "X-API-Key"}}, "headers.a"),
        ({"headers": {"a": "cookie"}}, "headers.a"),
        ({"headers": {"a": "X-Hub-Signature-256"}}, "headers.a"),
        ({"headers": {"a": "Stripe-Signature"}}, "headers.a"),
        ({"headers": {"a": "not a header"}}, "headers.a"),
        ({"headers": {"a": ""}}, "headers.a"),
        ({"headers": {"": "X-A"}}, 'headers[""]'),
        ({"headers": {"a": "X-A"}, "variable_mapping": {"a": "b"}}, "headers.a"),
        ({"headers": ["X-A"]}, "headers"),
    ],
)
async def test_a_wrong_condition_is_refused(world: World, wrong: Any, field: str) -> None:
    """As it is made and as it is changed; nothing is stored. WH-24, WH-25."""
    with pytest.raises(InvalidInput) as caught:
        await a_webhook(world, **wrong)
    assert caught.value.field == field


async def test_conditions_are_changed_and_taken_away(world: World) -> None:
    """What is not sent stays. WH-24, WH-25."""
    hook = await a_webhook(world, when=OPENED, headers={"a": "X-A"})
    change = WebhookChange(name="other")
    kept = await webhooks.update_webhook(world.services, OPERATOR, hook.id, change)
    assert (kept.when, kept.headers) == (OPENED, {"a": "X-A"})
    with pytest.raises(InvalidInput):
        await webhooks.update_webhook(
            world.services, OPERATOR, hook.id, WebhookChange(variable_mapping={"a": "b"})
        )
    change = WebhookChange(when=None, headers=None)
    bare = await webhooks.update_webhook(world.services, OPERATOR, hook.id, change)
    assert (bare.when, bare.headers) == (None, None)


async def test_a_condition_over_a_large_body_stops_nobody_else(world: World) -> None:
    """A large body's `when` is evaluated away from the requests of others; a small one's is not."""
    offloaded: list[object] = []

    async def offload(work: Any) -> Any:
        offloaded.append(work)
        return work()

    hook = await a_webhook(world, when=OPENED)
    world = evolve(world, services=evolve(world.services, offload=offload))
    await deliver(world, hook, {"action": "closed"})
    assert not offloaded
    await deliver(world, hook, {"action": "closed", "text": "x" * 100_000})
    assert len(offloaded) == 1
