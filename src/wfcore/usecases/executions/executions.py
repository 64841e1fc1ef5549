"""Reading and cancelling executions. Spec: executions."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from attrs import evolve

from wfcore.errors import AlreadyFinished, IllegalMove, NoResultYet, NotFound
from wfcore.model.access import OPERATOR, Principal, Unrestricted
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.page import Page, PageRequest
from wfcore.model.workflow import Definition, Workflow
from wfcore.ports.records import ExecutionFilter
from wfcore.ports.store import View
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.machine import EXECUTION, CancelAsked
from wfcore.rules.execution.redrive import FROM
from wfcore.rules.named_secrets import kept_secret
from wfcore.time import EpochMs
from wfcore.usecases.approvals.expiry import expire_all_due, expire_due_of
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.reading import outputs_of
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import definition_of, execution_for, notify, retried, stage

EVERY_EXECUTION = ExecutionFilter()


async def list_executions(
    services: Services,
    who: Principal | Unrestricted,
    page: PageRequest,
    where: ExecutionFilter = EVERY_EXECUTION,
) -> Page[Execution]:
    """
    The executions of the caller, or all executions of a workflow that the caller owns; the owner in
    *where* is ignored. AC-4.

    The rows contain no step outputs.
    """
    await expire_all_due(services)
    async with services.store.view() as view:
        return await view.executions.list(await visible(view, who, where), page)


async def visible(
    view: View, who: Principal | Unrestricted, where: ExecutionFilter
) -> ExecutionFilter:
    """*where*, narrowed to the executions that *who* sees in lists. AC-4."""
    if who is OPERATOR:
        return where
    owner_id: str | None = who.account.id
    if where.workflow_id is not None:
        workflow = await view.get(Workflow, where.workflow_id)
        if workflow is not None and workflow.owner_id == owner_id:
            owner_id = None
    return evolve(where, owner_id=owner_id)


async def read_execution(
    services: Services, who: Principal | Unrestricted, execution_id: str, *, outputs: bool = True
) -> Execution:
    """One execution; without *outputs* large outputs are left out. Raises `NotFound`."""
    async with services.store.view() as view:
        run = await execution_for(view, who, execution_id, whole=outputs)
    if run.asks and await expire_due_of(services, run):
        async with services.store.view() as view:
            return await execution_for(view, who, execution_id, whole=outputs)
    return run


async def redriven_as(services: Services, run: Execution) -> str | None:
    """
    The last execution that redrives *run*. The store is queried each time, because an ended record
    never changes.
    """
    if run.status not in FROM:
        return None
    async with services.store.view() as view:
        return await view.executions.redriven_as(run.id)


async def read_execution_definition(
    services: Services, who: Principal | Unrestricted, execution_id: str
) -> tuple[Execution, Definition]:
    """
    An execution and its definition; variables that are secret now are also secret in the returned
    definition. SC-9. Raises `NotFound`.
    """
    async with services.store.view() as view:
        run = await execution_for(view, who, execution_id)
        definition = await definition_of(view, run.workflow_id, run.revision)
        workflow = await view.get(Workflow, run.workflow_id)
        if workflow is None or workflow.revision == run.revision:
            return run, definition
        present = await definition_of(view, run.workflow_id, workflow.revision)
    return run, kept_secret(definition, present.secrets)


async def read_result(
    services: Services, who: Principal | Unrestricted, execution_id: str, *, outputs: bool = True
) -> Execution:
    """
    An ended execution with its output and, by default, the outputs of its steps. Raises `NotFound`;
    `NoResultYet` before the end. EX-18.
    """
    run = await read_execution(services, who, execution_id, outputs=False)
    if run.status not in EXECUTION.final:
        raise NoResultYet(f"The execution is {run.status}; it has no result yet", run.id)
    return await outputs_of(services, run, None if outputs else {None})


@retried
async def cancel_execution(
    services: Services, who: Principal | Unrestricted, execution_id: str, origin: Origin = UNKNOWN
) -> Execution:
    """
    End an execution at once, in one unit with its open approvals; running steps are killed. EX-7.
    Large outputs may be left out of the returned execution; `read_execution` returns them.

    Raises `NotFound`; `AlreadyFinished` for an execution that has ended.
    """
    now = services.store.now()
    async with services.store.unit() as unit:
        run = await execution_for(unit, who, execution_id)
        try:
            outcome = advance(run, CancelAsked(), now)
        except IllegalMove:
            raise AlreadyFinished(f"The execution is {run.status}", run.id) from None
        outcome = await stage(unit, outcome, now)
        note(services, unit, "execution.cancel", who, run.id, origin, execution_id=run.id)
        await unit.commit()
    notify(services.wakeup, run.id, outcome.effects)
    return outcome.record


async def read_events(
    services: Services,
    who: Principal | Unrestricted,
    execution_id: str,
    after: int,
    limit: int = 500,
) -> tuple[Execution, Sequence[Event]]:
    """
    The execution, and its events numbered above *after*. Large outputs may be left out. Raises
    `NotFound`.
    """
    async with services.store.view() as view:
        run = await execution_for(view, who, execution_id)
        return run, await view.events.of_execution(execution_id, after, limit)


async def read_logs(
    services: Services,
    who: Principal | Unrestricted,
    execution_id: str,
    after: int = 0,
    step: str | None = None,
    limit: int = 100,
    *,
    stream: str | None = None,
    search: str | None = None,
) -> tuple[Execution, Sequence[Event], int]:
    """
    The execution (large outputs may be left out), its output lines with numbers above *after*, and
    the number after which to continue. Without lines there are no further lines yet. EX-28.

    *step*: only lines of the step with that key; *stream*: only lines of that stream; *search*:
    only lines that contain the text, in upper or lower case.

    Raises `NotFound` for an unknown execution, and for a key that no step of the execution can
    have.
    """
    found: list[Event] = []
    async with services.store.view() as view:
        run = await execution_for(view, who, execution_id)
        if step is not None:
            _require_step(run, await definition_of(view, run.workflow_id, run.revision), step)
        log = view.events if run.monitored else view.logs
        while not found and (part := await log.of_execution(execution_id, after, limit)):
            after = part[-1].number
            lines = (one for one in part if one.kind is EventKind.STEP_LOG)
            lines = (one for one in lines if step in (None, one.data["step"]))
            lines = (one for one in lines if stream in (None, one.data["stream"]))
            found += filter(None, (_with(search, one) for one in lines)) if search else lines
    return run, found, after


def _require_step(run: Execution, definition: Definition, key: str) -> None:
    """
    Raises `NotFound` for a key that no step of the definition can have. A step that has not begun
    counts as well; the key of a step in a loop contains numbers.
    """
    names = {one.name for one in definition.walk()}
    parts = key.split(".")
    if key not in run.step_results and not all(one in names or one.isdigit() for one in parts):
        raise NotFound("Step")


def _with(search: str, event: Event) -> Event | None:
    """The event with only the output lines that contain *search*; None without such a line."""
    wanted, lines = search.casefold(), str(event.data["text"]).splitlines(keepends=True)
    text = "".join(line for line in lines if wanted in line.casefold())
    return evolve(event, data={**event.data, "text": text}) if text else None


def rests(run: Execution, now: EpochMs) -> bool:
    """
    Whether the execution waits for an action from outside. An INTERRUPTED execution that is due
    does not rest: the next sweep resumes or ends it. EX-12, EX-13.
    """
    if run.status is ExecutionStatus.INTERRUPTED:
        return run.due_at is None or run.due_at > now
    return run.status in EXECUTION.final or run.status is ExecutionStatus.AWAITING_APPROVAL


Still: TypeAlias = Callable[[], Awaitable[None]]
"""
Raises if the waiting caller may no longer wait because the caller's credential has ended. SE-12.
"""
STILL_MS = 3_000


async def wait_for_rest(
    services: Services,
    who: Principal | Unrestricted,
    execution_id: str,
    wait_ms: int,
    *,
    leaving: Callable[[], bool] = lambda: False,
    still: Still | None = None,
    outputs: bool = True,
) -> Execution:
    """
    The execution as soon as it rests, or its state after *wait_ms* or when this process is
    *leaving*; without *outputs* large outputs are left out. Raises `NotFound`, and the errors of
    *still*.

    An execution rests when it has ended, waits for an approval, or is INTERRUPTED until its grace
    is over. For an execution that already rests, the function returns at once. So a loop until the
    end must pause: while the status is not in `EXECUTION.final`, sleep before the next call.
    """
    run = await wait_until(
        rests, services, who, execution_id, wait_ms, leaving=leaving, still=still
    )
    return await outputs_of(services, run) if outputs else run


async def wait_until(
    over: Callable[[Execution, EpochMs], bool],
    services: Services,
    who: Principal | Unrestricted,
    execution_id: str,
    wait_ms: int,
    *,
    leaving: Callable[[], bool] = lambda: False,
    still: Still | None = None,
) -> Execution:
    """
    The execution as soon as *over* is true for the execution and the present instant; otherwise as
    `wait_for_rest`. Large outputs may be left out.
    """
    deadline = services.store.now() + wait_ms
    with services.wakeup.follow(execution_id) as rest:
        while True:
            run = await read_execution(services, who, execution_id, outputs=False)
            left = deadline - (now := services.store.now())
            if left <= 0 or over(run, now) or leaving():
                return run
            await rest(left if still is None else min(left, STILL_MS))
            if still is not None:
                await still()
