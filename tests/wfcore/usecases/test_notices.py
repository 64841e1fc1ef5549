"""Who is told of what, when, and how often it is tried. NT-1 to NT-7."""

import pytest
from attrs import evolve

from wfcore.model.access import OPERATOR, AccountStatus, Permission, Principal, Tier, Window
from wfcore.model.approval import Approval, DecisionSource
from wfcore.model.json import Json
from wfcore.model.notice import Notice, NoticeKind, NoticeStatus
from wfcore.model.page import PageRequest
from wfcore.model.review import Escalation, Stage
from wfcore.model.trigger import Schedule
from wfcore.model.workflow import OnInterrupt
from wfcore.ports.notices import Message, NotDelivered, Receipt
from wfcore.rules.approval.machine import Approve, Reject
from wfcore.rules.auth.signed_links import personal_token
from wfcore.testing.fakes_running import NotedNotifier
from wfcore.time import DAY, HOUR, MINUTE, DurationMs, EpochMs
from wfcore.usecases.accounts import accounts
from wfcore.usecases.approvals.deciding import Decide, decide_approval
from wfcore.usecases.approvals.delegating import delegate_approval
from wfcore.usecases.notices.sending import Sending, settle_notice, take_notices
from wfcore.usecases.notices.telling import tell_quota
from wfcore.usecases.signing import signing_keys
from wfcore.usecases.upkeep.sweeping import sweep
from wfcore.usecases.workflows.workflows import share_workflow

from .conftest import World, code, review

ANN, BOB, EVE = "ann@example.org", "bob@example.org", "eve@example.org"


@pytest.fixture
def told(world: World) -> World:
    """The world with mail and a room."""
    return with_channels(world)


def with_channels(world: World) -> World:
    policy = evolve(world.services.policy, channels=frozenset({"mail", "finance"}))
    return evolve(world, services=evolve(world.services, policy=policy))


async def asked(world: World, rows: Json = (), **more: object) -> tuple[str, str]:
    """An execution of ann's that waits at an approval; the ids of both."""
    ann = await ensured(world, ANN)
    workflow = await world.workflow(ann, review(rows, **more), name=f"flow {world.clock.now()}")
    run_id = await world.start(ann, workflow)
    await world.take()
    async with world.services.store.view() as view:
        (approval,) = await view.approvals.of_execution(run_id)
    return run_id, approval.id


async def ensured(world: World, email: str) -> Principal:
    return Principal(await accounts.ensure_account(world.services, email))


async def stored(world: World) -> list[Notice]:
    """All notices, oldest first."""
    async with world.services.store.view() as view:
        return [*(await view.notices.list((), PageRequest(1, 200))).rows][::-1]


async def addresses(world: World) -> set[tuple[str, str, str]]:
    return {(one.kind.value, one.channel, one.to) for one in await stored(world)}


async def send(world: World, notifier: NotedNotifier) -> list[Message]:
    """What one round of the loop does; what arrived in it."""
    before = len(notifier.sent)
    for sending in await take_notices(world.services, 50):
        await attempt(world, notifier, sending)
    return notifier.sent[before:]


async def attempt(world: World, notifier: NotedNotifier, sending: Sending) -> None:
    outcome: Receipt | NotDelivered
    try:
        outcome = await notifier.send(sending.message)
    except NotDelivered as failed:
        outcome = failed
    await settle_notice(world.services, sending, outcome)


async def decide(
    world: World, who: str, id: str, *, reject: bool = False, rows: Json = None
) -> None:
    edited = None if rows is None else {"rows": rows}
    decision = Reject() if reject else Approve(edited)
    asked = Decide(id, decision, DecisionSource.API)
    await decide_approval(world.services, await ensured(world, who), asked)


async def test_an_opened_approval_is_told_to_its_approvers(told: World) -> None:
    """NT-3: each named approver by mail, whether by email or account, and each once."""
    bob = await ensured(told, BOB)
    await asked(told, approvers=(BOB, bob.account.id, "Eve@example.org"))
    opened = NoticeKind.APPROVAL_OPENED.value
    assert await addresses(told) == {(opened, "mail", BOB), (opened, "mail", EVE)}


async def test_without_approvers_the_owners_and_editors_are_told(told: World) -> None:
    """NT-3, AP-18: whoever may approve; who may not approve the own execution is not asked."""
    ann, bob = await ensured(told, ANN), await ensured(told, BOB)
    eve = await ensured(told, EVE)
    workflow = await told.workflow(ann, review(allow_self_approval=False))
    for who, grants in ((bob, Permission.EDIT), (eve, Permission.VIEW)):
        await share_workflow(told.services, OPERATOR, workflow, who.account.id, grants)
    await told.start(ann, workflow)
    await told.take()
    assert {to for _, _, to in await addresses(told)} == {BOB}


