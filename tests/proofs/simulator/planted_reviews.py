"""Bugs to plant in who decides, and in who is told of it. See `planted`."""

from typing import Any

import pytest
from attrs import evolve

from wfcore.model.approval import Approval
from wfcore.model.notice import Notice
from wfcore.rules.approval import machine as decisions
from wfcore.rules.auth import access
from wfcore.rules.execution import open_approval
from wfcore.rules.notices import delivery
from wfcore.usecases.approvals import deciding
from wfcore.usecases.notices import sending, telling
from wfcore.usecases.services import Services


def rules_are_people(patch: pytest.MonkeyPatch) -> None:
    """What a rule approves counts where so many people must."""
    once = decisions.still_wanted
    patch.setattr(decisions, "still_wanted", lambda one: once(evolve(one, humans=0)))


def the_last_stage_is_enough(patch: pytest.MonkeyPatch) -> None:
    """Whoever approves is asked for the number of one stage alone."""
    once = decisions.still_wanted
    patch.setattr(decisions, "still_wanted", lambda one: once(evolve(one, stages=one.stages[:1])))


def a_delegate_is_another_voice(patch: pytest.MonkeyPatch) -> None:
    """Approver and delegate both count."""
    patch.setattr(decisions, "one_person", lambda one, other: one.by == other.by)


def delegations_never_end(patch: pytest.MonkeyPatch) -> None:
    """Whoever once stood in for somebody goes on."""
    patch.setattr(access, "delegations_now", lambda approval, now: approval.delegations)


def escalated_at_each_look(patch: pytest.MonkeyPatch) -> None:
    """The instant of an escalation stays due."""
    once = decisions.escalated
    patch.setattr(
        decisions, "escalated", lambda one: evolve(once(one), escalate_at=one.escalate_at)
    )


def revised_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Nobody counts how often changes were asked for."""
    patch.setattr(open_approval, "revisions_of", lambda run, key: 0)


def attempts_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    """A message is sent first, and is still due while it is on its way."""

    def attempted(notice: Notice, others: Any, now: Any) -> Notice:
        return evolve(delivery.attempted(notice, others, now), attempts=1, due_at=now)

    patch.setattr(sending, "attempted", attempted)


def the_decided_is_asked(patch: pytest.MonkeyPatch) -> None:
    """What was due when somebody decided is told all the same."""
    patch.setattr(sending, "is_wanted", lambda notice, approval, asked, now: True)


def a_failure_is_the_end(patch: pytest.MonkeyPatch) -> None:
    """What failed is neither tried again nor given up."""
    once = delivery.failed

    def failed(notice: Notice, why: str, **more: Any) -> Notice:
        return evolve(once(notice, why, **more), due_at=None)

    patch.setattr(delivery, "failed", failed)


def the_next_stage_is_not_told(patch: pytest.MonkeyPatch) -> None:
    """Whose turn comes later has to look by themselves."""

    async def tell(services: Any, unit: Any, before: Approval, after: Approval) -> bool:
        return False

    patch.setattr(deciding, "tell_decision", tell)


def notices_in_a_unit_of_their_own(patch: pytest.MonkeyPatch) -> None:
    """The notices of a decision are written once it is."""
    tells, decides, kept = telling.tell_decision, deciding._decide, dict[str, Approval]()

    async def later(services: Any, unit: Any, before: Approval, after: Approval) -> bool:
        kept[before.id] = before
        return False

    async def decide(services: Services, who: Any, asked: Any, origin: Any) -> Approval:
        approval = await decides(services, who, asked, origin)
        async with services.store.unit() as unit:
            await tells(services, unit, kept[approval.id], approval)
            await unit.commit()
        return approval

    patch.setattr(deciding, "tell_decision", later)
    patch.setattr(deciding, "_decide", decide)
