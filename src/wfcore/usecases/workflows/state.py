"""The state of a workflow, read and set by people, and under a new declaration. SV-5, SV-7."""

from collections.abc import Mapping, Sequence

from wfcore.model.access import Permission, Principal, Unrestricted
from wfcore.model.json import JsonObject, as_json
from wfcore.model.workflow import Definition, Workflow, WorkflowState
from wfcore.ports.store import Unit, View
from wfcore.rules.state import Redeclared, StateRow, merged, redeclared, state_rows
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.services import Services
from wfcore.usecases.state import stored_state
from wfcore.usecases.unit_of_work import definition_of, retried, workflow_for


async def read_state(
    services: Services, who: Principal | Unrestricted, workflow_id: str
) -> Sequence[StateRow]:
    """The state of a workflow that *who* sees, by name. Raises `NotFound`."""
    async with services.store.view() as view:
        workflow = await workflow_for(view, who, workflow_id, Permission.VIEW)
        return await _rows(view, workflow)


async def _rows(view: View | Unit, workflow: Workflow) -> Sequence[StateRow]:
    declared = (await definition_of(view, workflow.id, workflow.revision)).state
    return state_rows(declared, await stored_state(view, workflow.id)) if declared else ()


@retried
async def set_state(
    services: Services,
    who: Principal | Unrestricted,
    workflow_id: str,
    changes: Mapping[str, object],
    origin: Origin = UNKNOWN,
) -> Sequence[StateRow]:
    """
    Merge *changes* into the state of a workflow, as `WF_STATE` of a step: null puts a name back to
    its default. Audited with the names. SV-7.

    Raises `NotFound`, `Forbidden` (no EDIT), `InvalidInput` with the name.
    """
    async with services.store.unit() as unit:
        workflow = await workflow_for(unit, who, workflow_id, Permission.EDIT)
        declared = (await definition_of(unit, workflow.id, workflow.revision)).state
        stored = await stored_state(unit, workflow.id)
        unit.put(merged(declared, stored, as_json(changes), "state"))
        about: JsonObject = {"state": sorted(changes)}
        note(services, unit, "workflow.state", who, workflow.id, origin, about)
        rows = await _rows(unit, workflow)
        await unit.commit()
    return rows


async def redeclared_state(
    view: View | Unit, workflow: Workflow, definition: Definition
) -> Redeclared | None:
    """The state of *workflow* under *definition*; None if nothing is stored or declared. SV-5."""
    stored = await view.get(WorkflowState, workflow.id)
    if stored is None and not definition.state:
        return None
    return redeclared(stored or WorkflowState(workflow.id), definition.state)


async def dropped_state(
    services: Services, owner_id: str, definition: Definition
) -> tuple[str, ...]:
    """The names whose stored values the owner's workflow would give up under *definition*. SV-5."""
    async with services.store.view() as view:
        workflow = await view.workflows.by_name(owner_id, definition.name)
        found = await redeclared_state(view, workflow, definition) if workflow else None
    return found.dropped if found is not None else ()
