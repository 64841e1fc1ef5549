"""
The cancellation and the redrive of one or several executions, after a preview. EX-7, EX-17.

The preview shows for each execution which steps stop, stay or run. The executions are cancelled or
redriven one by one, each with a result of its own, because another person or a step may have been
faster.
"""

from collections.abc import Awaitable, Callable, Sequence

from attrs import frozen
from starlette.responses import Response

from adapters_http.console.forms import ActForm
from adapters_http.console.language import _
from adapters_http.console.paths import see_other
from adapters_http.console.rendering import page
from adapters_http.console.words import STATUSES
from adapters_http.forms import without_nul
from adapters_http.request import Request
from wfcore.errors import AlreadyFinished, Forbidden, InvalidInput, LimitReached, NotFound
from wfcore.model.execution import Awaits, Execution, StepStatus, TriggerSource
from wfcore.model.workflow import Definition
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.redrive import FROM, StepFate, plan_redrive
from wfcore.time import EpochMs
from wfcore.usecases.executions.browsing import read_some
from wfcore.usecases.executions.executions import cancel_execution
from wfcore.usecases.executions.redriving import redrive

MOST = 50
"""The most executions that one form may name."""
_OPEN = (StepStatus.RUNNING, StepStatus.AWAITING_APPROVAL)


@frozen
class Prospect:
    """
    One execution in a preview. `unfit`: the reason why the execution is left out. `stops`, `kept`,
    `rest`: the names of the steps that are stopped, kept, and still to run. `redriven_as`: the
    execution that has already redriven this execution.
    """

    run: Execution
    unfit: str | None
    stops: Sequence[str] = ()
    kept: Sequence[str] = ()
    rest: Sequence[str] = ()
    redriven_as: str | None = None


@frozen
class ActionResult:
    """
    The result of an action on one execution. `other`: the execution that continues in place of this
    execution.
    """

    id: str
    done: bool
    text: str
    other: str | None = None


async def show_cancel(request: Request) -> Response:
    """The preview of a cancellation."""
    found = [_to_cancel(run, definition) for run, definition, _ in await _wanted(request)]
    return _preview(request, "cancel", found)


async def show_redrive(request: Request) -> Response:
    """The preview of a redrive: the steps that the redrive keeps, and the steps that run."""
    now = request.services.store.now()
    found = [
        _to_redrive(run, definition, again, now)
        for run, definition, again in await _wanted(request)
    ]
    return _preview(request, "redrive", found)


async def _wanted(
    request: Request,
) -> Sequence[tuple[Execution, Definition | None, str | None]]:
    """
    The executions that the address names and the caller sees. Raises `NotFound` if there is no such
    execution.
    """
    ids = _few(request.query_values("id"))
    found = await read_some(request.services, request.who, ids)
    if ids and not found:
        raise NotFound("Execution")
    return found


def _few(ids: Sequence[str]) -> Sequence[str]:
    """*ids* without repetitions. Raises `InvalidInput` for too many or malformed ids."""
    found = list(dict.fromkeys(without_nul("id", id) for id in ids if id))
    if len(found) > MOST:
        raise InvalidInput("id", f"at most {MOST} executions at once")
    return found


def _preview(request: Request, action: str, found: Sequence[Prospect]) -> Response:
    fit = [one.run.id for one in found if one.unfit is None]
    return page(
        request, "acting.html", action=action, found=found, fit=fit, verdicts=None, names={}
    )


def _to_cancel(run: Execution, definition: Definition | None) -> Prospect:
    if run.status in EXECUTION.final:
        return Prospect(
            run, _("It has already ended: {status}.").format(status=STATUSES[run.status])
        )
    results = run.step_results.items()
    stops = [k for k, one in results if one.status in _OPEN and one.awaits is not Awaits.STEPS]
    return Prospect(run, None, stops, rest=_unbegun(run, definition))


def _unbegun(run: Execution, definition: Definition | None) -> Sequence[str]:
    steps = definition.steps if definition else ()
    return [step.name for step in steps if step.name not in run.step_results]


def _to_redrive(
    run: Execution, definition: Definition | None, again: str | None, now: EpochMs
) -> Prospect:
    if run.status not in FROM or definition is None:
        reason = _(
            "It is {status}; only a failed, cancelled or interrupted execution can be redriven."
        )
        return Prospect(run, reason.format(status=STATUSES[run.status]))
    steps = plan_redrive(run, definition, definition, now).steps
    kept = [one.key for one in steps if one.fate is StepFate.KEPT]
    names = {step.name for step in definition.steps}
    rest = [one.key for one in steps if one.fate is not StepFate.KEPT and one.key in names]
    return Prospect(run, None, kept=kept, rest=rest, redriven_as=again)


async def cancel(request: Request) -> Response:
    """Cancel the executions that the form names."""
    return await _act(request, "cancel", _cancel_one)


async def redrive_all(request: Request) -> Response:
    """Redrive the executions that the form names."""
    return await _act(request, "redrive", _redrive_one)


async def _act(
    request: Request, action: str, one: Callable[[Request, str], Awaitable[ActionResult]]
) -> Response:
    form: ActForm = request.body
    ids = _few(form.ids.split())
    seen = dict(zip(ids, form.seen.split(","), strict=False)) if form.seen else {}
    found = await read_some(request.services, request.who, ids)
    names = {run.id: run.workflow_name for run, _, _ in found}
    again = {run.id: other for run, _, other in found if other}
    verdicts = [await _result(request, id, again.get(id), seen.get(id, ""), one) for id in ids]
    if len(verdicts) == 1 and verdicts[0].done:
        return see_other(request, f"/executions/{verdicts[0].other or verdicts[0].id}")
    return page(
        request, "acting.html", action=action, found=(), fit=(), verdicts=verdicts, names=names
    )


async def _result(
    request: Request,
    id: str,
    again: str | None,
    seen: str,
    one: Callable[[Request, str], Awaitable[ActionResult]],
) -> ActionResult:
    """
    The result for one execution. An execution that was redriven since the preview, for example by a
    second click, is not redriven again.
    """
    if one is _redrive_one and again and again != seen:
        return ActionResult(id, False, _("It has been redriven in the meantime."), again)
    try:
        return await one(request, id)
    except AlreadyFinished as ended:
        return ActionResult(id, False, _("Nothing was done: {why}.").format(why=ended.message))
    except NotFound:
        return ActionResult(
            id, False, _("It no longer exists, or its status no longer allows this.")
        )
    except Forbidden:
        return ActionResult(id, False, _("You may see it, but you may not do that."))
    except LimitReached as full:
        return ActionResult(id, False, full.message)


async def _cancel_one(request: Request, id: str) -> ActionResult:
    await cancel_execution(request.services, request.who, id, request.origin)
    return ActionResult(id, True, _("Cancelled."))


async def _redrive_one(request: Request, id: str) -> ActionResult:
    source = TriggerSource.MANUAL
    made = await redrive(request.services, request.who, id, source=source, origin=request.origin)
    return ActionResult(id, True, _("Redriven."), made.execution_id)
