"""
The execution machine: what can happen to an execution and its steps, and what that means for the
execution.

Facts are the only way in which an execution changes. A worker claims it, a step ends, somebody
cancels: each is one small record in the past tense, and `rules.execution.fold.advance` folds it
into the execution. Whoever has a wish (a request to cancel, a decision of an approver) turns it
into a fact first, in a use case; whether that fact is possible is then for the tables to say.

There are two tables, because there are two questions:

- `EXECUTION`, here, says in which status an execution may meet a fact, and in which it is then.
- `STEP`, in `rules.execution.step_machine`, says the same of one step.

A fact about a step (`StepFact`) has to pass both. The execution's table lets every such fact
through while the execution is RUNNING, with one row; it has rows of its own for the few that are
possible at other times. People decide while an execution waits for them or is interrupted, and a
child can end while its parent is interrupted (FL-10, FL-6). Those rows do not make the execution go
on by themselves: an interrupted one stays so until somebody resumes it or its grace is over.

What may not be done here:

- No fact says what to do next. That is computed from the results, by `rules.execution.plan`.
- No row leaves COMPLETED, FAILED or CANCELLED. A late result is refused, not ignored, so whoever
  brings it learns that it changed nothing (EX-9). `Machine` refuses such a row at import.
- No condition on data. A child that ended well and one that ended badly are two facts; so are the
  approval of a step's rows and the approval of more budget. Decision 96.

An execution may end before its steps do; its open steps then end with it. Such facts share the base
`ExecutionAborted`, and the rows of `STEP` say what becomes of each open step.

A definition may have `onFailure` steps. Then `Failing` comes in the place of `Failed`: all that was
open ends, but the execution stays RUNNING, and the planner goes through these steps instead. The
verdict is on record before the first of them begins, and `FailureHandled` carries it out. What they
do cannot change it; people still can, by cancelling.
"""

from typing import TypeAlias

from attrs import field, frozen

from wfcore.machine import Machine, Row
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.execution import PendingFailure, RefusedFile, Usage
from wfcore.model.json import Json
from wfcore.rules.limits import MAX_ERROR
from wfcore.time import EpochMs


def _cut(error: str) -> str:
    """*error* with at most `MAX_ERROR` characters, since each status shows it. EX-39."""
    return error if len(error) <= MAX_ERROR else f"{error[: MAX_ERROR - 1]}…"


# Facts about one step. Each is possible only in some states of that step: see `STEP`.


@frozen
class StepFact:
    """A fact about one step; the table of steps says what it changes."""

    step_name: str


@frozen
class StepBegun(StepFact):
    """An attempt begins. Recorded before anything of it starts."""


@frozen
class ContainerStarted(StepFact):
    """
    A `parallel`, a `loop` (with its `items`) or a `switch` (with the number of the `case` that
    holds) has begun; it times out at `until`.
    """

    until: EpochMs | None = None
    items: Json = None
    case: int | None = None


@frozen
class DataGiven(StepFact):
    """A `data` step begins and completes at once: this is its value. `size` as in `StepDone`."""

    output: Json
    size: int | None = field(default=None, eq=False)


@frozen
class DelayBegun(StepFact):
    """A delay has begun; it ends at `until`."""

    until: EpochMs


@frozen
class ChildStarted(StepFact):
    """The step started another execution; it times out at `until`."""

    child_id: str
    until: EpochMs | None = None


@frozen
class ChildEnded(StepFact):
    """The execution that the step started has ended, well or badly."""

    child_id: str


@frozen
class ChildCompleted(ChildEnded):
    """The execution that the step started has COMPLETED. `usage`: all that it consumed."""

    output: Json = None
    usage: Usage | None = None


@frozen
class ChildFailed(ChildEnded):
    """
    The execution that the step started has ended otherwise, or is given up; a retry or the end of
    the step follows.

    `interrupted`: because of a worker's death, so that nobody may try again. EX-26.
    """

    error: str = field(converter=_cut)
    usage: Usage | None = None
    interrupted: bool = False


@frozen
class MailQueued(StepFact):
    """The step's mail is due; a mail server must take it before `until`."""

    until: EpochMs


@frozen
class MailEnded(StepFact):
    """The mail of that `attempt` was taken, or given up."""

    attempt: int


@frozen
class MailTaken(MailEnded):
    """A mail server took the mail; `output` names the recipients whom it accepted and refused."""

    output: Json


@frozen
class MailRefused(MailEnded):
    """The mail was refused, or given up after its last attempt. `steps` as in `StepFailed`."""

    error: str = field(converter=_cut)
    steps: int = 0


@frozen
class StepSkipped(StepFact):
    """
    The step's `when` was false. `steps`: the number of steps that this counts for, steps inside
    included.
    """

    steps: int = 1