@pytest.mark.parametrize(
    ("named", "channels"),
    [
        (None, {"mail"}),
        ((), set()),
        (("finance",), {"finance"}),
        (("finance", "mail", "finance"), {"mail", "finance"}),
        (("gone",), {"gone"}),
    ],
)
async def test_the_step_says_by_which_channels(
    told: World, named: tuple[str, ...] | None, channels: set[str]
) -> None:
    """NT-2: mail if it says nothing; nothing if it says so; a channel that is missing, too."""
    await asked(told, approvers=(BOB,), notify=named)
    assert {channel for _, channel, _ in await addresses(told)} == channels


async def test_nobody_is_told_where_no_channel_is(world: World) -> None:
    """A service without channels writes nothing."""
    await asked(world, approvers=(BOB,))
    assert await stored(world) == []


async def test_a_notice_is_in_the_unit_of_its_fact(told: World) -> None:
    """NT-1: writing the notices of a fact again writes none."""
    from wfcore.usecases.notices.telling import tell

    await asked(told, approvers=(BOB,))
    (one,) = await stored(told)
    async with told.services.store.unit() as unit:
        assert not await tell(unit, [evolve(one, version=0)])
        await unit.commit()
    assert await stored(told) == [one]


async def test_what_is_told_of_an_approval(told: World) -> None:
    """Workflow, step, message, the number of rows, the expiry and a path; never a row."""
    _, id = await asked(told, [{"id": "CANARY"}], approvers=(BOB,))
    notifier = NotedNotifier()
    (message,) = await send(told, notifier)
    (line,) = message.lines
    assert (message.channel, message.to, message.language) == ("mail", BOB, "en")
    async with told.services.store.view() as view:
        approval = await view.get(Approval, id)
    assert approval is not None
    keys = await signing_keys(told.services)
    token = keys.signed(lambda key: personal_token(key, approval, BOB))
    assert line.path == f"/a/{token}"
    assert line.about["message"] == "Look"
    assert line.about["rows"] == 1
    assert "CANARY" not in str(message)
    assert await send(told, notifier) == []
    (one,) = await stored(told)
    assert (one.status, one.attempts, one.due_at) == (NoticeStatus.SENT, 1, None)


async def test_rows_are_shown_by_mail_alone_and_where_the_operator_says_so(told: World) -> None:
    """As many as the setting says, and none in a room."""
    policy = evolve(told.services.policy, notice_rows=1)
    told = evolve(told, services=evolve(told.services, policy=policy))
    rows = [{"id": "first"}, {"id": "second"}]
    await asked(told, rows, approvers=(BOB,), notify=("mail", "finance"))
    samples = {
        one.channel: one.lines[0].about["sample"] for one in await send(told, NotedNotifier())
    }
    assert samples == {"mail": [[{"id": "first"}]], "finance": []}


async def test_the_language_is_the_recipients(told: World) -> None:
    """An account's own, or the server's."""
    await ensured(told, BOB)
    bob = await accounts.find_account(told.services, BOB)
    await accounts.set_account(told.services, OPERATOR, bob.id, language="de")
    await asked(told, approvers=(BOB, EVE))
    assert {one.to: one.language for one in await send(told, NotedNotifier())} == {
        BOB: "de",
        EVE: "en",
    }


async def test_what_is_decided_before_it_was_sent_is_dropped(told: World) -> None:
    """NT-5: nobody is asked what is answered."""
    _, id = await asked(told, approvers=(BOB, EVE))
    await decide(told, BOB, id)
    sent = await send(told, NotedNotifier())
    assert [one.kind for one in sent] == ["approval.decided"]
    dropped = [one for one in await stored(told) if one.status is NoticeStatus.DROPPED]
    assert {(one.to, one.attempts) for one in dropped} == {(BOB, 0), (EVE, 0)}


async def test_a_yes_is_not_asked_for_again(told: World) -> None:
    """NT-5: whoever has agreed already is not told that it waits; the others are."""
    _, id = await asked(told, approvers=(BOB, EVE), required_approvals=2)
    await decide(told, BOB, id)
    assert [one.to for one in await send(told, NotedNotifier())] == [EVE]


async def test_a_blocked_account_is_told_nothing(told: World) -> None:
    """Neither when the fact is written nor when it is sent."""
    bob, eve = await ensured(told, BOB), await ensured(told, EVE)
    disabled = AccountStatus.DISABLED
    await accounts.set_account(told.services, OPERATOR, eve.account.id, status=disabled)
    await asked(told, approvers=(bob.account.id, eve.account.id))
    assert {to for _, _, to in await addresses(told)} == {BOB}
    await accounts.set_account(told.services, OPERATOR, bob.account.id, status=disabled)
    assert await send(told, NotedNotifier()) == []


