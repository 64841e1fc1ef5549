"""Operations on workflows and on the triggers of their definitions."""

from collections.abc import Mapping, Sequence
from functools import partial

from wfcore.model.access import OPERATOR, Permission, Principal, Unrestricted
from wfcore.model.json import Json
from wfcore.model.page import PageRequest
from wfcore.model.trigger import TriggerRow
from wfcore.model.workflow import Definition
from wfcore.rules.state import StateRow
from wfcore.rules.variables import parse_text
from wfcore.time import EpochMs
from wfcore.usecases.administration import lookup
from wfcore.usecases.administration.operator import (
    Answer,
    Operator,
    checked_size,
    listed,
    shown,
)
from wfcore.usecases.workflows import backfilling, browsing, state, triggers, versions, workflows
from wfcore.usecases.workflows.backfilling import BackfillResult
from wfcore.usecases.workflows.workflows import WorkflowRow
from wfcore.wire.converter import plain
from wfcore.wire.operating import version_view
from wfcore.wire.workflows import state_view, trigger_view, workflow_view

NO_VALUES: Mapping[str, str] = {}


async def apply_workflow(at: Operator, owner: str, text: str) -> Answer:
    """Create a workflow, or update the owner's workflow of that name, by YAML or JSON."""
    account = await lookup.account(at.services, owner, "owner")
    definition = await _read(at, text)
    found = await workflows.warnings_of(at.services, account.id, definition)
    applied = await workflows.apply_workflow(
        at.services, account.id, definition, at.origin, source=text
    )
    done: Answer = {"id": applied.id, "name": applied.name, "version": applied.revision}
    warnings = [*at.warnings(definition), *found]
    return {**done, "warnings": warnings} if warnings else done


async def preview_workflow(at: Operator, owner: str, text: str) -> Answer:
    """What applying it would change, as a unified difference; nothing is stored or installed."""
    account = await lookup.account(at.services, owner, "owner")
    found = await versions.preview_workflow(at.services, account.id, await _read(at, text), text)
    return {
        "name": found.name,
        "change": found.change,
        "version": found.version,
        "difference": found.difference,
    }


async def _read(at: Operator, text: str) -> Definition:
    return await at.services.offload(partial(at.read, text.encode("utf-8", "replace")))


async def list_workflows(at: Operator, limit: int = 50, owner: str | None = None) -> Answer:
    """All workflows, or those of one account, by name."""
    page = PageRequest(1, checked_size(limit))
    who: Principal | Unrestricted = OPERATOR
    if owner is not None:
        account = await lookup.account(at.services, owner, "owner")
        who = await lookup.owner_of(at.services, account.id)
    found = await workflows.list_workflows(at.services, who, page)
    emails = await lookup.emails(at.services, [one.workflow.owner_id for one in found.rows])
    rows = [
        {**_workflow(one, whole=False), "ownerEmail": emails.get(one.workflow.owner_id)}
        for one in found.rows
    ]
    return {"items": rows, "total": found.total}


async def read_workflow(at: Operator, workflow: str) -> Answer:
    """One workflow: its steps, variables and shares."""
    found = await lookup.workflow(at.services, workflow)
    shares = await workflows.shares_of(at.services, found.workflow.id)
    held = [_share(one.workflow_id, one.account_id, one.permission) for one in shares]
    return {**_workflow(found), "shares": held}


def _workflow(found: WorkflowRow, *, whole: bool = True) -> Answer:
    view = workflow_view(found.workflow, found.definition, found.triggers, whole=whole)
    return {**shown(view), "stepNames": [step.name for step in found.definition.walk()]}


async def share_workflow(
    at: Operator, workflow: str, account: str, permission: Permission | None = None
) -> Answer:
    """Let another account VIEW, EXECUTE or EDIT a workflow; without permission no longer."""
    found = (await lookup.workflow(at.services, workflow)).workflow
    other = await lookup.account(at.services, account)
    await workflows.share_workflow(at.services, OPERATOR, found.id, other.id, permission, at.origin)
    return _share(found.id, other.id, permission)


def _share(workflow_id: str, account_id: str, permission: Permission | None) -> Answer:
    return {"workflowId": workflow_id, "accountId": account_id, "permission": permission}


async def delete_workflow(at: Operator, workflow: str) -> Answer:
    """Delete a workflow. Its webhooks are disabled, its executions go on."""
    found = (await lookup.workflow(at.services, workflow)).workflow
    await workflows.delete_workflow(at.services, OPERATOR, found.id, at.origin)
    return {"ok": True, "id": found.id}


