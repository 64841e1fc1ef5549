"""The differences between two executions. XP-4."""

from starlette.responses import Response

from adapters_http.console.paths import see_other
from adapters_http.console.rendering import page
from adapters_http.console.values import display
from adapters_http.request import Request
from wfcore.errors import NotFound
from wfcore.model.execution import Execution
from wfcore.rules.explain.differences import changed, step_differences
from wfcore.rules.masking import secret_values
from wfcore.usecases.executions.browsing import find_execution
from wfcore.usecases.executions.executions import read_execution
from wfcore.wire.executions import StepView, inputs_of, step_view

MOST = 4_000
"""The most characters of an output on this page."""


async def pick(request: Request) -> Response:
    """
    Redirect from the form with the id of another execution to the comparison. Raises `NotFound`.
    """
    other = (request.query("with") or "").strip()
    found = await find_execution(request.services, request.who, other) if other else None
    if found is None:
        raise NotFound("Execution")
    return see_other(request, f"/executions/{request.params['id']}/compare/{found}")


async def show(request: Request) -> Response:
    """The inputs and steps that differ; other steps on demand."""
    services, who = request.services, request.who
    one = await read_execution(services, who, request.params["id"])
    other = await read_execution(services, who, request.params["other"])
    mine, theirs = inputs_of(one, secret_values(one)), inputs_of(other, secret_values(other))
    found = list(step_differences(one, other))
    return page(
        request,
        "compare.html",
        one=one,
        other=other,
        inputs=[(name, _text(mine, name), _text(theirs, name)) for name in changed(mine, theirs)],
        steps=[
            (each.name, each.fields, _side(one, each.name), _side(other, each.name))
            for each in found
        ],
        differ=sum(bool(each.fields) for each in found),
    )


def _text(values: object, name: str) -> str | None:
    assert hasattr(values, "get")
    return display(values.get(name)).text if name in values else None  # type: ignore[operator]


def _side(run: Execution, key: str) -> tuple[StepView, str | None] | None:
    """
    One step as in the API, masked, with the beginning of its output; None if the step did not run.
    """
    if key not in run.step_results:
        return None
    view = step_view(run, key)
    return view, None if view.output is None else display(view.output).text[:MOST]
