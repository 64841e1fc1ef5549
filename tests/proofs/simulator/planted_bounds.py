"""Bugs to plant in bounds: of branches, of waits, of delegations, of a voice. See `planted`."""

from typing import Any

import pytest
from attrs import evolve

from wfcore.model.access import Caller
from wfcore.model.approval import Approval
from wfcore.rules import backoff
from wfcore.rules.approval import machine as decisions
from wfcore.rules.execution import plan
from wfcore.usecases.approvals import approvals


def one_branch_too_many(patch: pytest.MonkeyPatch) -> None:
    """One branch more than `maxParallel` begins."""
    once = plan.most_at_once
    patch.setattr(plan, "most_at_once", lambda step: once(step) + 1)


def jitter_shortens(patch: pytest.MonkeyPatch) -> None:
    """The jitter is taken from a wait, and not added to it."""
    shortened = lambda wait, drawn: wait * (1 - backoff.JITTER * drawn)  # noqa: E731
    patch.setattr(backoff, "lengthened", shortened)


def delegations_outlive(patch: pytest.MonkeyPatch) -> None:
    """A delegation may last longer than its approval."""
    once = decisions._delegated

    def delegated(approval: Approval, to: str, until: Any, *more: Any) -> Approval:
        made = once(approval, to, min(until, approval.expires_at), *more)
        last = evolve(made.delegations[-1], until=until)
        return evolve(made, delegations=(*made.delegations[:-1], last))

    patch.setattr(decisions, "_delegated", delegated)


def told_by_account_alone(patch: pytest.MonkeyPatch) -> None:
    """A page asks whether the account approved; who approved by a link may approve again."""

    def has_assented(approval: Approval, who: Caller) -> bool:
        return any(one.account == who.identity for one in approval.assents)

    patch.setattr(approvals, "has_assented", has_assented)