@frozen
class StepDone(StepFact):
    """
    The step ended well. `steps` as in `StepSkipped`. `size`: the characters of JSON that the output
    has; None: not counted yet. `state`: the names of the workflow's state that the step wrote.
    """

    output: Json = None
    steps: int = 1
    size: int | None = field(default=None, eq=False)
    state: tuple[str, ...] = ()


@frozen
class UsageRecorded(StepFact):
    """
    The current attempt consumed this usage, whatever its end will be. `model`: the model that
    answered, of a step that may ask several.
    """

    usage: Usage
    model: str | None = None


@frozen
class FilesRefused(StepFact):
    """The current attempt left files that do not qualify as artifacts."""

    files: tuple[RefusedFile, ...]


@frozen
class StepRetrying(StepFact):
    """An attempt failed; the next one starts at `retry_at`."""

    error: str = field(converter=_cut)
    retry_at: EpochMs


@frozen
class StepPostponed(StepFact):
    """
    The attempt could not start, because the machine lacked a resource (`why`); no part of it has
    run.

    The same attempt begins again at `retry_at`.
    """

    why: str = field(converter=_cut)
    retry_at: EpochMs


@frozen
class StepFailed(StepFact):
    """The step failed for good. `steps` as in `StepSkipped`; 0: its container fails with it."""

    error: str = field(converter=_cut)
    timed_out: bool = False
    steps: int = 1


@frozen
class ApprovalOpened(StepFact):
    """The step asks people, and waits for their decision."""

    approval_id: str


@frozen
class BudgetReached(StepFact):
    """The step's next call would exceed the budget; people are asked for more before that call."""

    approval_id: str


@frozen
class Approved(StepFact):
    """People approved the step; `output` is what they released."""

    approval_id: str
    output: Json


@frozen
class Revised(StepFact):
    """
    People asked for changes: the step ends with `output`, and the results of the steps `again`,
    this step included, are put aside; these steps run next.
    """

    approval_id: str
    output: Json
    again: tuple[str, ...]


@frozen
class BudgetExtended(StepFact):
    """People approved more budget, for every step that waits for this approval."""

    approval_id: str


@frozen
class StepsCancelled:
    """The container of these steps failed: they end with it."""

    step_names: tuple[str, ...]
    why: str


# Facts about an execution as a whole.


@frozen
class ExecutionAborted:
    """The execution ends before all of its steps have ended; open steps end with it."""


@frozen
class Rejected(StepFact, ExecutionAborted):
    """People said no, or (`timed_out`) nobody decided in time."""

    approval_id: str
    timed_out: bool = False


@frozen
class Failed(ExecutionAborted):
    """
    A step failed for good, and so the execution. Without a step name: the execution's output
    failed.
    """

    error: str = field(converter=_cut)
    step_name: str | None = None
    timed_out: bool = False


@frozen
class Failing(ExecutionAborted):
    """As `Failed`, but the `onFailure` steps run before the end. EX-31."""

    error: str = field(converter=_cut)
    step_name: str | None = None
    timed_out: bool = False


@frozen
class FailureHandled(ExecutionAborted):
    """
    The `onFailure` steps have ended, well or badly; the execution fails, as was decided before
    them.
    """

    failure: PendingFailure


@frozen
class CancelAsked(ExecutionAborted):
    """Somebody with the right to do so cancelled the execution."""


@frozen
class ParentEnded(ExecutionAborted):
    """The execution that started this one has ended, or the step that started it."""


@frozen
class GraceOver(ExecutionAborted):
    """Nobody resumed the interrupted execution in time."""


@frozen
class FailingAfterGrace(GraceOver):
    """
    Nobody resumed the interrupted execution in time; its `onFailure` steps run before the end.
    EX-31.
    """


@frozen
class Claimed:
    """
    A worker took the execution; the store has already recorded the worker and its fencing number.
    """


@frozen
class WakeAt:
    """A step is running; the worker plans again at `until`."""

    until: EpochMs | None


@frozen
class Suspended:
    """Nothing can run before `until` (None: before a child ends); the worker returns the lease."""

    until: EpochMs | None


@frozen
class AwaitingApproval:
    """Nothing can run while an approval is open; a timeout is due at `until`."""

    approval_id: str
    step_name: str
    until: EpochMs | None = None


@frozen
class Finished:
    """Nothing is left to do."""

    output: Json


@frozen
class LeaseReturned:
    """The worker stopped or died while no step was in flight: any worker may continue."""


@frozen
class WorkerLost:
    """The worker died with a step in flight; the grace period ends at `grace_until`."""

    grace_until: EpochMs


@frozen
class Resumed:
    """The service takes the execution up again."""


