"""
The planner: what comes next in a definition, given what is known. Contract §2 and §4.

It walks the tree of steps; today's trees are sequences. It changes nothing: the moves it
returns become facts in `rules.proceed`.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from attrs import frozen

from wfcore.errors import TemplateFailed
from wfcore.instants import EpochMs
from wfcore.model.execution import Execution, StepResult, StepStatus
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Definition, Step

Render = Callable[[Json, Mapping[str, Json]], Json]
"""`Templates.render`: a deterministic function, so the planner stays one."""


@frozen
class Begin:
    """Start this step now (again, where it has a result)."""

    step: Step


@frozen
class Skip:
    """Its `when` is false."""

    step: Step


@frozen
class Refuse:
    """The step cannot begin: its `when` failed."""

    step: Step
    error: str


@frozen
class Wait:
    """Nothing to start. `until`: when a retry is due; None: until something ends."""

    until: EpochMs | None = None


@frozen
class Done:
    """Every step has ended."""


Next: TypeAlias = Begin | Skip | Refuse | Wait | Done


def plan(definition: Definition, run: Execution, now: EpochMs, render: Render) -> Next:
    """The next move of *run*. Same arguments, same answer. EX-3, DF-8."""
    for step in definition.steps:
        result = run.step_results.get(step.name)
        if result is None:
            return _enter(step, run, render)
        match result.status:
            case StepStatus.COMPLETED | StepStatus.SKIPPED | StepStatus.FAILED:
                continue
            case StepStatus.INTERRUPTED:
                return Begin(step)
            case StepStatus.RUNNING if result.retry_at is not None:
                return Begin(step) if result.retry_at <= now else Wait(result.retry_at)
            case _:
                return Wait()
    return Done()


def _enter(step: Step, run: Execution, render: Render) -> Next:
    """Begin, unless `when` says otherwise. A failing `when` fails the step."""
    if step.when is None:
        return Begin(step)
    try:
        wanted = render(step.when, scope(run))
    except TemplateFailed as failed:
        return Refuse(step, f"when: {failed}")
    return Begin(step) if truthy(wanted) else Skip(step)


def truthy(value: Json) -> bool:
    """What counts as yes in `when`: everything but false, null, 0, and what is empty."""
    return bool(value)


def scope(run: Execution) -> Mapping[str, Json]:
    """The names that templates see. A step that has not begun is unknown. Contract §4."""
    return {
        "variables": run.variables,
        "steps": {name: seen(result) for name, result in run.step_results.items()},
        "execution": {"id": run.id, "workflowId": run.workflow_id},
    }


def seen(result: StepResult) -> JsonObject:
    """A step's result as templates and the context file show it. Contract §5."""
    return {"status": result.status.value, "output": result.output}


def output_of(definition: Definition, run: Execution, render: Render) -> Json:
    """
    The execution's output: the definition's, else the last completed step's. Contract §2.

    Raises `TemplateFailed`.
    """
    if definition.has_output:
        return render(definition.output, scope(run))
    for step in reversed(definition.steps):
        result = run.step_results.get(step.name)
        if result is not None and result.status is StepStatus.COMPLETED:
            return result.output
    return None
