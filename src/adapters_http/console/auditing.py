"""The audit log on a page and as a file: what the account did, or was refused. AL-1."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode

from starlette.responses import Response

from adapters_http.console.formats import iso
from adapters_http.console.headers import page_headers
from adapters_http.console.hints import hints
from adapters_http.console.operate import operate_page
from adapters_http.console.spreadsheet import spreadsheet
from adapters_http.request import Request
from wfcore.model.event import AuditEntry, AuditOutcome
from wfcore.model.json import Json
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import AuditFilter, Found, newest_audited, search_audit

SIZE, IN_A_FILE = 50, 5_000
FILTERS = ("event", "outcome", "account", "key", "target", "from", "to")


async def show(request: Request) -> Response:
    """The newest entries that fit."""
    asked = _asked(request)
    newest = await newest_audited(request.services, request.who, 0)
    found = await _found(request, asked, SIZE)
    query = urlencode({name: text for name, text in asked.items() if text})
    return operate_page(
        request,
        "audit",
        entries=found.entries,
        next=found.next,
        looked_at=found.looked_at,
        later=bool(request.query("before")),
        asked=asked,
        narrowed=any(asked.values()),
        query=query,
        follows=newest,
    )


async def live(request: Request) -> Response:
    """Tells, without saying what, that the reader's part of the log grew."""
    seen = 0

    async def look() -> object:
        nonlocal seen
        seen = await newest_audited(request.services, request.who, seen)
        return seen

    return hints(request, look)


async def download(request: Request) -> Response:
    """The same as CSV, at most `IN_A_FILE` entries."""
    found = await _found(request, _asked(request), IN_A_FILE)
    text = spreadsheet(COLUMNS, (_row(entry) for _, entry in found.entries))
    name = {"Content-Disposition": 'attachment; filename="audit.csv"'}
    return Response(
        text.encode("utf-8-sig"), headers={**page_headers(request), **name}, media_type="text/csv"
    )


COLUMNS = ("at", "event", "outcome", "reason", "account", "key", "target", "path", "ip", "request")


def _row(entry: AuditEntry) -> Sequence[Json]:
    return (
        iso(entry.at), entry.event, entry.outcome.value, entry.reason, entry.account_id,
        entry.key_id, entry.target, entry.path, entry.ip, entry.request_id,
    )  # fmt: skip


def _asked(request: Request) -> Mapping[str, str]:
    return {name: (request.query(name) or "").strip() for name in FILTERS}


async def _found(request: Request, asked: Mapping[str, str], size: int) -> Found:
    where = AuditFilter(
        event=asked["event"],
        outcome=AuditOutcome(asked["outcome"]) if asked["outcome"] in set(AuditOutcome) else None,
        account_id=asked["account"],
        key_id=asked["key"],
        target=asked["target"],
        since=_day(asked["from"], 0),
        until=_day(asked["to"], 1),
    )
    text = request.query("before") or ""
    before = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    return await search_audit(request.services, request.who, where, before, size)


def _day(text: str, after: int) -> EpochMs | None:
    """The beginning of a day, or of the day *after* it; None for what is no day."""
    try:
        begin = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
        return EpochMs(max(int((begin + timedelta(days=after)).timestamp() * 1_000), 0))
    except (ValueError, OverflowError):
        return None
