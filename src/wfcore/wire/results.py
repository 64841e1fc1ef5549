"""The shapes of what came of a step: its result, what it consumed, what it left. Contract §2."""

from collections.abc import Sequence
from typing import Any

from attrs import define, field

from wfcore.model.execution import StepStatus


@define(eq=False)
class UsageView:
    """What AI calls consumed. `costUsd` is a decimal string, null when a price is unknown."""

    input_tokens: int
    output_tokens: int
    cost_usd: str | None


@define(eq=False)
class RefusedFileView:
    """Something that a step left and that is no artifact."""

    name: str
    reason: str


@define(eq=False)
class StepView:
    """
    What is known of one step. `duration` in ms, null until it ends. `executionId` is there
    where the step started an execution; `output` is not where outputs were not asked for.
    """

    status: StepStatus
    output: Any = field(default=None, kw_only=True)
    duration: int | None
    started_at: int
    completed_at: int | None
    error: str | None
    attempts: int
    usage: UsageView | None
    refused_artifacts: Sequence[RefusedFileView]
    execution_id: str | None = field(default=None, metadata={"absent": True})
