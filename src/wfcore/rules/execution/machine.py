"""
The execution machine: its facts and its table. Contract §2.

Steps are sub-records of an execution; facts about them change its `step_results`. What may
start next is the planner's business (`rules.execution.plan`), not the machine's; how a fact changes
a record stands in `rules.execution.fold`.
"""

from typing import TypeAlias

from attrs import frozen

from wfcore.machine import Machine, Row
from wfcore.model.artifact import RefusedFile
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.json import Json
from wfcore.model.usage import Usage
from wfcore.time import EpochMs


@frozen
class Claimed:
    """A worker took it; the store has written worker and fence already."""


@frozen
class StepBegun:
    """Recorded before anything of the step starts."""

    step_name: str


@frozen
class ContainerStarted:
    """A step that holds steps has begun; a loop with its `items`. Time is up at `until`."""

    step_name: str
    until: EpochMs | None = None
    items: Json = None


@frozen
class DelayBegun:
    """A delay has begun; it ends at `until`."""

    step_name: str
    until: EpochMs


@frozen
class ChildStarted:
    """The step started an execution; its time is up at `until`."""

    step_name: str
    child_id: str
    until: EpochMs | None = None


@frozen
class ChildEnded:
    """
    The execution that the step started has ended. `error` None: it COMPLETED. `usage`: what
    it consumed in all. `interrupted`: a worker's death ended it, so it is not tried again; or it
    is interrupted, and the step's time is up. EX-26.
    """

    step_name: str
    child_id: str
    output: Json = None
    error: str | None = None
    usage: Usage | None = None
    interrupted: bool = False


@frozen
class StepSkipped:
    """Its `when` was false. `steps`: how many steps are done with, those it holds included."""

    step_name: str
    steps: int = 1


@frozen
class StepDone:
    """The step ended well. `steps` as in `StepSkipped`."""

    step_name: str
    output: Json = None
    steps: int = 1


@frozen
class UsageRecorded:
    """A running attempt consumed this, however it is going to end."""

    step_name: str
    usage: Usage


@frozen
class FilesRefused:
    """A running attempt left these, which are no artifacts, however it is going to end."""

    step_name: str
    files: tuple[RefusedFile, ...]


@frozen
class StepRetrying:
    """An attempt failed; the next one starts at `retry_at`."""

    step_name: str
    error: str
    retry_at: EpochMs


@frozen
class StepPostponed:
    """
    Nothing of the begun attempt has run: the machine lacked something (`why`) that it takes to
    start one. The same attempt begins again at `retry_at`.
    """

    step_name: str
    why: str
    retry_at: EpochMs


@frozen
class StepFailed:
    """The step failed for good. `steps` as in `StepSkipped`; 0: it fails what it is in, too."""

    step_name: str
    error: str
    timed_out: bool = False
    steps: int = 1


@frozen
class StepsCancelled:
    """What these steps are in has failed: they end with it."""

    step_names: tuple[str, ...]
    why: str


@frozen
class Failed:
    """The step failed for good, and with it the execution. No step name: the output did."""

    error: str
    step_name: str | None = None
    timed_out: bool = False


@frozen
class WakeAt:
    """Something runs; its worker must look again at `until`."""

    until: EpochMs | None


@frozen
class Suspended:
    """Nothing can run before `until` (None: before a child ends); the lease is given back."""

    until: EpochMs | None


@frozen
class ApprovalOpened:
    """The step now waits for people."""

    step_name: str
    approval_id: str


@frozen
class BudgetReached:
    """The step's next call is beyond the budget; the step waits for people before it begins."""

    step_name: str
    approval_id: str


@frozen
class AwaitingApproval:
    """Nothing can run, and an approval is open. At `until` the time of something is up."""

    approval_id: str
    step_name: str
    until: EpochMs | None = None


@frozen
class Approved:
    """People said yes; `output` is what they released. `extends`: yes to more budget."""

    step_name: str
    approval_id: str
    output: Json
    extends: bool = False


@frozen
class Rejected:
    """People said no, or (`timed_out`) nothing in time."""

    step_name: str
    approval_id: str
    timed_out: bool = False


@frozen
class Finished:
    """Nothing is left to do."""

    output: Json


@frozen
class CancelAsked:
    """Somebody with the right to asked for the end."""


@frozen
class ParentEnded:
    """The execution that started it has ended, or its step has."""


@frozen
class LeaseReturned:
    """Its worker stopped or died while nothing of it was in flight: anyone may go on."""


@frozen
class WorkerLost:
    """Its worker died with a step in flight; at `grace_until` somebody must look."""

    grace_until: EpochMs


@frozen
class Resumed:
    """The service takes it up again."""


@frozen
class GraceOver:
    """Nobody resumed it in time."""


