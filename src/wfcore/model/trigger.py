"""Triggers, which start workflows by themselves: schedules, chains, and the timers of both."""

from enum import StrEnum
from typing import TypeAlias

from attrs import field, frozen

from wfcore.model.execution import ExecutionStatus
from wfcore.model.json import JsonObject
from wfcore.time import EpochMs


class TriggerKind(StrEnum):
    """The kind of a trigger: a schedule, or the end of another workflow."""

    SCHEDULE = "SCHEDULE"
    DELAYED_COMPLETION = "DELAYED_COMPLETION"


class Missed(StrEnum):
    """The fate of instants that passed while no server was running."""

    SKIP = "skip"
    ONCE = "once"


@frozen
class Schedule:
    """
    Local times in a time zone, as a cron expression. `missed` None: the server's setting applies.
    `pause_after`: the number of failures in a row that pauses the schedule. SH-10. `inputs`: the
    inputs of each start, with templates over `trigger` and `state`. SH-12.
    """

    cron: str
    timezone: str = "UTC"
    missed: Missed | None = None
    pause_after: int | None = None
    inputs: JsonObject = field(factory=dict)


@frozen
class Chain:
    """
    A start `delay_seconds` after each end of another workflow, at most `max_runs` times in all.

    `workflow`: the name of a workflow of the same owner, or an id that the owner can see. `on`: the
    statuses of the ends that count. CH-6. `inputs`: as those of a `Schedule`.
    """

    workflow: str
    delay_seconds: int = 0
    max_runs: int | None = None
    on: tuple[ExecutionStatus, ...] = (ExecutionStatus.COMPLETED,)
    inputs: JsonObject = field(factory=dict)


TriggerSpec: TypeAlias = Schedule | Chain

FOLLOWED = ("executionId", "status", "output")
"""The names below `trigger` about a followed execution, for accounts that see the execution."""
TRIGGER_NAMES = (
    *("kind", "scheduledFor", "scheduledAt", "workflowId", "workflowName", *FOLLOWED),
    "webhookId",
)
"""The names below `trigger` in templates. EX-37."""


class TriggerState(StrEnum):
    """Whether a trigger will start executions."""

    ACTIVE = "ACTIVE"
    EXHAUSTED = "EXHAUSTED"
    PAUSED = "PAUSED"
    BLOCKED = "BLOCKED"


class Refusal(StrEnum):
    """The reason why a due trigger started nothing."""

    PAUSED = "PAUSED"
    MAX_RUNS = "MAX_RUNS"
    CHAIN_TOO_DEEP = "CHAIN_TOO_DEEP"
    PLAN_LIMIT = "PLAN_LIMIT"
    ACCOUNT_BLOCKED = "ACCOUNT_BLOCKED"
    ACCESS_LOST = "ACCESS_LOST"
    LIMIT_REACHED = "LIMIT_REACHED"
    INVALID_INPUT = "INVALID_INPUT"
    MISSED = "MISSED"
    UNREADABLE = "UNREADABLE"


@frozen
class Pause:
    """
    The pause of a trigger by a person, `by` an account or the operator on the host, who may say
    `why`; or because of `failures`, the number of failures in a row.
    """

    at: EpochMs
    by: str | None = None
    why: str | None = None
    failures: int = 0


@frozen
class Trigger:
    """
    A trigger of a workflow. `runs`: the number of its starts. `refusal_detail`: the mistake, after
    a start with wrong inputs. `watches`: the key of the workflow
    that a chain waits for (see `rules.triggers.chain`); None for a schedule. `last_execution_id`:
    the execution that ended last, and `last_result` its status. `failures`: how many executions
    FAILED or could not start with their inputs, in a row, since an execution COMPLETED or a person
    resumed the trigger. SH-10.
    """

    id: str
    workflow_id: str
    owner_id: str
    spec: TriggerSpec
    created_at: EpochMs
    watches: str | None = None
    runs: int = 0
    last_run_at: EpochMs | None = None
    refusal: Refusal | None = None
    refused_at: EpochMs | None = None
    refusal_detail: str | None = None
    last_result: ExecutionStatus | None = None
    last_execution_id: str | None = None
    failures: int = 0
    pause: Pause | None = None
    version: int = 0

    @property
    def kind(self) -> TriggerKind:
        if isinstance(self.spec, Schedule):
            return TriggerKind.SCHEDULE
        return TriggerKind.DELAYED_COMPLETION


@frozen
class TriggerStanding:
    """
    The present state of a trigger, the reason if the state is not ACTIVE, and the instant of the
    next start.
    """

    state: TriggerState
    why: str | None = None
    next_at: EpochMs | None = None


@frozen
class TriggerRow:
    """A trigger with its present state."""

    trigger: Trigger
    standing: TriggerStanding


@frozen
class Timer:
    """
    A due row: at `due_at` its trigger starts the workflow once, and the row is deleted.

    The id is derived from the trigger and the cause (an instant, or an ended execution), so that
    each cause has at most one row. `cause`: the followed execution. `depth`: the length of the
    chain that the start would belong to.
    """

    id: str
    trigger_id: str
    due_at: EpochMs
    cause: str | None = None
    depth: int = 0
    version: int = 0
