"""Decisions on several approvals with one request, each in a unit of its own. AP-39."""

from collections.abc import Mapping, Sequence

from wfcore.errors import (
    AlreadyDecided,
    Forbidden,
    InvalidInput,
    ItemsChanged,
    NoMoreRevisions,
    NotFound,
    StoreUnavailable,
    WfError,
)
from wfcore.model.access import Caller
from wfcore.model.approval import ApprovalStatus, DecisionOutcome, DecisionResult
from wfcore.rules.approval.machine import Approve
from wfcore.rules.limits import MAX_DECISIONS
from wfcore.usecases.approvals.deciding import Decide, decide_approval
from wfcore.usecases.audit.auditing import UNKNOWN, Origin
from wfcore.usecases.services import Services


async def decide_several(
    services: Services, who: Caller, asked: Sequence[Decide], origin: Origin = UNKNOWN
) -> Sequence[DecisionResult]:
    """
    Decide several approvals in order, each in a unit of its own. After a refusal the other
    approvals are still decided. Returns a result for each approval. AP-39.

    Raises `InvalidInput`, before any decision, for too many decisions, for an approval that appears
    twice, and for approved rows without their hash.
    """
    _require_plain(asked)
    return [await _decide(services, who, one, origin) for one in asked]


def _require_plain(asked: Sequence[Decide]) -> None:
    if len(asked) > MAX_DECISIONS:
        raise InvalidInput("decisions", f"at most {MAX_DECISIONS} at once")
    seen = set[str]()
    for number, one in enumerate(asked):
        if one.approval_id in seen:
            raise InvalidInput(f"decisions[{number}].approvalId", "stands twice; say it once")
        seen.add(one.approval_id)
        if isinstance(one.decision, Approve) and not one.items_hash:
            fix = "is required to approve: the itemsHash of what was seen"
            raise InvalidInput(f"decisions[{number}].expectedItemsHash", fix)


async def _decide(services: Services, who: Caller, asked: Decide, origin: Origin) -> DecisionResult:
    try:
        made = await decide_approval(services, who, asked, origin)
    except tuple(_OUTCOMES) as refused:
        return DecisionResult(asked.approval_id, _outcome(refused), reason=str(refused))
    is_open = made.status is ApprovalStatus.PENDING
    outcome = DecisionOutcome.AGREED if is_open else DecisionOutcome.DECIDED
    return DecisionResult(asked.approval_id, outcome, made)


_OUTCOMES: Mapping[type[WfError], DecisionOutcome] = {
    ItemsChanged: DecisionOutcome.CHANGED,
    AlreadyDecided: DecisionOutcome.ALREADY_DECIDED,
    NoMoreRevisions: DecisionOutcome.INVALID,
    InvalidInput: DecisionOutcome.INVALID,
    Forbidden: DecisionOutcome.NOT_ALLOWED,
    NotFound: DecisionOutcome.NOT_FOUND,
    StoreUnavailable: DecisionOutcome.UNAVAILABLE,
}


def _outcome(refused: WfError) -> DecisionOutcome:
    return next(made for kind, made in _OUTCOMES.items() if isinstance(refused, kind))
