"""Why an execution has its status: sentences for people, with codes for programs."""

from enum import StrEnum

from attrs import frozen

from wfcore.time import EpochMs


class Why(StrEnum):
    """What a line of an explanation is about."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    INTERRUPTED = "INTERRUPTED"
    NO_SERVER = "NO_SERVER"
    """No server is there that would go on with it."""
    DUE = "DUE"
    """Nothing is in its way: a worker takes it at once."""
    PLACES_TAKEN = "PLACES_TAKEN"
    """Every place of every worker is taken."""
    ACCOUNT_SHARE_USED = "ACCOUNT_SHARE_USED"
    """The account holds as many places as it may while others could want some."""
    LIMIT_REACHED = "LIMIT_REACHED"
    """As many executions of its workflow as may run at once have not ended."""
    NOBODY_ABLE = "NOBODY_ABLE"
    """No running worker is able to do all that its steps need."""
    MOVING = "MOVING"
    """A worker has it, between two steps."""
    STEP_RUNNING = "STEP_RUNNING"
    STEP_RETRYING = "STEP_RETRYING"
    STEP_POSTPONED = "STEP_POSTPONED"
    """The machine could not start it; it is tried again. Nothing of it has run."""
    STEP_DELAYED = "STEP_DELAYED"
    """A delay is not over."""
    CHILD_RUNNING = "CHILD_RUNNING"
    """Another execution that it started has not ended."""
    STEPS_RUNNING = "STEPS_RUNNING"
    """A step that holds others: its rounds, or its timeout."""
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    NEXT_STEP = "NEXT_STEP"
    FAILING = "FAILING"
    """It is going to fail; its `onFailure` steps come first."""
    WILL_RESUME = "WILL_RESUME"
    WILL_FAIL = "WILL_FAIL"
    CAN_REDRIVE = "CAN_REDRIVE"


@frozen
class Line:
    """
    One fact as a sentence. `until`: when it changes by itself.

    `execution_id`: another execution that it concerns. Of an open approval also `approvers` (none:
    whoever owns it or may edit the workflow), and how many approvals are `given` of those
    `required`.
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
