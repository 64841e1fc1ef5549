"""Versions of a workflow: the preview of a change, the list of versions, and going back."""

from collections.abc import Sequence
from enum import StrEnum
from functools import partial

from attrs import frozen

from wfcore.errors import InvalidDefinition, NotFound
from wfcore.model.access import Account
from wfcore.model.workflow import Definition, DefinitionSnapshot, Workflow
from wfcore.rules.definition.changes import diff
from wfcore.rules.definition.packages import with_locks_of
from wfcore.rules.definition.written import text_of
from wfcore.usecases.audit.auditing import UNKNOWN, Origin
from wfcore.usecases.services import Services
from wfcore.usecases.workflows.browsing import stored_version
from wfcore.usecases.workflows.state import redeclared_state
from wfcore.usecases.workflows.workflows import (
    apply_workflow,
    beyond_owner,
    checked_definition,
    nobodies,
)


class WorkflowChange(StrEnum):
    """The effect of applying a definition on the owner's workflow with that name."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@frozen
class Preview:
    """
    The result that applying would have. `version`: the number of the version; `difference`: the
    difference of the texts.
    """

    name: str
    change: WorkflowChange
    version: int
    difference: str


async def preview_workflow(
    services: Services, owner_id: str, definition: Definition, source: str
) -> Preview:
    """
    The change that `apply_workflow` would make, or its refusal. Nothing is stored, and no package
    is installed. The workflows that chains name are checked only when the definition is applied.

    Raises `NotFound` for the account, and `InvalidDefinition`.
    """
    definition = await checked_definition(services, definition)
    async with services.store.view() as view:
        owner = await view.get(Account, owner_id)
        if owner is None:
            raise NotFound("Account")
        old = await view.workflows.by_name(owner_id, definition.name)
        state = await redeclared_state(view, old, definition) if old else None
        lacking = (*beyond_owner(definition, owner), *await nobodies(services, view, definition))
        if problems := (*lacking, *(state.problems if state else ())):
            raise InvalidDefinition(problems)
        before = await stored_version(view, old.id, old.revision) if old else None
    return await services.offload(partial(_compared, definition, source, before))


def _compared(definition: Definition, source: str, before: DefinitionSnapshot | None) -> Preview:
    name = definition.name
    if before is None:
        after = DefinitionSnapshot("", 1, definition, source)
        return Preview(name, WorkflowChange.CREATED, 1, difference(None, after))
    if with_locks_of(definition, before.definition) == before.definition:
        return Preview(name, WorkflowChange.UNCHANGED, before.revision, "")
    after = DefinitionSnapshot(before.workflow_id, before.revision + 1, definition, source)
    change = difference(before, after)
    return Preview(name, WorkflowChange.CHANGED, after.revision, change)


def difference(before: DefinitionSnapshot | None, after: DefinitionSnapshot) -> str:
    """The texts of two versions as a unified difference, in which secrets are masked."""
    name = after.definition.name
    changes = diff(text_of(before) if before else "", text_of(after))
    old = f"{name} version {before.revision}" if before else "/dev/null"
    begin = [f"--- {old}", f"+++ {name} version {after.revision}"] if changes else []
    return "\n".join([*begin, *(f"{mark}{line}" for mark, line in changes)])


async def list_versions(
    services: Services, workflow_id: str, limit: int
) -> Sequence[DefinitionSnapshot]:
    """The newest *limit* stored versions, newest first. Raises `NotFound`."""
    found: list[DefinitionSnapshot] = []
    async with services.store.view() as view:
        workflow = await view.get(Workflow, workflow_id)
        if workflow is None:
            raise NotFound("Workflow")
        for number in range(workflow.revision, max(workflow.revision - limit, 0), -1):
            one = await view.get(DefinitionSnapshot, workflow_id, number)
            found += [one] if one is not None else []
    return found


async def roll_back_workflow(
    services: Services, workflow_id: str, to: int, origin: Origin = UNKNOWN
) -> Workflow:
    """
    Apply the definition of version *to* as the next version; returns the present version if the
    definition is the same.

    Raises `NotFound`, `Conflict` (changed meanwhile), and the errors of `apply_workflow`: a secret
    of the old definition may be gone.
    """
    async with services.store.view() as view:
        workflow = await view.get(Workflow, workflow_id)
        if workflow is None:
            raise NotFound("Workflow")
        wanted = await stored_version(view, workflow_id, to)
    return await apply_workflow(
        services,
        workflow.owner_id,
        wanted.definition,
        origin,
        source=wanted.source,
        after=workflow.revision,
    )
