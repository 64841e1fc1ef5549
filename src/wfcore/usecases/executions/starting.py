"""Starting an execution: the parts that all starts share. EX-1, EX-34, IK-1."""

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from wfcore.effects import Outcome
from wfcore.errors import Forbidden, InvalidInput
from wfcore.model.access import Permission, Principal
from wfcore.model.execution import Artifact, Execution, TriggerSource
from wfcore.model.json import JsonObject, as_json
from wfcore.model.trace import span_of
from wfcore.model.webhook import Delivery
from wfcore.model.workflow import Concurrency, Definition, OnLimit, Workflow
from wfcore.ports.store import Unit, View
from wfcore.rules.approval.people import People
from wfcore.rules.callback import FIELD, check_url
from wfcore.rules.execution.concurrency import in_group, require_room
from wfcore.rules.execution.plan import Render
from wfcore.rules.execution.proceed import NewId
from wfcore.rules.execution.reference import checked_reference, referred
from wfcore.rules.execution.start import NOTHING, Start, accept, begun_alone
from wfcore.rules.gate import ABOUT, GATES, require_no_approver
from wfcore.time import EpochMs
from wfcore.usecases.approvals.acquainting import acquainted, require_own_choice
from wfcore.usecases.approvals.opening import opened
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.executions.idempotency import Idempotency, IdempotencyRecord
from wfcore.usecases.notices.telling import tell_outcome
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.state import state_of, with_state
from wfcore.usecases.unit_of_work import (
    definition_of,
    execution_for,
    notify,
    retried,
    stage,
    workflow_for,
)


@frozen
class StartReceipt:
    """
    The accepted execution. `replayed`: whether this repeats the first answer; then nothing was
    started.
    """

    execution_id: str
    workflow_id: str
    started_at: EpochMs
    replayed: bool = False


@retried
async def start_execution(
    services: Services,
    who: Principal,
    workflow_id: str,
    inputs: Mapping[str, object],
    *,
    source: TriggerSource = TriggerSource.OPEN_API,
    monitored: bool = False,
    callback_url: str | None = None,
    idempotency: Idempotency | str | None = None,
    like: str | None = None,
    reference: str | None = None,
    origin: Origin = UNKNOWN,
) -> StartReceipt:
    """
    Accept an execution of a workflow that *who* may EXECUTE; durable on return.

    *source*: the trigger of the execution. MANUAL lets the service restart a step that ran at a
    crash. EX-12, EX-14. *monitored*: output lines are also in the event stream. EX-28.
    *callback_url*: the URL that gets a callback at the end. *idempotency*: a key; within 24 h the
    same key with the same request returns the first answer and starts nothing. IK-1. *like*: an
    execution of the workflow whose inputs and reference are taken, where *inputs* and *reference*
    give no others. EX-36. *reference*: a text by which people find the execution; None: the
    definition's. EX-38. *origin*: the origin of the request, for the audit log; the request's id
    and trace are stored.

    Raises `NotFound`, `Forbidden`, `InvalidInput`, `Conflict` (the same key with another
    fingerprint), `LimitReached`.
    """
    caller = who.key.id if who.key else who.account.id
    now, reference = services.store.now(), checked_reference(reference)
    given = as_json(inputs)
    request = {
        "inputs": given,
        "callbackUrl": callback_url,
        "like": like,
        "reference": reference,
    }
    async with services.store.unit() as unit:
        workflow = await startable_workflow(services, unit, who, workflow_id)
        scope = f"start:{caller}:{workflow_id}"
        record = await IdempotencyRecord.load(unit, scope, idempotency, request)
        previous = record.previous_answer(now) if record else None
        if previous is not None:
            return StartReceipt(
                previous.execution_id, workflow_id, previous.created_at, replayed=True
            )
        if like is not None:
            old = await _like(unit, who, workflow, like, given)
            given, reference = {**old.variables, **given}, reference or old.reference
        start = Start(
            owner_id=who.account.id,
            trigger_source=source,
            variables=given,
            reference=reference,
            monitored=monitored,
            key_id=who.key.id if who.key else None,
            callback_url=_callback(services, who, callback_url),
            request_id=origin.request_id,
            trace=origin.trace,
        )
        id = services.ids.new("exec", now)
        if source is not TriggerSource.OPEN_API:
            note(services, unit, "execution.start", who, workflow_id, origin, execution_id=id)
        return await accept_start(services, unit, workflow, start, now, record, id=id)


async def _like(
    unit: Unit, who: Principal, workflow: Workflow, like: str, given: JsonObject
) -> Execution:
    """The execution *like*, whose inputs are taken. Raises `NotFound`, `InvalidInput`. EX-36."""
    old = await execution_for(unit, who, like)
    if old.workflow_id != workflow.id:
        raise InvalidInput("like", "is an execution of another workflow")
    definition = await definition_of(unit, old.workflow_id, old.revision)
    require_own_secrets(who, old, definition, given)
    return old


def require_own_secrets(
    who: Principal, old: Execution, definition: Definition, given: JsonObject
) -> None:
    """
    Raises `InvalidInput` for a secret input of *old* that another account gave, unless *given* has
    another value. EX-35, EX-36.
    """
    if old.owner_id == who.account.id:
        return
    for name in sorted({*old.secrets, *definition.secrets} - given.keys()):
        declared = definition.variables.get(name)
        default = declared.default if declared and declared.has_default else None
        if old.variables.get(name, default) != default:
            raise InvalidInput(f"inputs.{name}", "is a secret of another account: give your own")


def _callback(services: Services, who: Principal, url: str | None) -> str | None:
    """The callback address. Raises `InvalidInput`. CB-1, CB-4."""
    if url is None:
        return None
    if who.key is None or who.key.callback_secret is None:
        raise InvalidInput(FIELD, "needs a key with a callback secret; rotate the key to get one")
    return check_url(url, services.policy.private_callbacks)