Fact: TypeAlias = (
    Claimed
    | StepBegun
    | ContainerStarted
    | DelayBegun
    | ChildStarted
    | ChildEnded
    | StepSkipped
    | StepDone
    | UsageRecorded
    | FilesRefused
    | StepRetrying
    | StepPostponed
    | StepFailed
    | StepsCancelled
    | Failed
    | WakeAt
    | Suspended
    | ApprovalOpened
    | BudgetReached
    | AwaitingApproval
    | Approved
    | Rejected
    | Finished
    | CancelAsked
    | ParentEnded
    | LeaseReturned
    | WorkerLost
    | Resumed
    | GraceOver
)

# fmt: off
EXECUTION = Machine(
    name="execution",
    initial=S.PENDING,
    final=frozenset({S.COMPLETED, S.FAILED, S.CANCELLED}),
    rows=(
        Row(S.PENDING,           Claimed,        S.RUNNING,           "EX-2"),
        Row(S.PENDING,           LeaseReturned,  S.PENDING,           "EX-15"),
        Row(S.PENDING,           CancelAsked,    S.CANCELLED,         "EX-7"),
        Row(S.PENDING,           ParentEnded,    S.CANCELLED,         "FL-6"),
        Row(S.RUNNING,           Claimed,        S.RUNNING,           "EX-15"),
        Row(S.RUNNING,           StepBegun,      S.RUNNING,           "EX-3"),
        Row(S.RUNNING,           ContainerStarted,        S.RUNNING,           "FL-1"),
        Row(S.RUNNING,           DelayBegun,     S.RUNNING,           "FL-5"),
        Row(S.RUNNING,           ChildStarted,   S.RUNNING,           "FL-6"),
        Row(S.RUNNING,           ChildEnded,     S.RUNNING,           "FL-6"),
        Row(S.RUNNING,           StepSkipped,    S.RUNNING,           "EX-3"),
        Row(S.RUNNING,           StepDone,       S.RUNNING,           "EX-3"),
        Row(S.RUNNING,           UsageRecorded,          S.RUNNING,           "AI-7"),
        Row(S.RUNNING,           FilesRefused,        S.RUNNING,           "CS-10"),
        Row(S.RUNNING,           StepRetrying,   S.RUNNING,           "EX-3"),
        Row(S.RUNNING,           StepPostponed,  S.RUNNING,           "EX-27"),
        Row(S.RUNNING,           StepFailed,     S.RUNNING,           "EX-3"),
        Row(S.RUNNING,           StepsCancelled,        S.RUNNING,           "FL-4"),
        Row(S.RUNNING,           WakeAt,         S.RUNNING,           "FL-5"),
        Row(S.RUNNING,           Suspended,         S.RUNNING,           "EX-3"),
        Row(S.RUNNING,           ApprovalOpened, S.RUNNING,           "EX-4"),
        Row(S.RUNNING,           BudgetReached,  S.RUNNING,           "BU-2"),
        Row(S.RUNNING,           Approved,       S.RUNNING,           "FL-10"),
        Row(S.RUNNING,           Rejected,       S.CANCELLED,         "EX-6"),
        Row(S.RUNNING,           AwaitingApproval,         S.AWAITING_APPROVAL, "EX-4"),
        Row(S.RUNNING,           Finished,       S.COMPLETED,         "EX-8"),
        Row(S.RUNNING,           Failed,          S.FAILED,            "EX-10"),
        Row(S.RUNNING,           CancelAsked,    S.CANCELLED,         "EX-7"),
        Row(S.RUNNING,           ParentEnded,    S.CANCELLED,         "FL-6"),
        Row(S.RUNNING,           LeaseReturned,  S.RUNNING,           "EX-15"),
        Row(S.RUNNING,           WorkerLost,     S.INTERRUPTED,       "EX-11"),
        Row(S.AWAITING_APPROVAL, Approved,       S.RUNNING,           "EX-5"),
        Row(S.AWAITING_APPROVAL, Rejected,       S.CANCELLED,         "EX-6"),
        Row(S.AWAITING_APPROVAL, Claimed,        S.RUNNING,           "FL-7"),
        Row(S.AWAITING_APPROVAL, LeaseReturned,  S.AWAITING_APPROVAL, "EX-15"),
        Row(S.AWAITING_APPROVAL, CancelAsked,    S.CANCELLED,         "EX-7"),
        Row(S.AWAITING_APPROVAL, ParentEnded,    S.CANCELLED,         "FL-6"),
        Row(S.INTERRUPTED,       Approved,       S.INTERRUPTED,       "FL-10"),
        Row(S.INTERRUPTED,       Rejected,       S.CANCELLED,         "EX-6"),
        Row(S.INTERRUPTED,       ChildEnded,     S.INTERRUPTED,       "FL-6"),
        Row(S.INTERRUPTED,       Resumed,        S.RUNNING,           "EX-12"),
        Row(S.INTERRUPTED,       GraceOver,      S.FAILED,            "EX-13"),
        Row(S.INTERRUPTED,       CancelAsked,    S.CANCELLED,         "EX-7"),
        Row(S.INTERRUPTED,       ParentEnded,    S.CANCELLED,         "FL-6"),
    ),
)
# fmt: on
