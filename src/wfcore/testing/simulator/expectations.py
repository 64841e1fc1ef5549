"""The answers that clients got: promises that must hold from then on."""

from attrs import define, field

from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.testing.simulator.scheduler import Violation


@define
class Expectations:
    """
    The answers of the service that clients rely on.

    `started`: the acknowledged executions by tag (a variable of the execution). `redriven`: the
    original execution by the id of its redrive, and `kept` the steps that its plan keeps.
    `decided`: the acknowledged decisions by approval.
    `seen`: the decisions that a page showed. `assents`: each approval with a person who has agreed.
    `cancelled`: the executions whose cancellation was acknowledged. `admitted`: the number of
    admitted requests by key and window. `plans`: each redrive by its original and the digest
    of its plan.
    """

    started: dict[str, str] = field(factory=dict)
    redriven: dict[str, str] = field(factory=dict)
    kept: dict[str, frozenset[str]] = field(factory=dict)
    plans: dict[tuple[str, str], str] = field(factory=dict)
    decided: dict[str, ApprovalStatus] = field(factory=dict)
    seen: dict[str, ApprovalStatus] = field(factory=dict)
    assents: set[tuple[str, str]] = field(factory=set)
    cancelled: set[str] = field(factory=set)
    admitted: dict[tuple[str, int], int] = field(factory=dict)
    answered: int = 0
    refused: int = 0
    unheard: int = 0

    def accepted(self, tag: str, execution_id: str) -> None:
        """
        Note the acknowledged start for *tag*. Raises `Violation` if *tag* has another execution.
        """
        first = self.started.setdefault(tag, execution_id)
        if first != execution_id:
            raise Violation(f"another answer: {tag} was {first}, is {execution_id}")

    def repeated(self, new: str, old: str, digest: str, kept: frozenset[str]) -> None:
        """
        Note the acknowledged redrive *new* of *old* by the plan with *digest*. Raises `Violation`
        if that plan was carried out before.
        """
        first = self.plans.setdefault((old, digest), new)
        if first != new:
            raise Violation(f"redriven twice: {old} as {first} and {new}")
        self.redriven[new], self.kept[new] = old, kept

    def decision(self, approval: Approval, by: str) -> None:
        """
        Note the acknowledged decision or assent of *by*. Raises `Violation` for a second decision.
        """
        if approval.status is ApprovalStatus.PENDING:
            self.assents.add((approval.id, by))
            return
        if approval.id in self.decided:
            raise Violation(f"decided twice: {approval.id}")
        self.decided[approval.id] = approval.status

    def shown(self, approval: Approval) -> None:
        """
        Note the decision shown by a page. Raises `Violation` if another decision was acknowledged.
        """
        if approval.status is ApprovalStatus.PENDING:
            return
        told = self.decided.get(approval.id, approval.status)
        if told is not approval.status:
            raise Violation(f"decision undone: {approval.id} was {told}, is {approval.status}")
        self.seen[approval.id] = approval.status
