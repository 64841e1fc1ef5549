"""Operations on executions."""

from collections.abc import Mapping, Sequence

from wfcore.errors import InvalidInput, NotFound
from wfcore.model.access import OPERATOR, Principal
from wfcore.model.execution import Artifact, Execution, ExecutionStatus, TriggerSource
from wfcore.model.json import JsonObject
from wfcore.model.page import PageRequest
from wfcore.model.workflow import Variable
from wfcore.ports.records import ExecutionFilter
from wfcore.rules.auth.signed_links import Keyring
from wfcore.rules.explain.progress import running_loop
from wfcore.rules.variables import parse_text
from wfcore.time import EpochMs
from wfcore.usecases import artifacts
from wfcore.usecases.administration import lookup
from wfcore.usecases.administration.operator import (
    Answer,
    Operator,
    checked_size,
    listed,
    shown,
)
from wfcore.usecases.executions import executions, redriving, starting
from wfcore.usecases.executions.callbacks import read_callback
from wfcore.usecases.executions.executions import rests
from wfcore.usecases.executions.explaining import explain_execution
from wfcore.usecases.executions.starting import StartReceipt
from wfcore.usecases.signing import signing_keys
from wfcore.usecases.starter_names import starter_names
from wfcore.wire.converter import plain
from wfcore.wire.events import (
    ArtifactView,
    artifact_view,
    event_view,
    explanation_view,
    log_view,
)
from wfcore.wire.executions import (
    StartView,
    callback_state_view,
    execution_row,
    redrive_plan_view,
    status_view,
)

NO_INPUTS: Mapping[str, str] = {}


async def start_execution(
    at: Operator,
    workflow: str,
    inputs: Mapping[str, str],
    like: str | None = None,
    reference: str | None = None,
) -> Answer:
    """
    Start a workflow as its owner would; the running server does it. Inputs are text, JSON where a
    variable's type is not string; `like`: an execution whose inputs are taken for the others.
    `reference`: a text by which people find the execution.
    """
    found = await lookup.workflow(at.services, workflow)
    started = await starting.start_execution(
        at.services,
        await lookup.owner_of(at.services, found.workflow.owner_id),
        found.workflow.id,
        _parsed(inputs, found.definition.variables),
        source=TriggerSource.MANUAL,
        like=like,
        reference=reference,
        origin=at.origin,
    )
    return _started(started)


async def redrive_execution(
    at: Operator,
    id: str,
    once: bool = False,
    start: str | None = None,
    newest: bool = False,
    inputs: Mapping[str, str] = NO_INPUTS,
    digest: str | None = None,
) -> Answer:
    """
    A new execution that begins at the first unfinished step of an ended one, or at `start`; `once`:
    only if nobody has redriven it; `digest`: only if the plan still has it. See `preview_redrive`.
    """
    who, wanted = await _redrive(at, id, start, newest, inputs, digest)
    started = await redriving.redrive(
        at.services, who, id, wanted, source=TriggerSource.MANUAL, origin=at.origin, once=once
    )
    return _started(started)


async def preview_redrive(
    at: Operator,
    id: str,
    start: str | None = None,
    newest: bool = False,
    inputs: Mapping[str, str] = NO_INPUTS,
) -> Answer:
    """
    What a redrive would keep and run. `newest`: with the workflow's present version. Inputs are
    text, JSON where a variable's type is not string.
    """
    who, wanted = await _redrive(at, id, start, newest, inputs)
    found = await redriving.preview_redrive(at.services, who, id, wanted)
    return shown(redrive_plan_view(found.plan, found.digest, newest, found.revision))


async def _redrive(
    at: Operator,
    id: str,
    start: str | None,
    newest: bool,
    inputs: Mapping[str, str],
    digest: str | None = None,
) -> tuple[Principal, redriving.Redrive]:
    """Who redrives, the owner of the execution, and what they want."""
    old = await executions.read_execution(at.services, OPERATOR, id, outputs=False)
    who = await lookup.owner_of(at.services, old.owner_id)
    values: JsonObject = {}
    if inputs:
        found = await lookup.workflow(at.services, old.workflow_id)
        values = _parsed(inputs, found.definition.variables)
    return who, redriving.Redrive(start, newest, values, digest)


def _parsed(inputs: Mapping[str, str], declared: Mapping[str, Variable]) -> JsonObject:
    """Inputs as their variables are declared. Raises `InvalidInput`."""
    if not all(isinstance(text, str) for text in inputs.values()):
        raise InvalidInput("inputs", "must be an object of strings")
    return {name: parse_text(declared.get(name), text) for name, text in inputs.items()}


