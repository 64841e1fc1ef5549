"""Gates: questions to people without a workflow of one's own, and their results. GT-1 to GT-4."""

from collections.abc import Callable, Mapping
from functools import partial

from attrs import evolve, frozen

from wfcore.errors import Conflict, InvalidDefinition, NotFound
from wfcore.model.access import Principal, Unrestricted
from wfcore.model.approval import Approval
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.json import JsonObject, as_json
from wfcore.model.workflow import Definition, DefinitionSnapshot, Workflow
from wfcore.ports.store import Unit
from wfcore.rules.definition.written import read_definition
from wfcore.rules.execution.start import Start
from wfcore.rules.gate import (
    ABOUT,
    GATES,
    bound,
    gate_document,
    gate_inputs,
    in_words_of_gate,
    is_gate,
    require_no_approver,
)
from wfcore.time import EpochMs
from wfcore.usecases.approvals.acquainting import require_own_choice
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.executions.executions import Still, read_execution, wait_until
from wfcore.usecases.executions.idempotency import Idempotency, IdempotencyRecord
from wfcore.usecases.executions.starting import StartReceipt, accept_start
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import definition_of, retried


@frozen
class GateState:
    """A question to people, and the state of its approval."""

    run: Execution
    approval: Approval


async def open_gate(
    services: Services,
    who: Principal,
    question: Mapping[str, object],
    *,
    idempotency: Idempotency | str | None = None,
    origin: Origin = UNKNOWN,
) -> StartReceipt:
    """
    Open an approval without a workflow. The approval is open on return. GT-1, GT-2.

    *question*: `message`, and optionally `groups` (with `rows`), `approvers` and `timeout`, as in a
    `manual_approval` step, but without templates. Approvers are people whom *who* may choose. GT-5.
    Raises `Forbidden` (GT-3), `InvalidInput`, `Conflict` (the idempotency key with another body, or
    a workflow of another kind has the name of gates).
    """
    require_no_approver(who)
    document = bound(as_json(question), who)
    problems = services.templates.problems
    try:
        definition = await services.offload(
            partial(read_definition, gate_document(document), problems)
        )
    except InvalidDefinition as error:
        raise in_words_of_gate(error) from None
    inputs = await services.offload(partial(gate_inputs, document, definition))
    return await _opened(services, who, definition, inputs, idempotency, origin)


@retried
async def _opened(
    services: Services,
    who: Principal,
    definition: Definition,
    inputs: JsonObject,
    idempotency: Idempotency | str | None,
    origin: Origin,
) -> StartReceipt:
    caller = who.key.id if who.key else who.account.id
    now = services.store.now()
    async with services.store.unit() as unit:
        record = await IdempotencyRecord.load(unit, f"gate:{caller}", idempotency, inputs)
        if record and (previous := record.previous_answer(now)):
            run = await execution_of(unit, previous.execution_id)
            workflow_id = run.workflow_id if run else ""
            return StartReceipt(
                previous.execution_id, workflow_id, previous.created_at, replayed=True
            )
        await require_own_choice(services, unit, who, definition)
        workflow, revision = await _workflow(unit, services, who, definition, now)
        start = Start(
            owner_id=who.account.id,
            trigger_source=TriggerSource.OPEN_API,
            variables=inputs,
            key_id=who.key.id if who.key else None,
            request_id=origin.request_id,
        )
        id = services.ids.new("exec", now)
        note(services, unit, "gate.open", who, workflow.id, origin, execution_id=id)
        return await accept_start(services, unit, workflow, start, now, record, revision, id=id)


_LOOKED_AT = 8
"""
The versions in which an equal definition is searched for: a program that alternates questions has
no more versions.
"""


async def _workflow(
    unit: Unit, services: Services, who: Principal, definition: Definition, now: EpochMs
) -> tuple[Workflow, int]:
    """The account's workflow of gates, and its version with *definition*. GT-4."""
    old = await unit.workflows.by_name(who.account.id, GATES)
    if old is None:
        workflow = Workflow(services.ids.new("wf", now), GATES, who.account.id, 1, now, now)
    else:
        for revision in range(old.revision, max(old.revision - _LOOKED_AT, 0), -1):
            known = await definition_of(unit, old.id, revision)
            if known.description != ABOUT:
                raise Conflict(f"The workflow {GATES!r} is not one of gates: rename or delete it")
            if known == definition:
                return old, revision
        workflow = evolve(old, revision=old.revision + 1, updated_at=now)
    unit.put(workflow)
    unit.put(DefinitionSnapshot(workflow.id, workflow.revision, definition))
    return workflow, workflow.revision


async def read_gate(
    services: Services,
    who: Principal | Unrestricted,
    execution_id: str,
    wait_ms: int = 0,
    *,
    leaving: Callable[[], bool] = lambda: False,
    still: Still | None = None,
) -> GateState:
    """
    The state of a gate; with *wait_ms*, the state as soon as the gate is decided. Raises
    `NotFound`, also for an execution that is not a gate.
    """
    run = await read_execution(services, who, execution_id, outputs=False)
    if not is_gate(run):
        raise NotFound("Gate")
    if wait_ms:
        run = await wait_until(
            _is_over, services, who, execution_id, wait_ms, leaving=leaving, still=still
        )
    async with services.store.view() as view:
        found = await view.approvals.of_execution(execution_id)
    if not found:
        raise NotFound("Gate")
    return GateState(run, found[0])


def _is_over(run: Execution, now: EpochMs) -> bool:
    return run.status is not ExecutionStatus.AWAITING_APPROVAL
