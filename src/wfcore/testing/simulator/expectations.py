"""The answers that clients got: promises that must hold from then on."""

from attrs import define, field

from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.testing.simulator.scheduler import Violation


@define
class Expectations:
    """
    By tag (a variable of the execution): which executions were acknowledged. By approval: the
    decision that was, the one that a page showed, and who said yes before. The executions whose
    cancellation was. `admitted`: how many requests, by key and window.
    """

    started: dict[str, str] = field(factory=dict)
    redriven: dict[str, str] = field(factory=dict)
    decided: dict[str, ApprovalStatus] = field(factory=dict)
    seen: dict[str, ApprovalStatus] = field(factory=dict)
    assents: set[tuple[str, str]] = field(factory=set)
    cancelled: set[str] = field(factory=set)
    admitted: dict[tuple[str, int], int] = field(factory=dict)
    answered: int = 0
    refused: int = 0
    unheard: int = 0

    def accepted(self, tag: str, execution_id: str) -> None:
        """A start was acknowledged. Raises `Violation` for another answer to the same tag."""
        first = self.started.setdefault(tag, execution_id)
        if first != execution_id:
            raise Violation(f"another answer: {tag} was {first}, is {execution_id}")

    def decision(self, approval: Approval, by: str) -> None:
        """A decision, or a yes, was acknowledged. Raises `Violation` for a second decision."""
        if approval.status is ApprovalStatus.PENDING:
            self.assents.add((approval.id, by))
            return
        if approval.id in self.decided:
            raise Violation(f"decided twice: {approval.id}")
        self.decided[approval.id] = approval.status

    def shown(self, approval: Approval) -> None:
        """A page showed *approval* after a lost answer. Raises `Violation` for another decision."""
        if approval.status is ApprovalStatus.PENDING:
            return
        told = self.decided.get(approval.id, approval.status)
        if told is not approval.status:
            raise Violation(f"decision undone: {approval.id} was {told}, is {approval.status}")
        self.seen[approval.id] = approval.status