async def test_a_yes_that_others_voided_is_asked_for_again(told: World) -> None:
    """NT-3, AP-17: those whose yes went, by mail, once for each change."""
    rows = [{"id": 1}]
    _, id = await asked(told, rows, approvers=(BOB, EVE), required_approvals=2)
    await decide(told, BOB, id)
    await decide(told, EVE, id, rows=[])
    voided = [one for one in await stored(told) if one.kind is NoticeKind.APPROVAL_VOIDED]
    assert [(one.channel, one.to) for one in voided] == [("mail", BOB)]


@pytest.mark.parametrize(("who", "told_to"), [(BOB, [ANN]), (ANN, [])])
async def test_who_started_it_learns_of_the_decision(
    told: World, who: str, told_to: list[str]
) -> None:
    """NT-3: unless that was the one who decided."""
    _, id = await asked(told, approvers=(BOB, ANN), notify=("mail", "finance"))
    await decide(told, who, id, reject=True)
    decided = [one for one in await stored(told) if one.kind is NoticeKind.APPROVAL_DECIDED]
    assert [one.to for one in decided] == told_to


async def test_an_expiry_is_told_to_the_starter_and_the_room(told: World) -> None:
    """NT-3: the room was asked, and sees that it is over."""
    await asked(told, approvers=(BOB,), notify=("mail", "finance"), timeout_ms=DurationMs(HOUR))
    told.clock.advance(HOUR)
    await sweep(told.services)
    expired = [one for one in await stored(told) if one.kind is NoticeKind.APPROVAL_EXPIRED]
    assert {(one.channel, one.to) for one in expired} == {("mail", ANN), ("finance", "")}


@pytest.mark.parametrize("wanted", [True, False])
async def test_a_failure_is_told_where_the_definition_says_so(told: World, wanted: bool) -> None:
    """NT-3: to the workflow's owner by mail, and to the rooms that it names."""
    ann = await ensured(told, ANN)
    named = ("mail", "finance") if wanted else ()
    workflow = await told.workflow(ann, code("one"), notify_on_failure=named)
    run_id = await told.start(ann, workflow)
    lease, _ = await told.take()
    await told.finish(lease, "one", error="exploded")
    found = {(one.channel, one.to) for one in await stored(told)}
    assert found == ({("mail", ANN), ("finance", "")} if wanted else set())
    for message in await send(told, NotedNotifier()):
        assert message.lines[0].path == f"/executions/{run_id}"
        assert "exploded" in str(message.lines[0].about["error"])


async def test_a_grace_that_nobody_used_is_a_failure_that_is_told(told: World) -> None:
    """EX-13, NT-3: an execution that the sweep ends is told of like any other."""
    ann = await ensured(told, ANN)
    more = {"notify_on_failure": ("mail",), "on_interrupt": OnInterrupt.FAIL}
    workflow = await told.workflow(ann, code("one"), **more)
    await told.start(ann, workflow)
    await told.take()
    told.clock.advance(told.services.policy.lease_ms + 1)
    await sweep(told.services)
    told.clock.advance(told.services.policy.grace_ms)
    await sweep(told.services)
    assert await addresses(told) == {("execution.failed", "mail", ANN)}


async def test_notices_go_with_their_execution(told: World) -> None:
    """What is purged leaves no address behind."""
    run_id, _ = await asked(told, approvers=(BOB,))
    async with told.services.store.unit() as unit:
        unit.purge(run_id)
        await unit.commit()
    assert await stored(told) == []


async def test_a_downgrade_tells_which_webhooks_it_disabled(told: World) -> None:
    """NT-3, WH-5: the owner, by mail, with the reason; what the owner did is no news."""
    from wfcore.usecases.webhooks.webhooks import NewWebhook, create_webhook

    ann = await ensured(told, ANN)
    workflow = await told.workflow(ann, code("one"))
    new = NewWebhook(workflow, "orders", makes_secret=True)
    webhook = await create_webhook(told.services, ann, new)
    await accounts.set_account(told.services, OPERATOR, ann.account.id, plan=Tier.FREE)
    (message,) = await send(told, NotedNotifier())
    (line,) = message.lines
    assert (message.to, line.kind) == (ANN, NoticeKind.WEBHOOK_DISABLED)
    assert line.path == f"/operate/webhooks/{webhook.id}"
    assert (line.about["name"], line.about["reason"]) == ("orders", "PLAN_LIMIT")


async def test_the_next_stage_is_asked_when_the_one_before_is_over(told: World) -> None:
    """NT-3, AP-33: each stage in its turn, and everybody once."""
    stages = (Stage((BOB,)), Stage((EVE,)))
    _, id = await asked(told, stages=stages)
    assert {to for _, _, to in await addresses(told)} == {BOB}
    await decide(told, BOB, id)
    opened = [one.to for one in await stored(told) if one.kind is NoticeKind.APPROVAL_OPENED]
    assert sorted(opened) == [BOB, EVE]


