"""How often a notice is tried, and how many go to one address. NT-4 to NT-7."""

import asyncio

import pytest
from attrs import evolve

from wfcore.errors import Stale, StoreUnavailable
from wfcore.model.access import OPERATOR, Tier
from wfcore.model.approval import Approval
from wfcore.model.event import EventKind
from wfcore.model.notice import NoticeKind, NoticeStatus
from wfcore.ports.notices import NotDelivered, NoticeDelayed, NoticeRefused
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.auth.rate_limit import windows
from wfcore.rules.notices.delivery import DELAYS, MOST_AT_ONCE, QUIET
from wfcore.testing.fakes_running import NotedNotifier
from wfcore.time import DAY, HOUR, MINUTE, DurationMs
from wfcore.usecases.accounts import authenticate
from wfcore.usecases.notices.sending import settle_notice, take_notices

from .conftest import World
from .test_notices import (
    ANN,
    BOB,
    asked,
    attempt,
    decide,
    ensured,
    send,
    stored,
    with_channels,
)


@pytest.fixture
def told(world: World) -> World:
    """The world with mail and a room."""
    return with_channels(world)


async def test_an_hour_without_a_mail_server_costs_one_mail(told: World) -> None:
    """NT-4: it is tried after 1, 5, 30 minutes and 2 hours, and arrives once."""
    await asked(told, approvers=(BOB,))
    notifier, tries = NotedNotifier(), 0
    began = told.clock.now()
    while not notifier.sent:
        down = told.clock.now() - began < HOUR
        notifier.outcomes = [NotDelivered("down")] if down else []
        tries += len(
            [await attempt(told, notifier, s) for s in await take_notices(told.services, 9)]
        )
        told.clock.advance(MINUTE)
    assert tries == 5
    assert len(notifier.sent) == 1
    assert (await send(told, notifier), told.clock.now() - began) == ([], 157 * MINUTE)


async def test_twelve_that_waited_for_the_mail_server_are_one_mail(told: World) -> None:
    """NT-6: what waits for one address when it is back goes as one digest."""
    notifier = NotedNotifier()
    for _ in range(12):
        await asked(told, approvers=(BOB,), timeout_ms=DurationMs(DAY))
        notifier.outcomes = [NotDelivered("down")] * 20
        await send(told, notifier)
        told.clock.advance(5 * MINUTE)
    notifier.outcomes = []
    while any(one.due_at for one in await stored(told)):
        told.clock.advance(MINUTE)
        await send(told, notifier)
    assert [len(one.lines) for one in notifier.sent] == [12]


async def test_after_the_fifth_attempt_it_is_given_up(told: World) -> None:
    """NT-4, NT-7: shown in the execution's history, and due again where an operator says so."""
    run_id, _ = await asked(told, approvers=(BOB,), timeout_ms=DurationMs(7 * DAY))
    notifier = NotedNotifier()
    for wait in (*DELAYS, DurationMs(0)):
        notifier.outcomes = [NotDelivered("451")]
        await send(told, notifier)
        told.clock.advance(wait)
    (one,) = await stored(told)
    assert (one.status, one.attempts, one.last_error) == (NoticeStatus.FAILED, 5, "451")
    async with told.services.store.view() as view:
        events = await view.events.of_execution(run_id, 0, 99)
    (event,) = [one for one in events if one.kind is EventKind.NOTICE_FAILED]
    assert event.data["to"] == BOB
    from wfcore.usecases.notices.managing import retry_notice

    await retry_notice(told.services, OPERATOR, one.id)
    assert [m.id for m in await send(told, notifier)] == [one.id]


async def test_what_is_refused_for_good_is_not_tried_again(told: World) -> None:
    """NT-4: no mail box of that name."""
    await asked(told, approvers=(BOB,))
    notifier = NotedNotifier()
    notifier.outcomes = [NoticeRefused("550")]
    await send(told, notifier)
    (one,) = await stored(told)
    assert (one.status, one.attempts) == (NoticeStatus.FAILED, 1)


async def test_who_says_when_to_come_again_is_asked_then(told: World) -> None:
    """NT-4: it is no attempt; after a day it is given up all the same."""
    await asked(told, approvers=(BOB,), timeout_ms=DurationMs(7 * DAY))
    notifier = NotedNotifier()
    notifier.outcomes = [NoticeDelayed("429", DurationMs(7_000))]
    await send(told, notifier)
    (one,) = await stored(told)
    assert (one.attempts, one.due_at) == (0, told.services.store.now() + 7_000)
    told.clock.advance(DAY)
    notifier.outcomes = [NoticeDelayed("429", DurationMs(7_000))]
    await send(told, notifier)
    assert [one.status for one in await stored(told)] == [NoticeStatus.FAILED]


