"""Parts of a workflow that have pages of their own: what starts it by itself, and its state."""

from datetime import datetime

from attrs import evolve, frozen
from starlette.responses import Response

from adapters_http.console.cron_words import in_words
from adapters_http.console.formats import as_text, field_text, read_decimal
from adapters_http.console.forms import StateForm
from adapters_http.console.paths import see_other
from adapters_http.console.rendering import page
from adapters_http.console.words import WEEKDAYS
from adapters_http.console.workflows import has_every_scope
from adapters_http.request import Request
from wfcore.errors import InvalidInput, NotFound
from wfcore.model.access import Permission
from wfcore.model.json import Json
from wfcore.model.trigger import Schedule, TriggerRow
from wfcore.model.workflow import Variable, VariableType
from wfcore.rules.auth.access import includes
from wfcore.rules.state import StateRow
from wfcore.rules.variables import parse_text
from wfcore.usecases.workflows.browsing import read_workflow_whole
from wfcore.usecases.workflows.state import read_state, set_state
from wfcore.usecases.workflows.triggers import next_fires
from wfcore.usecases.workflows.workflows import read_workflow

NEXT = 5
"""The next times of a schedule that its row shows."""


async def show_triggers(request: Request) -> Response:
    """The schedules and chains of a workflow with their next times, and its webhooks."""
    whole = await read_workflow_whole(request.services, request.who, request.params["id"])
    defined = whole.defined
    return page(
        request,
        "triggers.html",
        workflow=defined.workflow,
        definition=defined.definition,
        whole=whole,
        triggers=[(one, fires_at(request, one), _coming(request, one)) for one in defined.triggers],
        in_words=in_words,
        may_pause=includes(whole.permission, Permission.EDIT),
        connects=includes(whole.permission, Permission.EXECUTE),
    )


def _coming(request: Request, row: TriggerRow) -> list[int]:
    return [at for at, _, _ in next_fires(request.services, [(row, "")], NEXT)]


def fires_at(request: Request, shown: TriggerRow) -> str | None:
    """
    The next time of a schedule in the time zone of the schedule: `Mon 2026-11-23 09:00
    Europe/Berlin`.
    """
    spec, at, calendar = shown.trigger.spec, shown.standing.next_at, request.services.calendar
    if not isinstance(spec, Schedule) or at is None or calendar is None:
        return None
    try:
        local = datetime.fromtimestamp(at / 1_000, calendar.zone(spec.timezone))
    except ValueError:
        return None
    return f"{WEEKDAYS[str(local.weekday())]} {local:%Y-%m-%d %H:%M} {spec.timezone}"


@frozen
class StateField:
    """
    A name of the state: its value as shown, the text of its field, and the problem of the text.
    """

    row: StateRow
    shown: str
    text: str
    problem: str | None = None


async def show_state(request: Request) -> Response:
    """The values that outlive executions, each with a form for who may change them. SV-7."""
    return await _state_page(request)


async def set_value(request: Request) -> Response:
    """Set one value of the state, or put it back; a problem is shown beside its field. SV-7."""
    form, services, id = request.body, request.services, request.params["id"]
    assert isinstance(form, StateForm)
    found = await read_workflow(services, request.who, id)
    try:
        value = None if form.reset else _typed(found.definition.state.get(form.name), form.text)
        await set_state(services, request.who, id, {form.name: value}, request.origin)
    except InvalidInput as wrong:
        return await _state_page(request, form, wrong)
    return see_other(request, f"/workflows/{id}/state")


def _typed(declared: Variable | None, text: str) -> Json:
    text = text.replace("\r\n", "\n")
    if declared is not None and declared.type is VariableType.NUMBER:
        text = read_decimal(text)
    return parse_text(declared, text, "state")


async def _state_page(
    request: Request, form: StateForm | None = None, wrong: InvalidInput | None = None
) -> Response:
    whole = await read_workflow_whole(request.services, request.who, request.params["id"])
    defined = whole.defined
    if not defined.definition.state:
        raise NotFound("Page")
    return page(
        request,
        "state.html",
        400 if wrong else 200,
        workflow=defined.workflow,
        definition=defined.definition,
        state_fields=await _fields(request, form, wrong),
        may_set=includes(whole.permission, Permission.EDIT) and has_every_scope(request),
    )


async def _fields(
    request: Request, form: StateForm | None, wrong: InvalidInput | None
) -> list[StateField]:
    rows = await read_state(request.services, request.who, request.params["id"])
    fields = [StateField(one, as_text(one.value), _state_text(one)) for one in rows]
    if form is None or wrong is None:
        return fields
    return [
        evolve(one, text="" if one.row.is_secret else form.text, problem=wrong.fix)
        if one.row.declared.name == form.name
        else one
        for one in fields
    ]


def _state_text(row: StateRow) -> str:
    if row.value is None:
        return ""
    is_number = row.declared.type is VariableType.NUMBER
    return field_text(row.value) if is_number else as_text(row.value)
