"""
The list of workflows with their activity, and the page of one workflow.

The list reads no definitions, so that its cost does not depend on the size of definitions.
"""

from datetime import datetime

from attrs import evolve, frozen
from starlette.responses import Response

from adapters_http.console.formats import as_text, field_text, read_decimal
from adapters_http.console.forms import StateForm
from adapters_http.console.hints import followed
from adapters_http.console.paths import see_other
from adapters_http.console.pictures import plain_picture
from adapters_http.console.positions import behind, cursor_after
from adapters_http.console.rendering import page
from adapters_http.console.words import WEEKDAYS
from adapters_http.request import Request
from adapters_http.route import EVERY_SCOPE
from wfcore.errors import InvalidInput
from wfcore.model.access import Permission
from wfcore.model.json import Json
from wfcore.model.page import Page, PageCursor
from wfcore.model.trigger import Schedule, TriggerRow
from wfcore.model.workflow import Variable, VariableType
from wfcore.rules.auth.access import includes
from wfcore.rules.masking import MASK
from wfcore.rules.state import StateRow
from wfcore.rules.variables import parse_text
from wfcore.usecases.workflows.browsing import (
    WorkflowDetail,
    WorkflowSummary,
    list_summaries,
    read_workflow_whole,
)
from wfcore.usecases.workflows.state import read_state, set_state
from wfcore.usecases.workflows.workflows import read_workflow
from wfcore.wire.common import WORKFLOWS

SIZE = 50
NO_NAME = PageCursor("", "")
"""The position before every name, for a first page without a count of all rows."""


async def show(request: Request) -> Response:
    """The list, by name."""
    wanted = behind(request, WORKFLOWS, SIZE, NO_NAME)
    found = await list_summaries(request.services, request.who, wanted)
    return page(
        request,
        "workflows.html",
        rows=found.rows,
        follows=_seen(found),
        next=cursor_after(WORKFLOWS, found.next),
        later=wanted.after is not NO_NAME,
        creates=may_create(request),
    )


def _seen(found: Page[WorkflowSummary]) -> object:
    return [(one.workflow.id, one.workflow.version, one.activity) for one in found.rows]


async def _snapshot(request: Request) -> object:
    wanted = behind(request, WORKFLOWS, SIZE, NO_NAME)
    return _seen(await list_summaries(request.services, request.who, wanted))


live = followed(_snapshot)


@frozen
class StateField:
    """
    A name of the state: its value as shown, the text of its field, and the problem of the text.
    """

    row: StateRow
    shown: str
    text: str
    problem: str | None = None


async def show_one(request: Request) -> Response:
    """One workflow: picture, variables, state, triggers, versions."""
    return await _one(request)


async def set_value(request: Request) -> Response:
    """Set one value of the state, or put it back; a problem is shown beside its field. SV-7."""
    form, services, id = request.body, request.services, request.params["id"]
    assert isinstance(form, StateForm)
    found = await read_workflow(services, request.who, id)
    try:
        value = None if form.reset else _typed(found.definition.state.get(form.name), form.text)
        await set_state(services, request.who, id, {form.name: value}, request.origin)
    except InvalidInput as wrong:
        return await _one(request, form, wrong)
    return see_other(request, f"/workflows/{id}")


def _typed(declared: Variable | None, text: str) -> Json:
    text = text.replace("\r\n", "\n")
    if declared is not None and declared.type is VariableType.NUMBER:
        text = read_decimal(text)
    return parse_text(declared, text, "state")


async def _state(
    request: Request, whole: WorkflowDetail, form: StateForm | None, wrong: InvalidInput | None
) -> list[StateField]:
    if not whole.defined.definition.state:
        return []
    rows = await read_state(request.services, request.who, whole.defined.workflow.id)
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


async def _one(
    request: Request, form: StateForm | None = None, wrong: InvalidInput | None = None
) -> Response:
    whole = await read_workflow_whole(request.services, request.who, request.params["id"])
    workflow, definition = whole.defined.workflow, whole.defined.definition
    return page(
        request,
        "workflow.html",
        400 if wrong else 200,
        state_fields=await _state(request, whole, form, wrong),
        may_set=includes(whole.permission, Permission.EDIT) and _has_every_scope(request),
        whole=whole,
        workflow=workflow,
        definition=definition,
        picture=plain_picture(definition),
        variables=[(one, _default(one)) for one in definition.variables.values()],
        triggers=[(one, fires_at(request, one)) for one in whole.defined.triggers],
        starts=includes(whole.permission, Permission.EXECUTE),
        edits=may_edit(request, whole.permission),
        hook_url=f"{request.base_url}/api/webhooks",
    )


def may_edit(request: Request, held: Permission) -> bool:
    """Whether the reader, with the permission *held*, may change the workflow here."""
    config = request.context.config
    there = config.console_edits and config.read_definition is not None
    return there and includes(held, Permission.EDIT) and _has_every_scope(request)


def may_create(request: Request) -> bool:
    """Whether the reader may create workflows here."""
    return may_edit(request, Permission.EDIT)


def _has_every_scope(request: Request) -> bool:
    return not request.who.scopes or request.who.scopes >= EVERY_SCOPE


def _default(one: Variable) -> str | None:
    """The default of a variable as text, masked for a secret; None without a default."""
    if not one.has_default:
        return None
    return MASK if one.secret else as_text(one.default)


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