# fmt: off
Fact: TypeAlias = (
    Claimed | StepBegun | ContainerStarted | DelayBegun | DataGiven | ChildStarted | ChildCompleted
    | ChildFailed | MailQueued | MailTaken | MailRefused | StepSkipped | StepDone | UsageRecorded
    | FilesRefused | StepRetrying | StepPostponed | StepFailed | StepsCancelled | Failed | Failing
    | FailureHandled | WakeAt | Suspended | ApprovalOpened | BudgetReached | AwaitingApproval
    | Approved | Revised | BudgetExtended | Rejected | Finished | CancelAsked | ParentEnded
    | LeaseReturned | WorkerLost | Resumed | GraceOver | FailingAfterGrace
)

EXECUTION = Machine(
    name="execution",
    initial=S.PENDING,
    final=frozenset({S.COMPLETED, S.FAILED, S.CANCELLED}),
    rows=(
        Row(S.PENDING,           Claimed,          S.RUNNING,           "EX-2"),
        Row(S.PENDING,           LeaseReturned,    S.PENDING,           "EX-15"),
        Row(S.PENDING,           CancelAsked,      S.CANCELLED,         "EX-7"),
        Row(S.PENDING,           ParentEnded,      S.CANCELLED,         "FL-6"),
        Row(S.RUNNING,           StepFact,         S.RUNNING,           "EX-3"),
        Row(S.RUNNING,           StepsCancelled,   S.RUNNING,           "FL-4"),
        Row(S.RUNNING,           Claimed,          S.RUNNING,           "EX-15"),
        Row(S.RUNNING,           WakeAt,           S.RUNNING,           "FL-5"),
        Row(S.RUNNING,           Suspended,        S.RUNNING,           "EX-3"),
        Row(S.RUNNING,           LeaseReturned,    S.RUNNING,           "EX-15"),
        Row(S.RUNNING,           AwaitingApproval, S.AWAITING_APPROVAL, "EX-4"),
        Row(S.RUNNING,           WorkerLost,       S.INTERRUPTED,       "EX-11"),
        Row(S.RUNNING,           Finished,         S.COMPLETED,         "EX-8"),
        Row(S.RUNNING,           Failed,           S.FAILED,            "EX-10"),
        Row(S.RUNNING,           Failing,          S.RUNNING,           "EX-31"),
        Row(S.RUNNING,           FailureHandled,   S.FAILED,            "EX-31"),
        Row(S.RUNNING,           Rejected,         S.CANCELLED,         "EX-6"),
        Row(S.RUNNING,           CancelAsked,      S.CANCELLED,         "EX-7"),
        Row(S.RUNNING,           ParentEnded,      S.CANCELLED,         "FL-6"),
        Row(S.AWAITING_APPROVAL, Approved,         S.RUNNING,           "EX-5"),
        Row(S.AWAITING_APPROVAL, Revised,          S.RUNNING,           "AP-31"),
        Row(S.AWAITING_APPROVAL, BudgetExtended,   S.RUNNING,           "BU-2"),
        Row(S.AWAITING_APPROVAL, Claimed,          S.RUNNING,           "FL-7"),
        Row(S.AWAITING_APPROVAL, LeaseReturned,    S.AWAITING_APPROVAL, "EX-15"),
        Row(S.AWAITING_APPROVAL, Rejected,         S.CANCELLED,         "EX-6"),
        Row(S.AWAITING_APPROVAL, CancelAsked,      S.CANCELLED,         "EX-7"),
        Row(S.AWAITING_APPROVAL, ParentEnded,      S.CANCELLED,         "FL-6"),
        Row(S.INTERRUPTED,       Approved,         S.INTERRUPTED,       "FL-10"),
        Row(S.INTERRUPTED,       Revised,          S.INTERRUPTED,       "FL-10"),
        Row(S.INTERRUPTED,       BudgetExtended,   S.INTERRUPTED,       "FL-10"),
        Row(S.INTERRUPTED,       ChildEnded,       S.INTERRUPTED,       "FL-6"),
        Row(S.INTERRUPTED,       MailEnded,        S.INTERRUPTED,       "ML-1"),
        Row(S.INTERRUPTED,       Resumed,          S.RUNNING,           "EX-12"),
        Row(S.INTERRUPTED,       GraceOver,        S.FAILED,            "EX-13"),
        Row(S.INTERRUPTED,       FailingAfterGrace, S.RUNNING,          "EX-31"),
        Row(S.INTERRUPTED,       Rejected,         S.CANCELLED,         "EX-6"),
        Row(S.INTERRUPTED,       CancelAsked,      S.CANCELLED,         "EX-7"),
        Row(S.INTERRUPTED,       ParentEnded,      S.CANCELLED,         "FL-6"),
    ),
)
# fmt: on
