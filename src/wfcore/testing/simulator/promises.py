"""What clients sent and what they were told: the promises that must hold for ever."""

from attrs import define, field

from wfcore.model.approval import ApprovalStatus
from wfcore.testing.simulator.driver import Violation


@define
class Promises:
    """
    By tag (a variable of the execution): which executions were acknowledged. By approval: the
    decision that was. The executions whose cancellation was. `admitted`: by key and window.
    """

    started: dict[str, str] = field(factory=dict)
    redriven: dict[str, str] = field(factory=dict)
    decided: dict[str, ApprovalStatus] = field(factory=dict)
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

    def decision(self, approval_id: str, status: ApprovalStatus) -> None:
        """A decision was acknowledged. Raises `Violation` for a second one."""
        if approval_id in self.decided:
            raise Violation(f"decided twice: {approval_id}")
        self.decided[approval_id] = status
