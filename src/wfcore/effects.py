"""
What must happen because of a decision: a closed union with one interpreter.

Two sorts. IN UNIT: belongs to the same unit of work as the record, or neither is stored.
HINT: told after the commit, may be lost; what it announces is a due row in the store.
"""

from typing import Generic, TypeAlias, TypeVar

from attrs import frozen

from wfcore.model.approval import Approval
from wfcore.model.event import Event
from wfcore.model.execution import Callback
from wfcore.model.json import JsonObject

R = TypeVar("R")


@frozen
class OpenApproval:
    """
    IN UNIT: store this new approval, with the artifacts of the steps with these keys *attached*.
    """

    approval: Approval
    attached: tuple[str, ...] = ()


@frozen
class WithdrawApprovals:
    """IN UNIT: nobody waits for these approvals any more; those still open become CANCELLED."""

    approval_ids: tuple[str, ...]


@frozen
class StartChild:
    """IN UNIT: accept an execution with that id, of that workflow, for this step."""

    step_name: str
    child_id: str
    workflow: str
    inputs: JsonObject


@frozen
class CancelChildren:
    """IN UNIT: nobody waits for these executions any more; they are CANCELLED."""

    execution_ids: tuple[str, ...]


@frozen
class TellParent:
    """IN UNIT: this execution has ended; the step that started it learns of it."""

    parent_id: str


@frozen
class CallBack:
    """IN UNIT: the caller is owed this message; it is due at once."""

    callback: Callback


@frozen
class SetTimers:
    """IN UNIT: the execution completed; chains that wait for its workflow set their timers."""


@frozen
class TellTrigger:
    """IN UNIT: an execution has ended; the trigger that started it keeps how. SH-10."""

    trigger_id: str


@frozen
class StartStep:
    """
    HINT to the worker that holds the lease: this step is recorded as begun, run it now.

    Lost with the worker, it turns into INTERRUPTED when the lease is found abandoned.
    `postponed`: how often this attempt was to begin before, and did not. EX-27.
    """

    step_name: str
    attempt: int
    postponed: int = 0


@frozen
class WakeRunner:
    """HINT: the execution is due, now or later, or has left room in its group: workers look."""


@frozen
class StopSteps:
    """HINT: whatever still runs for this execution is to be killed, its results dropped."""

    execution_id: str


@frozen
class Reload:
    """HINT: the worker that holds this execution finds something to do in it."""

    execution_id: str


@frozen
class LogGrew:
    """HINT: another execution was moved, too; who follows it may look."""

    execution_id: str


@frozen
class DeadlineSet:
    """HINT: an approval, timer, callback or notice falls due; reconsider when to look."""


Effect: TypeAlias = (
    OpenApproval
    | WithdrawApprovals
    | CallBack
    | SetTimers
    | TellTrigger
    | StartChild
    | CancelChildren
    | TellParent
    | StartStep
    | WakeRunner
    | StopSteps
    | Reload
    | LogGrew
    | DeadlineSet
)


@frozen
class Outcome(Generic[R]):
    """A decision: the next record, its numbered events, and what must happen because of it."""

    record: R
    events: tuple[Event, ...] = ()
    effects: tuple[Effect, ...] = ()
