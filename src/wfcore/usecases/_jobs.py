"""What a runner gets of a begun step, its templates rendered, and what is kept of what it left."""

from collections.abc import Mapping
from typing import cast

from attrs import define

from wfcore.effects import StartStep
from wfcore.errors import TemplateFailed, WfError
from wfcore.instants import EpochMs
from wfcore.model.artifact import Artifact
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import AiStep, CodeStep, Definition
from wfcore.ports.runtime import AiJob, Job, LeftFile, StepJob
from wfcore.ports.system import Templates
from wfcore.rules.budget import allowance
from wfcore.rules.opening import as_text
from wfcore.rules.scope import name_of, prefix_of, scope
from wfcore.rules.variables import environment


@define
class NotRendered(WfError):
    """A field of the step has a template that fails."""

    field: str
    failed: TemplateFailed

    def __str__(self) -> str:
        return f"{self.field}: {self.failed}"


def job_for(templates: Templates, run: Execution, definition: Definition, begun: StartStep) -> Job:
    """The job of one attempt, under the lease that *run* is held by. Raises `NotRendered`."""
    key = begun.step_name
    step = definition.step(name_of(key))
    names = scope(definition, run, prefix_of(key))
    if isinstance(step, AiStep):
        return AiJob(
            execution_id=run.id,
            workflow_id=run.workflow_id,
            step_name=key,
            attempt=begun.attempt,
            fence=run.fence,
            step=step,
            system=_rendered(templates, "system", step.system, names),
            prompt=_rendered(templates, "prompt", step.prompt, names),
            allowance=allowance(definition.budget, run),
            log=run.monitored,
            postponed=begun.postponed,
        )
    assert isinstance(step, CodeStep)
    return StepJob(
        execution_id=run.id,
        workflow_id=run.workflow_id,
        step_name=key,
        attempt=begun.attempt,
        fence=run.fence,
        step=step,
        argv=tuple(_rendered(templates, "command", part, names) for part in step.command),
        environment=environment(cast("JsonObject", names["variables"])),
        context=names,
        log=run.monitored,
        postponed=begun.postponed,
    )


def _rendered(templates: Templates, field: str, written: str, names: Mapping[str, Json]) -> str:
    try:
        return as_text(templates.render(written, names))
    except TemplateFailed as failed:
        raise NotRendered(field, failed) from None


def artifact_of(execution_id: str, step_name: str, file: LeftFile, now: EpochMs) -> Artifact:
    """The record of a file that a step left."""
    return Artifact(
        id=file.id,
        execution_id=execution_id,
        step_name=step_name,
        name=file.name,
        storage_key=file.storage_key,
        size=file.size,
        content_type=file.content_type,
        sha256=file.sha256,
        previewable=file.previewable,
        created_at=now,
    )


def created(step_name: str, file: LeftFile) -> tuple[EventKind, JsonObject]:
    """What the event log says of it."""
    about: JsonObject = {
        "step": step_name,
        "artifactId": file.id,
        "name": file.name,
        "size": file.size,
    }
    return EventKind.ARTIFACT_CREATED, about
