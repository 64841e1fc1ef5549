"""
The page of one redrive: one form with the wishes of the reader, and below it their plan. EX-35.

A button shows the plan again; the other one carries it out and sends the digest of the plan, so
that a form which was changed meanwhile shows its new plan instead. `from` and `newest` may stand in
the address, so that people can link to a plan. `acting` redrives several executions at once.
"""

from collections.abc import Mapping, Sequence

from attrs import field, frozen
from starlette.responses import Response

from adapters_http.console.forms import RedriveForm
from adapters_http.console.language import _
from adapters_http.console.paths import see_other
from adapters_http.console.rendering import page
from adapters_http.console.starting import fields_of, read_inputs, texts_of
from adapters_http.request import Request
from wfcore.errors import Conflict, InvalidInput, LimitReached, NotFound
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Definition, LoopStep, Step, VariableType, lists_of
from wfcore.rules.execution.redrive import StepFate
from wfcore.rules.visible import visible
from wfcore.usecases.executions.executions import read_execution
from wfcore.usecases.executions.redriving import (
    PreparedRedrive,
    Redrive,
    preview_redrive,
    redrive,
)
from wfcore.usecases.workflows.browsing import read_permitted, read_version

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
    The wishes of the reader: the first step (empty: where the execution stopped), whether to use
    the newest version, and the texts in the fields of inputs.
    """

    start: str
    newest: bool
    texts: Mapping[str, Json] = field(factory=dict, repr=False)


async def show(request: Request) -> Response:
    """The plan of a redrive, and the other steps at which the redrive could begin."""
    choice = RedriveChoice(request.query("from") or "", request.query("newest") == "1")
    return await _plan(request, choice)


async def carry_out(request: Request) -> Response:
    """
    Redrive by the plan in the form. Without a plan, or if the plan has changed meanwhile, show the
    plan.
    """
    form = request.body
    assert isinstance(form, RedriveForm)
    choice = RedriveChoice(form.start, form.newest == "1", form.inputs or {})
    if not form.digest:
        return await _plan(request, choice)
    services, who, id = request.services, request.who, request.params["id"]
    run = await read_execution(services, who, id, outputs=False)
    inputs, problems = _changed(await _definition(request, run, choice.newest), run, choice.texts)
    if problems:
        return await _plan(request, choice)
    wanted = Redrive(choice.start or None, choice.newest, inputs, form.digest)
    try:
        made = await redrive(
            services, who, id, wanted, source=TriggerSource.MANUAL, origin=request.origin
        )
    except (Conflict, InvalidInput, LimitReached) as refused:
        return await _plan(request, choice, str(refused))
    return see_other(request, f"/executions/{made.execution_id}")


async def _plan(request: Request, choice: RedriveChoice, problem: str = "") -> Response:
    services, who, id = request.services, request.who, request.params["id"]
    run = await read_execution(services, who, id, outputs=False)
    definition = await _definition(request, run, choice.newest)
    inputs, problems = _changed(definition, run, choice.texts)
    found: PreparedRedrive | None = None
    refused, completed = problem, run.status is ExecutionStatus.COMPLETED
    try:
        if not problems and (choice.start or not completed):
            wanted = Redrive(choice.start or None, choice.newest, inputs)
            found = await preview_redrive(services, who, id, wanted)
    except Conflict as unfit:
        refused = str(unfit)
    except InvalidInput as unfit:
        refused, problems = str(unfit), {unfit.field: unfit.fix}
    status = 409 if refused else 400 if problems else 200
    again = {
        f"inputs.{name}": _("must be typed again to redrive with it")
        for name in definition.secrets & inputs.keys()
    }
    return page(
        request,
        "redrive.html",
        status,
        run=run,
        choice=choice,
        found=found,
        problem=refused,
        completed=completed,
        starts=_starts(run, found),
        marks=FATES,
        says=_words(),
        fields=fields_of(
            definition, {**texts_of(definition, run), **choice.texts}, {**again, **problems}
        ),
        changed=bool(inputs or problems),
    )


async def _definition(request: Request, run: Execution, newest: bool) -> Definition:
    """The definition of the redrive; of a deleted workflow one without variables."""
    services, who, id = request.services, request.who, run.workflow_id
    try:
        if newest:
            return (await read_permitted(services, who, id))[0].definition
        return (await read_version(services, who, id, run.revision))[1].definition
    except NotFound:
        return Definition(run.workflow_name, ())


def _changed(
    definition: Definition, run: Execution, texts: Mapping[str, Json]
) -> tuple[JsonObject, Mapping[str, str]]:
    """The inputs whose fields were changed, and the problems by field."""
    shown = {
        one.variable.name: one.text for one in fields_of(definition, texts_of(definition, run), {})
    }
    typed = {
        name: text
        for name, text in texts.items()
        if isinstance(text, str) and visible(text) != visible(shown.get(name, ""))
    }
    inputs, problems = read_inputs(definition, typed)
    emptied: dict[str, Json] = {}
    for name in typed.keys() & definition.variables.keys() - inputs.keys():
        variable = definition.variables[name]
        if variable.type is VariableType.STRING and not variable.required:
            emptied[name] = ""
        else:
            problems = {f"inputs.{name}": _("needs a value, or stays as it was"), **problems}
    return {**inputs, **emptied}, problems


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
