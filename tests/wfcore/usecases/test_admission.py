"""Letting requests in: reasons for the log, one answer for the caller, exact quotas."""

import asyncio
from functools import partial

import pytest
from attrs import evolve

from wfcore.errors import (
    AccountBlocked,
    AuthReason,
    Conflict,
    InvalidInput,
    NotFound,
    RateLimited,
    TooManyAttempts,
    Unauthenticated,
)
from wfcore.model.access import (
    OPERATOR,
    Account,
    AccountStatus,
    ApiKey,
    Guest,
    Scope,
    Tier,
    Visitor,
)
from wfcore.model.json import JsonObject
from wfcore.model.webhook import AuthMode, Webhook
from wfcore.rules.auth.access import require_operator
from wfcore.rules.webhooks.scheme import sign
from wfcore.time import DAY, HOUR, MINUTE, DurationMs, EpochMs
from wfcore.usecases.accounts import accounts, authenticate, keys, sessions
from wfcore.usecases.accounts.authenticate import Credentials
from wfcore.usecases.audit.auditing import Origin
from wfcore.usecases.executions import idempotency, starting
from wfcore.usecases.webhooks import senders, webhooks
from wfcore.usecases.webhooks.webhooks import NewWebhook, WebhookChange

from .conftest import World, code

HERE = Origin("/here", "127.0.0.1", "req-1")


def bearer(key: str) -> Credentials:
    return Credentials(authorization=(f"Bearer {key}",))


async def enter(world: World, key: str, scope: Scope = Scope.WORKFLOW_READ) -> None:
    await authenticate.admit(world.services, bearer(key), scope, HERE)


async def last_reason(world: World) -> str | None:
    async with world.services.store.view() as view:
        entries = await view.audit.list(EpochMs(0), None, 1_000)
    return entries[-1].reason


async def test_operators_are_marked_or_named_and_never_keys(world: World) -> None:
    """At a page from the next request on, by session or visitor; 404 for everybody else. AC-7."""
    named = evolve(world.services.policy, operators=frozenset({"bob@example.org"}))
    services = evolve(world.services, policy=named)
    ann, bob, cyd = [
        await accounts.create_account(services, f"{name}@example.org", password="x" * 8)
        for name in ("ann", "bob", "cyd")
    ]
    await accounts.set_account(services, OPERATOR, ann.id, operator=True)

    async def is_operator(account: Account) -> bool:
        begun = await sessions.sign_in(services, account.email, "x" * 8, HERE)
        visitor = Visitor(account.email, frozenset())
        for who in (
            await sessions.session_of(services, begun.token),
            await authenticate.recognise(services, visitor, ()),
        ):
            if not who.operator:
                with pytest.raises(NotFound, match="Page not found"):
                    require_operator(who)
                return False
            require_operator(who)
        return True

    assert [await is_operator(one) for one in (ann, bob, cyd)] == [True, True, False]
    await accounts.set_account(services, OPERATOR, ann.id, plan=Tier.PRO)
    assert await is_operator(ann)
    await accounts.set_account(services, OPERATOR, ann.id, operator=False)
    assert not await is_operator(ann)
    key = await world.key(bob)
    by_key = await authenticate.authenticate(services, bearer(key), Scope.WORKFLOW_READ)
    for stranger in (by_key, Guest(bob.email, "appr_1", bob.id)):
        with pytest.raises(NotFound):
            require_operator(stranger)


async def test_each_refusal_has_its_reason_in_the_log_only(world: World) -> None:
    """Whatever is wrong with a key, the caller learns one word and the audit log why. AU-3."""
    ann = await world.account()
    good = await world.key(ann.account, Scope.WORKFLOW_READ)
    other = await world.key(ann.account)
    short = await keys.create_key(world.services, ann.account.id, "s", Scope.ordinary(), HOUR)
    revoked = await keys.create_key(world.services, ann.account.id, "r", Scope.ordinary())
    await keys.revoke_key(world.services, OPERATOR, revoked.key.id)
    world.clock.advance(HOUR)
    id, secret = good.split("_")[1], other.split("_")[2]
    from wfcore.rules.auth.api_key import compose

    cases = {
        AuthReason.MALFORMED: good[:-1],
        AuthReason.UNKNOWN_KEY: compose("0" * 16, secret[:36]),
        AuthReason.BAD_SECRET: compose(id, secret[:36]),
        AuthReason.REVOKED: revoked.text,
        AuthReason.EXPIRED: short.text,
    }
    for reason, key in cases.items():
        with pytest.raises(Unauthenticated) as refusal:
            await enter(world, key)
        assert str(refusal.value) == "Unauthorized"
        assert await last_reason(world) == reason.value
    with pytest.raises(Unauthenticated):
        await enter(world, good, Scope.WORKFLOW_EXECUTE)
    assert await last_reason(world) == "scope_missing"
    await enter(world, good)


