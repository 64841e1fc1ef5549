"""The pages of the schedules of all workflows: list, pause, resume, and backfill."""

from collections.abc import Sequence

from starlette.responses import Response

from adapters_http.console.cron_words import in_words
from adapters_http.console.hints import followed
from adapters_http.console.operate import SIZE, operate_page, reader_of
from adapters_http.console.paths import day_in, see_other
from adapters_http.handlers.operating import LONGEST_NUMBER
from adapters_http.request import Request
from wfcore.errors import InvalidInput
from wfcore.model.trigger import Schedule, TriggerRow
from wfcore.time import DAY, EpochMs
from wfcore.usecases.workflows import triggers
from wfcore.usecases.workflows.backfilling import BackfillResult, preview_backfill
from wfcore.usecases.workflows.backfilling import backfill as begin_backfill
from wfcore.usecases.workflows.triggers import next_fires, read_trigger, triggers_seen

NEXT = 5
"""The next times of a schedule that its row shows."""
BACKFILL_DAYS = 7
"""The period that the form of a backfill proposes, in days until now."""


async def show(request: Request) -> Response:
    """Each schedule with its next times, and the triggers that were last refused."""
    seen = await triggers_seen(request.services, reader_of(request))
    schedules = sorted(
        (row for row in seen if isinstance(row[0].trigger.spec, Schedule)),
        key=lambda row: (row[0].standing.next_at is None, row[0].standing.next_at or 0),
    )
    refused = [row for row in seen if row[0].trigger.refusal or row[0].standing.why]
    refused.sort(key=lambda row: -(row[0].trigger.refused_at or 0))
    return operate_page(
        request,
        "schedules",
        schedules=[(row, name, _coming(request, (row, name))) for row, name in schedules],
        refused=refused[:SIZE],
        in_words=in_words,
        follows=_in_short(seen),
    )


def _coming(request: Request, row: tuple[TriggerRow, str]) -> Sequence[EpochMs]:
    return [at for at, _, _ in next_fires(request.services, [row], NEXT)]


def _in_short(seen: Sequence[tuple[TriggerRow, str]]) -> object:
    return [(one.trigger.id, one.trigger.version, one.standing, name) for one, name in seen]


async def _snapshot(request: Request) -> object:
    return _in_short(await triggers_seen(request.services, reader_of(request)))


live = followed(_snapshot)


async def switch(request: Request) -> Response:
    """Pause or resume a trigger; redirects to the list, or to the triggers of the workflow."""
    services, who, id = request.services, request.who, request.params["id"]
    if request.body.status == "PAUSED":
        found = await triggers.pause_trigger(services, who, id, request.origin)
    elif request.body.status == "ACTIVE":
        found = await triggers.resume_trigger(services, who, id, request.origin)
    else:
        raise InvalidInput("status", "must be ACTIVE or PAUSED")
    if request.body.back == "schedules":
        return see_other(request, "/operate/schedules")
    return see_other(request, f"/workflows/{found.trigger.workflow_id}/triggers")


async def show_backfill(request: Request) -> Response:
    """
    The past times of a period, before anything starts. Without a period in the address: those of
    the last `BACKFILL_DAYS` days.
    """
    now = request.services.clock.deadline_now()
    since = day_in(request.query("from") or "") or EpochMs(now - BACKFILL_DAYS * DAY)
    until = day_in(request.query("to") or "", after=1) or now
    return await _backfill_page(request, since, EpochMs(min(until, now)))


async def _backfill_page(
    request: Request, since: EpochMs, until: EpochMs, done: Sequence[BackfillResult] | None = None
) -> Response:
    services, who, id = request.services, request.who, request.params["id"]
    row, flow = await read_trigger(services, who, id)
    problem, found = None, done
    try:
        found = found or await preview_backfill(services, who, id, since, until)
    except InvalidInput as wrong:
        problem = str(wrong)
    return operate_page(
        request,
        "backfill",
        400 if problem else 200,
        row=row,
        flow=flow,
        in_words=in_words,
        found=found or (),
        done=done is not None,
        since=since,
        until=until,
        problem=problem,
    )


async def backfill(request: Request) -> Response:
    """Start the times of a period that have not started, oldest first. SH-11."""
    form, id = request.body, request.params["id"]
    since, until = (_instant("since", form.since), _instant("until", form.until))
    services, who = request.services, request.who
    try:
        found = await begin_backfill(services, who, id, since, until, request.origin)
    except InvalidInput:  # the page says why
        return await _backfill_page(request, since, until)
    return await _backfill_page(request, since, until, found)


def _instant(field: str, text: str) -> EpochMs:
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        raise InvalidInput(field, "must be a number of milliseconds")
    return EpochMs(int(text))
