"""What starts a workflow by itself: schedules and chains, and their timers."""

from enum import StrEnum
from typing import TypeAlias

from attrs import frozen

from wfcore.model.execution import ExecutionStatus
from wfcore.time import EpochMs


class TriggerKind(StrEnum):
    SCHEDULE = "SCHEDULE"
    DELAYED_COMPLETION = "DELAYED_COMPLETION"


class Missed(StrEnum):
    """What happens to instants that passed while no server was running."""

    SKIP = "skip"
    ONCE = "once"


@frozen
class Schedule:
    """
    Local times in a time zone, as a cron expression. `missed` None: the server's setting applies.
    `pause_after`: so many failed executions in a row pause it. SH-10.
    """

    cron: str
    timezone: str = "UTC"
    missed: Missed | None = None
    pause_after: int | None = None


@frozen
class Chain:
    """
    So many seconds after each completion of another workflow, `max_runs` times in all.

    `workflow` is the name of a workflow of the same owner, or an id that the owner can see.
    """

    workflow: str
    delay_seconds: int = 0
    max_runs: int | None = None


TriggerSpec: TypeAlias = Schedule | Chain


class TriggerState(StrEnum):
    """Whether a trigger will start anything."""

    ACTIVE = "ACTIVE"
    EXHAUSTED = "EXHAUSTED"
    PAUSED = "PAUSED"
    BLOCKED = "BLOCKED"


class Refusal(StrEnum):
    """Why a trigger that was due started nothing."""

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
    """Somebody, or with `by` None its own failures, paused a trigger; why, in words."""

    at: EpochMs
    by: str | None = None
    why: str | None = None


@frozen
class Trigger:
    """
    A trigger of a workflow. `runs` counts its starts; `watches` is the key of the workflow
    that a chain waits for (see `rules.triggers.chain`), None for a schedule. `last_result`: how the
    execution ended that ended last, `last_execution_id`; `failures`: how many FAILED in a row until
    then, since one COMPLETED or somebody resumed the trigger. SH-10.
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
class Standing:
    """The present state of a trigger, why it is not ACTIVE, and when it fires next."""

    state: TriggerState
    why: str | None = None
    next_at: EpochMs | None = None


@frozen
class TriggerRow:
    """A trigger with its present state."""

    trigger: Trigger
    standing: Standing


@frozen
class Timer:
    """
    A due row: at `due_at` its trigger fires once, and the row is deleted.

    The id is derived from the trigger and from the cause (an instant, a completed execution), so
    that no two rows can stand for the same one. `cause`: that execution; `depth`: the length of the
    chain that the start would belong to.
    """

    id: str
    trigger_id: str
    due_at: EpochMs
    cause: str | None = None
    depth: int = 0
    version: int = 0