async def test_a_stage_is_told_each_time_its_turn_comes(told: World) -> None:
    """
    NT-3, AP-33: rows changed in the second stage ask the first one again, whose yes is void; then
    it is the second stage's turn once more, people and room.
    """
    stages = (Stage((BOB,)), Stage((EVE, ANN), required_approvals=2))
    _, id = await asked(told, rows=[{"n": 1}, {"n": 2}], stages=stages, notify=("mail", "finance"))
    notifier = NotedNotifier()
    assert {one.to for one in await send(told, notifier)} == {BOB, ""}
    await decide(told, BOB, id)
    assert sorted(one.to for one in await send(told, notifier)) == ["", ANN, EVE]
    await decide(told, ANN, id)
    await decide(told, EVE, id, rows=[{"n": 1}])
    assert (NoticeKind.APPROVAL_VOIDED.value, "mail", ANN) not in await addresses(told)
    again = {one.to: one.kind for one in await send(told, notifier)}
    assert again == {BOB: NoticeKind.APPROVAL_VOIDED, "": NoticeKind.APPROVAL_OPENED}
    await decide(told, BOB, id)
    told.clock.advance(HOUR)  # rooms and people have had several within ten minutes
    assert sorted(one.to for one in await send(told, notifier)) == ["", ANN]


async def test_who_is_not_needed_any_more_is_not_told(told: World) -> None:
    """NT-5, AP-38: a stage that one yes ended asks nobody else of it, though the notice was due."""
    _, id = await asked(told, stages=(Stage((BOB, EVE)), Stage((ANN,))))
    await decide(told, BOB, id)
    assert [one.to for one in await send(told, NotedNotifier())] == [ANN]


async def test_a_delegate_is_told_and_is_the_approvers_voice(told: World) -> None:
    """NT-3, AP-36: at the delegation, once; after the delegate's yes the approver is not asked."""
    _, id = await asked(told, approvers=(BOB, ANN), required_approvals=2, delegable=True)
    notifier, bob = NotedNotifier(), await ensured(told, BOB)
    assert sorted(one.to for one in await send(told, notifier)) == [ANN, BOB]
    await delegate_approval(told.services, bob, id, EVE, None, DecisionSource.API)
    (message,) = await send(told, notifier)
    assert (message.to, message.kind) == (EVE, NoticeKind.APPROVAL_OPENED)
    await decide(told, EVE, id)
    assert await send(told, notifier) == []


async def test_those_who_are_asked_too_are_told_once(told: World) -> None:
    """NT-3, AP-37: an escalation tells those whom it adds, and nobody else."""
    late = Escalation(DurationMs(HOUR), (EVE,))
    await asked(told, approvers=(BOB,), escalate=late)
    notifier = NotedNotifier()
    await send(told, notifier)
    told.clock.advance(HOUR)
    for _ in range(2):
        await sweep(told.services)
    (message,) = await send(told, notifier)
    assert (message.to, message.kind) == (EVE, NoticeKind.APPROVAL_OPENED)


async def test_a_quota_near_its_end_is_told_once_a_window(told: World) -> None:
    """NT-3: the owner of the key, at nine tenths of a day's requests, and again the next day."""
    ann = await ensured(told, ANN)
    account = evolve(ann.account, plan=Tier.FREE)
    window = Window("day", told.clock.now(), EpochMs(told.clock.now() + DAY), 100)
    for _ in range(2):
        await tell_quota(told.services, "key:k1", account, window)
    tomorrow = evolve(window, end=EpochMs(window.end + DAY))
    await tell_quota(told.services, "key:k1", account, tomorrow)
    messages = await send(told, NotedNotifier())
    assert [(one.to, one.kind) for one in messages] == [(ANN, NoticeKind.QUOTA_NEAR)] * 2
    (line,) = messages[0].lines
    assert (line.path, line.about["limit"]) == ("/operate/usage", 100)


async def test_a_trigger_that_starts_nothing_is_told_once(told: World) -> None:
    """NT-3, SH-7: the owner of a schedule that the plan has no room for learns why, once."""
    ann = await ensured(told, ANN)
    cron = Schedule("*/5 * * * *", "UTC")
    await told.workflow(ann, code("one"), triggers=(cron,))
    await accounts.set_account(told.services, OPERATOR, ann.account.id, plan=Tier.FREE)
    for _ in range(3):
        told.clock.advance(5 * MINUTE)
        await sweep(told.services)
    (message,) = await send(told, NotedNotifier())
    (line,) = message.lines
    assert (message.to, line.kind) == (ANN, NoticeKind.TRIGGER_REFUSED)
    assert (line.about["workflow"], line.about["reason"]) == ("flow", "PLAN_LIMIT")
