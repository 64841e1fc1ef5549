"""
The page of one redrive: its plan, and the form that carries it out. EX-35.

The address has the wishes of the reader (`from`, `newest`), so that people can link to a plan and
make the plan again; the form also sends the digest of the plan. `acting` redrives several
executions at once.
"""

from collections.abc import Sequence

from attrs import frozen
from starlette.responses import Response

from adapters_http.console.forms import RedriveForm
from adapters_http.console.language import _
from adapters_http.console.paths import see_other
from adapters_http.console.rendering import page
from adapters_http.request import Request
from wfcore.errors import Conflict, InvalidInput, LimitReached
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.workflow import LoopStep, Step, lists_of
from wfcore.rules.execution.redrive import StepFate
from wfcore.usecases.executions.executions import read_execution
from wfcore.usecases.executions.redriving import (
    PreparedRedrive,
    Redrive,
    preview_redrive,
    redrive,
)

FATES = {
    StepFate.KEPT: "✓",
    StepFate.ASKED: "?",
    StepFate.AGAIN: "↻",
    StepFate.NEW: "+",
    StepFate.GONE: "−",
}


@frozen
class RedriveChoice:
    """
    The wishes of the reader: the first step (empty: where the execution stopped), and whether to
    use the newest version.
    """

    start: str
    newest: bool

    @property
    def wanted(self) -> Redrive:
        """The redrive without a digest."""
        return Redrive(self.start or None, self.newest)


async def show(request: Request) -> Response:
    """The plan of a redrive, and the other steps at which the redrive could begin."""
    choice = RedriveChoice(request.query("from") or "", request.query("newest") == "1")
    return await _plan(request, choice)


async def carry_out(request: Request) -> Response:
    """Redrive by the plan in the form; if the plan has changed meanwhile, show the new plan."""
    form = request.body
    assert isinstance(form, RedriveForm)
    choice = RedriveChoice(form.start, form.newest == "1")
    wanted = Redrive(choice.wanted.start, choice.newest, digest=form.digest)
    try:
        made = await redrive(
            request.services,
            request.who,
            request.params["id"],
            wanted,
            source=TriggerSource.MANUAL,
            origin=request.origin,
        )
    except (Conflict, InvalidInput, LimitReached) as refused:
        return await _plan(request, choice, str(refused))
    return see_other(request, f"/executions/{made.execution_id}")


async def _plan(request: Request, choice: RedriveChoice, problem: str = "") -> Response:
    services, who, id = request.services, request.who, request.params["id"]
    run = await read_execution(services, who, id, outputs=False)
    found: PreparedRedrive | None = None
    refused, completed = problem, run.status is ExecutionStatus.COMPLETED
    try:
        if choice.start or not completed:
            found = await preview_redrive(services, who, id, choice.wanted)
    except (Conflict, InvalidInput) as unfit:
        refused = str(unfit)
    return page(
        request,
        "redrive.html",
        409 if refused else 200,
        run=run,
        choice=choice,
        found=found,
        problem=refused,
        completed=completed,
        starts=_starts(run, found),
        marks=FATES,
        says=_words(),
    )


def _starts(run: Execution, found: PreparedRedrive | None) -> Sequence[str]:
    """The steps at which a redrive may begin, in the order of the definition."""
    if found is None:
        return [key for key in run.step_results if "." not in key]
    names: list[str] = []

    def read(steps: tuple[Step, ...]) -> None:
        for step in steps:
            names.append(step.name)
            if not isinstance(step, LoopStep):
                for _path, inside in lists_of(step):
                    read(inside)

    read(found.definition.steps)
    return names


def _words() -> dict[StepFate, str]:
    return {
        StepFate.KEPT: _("kept"),
        StepFate.ASKED: _("asked again"),
        StepFate.AGAIN: _("runs again"),
        StepFate.NEW: _("runs for the first time"),
        StepFate.GONE: _("no longer there"),
    }
