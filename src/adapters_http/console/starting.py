"""
A form that starts a workflow: a field for each declared variable. The form of a redrive has the
same fields.

The form has an idempotency key, which is new for each form: a second click, a repeated request and
a reload lead to the execution that the first click has started. IK-1.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from attrs import frozen
from starlette.responses import Response

from adapters_http.console.formats import as_text, field_text, read_decimal
from adapters_http.console.forms import StartForm
from adapters_http.console.language import _
from adapters_http.console.paths import see_other
from adapters_http.console.rendering import page
from adapters_http.request import Request
from wfcore.errors import Forbidden, InvalidInput, KeyReused, LimitReached
from wfcore.model.access import Permission
from wfcore.model.execution import Execution, TriggerSource
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Definition, Variable, VariableType
from wfcore.rules.auth.access import includes
from wfcore.rules.idempotency import check_idempotency_key
from wfcore.rules.limits import MAX_REFERENCE
from wfcore.rules.variables import parse_text
from wfcore.rules.visible import visible
from wfcore.usecases.executions.executions import read_execution
from wfcore.usecases.executions.starting import start_execution
from wfcore.usecases.workflows.browsing import read_permitted
from wfcore.usecases.workflows.workflows import WorkflowRow

KEY_LENGTH = 22


@frozen
class VariableField:
    """A variable in the form, its text (empty for a secret), and the problem of the text."""

    variable: Variable
    text: str
    problem: str | None = None


async def show(request: Request) -> Response:
    """The form with the defaults, or with the inputs of the execution `like`. EX-36."""
    found, like = await _executable(request), request.query("like")
    if not like:
        return _form(request, found, {})
    run = await read_execution(request.services, request.who, like, outputs=False)
    return _form(request, found, texts_of(found.definition, run), reference=run.reference or "")


async def start(request: Request) -> Response:
    """Start an execution once and redirect to its page; problems are shown beside their fields."""
    found, form = await _executable(request), request.body
    assert isinstance(form, StartForm)
    check_idempotency_key("once", form.once)
    inputs, problems = read_inputs(found.definition, form.inputs or {})
    again = partial(_form, request, found, form.inputs or {}, reference=form.reference)
    if problems:
        return again(problems)
    try:
        started = await start_execution(
            request.services,
            request.who,
            found.workflow.id,
            inputs,
            source=TriggerSource.MANUAL,
            idempotency=form.once,
            reference=form.reference,
            origin=request.origin,
        )
    except InvalidInput as wrong:
        return again({wrong.field: wrong.fix})
    except KeyReused:
        problem = _(
            "This form has started an execution already. Send it again to start another one."
        )
        return again({"": problem})
    except LimitReached as full:
        return again({"": full.message})
    before = "?started=before" if started.replayed else ""
    return see_other(request, f"/executions/{started.execution_id}{before}")


async def _executable(request: Request) -> WorkflowRow:
    found, held = await read_permitted(request.services, request.who, request.params["id"])
    if not includes(held, Permission.EXECUTE):
        raise Forbidden(f"This needs the permission {Permission.EXECUTE} on the workflow")
    return found


def read_inputs(
    definition: Definition, texts: Mapping[str, Json]
) -> tuple[JsonObject, Mapping[str, str]]:
    """The inputs of the form, and the problems by field. VM-6."""
    inputs: dict[str, Json] = {}
    problems: dict[str, str] = {}
    for name, variable in definition.variables.items():
        text = texts.get(name)
        if not isinstance(text, str) or (not text and not _may_be_empty(variable)):
            continue  # the default applies, or the start reports it missing
        try:
            if variable.has_default and visible(text) == visible(_default(variable)):
                text = as_text(
                    variable.default
                )  # the field showed it, without invisible characters
            elif variable.type is VariableType.NUMBER:
                text = read_decimal(text)
            inputs[name] = parse_text(variable, text.replace("\r\n", "\n"))
        except InvalidInput as wrong:
            problems[f"inputs.{name}"] = wrong.fix
    return inputs, problems


def texts_of(definition: Definition, run: Execution) -> Mapping[str, Json]:
    """
    The inputs of an execution, as fields show them, without secrets: people must type secrets
    again.
    """
    declared = definition.variables
    return {
        name: _text_of(declared[name], value)
        for name, value in run.variables.items()
        if name in declared and name not in run.secrets and not declared[name].secret
    }


def _default(variable: Variable) -> str:
    """The default as shown in the field."""
    return _text_of(variable, variable.default)


def _text_of(variable: Variable, value: Json) -> str:
    return field_text(value) if variable.type is VariableType.NUMBER else as_text(value)


def _may_be_empty(variable: Variable) -> bool:
    """Whether an empty field means the empty text; True only if the default is another text."""
    plain = variable.type is VariableType.STRING and not variable.secret
    return plain and variable.has_default and not variable.required


def _form(
    request: Request,
    found: WorkflowRow,
    texts: Mapping[str, Json],
    problems: Mapping[str, str] | None = None,
    *,
    reference: str = "",
) -> Response:
    left = dict(problems or {})
    fields = fields_of(found.definition, texts, left)
    return page(
        request,
        "start.html",
        400 if problems else 200,
        workflow=found.workflow,
        fields=fields,
        reference=reference,
        reference_problem=left.pop("reference", None),
        longest_reference=MAX_REFERENCE,
        problem="; ".join(f"{name}: {text}" if name else text for name, text in left.items()),
        once=request.services.tokens.text(KEY_LENGTH),
        base_url=request.base_url,
        example=as_text({"inputs": _example(fields)}),
    )


def start_fields(definition: Definition) -> Sequence[VariableField]:
    """The fields of a form that starts *definition*, with the defaults."""
    return fields_of(definition, {}, {})


def fields_of(
    definition: Definition, texts: Mapping[str, Json], problems: dict[str, str]
) -> Sequence[VariableField]:
    """The fields with *texts*; takes the problem of each field from *problems*."""
    return [_field(one, texts, problems) for one in definition.variables.values()]


def _field(
    variable: Variable, texts: Mapping[str, Json], problems: dict[str, str]
) -> VariableField:
    text = texts.get(variable.name)
    if not isinstance(text, str):
        text = _default(variable) if variable.has_default else ""
    problem = problems.pop(f"inputs.{variable.name}", None)
    return VariableField(variable, "" if variable.secret else text, problem)


_EXAMPLES: Mapping[VariableType, Json] = {
    VariableType.STRING: "…",
    VariableType.NUMBER: 0,
    VariableType.BOOLEAN: False,
    VariableType.OBJECT: {},
    VariableType.ARRAY: [],
}


def _example(fields: Sequence[VariableField]) -> JsonObject:
    """
    The inputs for an example on the command line: each variable with its default, or a value of its
    type.
    """
    return {
        one.variable.name: one.variable.default
        if one.variable.has_default and not one.variable.secret
        else _EXAMPLES[one.variable.type]
        for one in fields
    }
