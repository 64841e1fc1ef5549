"""
Running executions: claim, begin, complete. The use cases of a worker. EX-2, EX-3, EX-14, EX-16.

A step is recorded as begun before it starts; the end of a step and the beginning of the next step
are one unit. Every write checks the lease, so a worker that lost its lease changes nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from attrs import define, evolve, field, frozen

from wfcore.effects import CancelChildren, Outcome, StartStep
from wfcore.errors import LeaseLost, NotRead, Stale
from wfcore.model.event import EventKind
from wfcore.model.execution import Artifact, Execution
from wfcore.model.workflow import Definition
from wfcore.ports.runtime import Job, StepEnd, StepJob
from wfcore.ports.store import Slots, Unit, head_of
from wfcore.rules.approval.people import People
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.fold import advance, announce
from wfcore.rules.execution.given_files import FilesUnavailable, GivenFolder, folder_of
from wfcore.rules.execution.interruption import handed_back, loss
from wfcore.rules.execution.proceed import NewId, proceed
from wfcore.rules.execution.scope import name_of, unread_outputs
from wfcore.rules.limits import KIB
from wfcore.rules.masking import NO_SECRETS, Secrets, secret_values
from wfcore.rules.named_secrets import SecretMissing
from wfcore.rules.state import SeenState
from wfcore.time import EpochMs
from wfcore.usecases.approvals.acquainting import acquainted
from wfcore.usecases.artifacts import artifact_of, created
from wfcore.usecases.executions.children import interrupted_too_long, start_children
from wfcore.usecases.executions.given_files import files_for
from wfcore.usecases.executions.starting import stage_turn
from wfcore.usecases.executions.step_jobs import (
    NotRendered,
    end_facts,
    fitting,
    job_for,
    log_of,
    logged,
    mask_lines,
    named_secrets,
    room_for,
    told,
    with_names_masked,
    without_secrets,
)
from wfcore.usecases.executions.writing_state import is_completed, written_state
from wfcore.usecases.notices.mails import send_mails
from wfcore.usecases.notices.telling import tell_outcome
from wfcore.usecases.reading import execution_of, held_again, held_outputs, held_texts
from wfcore.usecases.services import Services
from wfcore.usecases.state import committed_state, state_of, with_state
from wfcore.usecases.unit_of_work import definition_of, notify, retried, stage

_ASIDE = 64 * KIB
"""The number of characters from which secrets are searched for outside the event loop."""


@define(eq=False)
class LastStored:
    """
    The execution that the holder of the lease stored last; None: the execution must be read.
    `folders`: the files of steps that ended, by key and number of attempts.
    """

    run: Execution | None = None
    folders: dict[tuple[str, int], GivenFolder[Artifact]] = field(factory=dict)


@frozen
class Lease:
    """
    A worker's hold on one execution. The store refuses writes with an old fence. `last`: the record
    from which the next unit of work starts without a read; the unit's commit compares versions.
    """

    worker: str
    execution_id: str
    fence: int
    last: LastStored = field(factory=LastStored, eq=False, repr=False)


@frozen
class Work:
    """
    The work for an execution that a worker holds: run each job of `jobs` once, however often the
    job is returned; stop steps of the execution that are not `in_flight`; and call `go_on` at
    `due_at`.
    """

    jobs: tuple[Job, ...] = ()
    in_flight: frozenset[str] = frozenset()
    due_at: EpochMs | None = None


async def claim(
    services: Services, worker: str, limit: int, **which: Collection[str] | None
) -> Sequence[Lease]:
    """
    Claim up to *limit* due executions for *worker*; *which*: `ids`, `able` of `Store.claim`. EX-2.

    Returns no lease if the store took longer than half of the lease time. The claimed executions
    then expire and continue later; otherwise they would begin under a lease that ends in the
    meantime.
    """
    now, lease_ms = services.store.now(), services.policy.lease_ms
    slots = Slots(services.policy.places)
    taken = await services.store.claim(worker, lease_ms, slots, limit, **which)
    if services.store.now() - now > lease_ms // 2:
        return []
    return [Lease(worker, run.id, run.fence, LastStored(run)) for run in taken]


async def next_due(services: Services, able: Collection[str] | None = None) -> EpochMs | None:
    """
    The due time of the earliest unclaimed execution that a worker with the capabilities *able*
    (None: all) may take; already past if the execution only waits for a free slot.
    """
    async with services.store.view() as view:
        return await view.executions.next_due(able)


async def heartbeat(
    services: Services, worker: str, execution_ids: Collection[str]
) -> Mapping[str, EpochMs | None]:
    """
    Extend the leases of *worker*; returns the executions of *execution_ids* that the worker still
    holds, each with the time at which the worker must `go_on`.

    The worker has lost the other executions. If the answer to a claim was lost, the worker holds
    leases that it does not know of; those leases expire, and their executions continue elsewhere.
    """
    return await services.store.extend(worker, execution_ids, services.policy.lease_ms)


async def begin(services: Services, lease: Lease) -> Work:
    """
    Advance a claimed execution as far as possible without steps; returns the work to do now. EX-2,
    EX-15.

    A second call under the same lease (the answer was lost) records nothing and returns the same
    steps: in a claimed execution only the steps of this call are in flight. EX-23.

    Raises `LeaseLost`.
    """
    definition, outcome = await _move(services, lease, (facts.Claimed(),))
    return await _work(services, lease, definition, outcome)


async def go_on(
    services: Services, lease: Lease, started_attempts: Collection[tuple[str, int]] = ()
) -> Work:
    """
    Continue a held execution after a delay, a decided approval or a timeout. Returns the work to do
    now. FL-7, FL-10.

    The jobs are the jobs of all steps in flight except *started_attempts*, by step and attempt. So
    the jobs of an earlier call are included if the answer to that call was lost. EX-23. Raises
    `LeaseLost`.
    """
    definition, outcome = await _move(services, lease, ())
    return await _work(services, lease, definition, _not_started(outcome, started_attempts))


@retried
async def _move(
    services: Services, lease: Lease, first: tuple[facts.Fact, ...]
) -> tuple[Definition, Outcome[Execution]]:
    now = services.store.now()
    async with services.store.unit() as unit:
        run, definition = await _held(unit, lease)
        if first and run.in_flight:
            return definition, _in_flight(await _confirmed(unit, lease, run))
        outcome = await _proceed(services, unit, run, definition, now, *first)
        if outcome.record is run:
            await _confirmed(unit, lease, run)
        else:
            outcome = await _collected(services, unit, outcome, now)
            await _commit(unit, lease)
    return definition, outcome


async def complete_step(
    services: Services,
    lease: Lease,
    step_name: str,
    end: StepEnd,
    *,
    attempt: int | None = None,
    postponed: int | None = None,
    go_on: bool = True,
    hidden: Secrets = NO_SECRETS,
) -> Work:
    """
    Record the end of a step with its artifacts, and begin the next steps; returns the work to do
    now.

    *attempt*: the ended attempt (None: the attempt in flight); *postponed*: how often that attempt
    had been postponed before (None: the recorded number). An end that is already recorded (the
    answer was lost, or the step was stopped) is not recorded again; then the jobs are all steps in
    flight, and the caller starts the steps that it has not started yet. EX-23. If *end* says that
    nothing of the attempt ran, the attempt is taken back and may be returned again. EX-27.

    *go_on* False: no step starts; another worker continues the execution. *hidden*: the secrets of
    the job, which are masked in every record. SC-6.

    Raises `LeaseLost`: the result is dropped.
    """
    which = attempt, postponed
    if hidden:
        large = (end.size or 0) + sum(len(text) for _, text in end.lines) > _ASIDE
        mask = partial(without_secrets, end, hidden)
        end = await services.offload(mask) if large else mask()
    definition, outcome = await _complete(services, lease, step_name, end, which, go_on, hidden)
    return await _work(services, lease, definition, outcome)


@retried
async def _complete(
    services: Services,
    lease: Lease,
    step_name: str,
    end: StepEnd,
    which: tuple[int | None, int | None],
    go_on: bool,
    hidden: Secrets = NO_SECRETS,
) -> tuple[Definition, Outcome[Execution]]:
    now = services.store.now()
    async with services.store.unit() as unit:
        run, definition = await _held(unit, lease)
        if not _runs(run, step_name, *which):
            return definition, _in_flight(await _confirmed(unit, lease, run))
        written = await written_state(unit, run, definition, end, hidden)
        end = with_names_masked(written.end, secret_values(run))
        if end.files:
            kept = await unit.artifacts.of_execution(run.id)
            end = fitting(end, room_for(run, kept, end.error is not None))
        files = end.files
        left = [artifact_of(run, step_name, file, now) for file in files]
        for artifact in left:
            unit.put(artifact)
        if end.lines and end.postponed is None and not run.monitored:
            for line in logged(run, step_name, end.lines, now):
                unit.log(line)
        told = announce(run, [created(step_name, file) for file in files], now)
        ended = end_facts(told.record, definition, step_name, end, now)
        state = await state_of(unit, run.workflow_id, definition, written.state)
        outcome = await _proceed(services, unit, told.record, definition, now, *ended, state=state)
        if not is_completed(outcome, step_name) and written.state is not None:
            outcome = await _proceed(services, unit, told.record, definition, now, *ended)
        if not go_on and any(isinstance(effect, StartStep) for effect in outcome.effects):
            outcome = handed_back(told.record, ended, now)
        if is_completed(outcome, step_name) and written.state is not None:
            unit.put(written.state)
        outcome = evolve(outcome, events=(*told.events, *outcome.events))
        outcome = await _collected(services, unit, outcome, now, left)
        read = {}
        if name_of(step_name) in definition.steps_read and end.postponed is None:
            place = step_name, run.step_results[step_name].attempts
            read[place] = folder_of(step_name, left)
        await _commit(unit, lease)
    lease.last.folders.update(read)
    return definition, outcome


async def _collected(
    services: Services,
    unit: Unit,
    outcome: Outcome[Execution],
    now: EpochMs,
    left: Sequence[Artifact] = (),
) -> Outcome[Execution]:
    """
    The outcome with the resulting hints, due mails and started children. *left*: the artifacts that
    the same unit stores.
    """
    outcome = await stage_turn(services, unit, outcome, now, left)
    outcome = await send_mails(services, unit, outcome, now, left)
    return await start_children(unit, services.templates.render, outcome, now)


@retried
async def log_lines(
    services: Services,
    lease: Lease,
    step_name: str,
    stream: str,
    lines: str,
    hidden: Secrets = NO_SECRETS,
    *,
    continued: bool = False,
) -> None:
    """
    Add output lines of a running step to the event log. The secrets of the execution and the job's
    secrets *hidden* are masked. *continued*: whether the line before is still open. Raises
    `LeaseLost`.
    """
    now = services.store.now()
    async with services.store.unit() as unit:
        run = await _leased(unit, lease)
        text = mask_lines(lines, hidden, secret_values(run), continued=continued)
        about = log_of(run, step_name, stream, text)
        await stage(unit, announce(run, [(EventKind.STEP_LOG, about)], now), now)
        await _commit(unit, lease)
    services.wakeup.events(run.id)


@retried
async def keep_lines(
    services: Services,
    lease: Lease,
    step_name: str,
    lines: Iterable[tuple[str, str]],
    before: int,
    hidden: Secrets = NO_SECRETS,
    *,
    continued: Collection[str] = (),
) -> int:
    """
    Store output lines of a running step, masked, without an event: pages show these lines, the
    event stream does not. Returns the number of rows, which follow the *before* rows of this lease.
    *continued*: streams whose last line is still open. EX-28. Raises `LeaseLost`.
    """
    now = services.store.now()
    lease.last.run = None  # lines change no record, so that no commit would notice a lost lease
    async with services.store.unit() as unit:
        run = await _leased(unit, lease)
        secrets = secret_values(run)
        masked = [
            (name, mask_lines(text, hidden, secrets, continued=name in continued))
            for name, text in lines
        ]
        rows = list(told(run, step_name, masked, now, before))
        if not rows:
            return 0
        known = await unit.logs.of_execution(run.id, rows[0].number - 1, 1)
        if known and known[0].number == rows[0].number:  # the answer got lost
            return len(rows)
        for row in rows:
            unit.log(row)
        await _commit(unit, lease)
    services.wakeup.events(run.id)
    return len(rows)


@retried
async def hand_back(services: Services, lease: Lease) -> None:
    """
    Give up an execution. Another worker continues the execution. If a step was in flight (the
    caller has ended the step), the execution is INTERRUPTED. EX-11, EX-15. Raises `LeaseLost`.
    """
    now = services.store.now()
    async with services.store.unit() as unit:
        run, definition = await _held(unit, lease)
        outcome = advance(run, loss(run, definition, now, services.policy.grace_ms), now)
        outcome = await stage(unit, outcome, now)
        await unit.commit()
    notify(services.wakeup, run.id, outcome.effects)


@retried
async def break_off(services: Services, lease: Lease) -> None:
    """End an execution as FAILED because of a defect of the service. Raises `LeaseLost`."""
    now = services.store.now()
    async with services.store.unit() as unit:
        run = await _leased(unit, lease)
        claimed = advance(run, facts.Claimed(), now)
        broken = advance(claimed.record, facts.Failed("Internal error"), now)
        outcome = evolve(broken, events=(*claimed.events, *broken.events))
        outcome = await tell_outcome(services, unit, await stage(unit, outcome, now))
        await unit.commit()
    notify(services.wakeup, run.id, outcome.effects)


def _runs(run: Execution, step_name: str, attempt: int | None, postponed: int | None) -> bool:
    """Whether that start of that attempt is in flight, so that its end is not recorded yet."""
    if step_name not in run.in_flight:
        return False
    known = run.step_results[step_name]
    return attempt in (None, known.attempts) and postponed in (None, known.postponed)


def _in_flight(run: Execution) -> Outcome[Execution]:
    """The steps begun under the present lease that have not ended, as if they began now."""
    results = ((name, run.step_results[name]) for name in run.in_flight)
    begun = (StartStep(name, one.attempts, one.postponed) for name, one in results)
    return Outcome(run, effects=tuple(begun))


def _not_started(
    outcome: Outcome[Execution], started_attempts: Collection[tuple[str, int]]
) -> Outcome[Execution]:
    """The outcome with every step in flight to be started, except *started_attempts*."""
    others = [one for one in outcome.effects if not isinstance(one, StartStep)]
    begun = (one for one in _in_flight(outcome.record).effects if isinstance(one, StartStep))
    unmet = [one for one in begun if (one.step_name, one.attempt) not in started_attempts]
    return evolve(outcome, effects=(*others, *unmet))


async def _held(unit: Unit, lease: Lease) -> tuple[Execution, Definition]:
    run = await _leased(unit, lease)
    return run, await definition_of(unit, run.workflow_id, run.revision)


async def _leased(unit: Unit, lease: Lease) -> Execution:
    """
    The execution, if the lease still holds. The record stored last under the lease is used without
    a read. The execution is read after a failed unit, and always for a traced execution: spans are
    made from the records that a unit read and stored. Raises `LeaseLost`. EX-16, TR-3.
    """
    run, lease.last.run = lease.last.run, None
    if run is None or (run.trace is not None and run.trace.recorded):
        run = await execution_of(unit, lease.execution_id)
    if run is None or (run.worker, run.fence) != (lease.worker, lease.fence):
        raise LeaseLost(lease.execution_id)
    return run


async def _confirmed(unit: Unit, lease: Lease, run: Execution) -> Execution:
    """
    Returns *run*, if the store still has this version: for a unit that stores nothing. Raises
    `Stale`.
    """
    found = await head_of(unit, run.id)
    if found is None or found.version != run.version:
        raise Stale("executions", run.id)
    lease.last.run = run
    return run


async def _commit(unit: Unit, lease: Lease) -> None:
    """Commit, and keep the stored execution for the next unit."""
    stored = await head_of(unit, lease.execution_id)
    await unit.commit()
    lease.last.run = stored


async def _proceed(
    services: Services,
    unit: Unit,
    run: Execution,
    definition: Definition,
    now: EpochMs,
    *first: facts.Fact,
    state: SeenState | None = None,
) -> Outcome[Execution]:
    """
    Advance *run* as far as possible without a worker; children that were interrupted for too long
    are ended. EX-26. *state*: the workflow's state; None: the state is read.
    """
    late = await interrupted_too_long(unit, run, now)
    state = state or await state_of(unit, run.workflow_id, definition)
    render, most = with_state(services.templates.render, state), services.policy.facts_at_once

    def turn(new_id: NewId, people: People | None) -> Outcome[Execution]:
        came = *first, *late
        return proceed(run, definition, now, render, new_id, *came, most=most, people=people)

    outcome = await acquainted(services, unit, run.workflow_id, now, turn)
    if not late:
        return outcome
    cancelled = CancelChildren(tuple(one.child_id for one in late))
    return evolve(outcome, effects=(*outcome.effects, cancelled))


async def _work(
    services: Services, lease: Lease, definition: Definition, outcome: Outcome[Execution]
) -> Work:
    """The begun steps as jobs. A step whose templates cannot be rendered has failed already."""
    run = outcome.record
    jobs: list[Job] = []
    for begun in notify(services.wakeup, lease.execution_id, outcome.effects):
        which = begun.attempt, begun.postponed
        if not _runs(run, begun.step_name, *which):
            continue
        try:
            jobs.append(await _job(services, lease, run, definition, begun))
        except (NotRendered, SecretMissing, FilesUnavailable) as failed:
            end = StepEnd(error=str(failed), permanent=True)
            name = begun.step_name
            definition, then = await _complete(services, lease, name, end, which, True)
            notify(services.wakeup, lease.execution_id, then.effects)
            return await _work(services, lease, definition, _in_flight(then.record))
    due_at = run.due_at if run.worker is not None else None
    return Work(tuple(jobs), frozenset(run.in_flight), due_at)


async def _job(
    services: Services, lease: Lease, run: Execution, definition: Definition, begun: StartStep
) -> Job:
    """
    The job of a begun step, after reading the outputs that its templates need. A code step gets all
    outputs that it sees, those that no template needs as text. Raises `NotRendered`,
    `SecretMissing`, `FilesUnavailable`, `LeaseLost`.
    """
    step = definition.step(name_of(begun.step_name))
    secrets = await named_secrets(services, run, step)
    files = await files_for(services, run, definition, begun.step_name, lease.last.folders)
    state = await committed_state(services, run, definition)
    run = lease.last.run or run  # with its version as stored, by which outputs are read
    while True:
        try:
            job = job_for(services.templates, run, definition, begun, secrets, state, files)
            return await _with_outputs(services, run, job) if isinstance(job, StepJob) else job
        except NotRead as missed:
            run = await held_outputs(services, run, {missed.key})
        except Stale:
            run = await held_again(services, run)


async def _with_outputs(services: Services, run: Execution, job: StepJob) -> StepJob:
    """*job* with the outputs in its context that *run* has not read. Raises `Stale`. ST-7."""
    unread = unread_outputs(job.names)
    if not unread:
        return job
    texts = await held_texts(services, run, set(unread.values()))
    return evolve(job, outputs={name: texts[key] for name, key in unread.items()})