async def list_versions(at: Operator, workflow: str, limit: int = 50) -> Answer:
    """The versions of a workflow, newest first."""
    found = (await lookup.workflow(at.services, workflow)).workflow
    kept = await versions.list_versions(at.services, found.id, checked_size(limit))
    rows = [
        {
            "version": one.revision,
            "current": one.revision == found.revision,
            "steps": sum(1 for _ in one.definition.walk()),
            "written": version_view(one).written,
        }
        for one in kept
    ]
    return {"items": rows, "total": found.revision}


async def export_workflow(at: Operator, workflow: str, version: int | None = None) -> Answer:
    """
    The text of a version, of the present one by default: as it was written; else (`written` false)
    JSON, with the defaults of secrets masked.
    """
    found = (await lookup.workflow(at.services, workflow)).workflow
    number = found.revision if version is None else version
    _, text, _ = await browsing.read_version(at.services, OPERATOR, found.id, number)
    return shown(version_view(text))


async def roll_back_workflow(at: Operator, workflow: str, to: int) -> Answer:
    """Apply what version `to` said as the next version."""
    found = (await lookup.workflow(at.services, workflow)).workflow
    _, wanted, _ = await browsing.read_version(at.services, OPERATOR, found.id, to)
    warnings = await workflows.warnings_of(at.services, found.owner_id, wanted.definition)
    applied = await versions.roll_back_workflow(at.services, found.id, to, at.origin)
    done: Answer = {"id": applied.id, "name": applied.name, "version": applied.revision}
    return {**done, "warnings": warnings} if warnings else done


async def read_state(at: Operator, workflow: str) -> Answer:
    """The state of a workflow: its values by name; of secret names, whether there is a value."""
    found = (await lookup.workflow(at.services, workflow)).workflow
    return _state(found.id, await state.read_state(at.services, OPERATOR, found.id))


async def set_state(
    at: Operator,
    workflow: str,
    values: Mapping[str, str] = NO_VALUES,
    reset: Sequence[str] = (),
) -> Answer:
    """
    Set values of a workflow's state, given as text, JSON where a name's type is not string; `reset`
    puts names back to their defaults.
    """
    found = await lookup.workflow(at.services, workflow)
    declared = found.definition.state
    given: dict[str, Json] = {
        name: parse_text(declared.get(name), text, "state") for name, text in values.items()
    }
    given |= dict.fromkeys(reset)
    id = found.workflow.id
    return _state(id, await state.set_state(at.services, OPERATOR, id, given, at.origin))


def _state(workflow_id: str, rows: Sequence[StateRow]) -> Answer:
    return shown(state_view(workflow_id, rows))


async def list_triggers(at: Operator, workflow: str | None = None, limit: int = 50) -> Answer:
    """All triggers: what they wait for, when they start next, and why they do not."""
    id = (await lookup.workflow(at.services, workflow)).workflow.id if workflow else None
    page = PageRequest(1, checked_size(limit))
    found = await triggers.list_triggers(at.services, OPERATOR, page, id)
    return listed(map(_trigger, found.rows), found.total)


async def pause_trigger(at: Operator, id: str, reason: str | None = None) -> Answer:
    """Pause a trigger: it starts nothing until it is resumed."""
    return _trigger(await triggers.pause_trigger(at.services, OPERATOR, id, at.origin, reason))


async def resume_trigger(at: Operator, id: str) -> Answer:
    """Resume a paused trigger, from its next instant on."""
    return _trigger(await triggers.resume_trigger(at.services, OPERATOR, id, at.origin))


async def preview_backfill(at: Operator, id: str, since: int, until: int) -> Answer:
    """
    The instants of a schedule from `since` on and before `until`, in milliseconds since 1970: which
    were started, and what would become of the others.
    """
    begin, end = EpochMs(since), EpochMs(until)
    return _instants(await backfilling.preview_backfill(at.services, OPERATOR, id, begin, end))


async def backfill_trigger(at: Operator, id: str, since: int, until: int) -> Answer:
    """Start a schedule for these instants, each that was not started before."""
    begin, end = EpochMs(since), EpochMs(until)
    return _instants(await backfilling.backfill(at.services, OPERATOR, id, begin, end, at.origin))


def _instants(found: Sequence[BackfillResult]) -> Answer:
    rows = [
        {
            "scheduledFor": one.at,
            "executionId": one.execution_id,
            "startedNow": one.now,
            "refusal": one.refusal,
        }
        for one in found
    ]
    return listed(rows, len(rows))


def _trigger(found: TriggerRow) -> Answer:
    return {"workflowId": found.trigger.workflow_id, **plain(trigger_view(found))}
