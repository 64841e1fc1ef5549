"""
What must happen because of a decision: a closed union with one interpreter.

Two sorts. IN UNIT: belongs to the same unit of work as the record, or neither is stored.
HINT: told after the commit, may be lost; what it announces is a due row in the store.
"""

from typing import Generic, TypeAlias, TypeVar

from attrs import frozen

from wfcore.model.approval import Approval
from wfcore.model.callback import Callback
from wfcore.model.event import Event

R = TypeVar("R")


@frozen
class OpenApproval:
    """IN UNIT: store this new approval."""

    approval: Approval


@frozen
class WithdrawApprovals:
    """IN UNIT: the execution ended; its open approvals become CANCELLED."""

    execution_id: str


@frozen
class CallBack:
    """IN UNIT: the caller is owed this message; it is due at once."""

    callback: Callback


@frozen
class SetTimers:
    """IN UNIT: the execution completed; chains that wait for its workflow set their timers."""


@frozen
class StartStep:
    """
    HINT to the worker that holds the lease: this step is recorded as begun, run it now.

    Lost with the worker, it turns into INTERRUPTED when the lease is found abandoned.
    """

    step_name: str
    attempt: int


@frozen
class WakeRunner:
    """HINT: the execution is due; any worker may take it."""


@frozen
class StopSteps:
    """HINT: whatever still runs for this execution is to be killed, its results dropped."""

    execution_id: str


@frozen
class DeadlineSet:
    """HINT: something falls due later; reconsider when to look."""


Effect: TypeAlias = (
    OpenApproval
    | WithdrawApprovals
    | CallBack
    | SetTimers
    | StartStep
    | WakeRunner
    | StopSteps
    | DeadlineSet
)


@frozen
class Outcome(Generic[R]):
    """A decision: the next record, its numbered events, and what must happen because of it."""

    record: R
    events: tuple[Event, ...] = ()
    effects: tuple[Effect, ...] = ()
