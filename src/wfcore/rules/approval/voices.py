"""
Whose approvals are still wanted: stages one after another, and people where people must.

A stage is over when as many of its approvers as it requires have approved; then the next one is
asked. One person is one voice over all stages (PL-3), and a rule is nobody's voice where `humans`
are counted. Changed rows restart the count, so an earlier stage is asked again. AP-33, AP-35.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from attrs import evolve

from wfcore.model.approval import Approval, Delegation
from wfcore.model.review import Stage
from wfcore.time import EpochMs


def present_stage(approval: Approval) -> int | None:
    """The first stage that is not over; None if there are none, or all are over."""
    given = Counter(one.stage for one in approval.assents)
    for at, stage in enumerate(approval.stages):
        if given[at] < stage.required_approvals:
            return at
    return None


def approvers_now(approval: Approval) -> tuple[str, ...]:
    """
    Who may decide now: of the present stage; of any stage if only people are lacking. Empty: the
    default rule applies.
    """
    if not approval.stages:
        others = {one.to for one in approval.delegations}
        return tuple(name for name in approval.approvers if name not in others)
    at = present_stage(approval)
    return names_of(approval.stages if at is None else (approval.stages[at],))


def names_of(stages: Iterable[Stage]) -> tuple[str, ...]:
    """The approvers of stages, each once."""
    return tuple(dict.fromkeys(name for stage in stages for name in stage.approvers))


def asked_so_far(approval: Approval) -> tuple[str, ...]:
    """The approvers who have been asked: those before, and those of the present stage."""
    at = present_stage(approval)
    upto = approval.stages if at is None else approval.stages[: at + 1]
    return tuple(dict.fromkeys((*approval.approvers, *names_of(upto))))


def delegation_to(approval: Approval, names: Collection[str], now: EpochMs) -> Delegation | None:
    """By which delegation the person with these *names* decides now, if by any. AP-36."""
    asked = {name.strip().lower() for name in approvers_now(approval)}
    for one in approval.delegations:
        stands = asked & {one.by.lower(), one.account.lower()}
        if stands and now < one.until and one.to.strip().lower() in names:
            return one
    return None


def escalated(approval: Approval) -> Approval:
    """With those who are asked, too, in the present stage. AP-37."""
    at, to = present_stage(approval), approval.escalate_to
    stages = tuple(
        evolve(one, approvers=tuple(dict.fromkeys((*one.approvers, *to)))) if number == at else one
        for number, one in enumerate(approval.stages)
    )
    approvers = tuple(dict.fromkeys((*approval.approvers, *to)))
    return evolve(approval, approvers=approvers, stages=stages, escalate_at=None)


def still_wanted(approval: Approval) -> int:
    """How many approvals are lacking. AP-15, AP-33, AP-35."""
    people = sum(not one.is_rule for one in approval.assents)
    lacking = max(approval.humans - people, 0)
    if not approval.stages:
        return max(approval.required_approvals - len(approval.assents), lacking)
    given = Counter(one.stage for one in approval.assents)
    of_stages = (
        max(stage.required_approvals - given[at], 0) for at, stage in enumerate(approval.stages)
    )
    return max(sum(of_stages), lacking)
