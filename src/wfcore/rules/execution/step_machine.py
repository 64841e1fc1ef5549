"""
The step machine: what can happen to one step, given what is known of it.

What is stored of a step is its `StepResult`. Its `status` has eight values, which is what people
want to see; for what may happen next that is too coarse. A RUNNING step may have a process, or hold
other steps, or wait for an instant, for a child execution, for its next attempt; and a step that
has not started has no result at all. `fold_steps.state_of` reads the finer state from the result.
It is not stored, so there is nothing that could disagree with the result, and no data to migrate.

`STEP` is the complete answer to "may this still happen?", and so the reason why whatever is
reported twice, or too late, changes nothing (EX-3). A step that has ended takes no further fact;
one that runs cannot begin; one that waits for a retry cannot end well. The fold asks the table
before it changes anything, so no fold of a fact checks the state of its step again. What remains
there is identity: whether it is *that* child that ended, *that* approval that was decided.

Two kinds of facts reach a step:

- Those about this step, or about a few (`StepFact`, `StepsCancelled`). Without a row they are
  refused.
- Those about the execution (`ExecutionAborted`, `WorkerLost`). They reach every step, and change
  those that have a row. A lost worker interrupts what had a process, and leaves what waited as it
  was; an abort ends whatever is open. `Rejected` is both: the steps that asked are REJECTED; for
  all others, also for those that wait for another approval, it is an abort. `Failed` is alike: the
  step that it names fails by `StepFailed`, the others are aborted.

INTERRUPTED is no end: nobody knows how far such a step came, and it begins again if the execution
is resumed. If not, it keeps that state while the execution fails, since CANCELLED would say that it
was stopped in time. EX-13.

A final state is final for one round. If people ask for changes, steps that have ended run again by
design: their results are put aside, as they are, and the steps begin like any others. So the table
has no row out of a final state, and each round is a walk of its own; only attempts are counted on,
which keeps every start of a process apart from all others. AP-31.

The rows are what is possible, not what is usual: nothing today records the usage of a delay. To
narrow the table is a decision about old records and late workers, not a cleanup. Decision 96.
"""

from enum import StrEnum

from wfcore.machine import Machine, Row
from wfcore.rules.execution.machine import (
    ApprovalOpened,
    Approved,
    BudgetExtended,
    BudgetReached,
    ChildCompleted,
    ChildFailed,
    ChildStarted,
    ContainerStarted,
    DataGiven,
    DelayBegun,
    ExecutionAborted,
    FilesRefused,
    GraceOver,
    MailQueued,
    MailRefused,
    MailTaken,
    Rejected,
    Revised,
    StepBegun,
    StepDone,
    StepFailed,
    StepPostponed,
    StepRetrying,
    StepsCancelled,
    StepSkipped,
    UsageRecorded,
    WorkerLost,
)


class StepState(StrEnum):
    """What is known of a step: its status, and what a RUNNING one waits for."""

    NOT_STARTED = "NOT_STARTED"
    RUNNING = "RUNNING"
    WAITING_FOR_STEPS = "WAITING_FOR_STEPS"
    DELAYED = "DELAYED"
    WAITING_FOR_CHILD = "WAITING_FOR_CHILD"
    CHILD_FAILED = "CHILD_FAILED"
    WAITING_FOR_MAIL = "WAITING_FOR_MAIL"
    WAITING_FOR_RETRY = "WAITING_FOR_RETRY"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    INTERRUPTED = "INTERRUPTED"
    COMPLETED = "COMPLETED"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"
    REJECTED = "REJECTED"
    CANCELLED = "CANCELLED"


S = StepState

