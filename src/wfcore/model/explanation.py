"""Explanations of an execution's status: sentences for people, with codes for programs."""

from enum import StrEnum

from attrs import frozen

from wfcore.time import EpochMs


class Why(StrEnum):
    """The subject of one line of an explanation."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    INTERRUPTED = "INTERRUPTED"
    NO_SERVER = "NO_SERVER"
    """There is no running server that would continue the execution."""
    DUE = "DUE"
    """Nothing delays the execution: a worker takes the execution at once."""
    PLACES_TAKEN = "PLACES_TAKEN"
    """Every place of every worker is taken."""
    ACCOUNT_SHARE_USED = "ACCOUNT_SHARE_USED"
    """The account holds as many places as it may while other accounts could want places."""
    LIMIT_REACHED = "LIMIT_REACHED"
    """The workflow's limit of executions at once is reached."""
    NOBODY_ABLE = "NOBODY_ABLE"
    """No running worker has all capabilities that the steps need."""
    MOVING = "MOVING"
    """A worker holds the execution, between two steps."""
    STEP_RUNNING = "STEP_RUNNING"
    STEP_RETRYING = "STEP_RETRYING"
    STEP_POSTPONED = "STEP_POSTPONED"
    """The machine could not start the step; nothing of the attempt ran. The service tries again."""
    STEP_DELAYED = "STEP_DELAYED"
    """The step waits for the end of a delay."""
    CHILD_RUNNING = "CHILD_RUNNING"
    """The step waits for the end of another execution, which it started."""
    MAIL_WAITING = "MAIL_WAITING"
    """The step waits for a mail server to take its mail."""
    STEPS_RUNNING = "STEPS_RUNNING"
    """A step that contains other steps is running: its rounds, or its timeout."""
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    NEXT_STEP = "NEXT_STEP"
    FAILING = "FAILING"
    """The execution is going to fail; its `onFailure` steps run first."""
    WILL_RESUME = "WILL_RESUME"
    WILL_FAIL = "WILL_FAIL"
    CAN_REDRIVE = "CAN_REDRIVE"


@frozen
class Line:
    """
    One fact as a sentence. `until`: the instant at which the fact changes by itself.

    `execution_id`: another execution in the sentence. For an open approval: `approvers` are the
    people who may decide (empty: the owners, and people who may edit the workflow), and `given` of
    `required` approvals exist.
    """

    code: Why
    text: str
    until: EpochMs | None = None
    step_name: str | None = None
    approval_id: str | None = None
    execution_id: str | None = None
    approvers: tuple[str, ...] = ()
    given: int | None = None
    required: int | None = None
