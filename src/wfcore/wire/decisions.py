"""Decisions on approvals, and what came of them, on the wire."""

from collections.abc import Mapping, Sequence

from attrs import define

from wfcore.model.approval import (
    Approval,
    ApprovalStatus,
    DecisionOutcome,
    DecisionResult,
    DecisionSource,
    Verdict,
)
from wfcore.model.json import Json
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.approval.machine import Approve, Choice, Reject, Revise
from wfcore.rules.approval.released_rows import standing_rows
from wfcore.wire.requests import Row


@define(eq=False)
class DecisionView:
    """The answer of the approval-response endpoint."""

    ok: bool
    approval_id: str
    decision: Verdict


@define(eq=False)
class GateView:
    """
    A question to people. Once it is APPROVED, `groups` has the released rows, else null.
    `itemsHash` is the digest of the rows as they stand: of those released, once they are.
    `executionId` is the gate's id; `url`: the page where people decide.
    """

    execution_id: str
    approval_id: str
    status: ApprovalStatus
    items_hash: str
    groups: Mapping[str, Sequence[Row]] | None
    comment: str | None
    decided_by: str | None
    decision_source: DecisionSource | None
    decided_at: int | None
    created_at: int
    expires_at: int
    url: str | None


def gate_view(approval: Approval, url: str | None = None) -> GateView:
    """The approval of a gate, as the program that asked is told of it."""
    approved = approval.status is ApprovalStatus.APPROVED
    return GateView(
        execution_id=approval.execution_id,
        approval_id=approval.id,
        status=approval.status,
        items_hash=items_hash(approval),
        groups=standing_rows(approval) if approved else None,
        comment=approval.comment,
        decided_by=approval.decided_by,
        decision_source=approval.decision_source,
        decided_at=approval.decided_at,
        created_at=approval.created_at,
        expires_at=approval.expires_at,
        url=url,
    )


@define(eq=False)
class DecisionResultView:
    """What came of one decision; `status` of the approval if it counts, `error` if it does not."""

    approval_id: str
    outcome: DecisionOutcome
    status: ApprovalStatus | None
    error: str | None


@define(eq=False)
class DecisionResults:
    """One result for each decision, in the order in which they were asked for."""

    results: Sequence[DecisionResultView]


def decision_view(approval: Approval, verdict: Verdict) -> DecisionView:
    """The answer of the approval-response endpoint."""
    return DecisionView(True, approval.id, verdict)


def command(
    verdict: Verdict,
    edited: Mapping[str, Json] | None = None,
    answers: Mapping[str, Json] | None = None,
) -> Choice:
    """The command that a decision on the wire stands for."""
    match verdict:
        case Verdict.APPROVE:
            return Approve(edited, answers)
        case Verdict.REJECT:
            return Reject()
        case Verdict.REVISE:
            return Revise()


def decision_results(results: Sequence[DecisionResult]) -> DecisionResults:
    """The answer to several decisions at once."""
    return DecisionResults(
        [
            DecisionResultView(
                one.approval_id,
                one.outcome,
                one.approval.status if one.approval else None,
                one.reason,
            )
            for one in results
        ]
    )