# fmt: off
STEP = Machine(
    name="step",
    initial=S.NOT_STARTED,
    final=frozenset({S.COMPLETED, S.SKIPPED, S.FAILED, S.REJECTED, S.CANCELLED}),
    rows=(
        Row(S.NOT_STARTED,       StepBegun,        S.RUNNING,           "EX-3"),
        Row(S.NOT_STARTED,       ContainerStarted, S.WAITING_FOR_STEPS, "FL-1"),
        Row(S.NOT_STARTED,       DelayBegun,       S.DELAYED,           "FL-5"),
        Row(S.NOT_STARTED,       DataGiven,        S.COMPLETED,         "FL-12"),
        Row(S.NOT_STARTED,       ChildStarted,     S.WAITING_FOR_CHILD, "FL-6"),
        Row(S.NOT_STARTED,       MailQueued,       S.WAITING_FOR_MAIL,  "ML-1"),
        Row(S.NOT_STARTED,       ApprovalOpened,   S.AWAITING_APPROVAL, "EX-4"),
        Row(S.NOT_STARTED,       BudgetReached,    S.AWAITING_APPROVAL, "BU-2"),
        Row(S.NOT_STARTED,       StepSkipped,      S.SKIPPED,           "DF-8"),
        Row(S.NOT_STARTED,       StepFailed,       S.FAILED,            "EX-10"),

        Row(S.RUNNING,           UsageRecorded,    S.RUNNING,           "AI-7"),
        Row(S.RUNNING,           FilesRefused,     S.RUNNING,           "CS-10"),
        Row(S.RUNNING,           StepDone,         S.COMPLETED,         "EX-3"),
        Row(S.RUNNING,           StepRetrying,     S.WAITING_FOR_RETRY, "DF-9"),
        Row(S.RUNNING,           StepPostponed,    S.WAITING_FOR_RETRY, "EX-27"),
        Row(S.RUNNING,           StepFailed,       S.FAILED,            "EX-10"),
        Row(S.RUNNING,           WorkerLost,       S.INTERRUPTED,       "EX-11"),
        Row(S.RUNNING,           StepsCancelled,   S.CANCELLED,         "FL-4"),
        Row(S.RUNNING,           ExecutionAborted, S.CANCELLED,         "EX-29"),

        Row(S.WAITING_FOR_STEPS, UsageRecorded,    S.WAITING_FOR_STEPS, "AI-7"),
        Row(S.WAITING_FOR_STEPS, FilesRefused,     S.WAITING_FOR_STEPS, "CS-10"),
        Row(S.WAITING_FOR_STEPS, StepDone,         S.COMPLETED,         "FL-1"),
        Row(S.WAITING_FOR_STEPS, StepRetrying,     S.WAITING_FOR_RETRY, "DF-9"),
        Row(S.WAITING_FOR_STEPS, StepFailed,       S.FAILED,            "FL-4"),
        Row(S.WAITING_FOR_STEPS, StepsCancelled,   S.CANCELLED,         "FL-4"),
        Row(S.WAITING_FOR_STEPS, ExecutionAborted, S.CANCELLED,         "EX-29"),

        Row(S.DELAYED,           UsageRecorded,    S.DELAYED,           "AI-7"),
        Row(S.DELAYED,           FilesRefused,     S.DELAYED,           "CS-10"),
        Row(S.DELAYED,           StepDone,         S.COMPLETED,         "FL-5"),
        Row(S.DELAYED,           StepRetrying,     S.WAITING_FOR_RETRY, "DF-9"),
        Row(S.DELAYED,           StepFailed,       S.FAILED,            "EX-10"),
        Row(S.DELAYED,           StepsCancelled,   S.CANCELLED,         "FL-4"),
        Row(S.DELAYED,           ExecutionAborted, S.CANCELLED,         "EX-29"),

        Row(S.WAITING_FOR_CHILD, UsageRecorded,    S.WAITING_FOR_CHILD, "AI-7"),
        Row(S.WAITING_FOR_CHILD, FilesRefused,     S.WAITING_FOR_CHILD, "CS-10"),
        Row(S.WAITING_FOR_CHILD, ChildCompleted,   S.COMPLETED,         "FL-6"),
        Row(S.WAITING_FOR_CHILD, ChildFailed,      S.CHILD_FAILED,      "FL-6"),
        Row(S.WAITING_FOR_CHILD, StepDone,         S.COMPLETED,         "EX-3"),
        Row(S.WAITING_FOR_CHILD, StepRetrying,     S.WAITING_FOR_RETRY, "FL-7"),
        Row(S.WAITING_FOR_CHILD, StepFailed,       S.FAILED,            "FL-7"),
        Row(S.WAITING_FOR_CHILD, StepsCancelled,   S.CANCELLED,         "FL-4"),
        Row(S.WAITING_FOR_CHILD, ExecutionAborted, S.CANCELLED,         "EX-29"),

        Row(S.CHILD_FAILED,      UsageRecorded,    S.CHILD_FAILED,      "AI-7"),
        Row(S.CHILD_FAILED,      FilesRefused,     S.CHILD_FAILED,      "CS-10"),
        Row(S.CHILD_FAILED,      StepDone,         S.COMPLETED,         "EX-3"),
        Row(S.CHILD_FAILED,      StepRetrying,     S.WAITING_FOR_RETRY, "DF-9"),
        Row(S.CHILD_FAILED,      StepFailed,       S.FAILED,            "FL-6"),
        Row(S.CHILD_FAILED,      StepsCancelled,   S.CANCELLED,         "FL-4"),
        Row(S.CHILD_FAILED,      ExecutionAborted, S.CANCELLED,         "EX-29"),

        Row(S.WAITING_FOR_MAIL,  MailTaken,        S.COMPLETED,         "ML-1"),
        Row(S.WAITING_FOR_MAIL,  MailRefused,      S.FAILED,            "ML-1"),
        Row(S.WAITING_FOR_MAIL,  StepFailed,       S.FAILED,            "ML-1"),
        Row(S.WAITING_FOR_MAIL,  StepsCancelled,   S.CANCELLED,         "FL-4"),
        Row(S.WAITING_FOR_MAIL,  ExecutionAborted, S.CANCELLED,         "EX-29"),

        Row(S.WAITING_FOR_RETRY, StepBegun,        S.RUNNING,           "DF-9"),
        Row(S.WAITING_FOR_RETRY, ChildStarted,     S.WAITING_FOR_CHILD, "DF-9"),
        Row(S.WAITING_FOR_RETRY, BudgetReached,    S.AWAITING_APPROVAL, "BU-2"),
        Row(S.WAITING_FOR_RETRY, StepFailed,       S.FAILED,            "EX-10"),
        Row(S.WAITING_FOR_RETRY, StepsCancelled,   S.CANCELLED,         "FL-4"),
        Row(S.WAITING_FOR_RETRY, ExecutionAborted, S.CANCELLED,         "EX-29"),

        Row(S.AWAITING_APPROVAL, Approved,         S.COMPLETED,         "EX-5"),
        Row(S.AWAITING_APPROVAL, Revised,          S.COMPLETED,         "AP-31"),
        Row(S.AWAITING_APPROVAL, BudgetExtended,   S.WAITING_FOR_RETRY, "BU-4"),
        Row(S.AWAITING_APPROVAL, Rejected,         S.REJECTED,          "EX-6"),
        Row(S.AWAITING_APPROVAL, StepsCancelled,   S.CANCELLED,         "FL-4"),
        Row(S.AWAITING_APPROVAL, ExecutionAborted, S.CANCELLED,         "EX-29"),

        Row(S.INTERRUPTED,       StepBegun,        S.RUNNING,           "EX-12"),
        Row(S.INTERRUPTED,       ChildStarted,     S.WAITING_FOR_CHILD, "EX-12"),
        Row(S.INTERRUPTED,       BudgetReached,    S.AWAITING_APPROVAL, "BU-2"),
        Row(S.INTERRUPTED,       StepFailed,       S.FAILED,            "EX-10"),
        Row(S.INTERRUPTED,       StepsCancelled,   S.CANCELLED,         "FL-4"),
        Row(S.INTERRUPTED,       GraceOver,        S.INTERRUPTED,       "EX-13"),
        Row(S.INTERRUPTED,       ExecutionAborted, S.CANCELLED,         "EX-29"),
    ),
)
# fmt: on
