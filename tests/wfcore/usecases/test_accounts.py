"""Accounts and their keys: what a change leaves as it was, and what sign-ins remember."""

import pytest
from attrs import evolve

from wfcore.errors import InvalidInput, NotFound, Unauthenticated
from wfcore.model.access import OPERATOR, AccountStatus, Tier, Window
from wfcore.model.notice import NoticeKind
from wfcore.testing.fakes_running import NotedNotifier
from wfcore.time import DAY, MINUTE, DurationMs, EpochMs
from wfcore.usecases.accounts.accounts import (
    create_account,
    delete_secret,
    ensure_account,
    set_account,
    set_secret,
)
from wfcore.usecases.accounts.keys import list_keys
from wfcore.usecases.accounts.sessions import (
    account_of_link,
    end_sessions,
    issue_login_link,
    list_sessions,
    mail_login_link,
    sign_in,
)
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, read_audit

from .conftest import World

EMAIL = "ann@example.org"
PASSWORD = "a long enough password"


async def test_a_change_of_an_account_leaves_the_rest_of_it(world: World) -> None:
    """What is not named stays: the password, who operates, the language, the plan."""
    id = (await world.account(EMAIL)).account.id
    for change in ({"password": PASSWORD}, {"operator": True}, {"language": "de"}):
        await set_account(world.services, OPERATOR, id, **change)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="language"):
        await set_account(world.services, OPERATOR, id, language="xx")
    account = await set_account(world.services, OPERATOR, id, plan=Tier.TEAM)
    assert (account.plan, account.operator, account.language) == (Tier.TEAM, True, "de")
    assert (await sign_in(world.services, EMAIL, PASSWORD, UNKNOWN)).account.id == id
    assert not (await set_account(world.services, OPERATOR, id, operator=False)).operator


async def test_a_right_password_forgives_the_wrong_ones(world: World) -> None:
    """Nine failures before it, and nine after it, are never ten. SE-6."""
    id = (await world.account(EMAIL)).account.id
    await set_account(world.services, OPERATOR, id, password=PASSWORD)
    for _ in range(2):
        for _ in range(9):
            with pytest.raises(Unauthenticated):
                await sign_in(world.services, EMAIL, "another long password", UNKNOWN)
            world.clock.advance(10_000)
        assert (await sign_in(world.services, EMAIL, PASSWORD, UNKNOWN)).account.id == id


async def test_a_key_is_listed_with_its_last_use(world: World) -> None:
    """As it was counted, though the key itself was not written for it."""
    who = await world.account(EMAIL)
    await world.key(who.account)
    (key,) = await list_keys(world.services, who.account.id)
    assert key.last_used_at is None
    minute = Window("minute", EpochMs(MINUTE), EpochMs(2 * MINUTE), None)
    await world.services.counters.take(f"key:{key.id}", (minute,), EpochMs(MINUTE))
    (key,) = await list_keys(world.services, who.account.id)
    assert key.last_used_at == MINUTE


@pytest.mark.parametrize("lasts", [-1, 0, DAY + 1])
async def test_a_login_link_lasts_a_day_at_most(world: World, lasts: int) -> None:
    """And more than no time at all; what it may be is said. SE-7."""
    ann = (await world.account(EMAIL)).account
    with pytest.raises(InvalidInput, match=r"^minutes: must be from 1 to 1440$"):
        await issue_login_link(world.services, OPERATOR, ann.id, UNKNOWN, DurationMs(lasts))
    for fine in (1, DAY):
        token = await issue_login_link(world.services, OPERATOR, ann.id, UNKNOWN, DurationMs(fine))
        assert (await account_of_link(world.services, token)).id == ann.id


async def test_a_link_goes_to_an_active_account_s_own_address(world: World) -> None:
    """However the email was typed; it says until when it works, in the account's words. SE-10."""
    ann, post = (await world.account(EMAIL)).account, NotedNotifier()
    await set_account(world.services, OPERATOR, ann.id, language="de")
    for typed in (" ANN@Example.org ", "nobody@example.org"):
        await mail_login_link(world.services, OPERATOR, post, typed, UNKNOWN)
    await set_account(world.services, OPERATOR, ann.id, status=AccountStatus.LOCKED)
    await mail_login_link(world.services, OPERATOR, post, EMAIL, UNKNOWN)
    (message,) = post.sent
    assert (message.channel, message.to, message.language) == ("mail", EMAIL, "de")
    (line,) = message.lines
    assert line.kind is NoticeKind.SIGN_IN_LINK
    assert line.about == {"expiresAt": world.clock.now() + 15 * MINUTE}


@pytest.mark.parametrize("email", ["", "ann", "@", "ann@", "@example.org", "a b@example.org"])
async def test_an_email_has_a_name_and_a_host(world: World, email: str) -> None:
    """Nothing else is one, and no account is made of it."""
    with pytest.raises(InvalidInput, match=r"^email: must be an email address$"):
        await create_account(world.services, email)


async def test_an_ensured_account_is_made_once(world: World) -> None:
    """The second time it is the one that is there, as it is."""
    made = await ensure_account(world.services, EMAIL, Tier.FREE)
    again = await ensure_account(world.services, f" {EMAIL.upper()} ", Tier.TEAM)
    assert (again.id, again.plan) == (made.id, Tier.FREE)


async def test_failures_are_told_in_channels_that_there_are(world: World) -> None:
    """Each named once, kept by other changes, and none that is not set up here. NT-8."""
    policy = evolve(world.services.policy, channels=frozenset({"mail", "finance"}))
    services = evolve(world.services, policy=policy)
    id = (await world.account(EMAIL)).account.id
    with pytest.raises(InvalidInput, match="'shop' is not a channel here; one of finance, mail"):
        await set_account(services, OPERATOR, id, failure_channels=("mail", "shop"))
    await set_account(services, OPERATOR, id, failure_channels=("mail", "finance", "mail"))
    account = await set_account(services, OPERATOR, id, plan=Tier.TEAM)
    assert account.failure_channels == ("mail", "finance")
    with pytest.raises(InvalidInput, match="'mail' is not a channel here; none is set up here"):
        await set_account(world.services, OPERATOR, id, failure_channels=("mail",))


async def test_a_change_of_a_secret_is_on_record(world: World) -> None:
    """By name and by whose request, never with its value. SC-5."""
    id = (await world.account(EMAIL)).account.id
    origin = Origin(request_id="req_7")
    await set_secret(world.services, OPERATOR, id, "TOKEN", "hunter2", origin)
    await delete_secret(world.services, OPERATOR, id, "TOKEN", origin)
    entries = [*await read_audit(world.services, EpochMs(0), None, 99)][-2:]
    assert [(one.event, one.request_id) for one in entries] == [
        ("secret.set", "req_7"),
        ("secret.delete", "req_7"),
    ]
    assert "hunter2" not in str(entries)


async def test_an_account_that_is_not_there_has_no_sessions(world: World) -> None:
    """Neither to be listed nor to be ended; what is missing is named."""
    for asked in (
        list_sessions(world.services, "x"),
        end_sessions(world.services, OPERATOR, "x", UNKNOWN),
    ):
        with pytest.raises(NotFound, match=r"^Account not found$"):
            await asked
