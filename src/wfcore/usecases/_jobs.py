"""From a begun step to the job that a runner gets: its templates are rendered here."""

from collections.abc import Mapping

from attrs import define

from wfcore.errors import TemplateFailed, WfError
from wfcore.model.execution import Execution
from wfcore.model.json import Json
from wfcore.model.workflow import AiStep, CodeStep, Definition
from wfcore.ports.runtime import AiJob, Job, StepJob
from wfcore.ports.system import Templates
from wfcore.rules.budget import allowance
from wfcore.rules.opening import as_text
from wfcore.rules.plan import scope
from wfcore.rules.variables import environment


@define
class NotRendered(WfError):
    """A field of the step has a template that fails."""

    field: str
    failed: TemplateFailed

    def __str__(self) -> str:
        return f"{self.field}: {self.failed}"


def job_for(
    templates: Templates,
    run: Execution,
    definition: Definition,
    step: CodeStep | AiStep,
    attempt: int,
) -> Job:
    """The job of one attempt, under the lease that *run* is held by. Raises `NotRendered`."""
    names = scope(run)
    if isinstance(step, AiStep):
        return AiJob(
            execution_id=run.id,
            workflow_id=run.workflow_id,
            step_name=step.name,
            attempt=attempt,
            fence=run.fence,
            step=step,
            system=_rendered(templates, "system", step.system, names),
            prompt=_rendered(templates, "prompt", step.prompt, names),
            allowance=allowance(definition.budget, run),
            log=run.monitored,
        )
    return StepJob(
        execution_id=run.id,
        workflow_id=run.workflow_id,
        step_name=step.name,
        attempt=attempt,
        fence=run.fence,
        step=step,
        argv=tuple(_rendered(templates, "command", part, names) for part in step.command),
        environment=environment(run.variables),
        context=names,
        log=run.monitored,
    )


def _rendered(templates: Templates, field: str, written: str, names: Mapping[str, Json]) -> str:
    try:
        return as_text(templates.render(written, names))
    except TemplateFailed as failed:
        raise NotRendered(field, failed) from None
