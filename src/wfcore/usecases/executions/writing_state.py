"""The state that a step writes, which counts exactly if its result is COMPLETED. SV-3, SV-4."""

from attrs import evolve, frozen

from wfcore.effects import Outcome
from wfcore.errors import InvalidInput
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution
from wfcore.model.workflow import Definition, Workflow, WorkflowState
from wfcore.ports.runtime import StepEnd
from wfcore.ports.store import View
from wfcore.rules.masking import Secrets, secret_values, secrets_of
from wfcore.rules.state import secret_texts, written
from wfcore.usecases.executions.step_jobs import without_secrets
from wfcore.usecases.state import stored_state
from wfcore.usecases.unit_of_work import definition_of


@frozen
class WrittenState:
    """
    The end of an attempt, and the state if the step's result is COMPLETED. `state` None: the state
    stays as it is.
    """

    end: StepEnd
    state: WorkflowState | None = None


async def written_state(
    view: View, run: Execution, definition: Definition, end: StepEnd, hidden: Secrets
) -> WrittenState:
    """
    The state after *end*, with the secrets of *run* and the *hidden* ones masked. An object that
    the declarations do not admit fails the attempt by name. SV-3, SV-4.
    """
    changes = end.state if end.error is None and end.postponed is None else None
    workflow = await view.get(Workflow, run.workflow_id) if changes else None
    if not changes or workflow is None:
        return WrittenState(end)
    newest = (await definition_of(view, workflow.id, workflow.revision)).state
    stored, masks = await stored_state(view, workflow.id), (hidden, secret_values(run))
    try:
        state = written(definition.state, newest, stored, changes, masks)
    except InvalidInput as refused:
        end = evolve(end, error=f"WF_STATE: {refused}", permanent=True, output=None, state=None)
        return WrittenState(end)
    if texts := secret_texts(changes, definition.state, newest):
        end = without_secrets(end, secrets_of(texts))
    return WrittenState(end, None if state is stored else state)


def is_completed(outcome: Outcome[Execution], step_name: str) -> bool:
    """Whether *outcome* brings the result COMPLETED of that step, with which its state counts."""
    completed = (one.data for one in outcome.events if one.kind is EventKind.STEP_COMPLETED)
    return any(data["step"] == step_name for data in completed)