async def test_a_key_without_its_account_opens_nothing(world: World) -> None:
    """As one that nobody knows; the log names both."""
    ann = await world.account()
    issued = await keys.create_key(world.services, ann.account.id, "k", Scope.ordinary())
    async with world.services.store.unit() as unit:
        stored = await unit.get(ApiKey, issued.key.id)
        unit.put(evolve(stored, account_id="acct_gone"))
        await unit.commit()
    with pytest.raises(Unauthenticated):
        await enter(world, issued.text)
    async with world.services.store.view() as view:
        *_, entry = await view.audit.list(EpochMs(0), None, 1_000)
    assert (entry.reason, entry.account_id, entry.key_id) == (
        "unknown_key",
        "acct_gone",
        issued.key.id,
    )


async def test_a_key_in_a_path_is_not_kept(world: World) -> None:
    """Somebody put a key where it does not belong: the audit log says where, not which."""
    key = await world.key((await world.account()).account)
    origin = Origin(f"/api/v1/workflows/{key}")
    with pytest.raises(Unauthenticated):
        await authenticate.admit(world.services, Credentials(), Scope.WORKFLOW_READ, origin)
    async with world.services.store.view() as view:
        entries = await view.audit.list(EpochMs(0), None, 1_000)
    assert entries[-1].path == "/api/v1/workflows/wfk_***"


@pytest.mark.parametrize("status", [AccountStatus.DISABLED, AccountStatus.LOCKED])
async def test_a_blocked_account_is_refused_before_its_scopes(
    world: World, status: AccountStatus
) -> None:
    """Account status is asked before scope, and on the next request. AC-1."""
    ann = await world.account()
    key = await world.key(ann.account, Scope.WORKFLOW_READ)
    await accounts.set_account(world.services, OPERATOR, ann.account.id, status=status)
    with pytest.raises(AccountBlocked):
        await enter(world, key, Scope.ARTIFACT_READ)


