"""The state of a workflow as the turns of its executions read it. SV-2."""

from collections.abc import Mapping
from typing import Any

from wfcore.model.execution import Execution
from wfcore.model.json import Json
from wfcore.model.workflow import Definition, WorkflowState
from wfcore.ports.store import View
from wfcore.rules.execution.plan import Render
from wfcore.rules.state import NO_STATE, SeenState, seen_state
from wfcore.usecases.services import Services


async def stored_state(view: View, workflow_id: str) -> WorkflowState:
    """The stored state of the workflow; a new record if nothing is stored."""
    return await view.get(WorkflowState, workflow_id) or WorkflowState(workflow_id)


async def state_of(
    view: View, workflow_id: str, definition: Definition, written: WorkflowState | None = None
) -> SeenState:
    """
    The state of the workflow as *definition* declares it. *written*: the record that the same unit
    is going to store.
    """
    if not definition.state:
        return NO_STATE
    stored = written or await view.get(WorkflowState, workflow_id)
    return seen_state(definition.state, stored)


async def committed_state(services: Services, run: Execution, definition: Definition) -> SeenState:
    """The last committed state, for a step that begins. SV-2."""
    if not definition.state:
        return NO_STATE
    async with services.store.view() as view:
        return await state_of(view, run.workflow_id, definition)


def with_state(render: Render, state: SeenState) -> Render:
    """*render* with `state` among the names of each template, secret values left out. SV-2."""
    if state is NO_STATE:
        return render
    shown = state.shown

    def rendered(value: Json, names: Mapping[str, Json], *more: Any) -> Json:
        return render(value, {**names, "state": shown}, *more)

    return rendered
