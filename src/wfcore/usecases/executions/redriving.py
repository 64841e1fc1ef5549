"""
Redriving: a new execution that keeps the results of an old execution's finished steps. EX-17,
EX-35.

`preview_redrive` returns the plan of `redrive`. A caller that passes the digest of that plan gets a
new execution only if the plan is still the same.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from attrs import evolve, frozen

from wfcore.effects import Effect
from wfcore.errors import Conflict, NotFound
from wfcore.model.access import Principal
from wfcore.model.execution import Artifact, Execution, ExecutionStatus, TriggerSource
from wfcore.model.json import Json, JsonObject, as_json
from wfcore.model.workflow import Definition, Workflow
from wfcore.ports.store import Unit
from wfcore.rules.definition.changes import changed_fields
from wfcore.rules.definition.written import document_of
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.given_files import latest
from wfcore.rules.execution.machine import GraceOver
from wfcore.rules.execution.redrive import RedrivePlan, plan_redrive, times_begun
from wfcore.rules.execution.scope import trigger_of
from wfcore.rules.execution.start import NOTHING, Start, id_for
from wfcore.rules.masking import MASK
from wfcore.rules.variables import bind
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.executions.starting import (
    StartReceipt,
    accept_start,
    require_own_secrets,
    startable_workflow,
)
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import (
    definition_of,
    execution_for,
    notify,
    retried,
    stage,
)

LONGEST_LINE = 1_000
"""The most redrives of redrives over which the beginnings of steps are counted."""


@frozen
class Redrive:
    """
    The wishes of a caller for a redrive. `start`: the step at which the redrive begins; None: the
    first step without a result to keep. `newest`: whether to use the workflow's present definition
    instead of the old execution's definition. `inputs` replace the old execution's inputs, name by
    name. `digest`: the digest of the plan that the caller has seen; None: any plan.
    """

    start: str | None = None
    newest: bool = False
    inputs: Mapping[str, object] = NOTHING
    digest: str | None = None


AS_IT_WAS = Redrive()


@frozen(slots=False)
class PreparedRedrive:
    """
    The plan of a redrive at this moment, and the records behind it. `replaced`: the names of the
    inputs that the redrive replaces. `id`: the id of the next redrive, another one once somebody
    else has redriven the execution.
    """

    old: Execution
    workflow: Workflow
    revision: int
    definition: Definition
    variables: JsonObject
    replaced: frozenset[str]
    redriven_as: str | None
    id: str
    plan: RedrivePlan

    @cached_property
    def digest(self) -> str:
        """
        The `RedrivePlan.digest`, with the names of secret inputs instead of their values; a secret
        that is replaced differs from one that is kept.
        """
        secret = {*self.old.secrets, *self.definition.secrets}
        shown: dict[str, Json] = {
            name: [MASK, name in self.replaced] if name in secret else value
            for name, value in self.variables.items()
        }
        return self.plan.digest(shown, self.id)


@retried
async def preview_redrive(
    services: Services, who: Principal, execution_id: str, wanted: Redrive = AS_IT_WAS
) -> PreparedRedrive:
    """
    The redrive that `redrive` would carry out; nothing is changed. Raises the errors of `redrive`.
    EX-35.
    """
    async with services.store.unit() as unit:
        return await _prepared(services, unit, who, execution_id, wanted)


@retried
async def redrive(
    services: Services,
    who: Principal,
    execution_id: str,
    wanted: Redrive = AS_IT_WAS,
    *,
    source: TriggerSource = TriggerSource.OPEN_API,
    origin: Origin = UNKNOWN,
    once: bool = False,
) -> StartReceipt:
    """
    A new execution that keeps the results of finished steps of an old execution, and their
    artifacts. EX-17, EX-35. *once*: whether to refuse a second redrive of an execution; of several
    redrives at the same moment one wins.

    Raises `NotFound` (unknown, invisible, or in a state that cannot be redriven), `Forbidden`,
    `InvalidInput` (`from`, inputs), `Conflict` (a step before `from` has no result, an artifact is
    gone, the plan has changed, or *once*), `LimitReached` (nothing was changed).
    """
    now = services.store.now()
    async with services.store.unit() as unit:
        found = await _prepared(services, unit, who, execution_id, wanted)
        old, before = found.old, found.redriven_as
        if once and before is not None:
            raise Conflict(f"{old.id} was redriven already, as {before}")
        if wanted.digest not in (None, found.digest):
            raise Conflict("The plan of this redrive has changed; ask for it again")
        start = Start(
            owner_id=who.account.id,
            trigger_source=source,
            variables=found.variables,
            trigger=trigger_of(old),
            monitored=old.monitored,
            key_id=who.key.id if who.key else None,
            redrive_of=old.id,
            reference=old.reference,
            callback_url=old.callback_url if who.key and who.key.callback_secret else None,
            chain_depth=old.chain_depth,
            step_results=found.plan.results,
            put_aside=old.put_aside,
            request_id=origin.request_id,
            trace=origin.trace,
        )
        note(services, unit, "execution.redrive", who, execution_id, origin, execution_id=old.id)
        given_up = await _given_up(unit, old, now)
        files = await _copied_artifacts(services, unit, found)
        started = await accept_start(
            services,
            unit,
            found.workflow,
            start,
            now,
            None,
            found.revision,
            id=found.id,
            files=files,
        )
    notify(services.wakeup, old.id, given_up)
    return started


async def _prepared(
    services: Services, unit: Unit, who: Principal, execution_id: str, wanted: Redrive
) -> PreparedRedrive:
    old = await execution_for(unit, who, execution_id)
    before = await definition_of(unit, old.workflow_id, old.revision)
    revision = None if wanted.newest else old.revision
    workflow = await startable_workflow(services, unit, who, old.workflow_id, revision)
    definition = before
    if wanted.newest and workflow.revision != old.revision:
        definition = await definition_of(unit, workflow.id, workflow.revision)
    given = as_json(wanted.inputs)
    require_own_secrets(who, old, before, given)
    variables = bind(definition, {**old.variables, **given})
    plan = plan_redrive(
        old,
        before,
        definition,
        services.store.now(),
        start=wanted.start,
        same_inputs=variables == old.variables,
        begun=times_begun(await _line(unit, old)),
        changes=_changes(before, definition),
    )
    redriven_as = await unit.executions.redriven_as(old.id)
    revision = workflow.revision if revision is None else revision
    id = await _next_id(unit, old, redriven_as)
    return PreparedRedrive(
        old, workflow, revision, definition, variables, frozenset(given), redriven_as, id, plan
    )


async def _next_id(unit: Unit, old: Execution, redriven_as: str | None) -> str:
    """
    The id of the next redrive of *old*. Of redrives at the same moment, each takes this id, so the
    store accepts one.
    """
    if redriven_as is None:
        return id_for(f"redrive of {old.id}")
    id = id_for(f"redrive of {old.id} after {redriven_as}")
    while await execution_of(unit, id) is not None:  # accepted in the same millisecond
        id = id_for(f"redrive of {old.id} after {id}")
    return id


def _changes(before: Definition, definition: Definition) -> Sequence[str]:
    if before == definition:
        return ()
    return tuple(changed_fields(document_of(before), document_of(definition)))


async def _line(unit: Unit, old: Execution) -> Sequence[Execution]:
    """
    *old*, then the execution that *old* redrives, and so on, as far as the executions are stored.
    """
    line = [old]
    while (earlier := line[-1].redrive_of) and len(line) < LONGEST_LINE:
        found = await execution_of(unit, earlier)
        if found is None:
            break
        line.append(found)
    return line


async def _given_up(unit: Unit, old: Execution, now: EpochMs) -> Sequence[Effect]:
    """
    Fail an interrupted execution at its redrive instead of at the end of its grace, so that the
    execution is not resumed beside its successor and takes no room in its group. EX-17.
    """
    if old.status is not ExecutionStatus.INTERRUPTED:
        return ()
    return (await stage(unit, advance(old, GraceOver(), now), now)).effects


async def _copied_artifacts(
    services: Services, unit: Unit, found: PreparedRedrive
) -> Sequence[Artifact]:
    """
    The artifacts of the last attempts of the kept steps, as staged artifacts of the new execution.
    Raises `Conflict` if a content no longer exists. EX-35.
    """
    results = found.plan.results
    ended = {key: one for key, one in results.items() if one.completed_at is not None}
    copies: list[Artifact] = []
    for one in latest(ended, await unit.artifacts.of_execution(found.old.id)):
        copy = services.ids.new("art", one.created_at)
        try:
            key = await services.files.copy(one.storage_key, found.id, copy)
        except NotFound:
            raise Conflict(f"{one.name}, which {one.step_name} left, is gone") from None
        copies.append(evolve(one, id=copy, execution_id=found.id, storage_key=key, version=0))
    for copied in copies:
        unit.put(copied)
    return copies
