"""Who is told once others are asked, too, and how much is told. NT-3, AP-36, AP-37."""

import pytest
from attrs import evolve

from wfcore.errors import InvalidInput
from wfcore.model.access import OPERATOR
from wfcore.model.approval import Approval, DecisionSource
from wfcore.model.event import EventKind
from wfcore.model.notice import NoticeKind
from wfcore.model.review import Escalation
from wfcore.testing.fakes_running import NotedNotifier
from wfcore.time import DAY, HOUR, DurationMs, EpochMs
from wfcore.usecases.approvals.delegating import delegate_approval
from wfcore.usecases.notices.managing import send_test
from wfcore.usecases.upkeep.sweeping import sweep

from .conftest import World
from .test_notices import BOB, EVE, asked, decide, ensured, send, stored, told

__all__ = ["told"]

TESTED = (("mail", BOB), ("finance", ""))


async def test_a_message_without_end_is_cut(told: World) -> None:
    """A digest tells up to 200 of them, and its words are made in the event loop."""
    _, id = await asked(told, approvers=(BOB,))
    async with told.services.store.unit() as unit:
        approval = await unit.get(Approval, id)
        assert approval is not None
        unit.put(evolve(approval, message="x" * 100_000))
        await unit.commit()
    (message,) = await send(told, NotedNotifier())
    assert len(str(message.lines[0].about["message"])) == 4_000


async def test_whoever_is_asked_later_is_told_then(told: World) -> None:
    """NT-3, AP-36, AP-37: a delegate, and those it is escalated to; each once."""
    late, DAN = Escalation(DurationMs(HOUR), (EVE,)), "dan@example.org"
    _, id = await asked(told, approvers=(BOB,), delegable=True, escalate=late)
    bob, until = await ensured(told, BOB), told.clock.now() + 2 * HOUR
    for _ in range(2):
        await delegate_approval(told.services, bob, id, DAN, EpochMs(until), DecisionSource.API)
    assert [one.to for one in await stored(told)] == [BOB, DAN]
    told.clock.advance(HOUR)
    await sweep(told.services)
    assert [one.to for one in await stored(told)] == [BOB, DAN, EVE]


async def test_nobody_is_reminded_whose_voice_is_given(told: World) -> None:
    """NT-3, AP-36: neither the approver whose delegate has agreed, nor the delegate."""
    _, id = await asked(
        told,
        approvers=(BOB, EVE),
        required_approvals=2,
        delegable=True,
        timeout_ms=DurationMs(DAY),
        reminders=(DurationMs(HOUR),),
    )
    bob, until = await ensured(told, BOB), told.clock.now() + DAY
    await delegate_approval(
        told.services, bob, id, "dan@example.org", EpochMs(until), DecisionSource.API
    )
    await decide(told, "dan@example.org", id)
    told.clock.advance(23 * HOUR)
    await sweep(told.services)
    reminders = [one for one in await stored(told) if one.kind is NoticeKind.APPROVAL_REMINDER]
    assert [one.to for one in reminders] == [EVE]


async def test_reminders_go_to_those_who_have_not_agreed(told: World) -> None:
    """NT-3: once, although two reminders fell due together."""
    _, id = await asked(
        told,
        approvers=(BOB, EVE),
        required_approvals=2,
        timeout_ms=DurationMs(DAY),
        reminders=(DurationMs(2 * HOUR), DurationMs(HOUR)),
    )
    await decide(told, BOB, id)
    told.clock.advance(23 * HOUR)
    await sweep(told.services)
    reminders = [one for one in await stored(told) if one.kind is NoticeKind.APPROVAL_REMINDER]
    assert [one.to for one in reminders] == [EVE]


async def test_a_delegation_is_an_event_of_the_execution(told: World) -> None:
    """Who let whom decide which approval. AP-36."""
    run_id, id = await asked(told, approvers=(BOB,), delegable=True)
    bob, until = await ensured(told, BOB), EpochMs(told.clock.now() + HOUR)
    await delegate_approval(told.services, bob, id, EVE, until, DecisionSource.API)
    async with told.services.store.view() as view:
        events = await view.events.of_execution(run_id, 0, 99)
    (event,) = [one for one in events if one.kind is EventKind.APPROVAL_DELEGATED]
    assert event.data == {"step": "review", "approvalId": id, "by": BOB, "to": EVE}


async def test_a_test_by_mail_needs_an_address(told: World) -> None:
    """And a room none; what is wrong is said. NT-7."""
    for to in ("", "nobody"):
        with pytest.raises(InvalidInput, match=r"^to: must be an email address$"):
            await send_test(told.services, OPERATOR, "mail", to)
    assert [(await send_test(told.services, OPERATOR, *of)).to for of in TESTED] == [BOB, ""]
