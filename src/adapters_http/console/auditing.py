"""The audit log on a page and as a file: what the account did, and what it was refused. AL-1."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from starlette.responses import Response

from adapters_http.console.audit_sentences import sentence
from adapters_http.console.formats import iso
from adapters_http.console.headers import page_headers
from adapters_http.console.hints import hints
from adapters_http.console.operate import only_mine, operate_page, reader_of
from adapters_http.console.paths import day_in
from adapters_http.console.spreadsheet import spreadsheet
from adapters_http.request import Request
from wfcore.model.event import AuditEntry, AuditOutcome
from wfcore.model.json import Json
from wfcore.usecases.audit.auditing import AuditFilter, AuditMatches, newest_audited, search_audit
from wfcore.usecases.audit.names import names_in

SIZE, IN_A_FILE = 50, 5_000
FILTERS = ("event", "outcome", "account", "key", "target", "from", "to")


async def show(request: Request) -> Response:
    """The newest entries that match the filters."""
    filters = _filters(request)
    newest = await newest_audited(request.services, reader_of(request), 0)
    found = await _found(request, filters, SIZE)
    whose = {"of": "mine"} if only_mine(request) else {}
    query = urlencode({**whose, **{name: text for name, text in filters.items() if text}})
    names = await names_in(request.services, [entry for _, entry in found.entries])
    operator = request.who.operator
    return operate_page(
        request,
        "audit",
        entries=found.entries,
        sentence=lambda entry: sentence(entry, names, request.base_path, operator),
        next=found.next,
        looked_at=found.looked_at,
        later=bool(request.query("before")),
        filters=filters,
        narrowed=any(filters.values()),
        query=query,
        follows=newest,
    )


async def live(request: Request) -> Response:
    """A stream of hints that the reader's part of the log has new entries."""
    seen = 0

    async def newest() -> object:
        nonlocal seen
        seen = await newest_audited(request.services, reader_of(request), seen)
        return seen

    return hints(request, newest)


async def download(request: Request) -> Response:
    """The entries that match the filters as CSV, at most `IN_A_FILE`."""
    found = await _found(request, _filters(request), IN_A_FILE)
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


def _filters(request: Request) -> Mapping[str, str]:
    return {name: (request.query(name) or "").strip() for name in FILTERS}


async def _found(request: Request, filters: Mapping[str, str], size: int) -> AuditMatches:
    where = AuditFilter(
        event=filters["event"],
        outcome=AuditOutcome(filters["outcome"])
        if filters["outcome"] in set(AuditOutcome)
        else None,
        account_id=filters["account"],
        key_id=filters["key"],
        target=filters["target"],
        since=day_in(filters["from"]),
        until=day_in(filters["to"], after=1),
    )
    text = request.query("before") or ""
    before = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    return await search_audit(request.services, reader_of(request), where, before, size)
