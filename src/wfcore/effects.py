"""
The effects of a decision: a closed union with one interpreter.

IN UNIT effects belong to the unit of work of the record: both are stored or neither. HINT effects
are sent after the commit and may be lost, because each announces a due row of the store.
"""

from typing import Generic, TypeAlias, TypeVar

from attrs import frozen

from wfcore.model.approval import Approval
from wfcore.model.event import Event
from wfcore.model.execution import Callback
from wfcore.model.json import JsonObject
from wfcore.model.mail import MailDraft

R = TypeVar("R")


@frozen
class OpenApproval:
    """
    IN UNIT: store a new approval. `attached`: keys of the steps whose artifacts belong to it.
    """

    approval: Approval
    attached: tuple[str, ...] = ()


@frozen
class WithdrawApprovals:
    """IN UNIT: nobody waits for these approvals any more; open ones become CANCELLED."""

    approval_ids: tuple[str, ...]


@frozen
class StartChild:
    """IN UNIT: accept the execution `child_id` of `workflow` for the step `step_name`."""

    step_name: str
    child_id: str
    workflow: str
    inputs: JsonObject


@frozen
class SendMail:
    """IN UNIT: make the mail of the step due, or fail the step if nobody may get the mail."""

    step_name: str
    draft: MailDraft


@frozen
class CancelChildren:
    """IN UNIT: cancel these executions, for which nobody waits any more."""

    execution_ids: tuple[str, ...]


@frozen
class TellParent:
    """IN UNIT: report the end of this execution to the step that started it."""

    parent_id: str


@frozen
class CallBack:
    """IN UNIT: store a callback, which is due at once."""

    callback: Callback


@frozen
class SetTimers:
    """IN UNIT: the execution completed; set the timers of chains that wait for its workflow."""


@frozen
class TellTrigger:
    """IN UNIT: store how an execution ended with the trigger that started it. SH-10."""

    trigger_id: str


@frozen
class StartStep:
    """
    HINT to the worker that holds the lease: run this step, which is recorded as begun.

    If the worker is lost, the execution becomes INTERRUPTED once its lease is found abandoned.
    `postponed`: how often this attempt was postponed before. EX-27.
    """

    step_name: str
    attempt: int
    postponed: int = 0


@frozen
class WakeRunner:
    """HINT: the execution is or will be due, or has left room in its group; workers poll."""


@frozen
class StopSteps:
    """HINT: kill the processes of this execution and drop their results."""

    execution_id: str


@frozen
class Reload:
    """HINT: the worker that holds this execution reloads it, because it has something to do."""

    execution_id: str


@frozen
class LogGrew:
    """HINT: another execution's event log grew; wake its subscribers."""

    execution_id: str


@frozen
class DeadlineSet:
    """HINT: an approval, timer, callback or notice has a new deadline; compute the next one."""


Effect: TypeAlias = (
    OpenApproval
    | WithdrawApprovals
    | CallBack
    | SetTimers
    | TellTrigger
    | StartChild
    | SendMail
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
    """The result of a rule: the next record, its numbered events, and their effects."""

    record: R
    events: tuple[Event, ...] = ()
    effects: tuple[Effect, ...] = ()
