"""The sample of a server, for an account that has run nothing yet."""

from wfcore.model.access import Principal
from wfcore.model.page import NEWEST, PageRequest
from wfcore.model.workflow import Definition, Workflow
from wfcore.usecases.audit.auditing import Origin
from wfcore.usecases.executions.executions import list_executions
from wfcore.usecases.services import Services
from wfcore.usecases.workflows.workflows import apply_workflow


async def has_run(services: Services, who: Principal) -> bool:
    """Whether *who* sees any execution."""
    return bool((await list_executions(services, who, PageRequest(size=1, after=NEWEST))).rows)


async def provide_sample(
    services: Services, who: Principal, definition: Definition, text: str, origin: Origin
) -> Workflow:
    """
    The workflow of *who* with the name of *definition*, whatever its steps are now; created from
    *definition* and its *text* if missing. Raises the errors of `apply_workflow`.
    """
    async with services.store.view() as view:
        found = await view.workflows.by_name(who.account.id, definition.name)
    if found is not None:
        return found
    return await apply_workflow(services, who.account.id, definition, origin, source=text)
