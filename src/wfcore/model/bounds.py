"""What limits a workflow: budget, executions at once, attempts, what may begin again."""

from enum import StrEnum

from attrs import frozen

from wfcore.time import DurationMs


class OnExceeded(StrEnum):
    """What an exceeded budget means for the next call."""

    FAIL = "fail"
    APPROVE = "approve"


@frozen
class Budget:
    """What the AI calls of one execution may use. `max_cost_usd` is a decimal number as text."""

    max_cost_usd: str | None = None
    max_tokens: int | None = None
    on_exceeded: OnExceeded = OnExceeded.FAIL


class OnLimit(StrEnum):
    """What happens to a start when the concurrency group is full."""

    QUEUE = "queue"
    SKIP = "skip"


@frozen
class Concurrency:
    """At most `limit` executions at once, of the whole workflow or of each value of `key`."""

    limit: int
    key: str | None = None
    on_limit: OnLimit = OnLimit.QUEUE


class OnInterrupt(StrEnum):
    """What the death of its worker means for a step that was in flight. EX-25."""

    RESUME = "resume"
    """It may begin again, where the service resumes the execution at all."""
    FAIL = "fail"
    """It is never begun again."""


@frozen
class Retry:
    """*attempts* in all; the n-th wait is `delay_ms * backoff ** (n - 1)`."""

    attempts: int = 1
    delay_ms: DurationMs = DurationMs(1_000)
    backoff: float = 1.0