async def test_exactly_the_limit_is_admitted_of_many_at_once(world: World) -> None:
    """Of a hundred concurrent requests on plan FREE sixty enter, and sixty more next minute."""
    ann = await world.account(plan=Tier.FREE)
    key = await world.key(ann.account)
    for _ in range(2):
        answers = await asyncio.gather(
            *(enter(world, key) for _ in range(100)), return_exceptions=True
        )
        assert sum(answer is None for answer in answers) == 60
        refused = [answer for answer in answers if isinstance(answer, RateLimited)]
        assert len(refused) == 40
        assert {(one.window, one.limit) for one in refused} == {("minute", 60)}
        left_ms = MINUTE - world.clock.now() % MINUTE
        assert refused[0].retry_after_s == -(-left_ms // 1_000)
        world.clock.advance(left_ms)


async def test_refused_requests_do_not_count(world: World) -> None:
    """A missing scope or a blocked account uses up nothing. RL-4."""
    ann = await world.account(plan=Tier.FREE)
    key = await world.key(ann.account, Scope.WORKFLOW_READ)
    for _ in range(70):
        with pytest.raises(Unauthenticated):
            await enter(world, key, Scope.ARTIFACT_READ)
    quota = (await authenticate.admit(world.services, bearer(key), Scope.WORKFLOW_READ, HERE)).quota
    assert (quota.remaining, quota.window) == (59, "minute")


async def test_keys_of_one_account_have_quotas_of_their_own(world: World) -> None:
    """What one key used up another still has. RL-1."""
    ann = await world.account(plan=Tier.FREE)
    first, second = await world.key(ann.account), await world.key(ann.account)
    for _ in range(60):
        await enter(world, first)
    with pytest.raises(RateLimited):
        await enter(world, first)
    await enter(world, second)


async def test_a_rotated_key_overlaps_for_a_day(world: World) -> None:
    """The old secret stays good until the chosen time, then the new one alone. AU-5."""
    ann = await world.account()
    issued = await keys.create_key(world.services, ann.account.id, "k", Scope.ordinary())
    rotated = await keys.rotate_key(world.services, OPERATOR, issued.key.id)
    assert rotated.key.id == issued.key.id
    world.clock.advance(DAY - 1)
    await enter(world, issued.text)
    await enter(world, rotated.text)
    world.clock.advance(1)
    with pytest.raises(Unauthenticated):
        await enter(world, issued.text)
    await enter(world, rotated.text)


async def knock_at(
    world: World, webhook: Webhook, carried: Credentials, signature: str | None, body: bytes
) -> None:
    headers = {} if signature is None else {"x-webhook-signature": [signature]}
    services = world.services
    sender = await senders.identify_sender(services, webhook, carried, headers, body, HERE)
    await senders.admit_sender(services, webhook, sender)


async def test_a_webhook_opens_for_its_bound_key_alone(world: World) -> None:
    """Another key of the same account is refused, a signature too. WH-1."""
    ann = await world.account()
    issued = await keys.create_key(world.services, ann.account.id, "k", [Scope.WEBHOOK_TRIGGER])
    other = await world.key(ann.account)
    new = NewWebhook(await world.workflow(ann, code("one")), "hook", issued.key.id)
    webhook = await webhooks.create_webhook(world.services, ann, new)

    async def knock(carried: Credentials, signature: str | None = None) -> None:
        await knock_at(world, webhook, carried, signature, b"{}")

    await knock(bearer(issued.text))
    with pytest.raises(Unauthenticated):
        await knock(bearer(other))
    assert await last_reason(world) == "not_bound_key"
    with pytest.raises(Unauthenticated):
        await knock(Credentials(), sign("", b"{}"))


async def test_a_signed_webhook_opens_for_its_signature_alone(world: World) -> None:
    """The signature over the raw body counts; the move to a key is for good. WH-7, SG-1."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("one"))
    new = NewWebhook(workflow, "hook", secret="s3cret")
    webhook = await webhooks.create_webhook(world.services, ann, new)
    assert webhook.auth_mode is AuthMode.SIGNATURE
    body = b'{"a": 1}'
    good = sign("s3cret", body)
    for header in (good, f"sha256={good}", f"sha256={good.upper()}"):
        await knock_at(world, webhook, Credentials(), header, body)
    for header in (None, "", "sha256=", good[:-1], sign("s3cret", body + b" ")):
        with pytest.raises(Unauthenticated):
            await knock_at(world, webhook, Credentials(), header, body)
    issued = await keys.create_key(world.services, ann.account.id, "k", [Scope.WEBHOOK_TRIGGER])
    bound = await webhooks.update_webhook(
        world.services, ann, webhook.id, WebhookChange(api_key_id=issued.key.id)
    )
    with pytest.raises(Unauthenticated):
        await knock_at(world, bound, Credentials(), good, body)
    with pytest.raises(Conflict):
        await webhooks.update_webhook(
            world.services, ann, webhook.id, WebhookChange(api_key_id=None)
        )


async def test_racing_creators_never_get_more_webhooks_than_the_plan(world: World) -> None:
    """Ten at once on plan PRO: three are made. WH-4."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("one"))
    new = NewWebhook(workflow, "hook", secret="s3cret")
    made = await asyncio.gather(
        *(webhooks.create_webhook(world.services, ann, new) for _ in range(10)),
        return_exceptions=True,
    )
    assert sum(not isinstance(one, BaseException) for one in made) == 3
    assert all(isinstance(one, Conflict) for one in made if isinstance(one, BaseException))


async def test_a_downgrade_disables_the_newest_webhooks(world: World) -> None:
    """From TEAM to PRO the three oldest stay active. WH-5."""
    ann = await world.account(plan=Tier.TEAM)
    workflow = await world.workflow(ann, code("one"))
    made = []
    for n in range(5):
        world.clock.advance(1)
        new = NewWebhook(workflow, f"hook {n}", secret="s3cret")
        made.append((await webhooks.create_webhook(world.services, ann, new)).id)
    await accounts.set_account(world.services, OPERATOR, ann.account.id, plan=Tier.PRO)
    found = [await webhooks.read_webhook(world.services, ann, id) for id in made]
    assert [one.disabled_reason for one in found] == [None] * 3 + ["PLAN_LIMIT"] * 2


async def test_ten_failures_lock_a_login(world: World) -> None:
    """The eleventh attempt is refused, even with the right password, for 15 minutes. SE-2."""
    await accounts.create_account(world.services, "ann@example.org", Tier.PRO, "correct horse")
    for _ in range(10):
        with pytest.raises(Unauthenticated):
            await sessions.sign_in(world.services, "Ann@example.org", "wrong horse", HERE)
    with pytest.raises(TooManyAttempts) as locked:
        await sessions.sign_in(world.services, "ann@example.org", "correct horse", HERE)
    assert locked.value.retry_after_s == 15 * 60
    world.clock.advance(15 * MINUTE)
    signed_in = await sessions.sign_in(world.services, "ann@example.org", "correct horse", HERE)
    who = await sessions.session_of(world.services, signed_in.token)
    assert who.account.email == "ann@example.org"


async def test_a_session_ends_after_idling(world: World) -> None:
    """Twelve hours without a request end a session; use keeps it, for seven days. SE-1."""
    await accounts.create_account(world.services, "ann@example.org", Tier.PRO, "correct horse")
    signed_in = await sessions.sign_in(world.services, "ann@example.org", "correct horse", HERE)
    for _ in range(6 * 4):
        world.clock.advance(6 * HOUR)
        await sessions.session_of(world.services, signed_in.token)
    world.clock.advance(12 * HOUR)
    with pytest.raises(Unauthenticated):
        await sessions.session_of(world.services, signed_in.token)


async def test_a_key_alone_stands_for_the_request_of_its_first_use(world: World) -> None:
    """A key given as text returns the first answer for equal inputs, and refuses others. IK-2."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("one"))

    async def start(inputs: JsonObject, key: str = "order-1") -> starting.StartReceipt:
        return await starting.start_execution(
            world.services, ann, workflow, inputs, idempotency=key
        )

    first = await start({"a": 1, "b": 2})
    assert (await start({"b": 2, "a": 1})).execution_id == first.execution_id
    with pytest.raises(Conflict):
        await start({"a": 1})
    with pytest.raises(InvalidInput, match="1 to 255 printable ASCII"):
        await start({}, "")


async def test_one_idempotency_key_starts_one_execution(world: World) -> None:
    """The same key at once and later gives the first answer; another body is a conflict. IK-1."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("one"))
    same = idempotency.Idempotency("order-1", "f" * 64)

    async def start(idempotency: idempotency.Idempotency) -> starting.StartReceipt:
        return await starting.start_execution(
            world.services, ann, workflow, {}, idempotency=idempotency
        )

    answers = await asyncio.gather(*(start(same) for _ in range(20)))
    assert len({answer.execution_id for answer in answers}) == 1
    assert sum(not answer.replayed for answer in answers) == 1
    with pytest.raises(Conflict, match=r"^This Idempotency-Key was used with another body$"):
        await start(evolve(same, fingerprint="0" * 64))
    world.clock.advance(DAY)
    assert not (await start(same)).replayed


async def test_a_plan_bounds_its_keys(world: World) -> None:
    """LM-11: of many creations at once as many are stored as the plan allows; 409 names it."""
    ann = (await world.account(plan=Tier.FREE)).account

    async def make(number: int) -> str | Conflict:
        try:
            made = await keys.create_key(
                world.services, ann.id, f"key {number}", (Scope.WORKFLOW_READ,)
            )
        except Conflict as full:
            return full
        return made.key.id

    made = await asyncio.gather(*map(make, range(8)))
    stored = [one for one in made if isinstance(one, str)]
    assert len(stored) == 5 == len(await keys.list_keys(world.services, ann.id))
    (full, *_) = [one for one in made if isinstance(one, Conflict)]
    assert full.message.startswith("The plan FREE allows 5 keys")
    assert (await keys.rotate_key(world.services, OPERATOR, stored[0])).key.id == stored[0]


async def test_a_key_that_ended_counts_for_the_rest_of_its_day(world: World) -> None:
    """LM-11: revoking one and making another one gives no second quota of the same day."""
    ann = (await world.account(plan=Tier.FREE)).account
    make = partial(keys.create_key, world.services, ann.id, "key", (Scope.WORKFLOW_READ,))
    first = await make()
    for lasts in (None, None, None, DurationMs(1)):
        await make(lasts)
    await keys.revoke_key(world.services, OPERATOR, first.key.id)
    world.clock.advance(2)
    with pytest.raises(Conflict):
        await make()
    world.clock.advance(DAY)
    for _ in range(2):
        await make()
    with pytest.raises(Conflict):
        await make()