async def test_killed_between_sending_and_recording(told: World) -> None:
    """NT-4: it is sent once more, under the same id, and then never again."""
    await asked(told, approvers=(BOB,), timeout_ms=DurationMs(7 * DAY))
    notifier = NotedNotifier()
    (lost,) = await take_notices(told.services, 9)
    await notifier.send(lost.message)  # and its process dies
    for _ in range(10):
        await asked(told, approvers=(BOB,), timeout_ms=DurationMs(7 * DAY))
    for _ in range(60):
        told.clock.advance(MINUTE)
        await send(told, notifier)
    told_of_first = [
        one for one in notifier.sent if one.lines[0].path == lost.message.lines[0].path
    ]
    assert told_of_first == [lost.message, lost.message]


async def test_a_digest_that_was_lost_is_sent_again_as_it_was(told: World) -> None:
    """NT-6: the same id with the same lines, although more is waiting by now."""
    for _ in range(MOST_AT_ONCE + 1):
        await asked(told, approvers=(BOB,), timeout_ms=DurationMs(7 * DAY))
    (lost,) = await take_notices(told.services, 1)
    assert len(lost.message.lines) == MOST_AT_ONCE + 1
    await asked(told, approvers=(BOB,), timeout_ms=DurationMs(7 * DAY))
    told.clock.advance(DELAYS[0])
    again = await take_notices(told.services, 9)
    assert lost.message in [one.message for one in again]


async def test_of_two_processes_one_sends_a_notice(told: World) -> None:
    """NT-4: however they race, each attempt is one process's."""
    for number in range(4):
        await asked(told, approvers=(f"p{number}@example.org",))
    taken = await asyncio.gather(*(take_notices(told.services, 9) for _ in range(4)))
    ids = [one.notice.id for each in taken for one in each]
    assert len(ids) == len(set(ids)) == 4


async def test_a_late_answer_changes_nothing(told: World) -> None:
    """Whoever was thought dead and answers later does not undo what came since."""
    await asked(told, approvers=(BOB,))
    (lost,) = await take_notices(told.services, 9)
    told.clock.advance(DELAYS[0])
    await send(told, NotedNotifier())
    assert await settle_notice(told.services, lost, NoticeRefused("late")) is None
    assert [one.status for one in await stored(told)] == [NoticeStatus.SENT]


async def test_more_than_five_in_ten_minutes_are_a_digest(told: World) -> None:
    """NT-6: five at once; what comes then waits, and goes as one when ten minutes are over."""
    notifier = NotedNotifier()
    for _ in range(MOST_AT_ONCE + 4):
        _, id = await asked(told, approvers=(BOB,), timeout_ms=DurationMs(DAY))
        await send(told, notifier)
        told.clock.advance(1_000)
    await decide(told, BOB, id)
    assert [len(one.lines) for one in notifier.sent] == [1] * MOST_AT_ONCE
    told.clock.advance(QUIET)
    digest = [one for one in await send(told, notifier) if one.to == BOB]
    assert [len(one.lines) for one in digest] == [3]
    states = [one.status for one in await stored(told) if one.to == BOB]
    assert states.count(NoticeStatus.DIGESTED) == 2
    assert states.count(NoticeStatus.DROPPED) == 1


@pytest.mark.parametrize("trouble", [None, Stale(), StoreUnavailable("disk full")])
async def test_a_request_counts_whether_the_quotas_end_is_told_or_not(
    told: World, monkeypatch: pytest.MonkeyPatch, trouble: Exception | None
) -> None:
    """NT-3: the one after which a tenth of the day is left tells it; it enters all the same."""

    async def refusing(*_: object) -> None:
        raise trouble or AssertionError

    ann, now = await ensured(told, ANN), told.clock.now()
    account = evolve(ann.account, plan=Tier.FREE)
    (day,) = (one for one in windows(Tier.FREE, now) if one.kind == "day")
    for _ in range(1_798):
        await told.services.counters.take("key:k1", [day], now)
    if trouble is not None:
        monkeypatch.setattr(authenticate, "tell_quota", refusing)
    left = [(await authenticate.take(told.services, "key:k1", account)).remaining for _ in "123"]
    assert left == [59, 58, 57]
    kinds = [one.kind for one in await send(told, NotedNotifier())]
    assert kinds == ([] if trouble else [NoticeKind.QUOTA_NEAR])


async def test_who_is_asked_is_told_who_has_approved(told: World) -> None:
    """What a message says of an approval is as it is when it is sent. NT-3."""
    _, id = await asked(told, [{"id": 1}], approvers=(ANN, BOB), required_approvals=2)
    await decide(told, ANN, id)
    (message,) = [one for one in await send(told, NotedNotifier()) if one.to == BOB]
    expires = told.clock.now() + DAY
    about = dict(message.lines[0].about)
    assert about.pop("workflow").startswith("flow ")
    async with told.services.store.view() as view:
        approval = await view.get(Approval, id)
    assert approval is not None
    assert about == {
        "approvalId": id,
        "executionId": approval.execution_id,
        "workflowId": approval.workflow_id,
        "round": 1,
        "reference": None,
        "itemsHash": items_hash(approval),
        "step": "review",
        "message": "Look",
        "question": "Look",
        "title": "Look",
        "rows": 1,
        "sample": [],
        "approvedBy": [ANN],
        "requiredApprovals": 2,
        "expiresAt": expires,
        "status": "PENDING",
        "decidedBy": None,
        "comment": None,
    }