async def accept_start(
    services: Services,
    unit: Unit,
    workflow: Workflow,
    start: Start,
    now: EpochMs,
    record: IdempotencyRecord | None,
    revision: int | None = None,
    delivery: Delivery | None = None,
    id: str | None = None,
    files: Sequence[Artifact] = (),
) -> StartReceipt:
    """Store a new execution with the record of its request, and commit."""
    outcome = await enqueue(
        services, unit, workflow, start, now, revision=revision, id=id, files=files
    )
    run = outcome.record
    if record is not None:
        unit.put(record.record_for(run.id, now))
    if delivery is not None:
        unit.deliver(evolve(delivery, execution_id=run.id))
    await unit.commit()
    notify(services.wakeup, run.id, outcome.effects)
    return StartReceipt(run.id, workflow.id, now)


async def enqueue(
    services: Services,
    unit: Unit,
    workflow: Workflow,
    start: Start,
    now: EpochMs,
    about: JsonObject = NOTHING,
    *,
    revision: int | None = None,
    id: str | None = None,
    files: Sequence[Artifact] = (),
) -> Outcome[Execution]:
    """
    Stage a new execution of the workflow into *unit*, advanced as far as possible without a worker;
    notify after the commit. EX-34.

    *about*: further details of its first event; *revision*: a revision instead of the workflow's
    present revision; *id*: an id made before; *files*: staged artifacts with which the execution
    begins. Raises `InvalidInput` for inputs that break the declarations, `LimitReached` for a full
    workflow with `onLimit: skip`.
    """
    id, render = id or services.ids.new("exec", now), services.templates.render
    start = await _in_its_trace(services, unit, start, id, about)
    accepted, definition = await prepared(
        unit, render, workflow, start, id, now, about, revision=revision
    )
    most = services.policy.facts_at_once
    seeing = with_state(render, await state_of(unit, workflow.id, definition))

    def turn(new_id: NewId, people: People | None) -> Outcome[Execution]:
        return begun_alone(accepted, definition, now, seeing, new_id, most, people)

    begun = await acquainted(services, unit, workflow.id, now, turn)
    if begun is accepted:
        return await stage(unit, accepted, now)
    return await stage_turn(services, unit, begun, now, files)


async def _in_its_trace(
    services: Services, unit: Unit, start: Start, id: str, about: JsonObject
) -> Start:
    """
    *start* in the trace of its request, or in a new trace if spans are made. If the execution
    follows from an execution of another trace, the trace names that execution. TR-2.
    """
    trace = start.get("trace") or (services.tracing(id) if services.tracing else None)
    if trace is None:
        return start
    if trace.recorded and (old := start.get("redrive_of") or about.get("completedExecutionId")):
        before = await execution_of(unit, str(old))
        if before is not None and before.trace is not None and before.trace.recorded:
            trace = evolve(trace, cause=before.trace.traceparent(span_of(before.id)))
    return {**start, "trace": trace}


async def stage_turn(
    services: Services,
    unit: Unit,
    outcome: Outcome[Execution],
    now: EpochMs,
    left: Sequence[Artifact] = (),
) -> Outcome[Execution]:
    """
    Stage the result of a turn of an execution with its approvals and notices; returns the outcome
    with the resulting hints. *left*: artifacts that the same unit stores.
    """
    outcome = await opened(services, unit, outcome, now, left)
    return await tell_outcome(services, unit, await stage(unit, outcome, now))


async def prepared(
    unit: Unit,
    render: Render,
    workflow: Workflow,
    start: Start,
    id: str,
    now: EpochMs,
    about: JsonObject = NOTHING,
    *,
    revision: int | None = None,
) -> tuple[Outcome[Execution], Definition]:
    """
    The accepted execution and its definition. The execution is in its concurrency group and, if it
    needs room, with room claimed.

    An execution started by another execution inherits the starter's `chain_depth`. The limit comes
    from the workflow's newest definition, whatever the revision. CC-5.
    """
    newest = definition = await definition_of(unit, workflow.id, workflow.revision)
    if revision not in (None, workflow.revision):
        workflow = evolve(workflow, revision=revision)
        definition = await definition_of(unit, workflow.id, workflow.revision)
    started = accept(workflow, definition, start, id, now, about)
    started = referred(started, definition.reference, render)
    if (limit := newest.concurrency) is None:
        return started, definition
    started = in_group(started, limit, render)
    if limit.on_limit is OnLimit.SKIP:
        await _claim_room(unit, started.record, limit)
    return started, definition


async def _claim_room(unit: Unit, run: Execution, limit: Concurrency) -> None:
    """Make sure that of racing starts only as many commit as there is room. CC-4."""
    assert run.concurrency_group is not None
    require_room(run, limit, await unit.groups.unfinished(run.concurrency_group))
    unit.require_room(run.concurrency_group, limit.limit)


async def startable_workflow(
    services: Services,
    view: View | Unit,
    who: Principal,
    workflow_id: str,
    revision: int | None = None,
) -> Workflow:
    """
    The workflow, if *who* may start it; for a workflow of gates, if *who* may open a gate. GT-3,
    GT-5. *revision*: an older revision; None: the present revision. Raises `NotFound`, `Forbidden`.
    """
    workflow = await workflow_for(view, who, workflow_id, Permission.EXECUTE)
    if workflow.name == GATES:
        definition = await definition_of(view, workflow.id, revision or workflow.revision)
        if definition.description == ABOUT:
            require_no_approver(who)
            try:
                await require_own_choice(services, view, who, definition)
            except InvalidInput as refused:
                raise Forbidden(str(refused)) from None
    return workflow
