"""Events, output, artifacts and explanations of executions on the wire."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import define, field

from wfcore.model.event import Event, EventKind
from wfcore.model.execution import (
    Artifact,
    Execution,
    ExecutionStatus,
)
from wfcore.model.explanation import Line, Why
from wfcore.wire.common import ABSENT


@define(eq=False)
class LineView:
    """
    One line of an explanation; `until`: when it changes by itself. `approvers`, `given` and
    `required` are there of an open approval; no approvers: whoever owns it or may edit the
    workflow.
    """

    code: Why
    text: str
    until: int | None
    step_name: str | None
    approval_id: str | None
    execution_id: str | None
    approvers: Sequence[str] | None = field(default=None, metadata=ABSENT)
    given: int | None = field(default=None, metadata=ABSENT)
    required: int | None = field(default=None, metadata=ABSENT)


@define(eq=False)
class ExplanationView:
    """Why an execution is where it is, and what happens next; the nearest cause first."""

    execution_id: str
    status: ExecutionStatus
    at: int
    lines: Sequence[LineView]


@define(eq=False)
class ArtifactView:
    """
    A file of an execution. `downloadUrl` opens it for 15 minutes, as it is. `attempt`: of the step
    that left it.
    """

    id: str
    name: str
    path: str
    storage_key: str
    download_url: str
    previewable: bool
    execution_id: str
    step_name: str
    attempt: int
    size: int
    content_type: str
    sha256: str
    created_at: int


@define(eq=False)
class ArtifactList:
    artifacts: Sequence[ArtifactView]
    total: int


@define(eq=False)
class EventView:
    """One line of an execution's numbered event log."""

    execution_id: str
    number: int
    at: int
    kind: EventKind
    data: Mapping[str, Any]


@define(eq=False)
class LogView:
    """Output lines that a step wrote to a stream: one or more, as they were kept."""

    number: int
    at: int
    step: str
    attempt: int
    stream: str
    text: str


@define(eq=False)
class LogPage:
    """Output lines in order. `next`: the `after` of those to come; without items: none yet."""

    items: Sequence[LogView]
    next: int


def explanation_view(run: Execution, at: int, lines: Iterable[Line]) -> ExplanationView:
    """The status of *run* with the lines that explain it."""
    return ExplanationView(run.id, run.status, at, [_line(one) for one in lines])


def _line(one: Line) -> LineView:
    asks = one.required is not None
    return LineView(
        one.code,
        one.text,
        one.until,
        one.step_name,
        one.approval_id,
        one.execution_id,
        one.approvers if asks else None,
        one.given,
        one.required,
    )


def artifact_view(artifact: Artifact, download_url: str) -> ArtifactView:
    """An artifact with a link to its content."""
    return ArtifactView(
        id=artifact.id,
        name=artifact.name,
        path=artifact.storage_key,
        storage_key=artifact.storage_key,
        download_url=download_url,
        previewable=artifact.previewable,
        execution_id=artifact.execution_id,
        step_name=artifact.step_name,
        attempt=artifact.attempt,
        size=artifact.size,
        content_type=artifact.content_type,
        sha256=artifact.sha256,
        created_at=artifact.created_at,
    )


def event_view(event: Event) -> EventView:
    """One event of an execution's log."""
    return EventView(event.execution_id, event.number, event.at, event.kind, event.data)


def log_view(event: Event) -> LogView:
    """Output lines as one row; releases before this one did not store the attempt."""
    data: Any = event.data
    attempt = data.get("attempt", 1)
    text, stream = data["text"], data["stream"]
    return LogView(event.number, event.at, data["step"], attempt, stream, text)
