"""The pages of the schedules of all workflows: list, pause and resume."""

from collections.abc import Sequence

from starlette.responses import Response

from adapters_http.console.hints import followed
from adapters_http.console.operate import SIZE, operate_page
from adapters_http.console.paths import see_other
from adapters_http.request import Request
from wfcore.errors import InvalidInput
from wfcore.model.trigger import Schedule, TriggerRow
from wfcore.usecases.workflows import triggers
from wfcore.usecases.workflows.triggers import next_fires, triggers_seen

FIRES = 20


async def show(request: Request) -> Response:
    """The next times of all schedules, and the triggers that were last refused."""
    seen = await triggers_seen(request.services, request.who)
    schedules = sorted(
        (row for row in seen if isinstance(row[0].trigger.spec, Schedule)),
        key=lambda row: (row[0].standing.next_at is None, row[0].standing.next_at or 0),
    )
    refused = [row for row in seen if row[0].trigger.refusal or row[0].standing.why]
    refused.sort(key=lambda row: -(row[0].trigger.refused_at or 0))
    fires = next_fires(request.services, seen, FIRES)
    return operate_page(
        request,
        "schedules",
        schedules=schedules,
        fires=fires,
        refused=refused[:SIZE],
        follows=_in_short(seen),
    )


def _in_short(seen: Sequence[tuple[TriggerRow, str]]) -> object:
    return [(one.trigger.id, one.trigger.version, one.standing, name) for one, name in seen]


async def _snapshot(request: Request) -> object:
    return _in_short(await triggers_seen(request.services, request.who))


live = followed(_snapshot)


async def switch(request: Request) -> Response:
    """Pause or resume a trigger; redirects to the page of its workflow."""
    services, who, id = request.services, request.who, request.params["id"]
    if request.body.status == "PAUSED":
        found = await triggers.pause_trigger(services, who, id, request.origin)
    elif request.body.status == "ACTIVE":
        found = await triggers.resume_trigger(services, who, id, request.origin)
    else:
        raise InvalidInput("status", "must be ACTIVE or PAUSED")
    return see_other(request, f"/workflows/{found.trigger.workflow_id}")