def _started(started: StartReceipt) -> Answer:
    pending = ExecutionStatus.PENDING
    view = StartView(started.execution_id, pending, started.workflow_id, started.started_at)
    return shown(view)


async def list_executions(
    at: Operator,
    workflow: str | None = None,
    status: Sequence[ExecutionStatus] = (),
    by: Sequence[TriggerSource] = (),
    since: int | None = None,
    until: int | None = None,
    oldest: bool = False,
    limit: int = 50,
    reference: str | None = None,
) -> Answer:
    """Executions, newest first; `since` and `until` in milliseconds since 1970."""
    id = (await lookup.workflow(at.services, workflow)).workflow.id if workflow else None
    where = ExecutionFilter(
        None,
        id,
        tuple(status),
        tuple(by),
        None if since is None else EpochMs(since),
        None if until is None else EpochMs(until),
        oldest,
        reference=reference,
    )
    page = PageRequest(1, checked_size(limit))
    found = await executions.list_executions(at.services, OPERATOR, page, where)
    names = await starter_names(at.services, found.rows)
    return listed((execution_row(run, names) for run in found.rows), found.total)


async def read_execution(at: Operator, id: str) -> Answer:
    """One execution with the results of its steps."""
    return await _status(at, await executions.read_execution(at.services, OPERATOR, id))


async def check_execution(at: Operator, id: str) -> Answer:
    """How far one execution is, and whether it rests, which it does until somebody acts."""
    run = await executions.read_execution(at.services, OPERATOR, id, outputs=False)
    view = status_view(run, outputs=False)
    return {
        "status": view.status,
        "completedSteps": view.completed_steps,
        "totalSteps": view.total_steps,
        "currentStep": view.current_step,
        "rounds": running_loop(run),
        "rests": rests(run, at.services.clock.service_now()),
    }


async def explain(at: Operator, id: str) -> Answer:
    """Why nothing is happening, or what happens next."""
    found = await explain_execution(at.services, OPERATOR, id, serving=at.serving)
    return shown(explanation_view(found.run, found.at, found.lines))


async def read_logs(
    at: Operator,
    id: str,
    after: int = 0,
    step: str | None = None,
    stream: str | None = None,
    search: str | None = None,
) -> Answer:
    """What its steps wrote after line `after`; `rests`: no more comes without somebody."""
    run, found, after = await executions.read_logs(
        at.services, OPERATOR, id, after, step, stream=stream, search=search
    )
    items = [plain(log_view(event)) for event in found]
    resting = rests(run, at.services.clock.service_now())
    return {"items": items, "next": after, "rests": resting}


async def read_events(at: Operator, id: str, after: int = 0) -> Answer:
    """Its events after number `after`; `rests`: no more comes without somebody."""
    run, found = await executions.read_events(at.services, OPERATOR, id, after)
    next = found[-1].number if found else after
    resting = rests(run, at.services.clock.service_now())
    return {"items": [plain(event_view(one)) for one in found], "next": next, "rests": resting}


async def list_artifacts(at: Operator, execution: str) -> Answer:
    """The artifacts of an execution, newest first; their links are good for 15 minutes."""
    found = await artifacts.list_artifacts(at.services, OPERATOR, execution)
    keys = await signing_keys(at.services)
    return listed((_artifact(at, keys, one) for one in found), len(found))


async def read_artifact(at: Operator, execution: str, artifact: str) -> Answer:
    """One artifact of an execution, by its id, or by its name: the newest of that name."""
    found = await artifacts.list_artifacts(at.services, OPERATOR, execution)
    keys = await signing_keys(at.services)
    for one in found:
        if artifact in (one.id, one.name):
            return shown(_artifact(at, keys, one))
    raise NotFound("Artifact")


def _artifact(at: Operator, keys: Keyring, artifact: Artifact) -> ArtifactView:
    signed = artifacts.link(at.services, keys, artifact.id)
    path = artifacts.download_path(artifact.execution_id, artifact.id, signed)
    return artifact_view(artifact, f"{at.base_url}{path}")


async def cancel_execution(at: Operator, id: str) -> Answer:
    """End it at once; running steps are killed."""
    await executions.cancel_execution(at.services, OPERATOR, id, at.origin)
    return await read_execution(at, id)


async def _status(at: Operator, run: Execution) -> Answer:
    names = await starter_names(at.services, [run])
    view = status_view(run, names, await executions.redriven_as(at.services, run))
    told = None
    if run.callback_url is not None:
        told = plain(callback_state_view(*await read_callback(at.services, OPERATOR, run.id)))
    return {**shown(view), "callback": told, "rounds": running_loop(run)}
