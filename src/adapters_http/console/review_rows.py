"""
The rows of an approval for its reviewer: as JSON for the editor, as CSV, and as hints that the rows
have changed. AP-28.
"""

from asyncio import get_running_loop
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from adapters_http.console.formats import person
from adapters_http.console.paths import number_in
from adapters_http.console.spreadsheet import spreadsheet
from adapters_http.handlers.events import HEARTBEAT_S, POLL_MS, UNBUFFERED
from adapters_http.json_text import dump_json
from adapters_http.pages import columns_of
from adapters_http.params import last_event_id
from adapters_http.request import Request
from wfcore.errors import NotFound, WfError
from wfcore.model.approval import Approval, ApprovalStatus, Group
from wfcore.model.workflow import Column
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.approval.review import ReviewRow, review_rows
from wfcore.usecases.approvals.deciding import has_many_rows
from wfcore.usecases.approvals.reviewing import Review, review_for
from wfcore.wire.approvals import column_view, field_view
from wfcore.wire.common import disposition
from wfcore.wire.converter import plain


def columns_for(group: Group) -> tuple[Column, ...]:
    """The columns of a group, declared or taken from its rows."""
    return group.columns or columns_of(group.items)


async def _found(request: Request) -> Review:
    return await review_for(request.services, request.caller, request.params["id"])


async def rows(request: Request) -> bytes:
    """The rows for the editor: the proposed rows and the present rows. AP-28, AP-45."""
    found = await _found(request)
    if has_many_rows(found.approval):
        return await request.services.offload(lambda: _rows(found))
    return _rows(found)


def _rows(found: Review) -> bytes:
    approval = found.approval
    groups = [
        {
            "name": group.name,
            "title": group.title or group.name,
            "rowKey": group.row_key,
            "fixed": not group.columns,
            "adds": group.allow_add and bool(group.columns),
            "columns": [plain(column_view(one)) for one in columns_for(group)],
            "rows": [_row(one) for one in review_rows(approval, group)],
        }
        for group in approval.groups
    ]
    fields = [plain(field_view(one)) for one in approval.fields]
    answers = {"answers": approval.answers}
    return dump_json({**state_view(approval), "groups": groups, "fields": fields, **answers})


def _row(row: ReviewRow) -> list[Any]:
    """One row: as proposed and, if the present row differs, the present row and its author."""
    if row.proposed is row.standing or row.by is None:
        return [row.proposed]
    return [row.proposed, row.standing, row.by]


async def state(request: Request) -> bytes:
    """The present state of the approval."""
    return dump_json(state_view((await _found(request)).approval))


def state_view(approval: Approval) -> dict[str, Any]:
    """The state of an approval, for open pages to compare."""
    return {
        "id": approval.id,
        "status": approval.status,
        "version": approval.version,
        "itemsHash": items_hash(approval),
        "approvedBy": [person(one.by) for one in approval.assents],
        "decidedBy": person(approval.decided_by),
        "decisionSource": approval.decision_source,
    }


async def live(request: Request) -> Response:
    """A stream of hints that the approval has changed, each with the version. Decision 146."""
    found = await _found(request)
    seen = max(last_event_id(request), number_in(request.query("seen")))
    lines = _changes(request, found.approval.execution_id, seen)
    return StreamingResponse(lines, media_type="text/event-stream", headers=UNBUFFERED)


async def _changes(request: Request, execution_id: str, seen: int) -> AsyncIterator[bytes]:
    loop = get_running_loop()
    yield b"retry: 2000\n\n"
    sent_at = loop.time()
    with request.services.wakeup.follow(execution_id) as rest:
        while not request.context.config.ending:
            try:
                await request.require_admitted()
                approval = (await _found(request)).approval
            except WfError:
                return  # the reader connects again and gets the error
            if approval.version > seen:
                seen, sent_at = approval.version, loop.time()
                yield b"id: %d\nevent: changed\ndata:\n\n" % seen
            if approval.status is not ApprovalStatus.PENDING:
                yield b"id: %d\nevent: end\ndata:\n\n" % seen
                return
            if loop.time() - sent_at >= HEARTBEAT_S:
                sent_at = loop.time()
                yield b": still there\n\n"
            await rest(POLL_MS)


async def download(request: Request) -> Response:
    """The present rows of one group, for a spreadsheet. Raises `NotFound`."""
    approval = (await _found(request)).approval
    place = request.params["group"]
    groups = {str(at): group for at, group in enumerate(approval.groups)}
    if place not in groups:
        raise NotFound("Group")
    group = groups[place]
    text = await request.services.offload(lambda: _csv(group))
    headers = {
        "Content-Disposition": disposition(f"{approval.step_name}-{group.name}.csv"),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(text.encode("utf-8-sig"), headers=headers, media_type="text/csv")


def _csv(group: Group) -> str:
    columns = columns_for(group)
    rows = ([row.get(column.key) for column in columns] for row in group.items)
    return spreadsheet([column.title for column in columns], rows)
