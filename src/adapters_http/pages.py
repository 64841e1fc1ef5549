"""
The pages of one-click links: a question, a decision, an error. Spec: one-click rules.

The pages are plain HTML, work without scripts, and load no other files. The templates escape all
values; a nonce admits only the style of the page.
"""

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import frozen

from adapters_http.json_text import dump_json
from wfcore.model.approval import Approval, DecisionSource, Group, Verdict
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Column, ColumnType
from wfcore.rules import markdown
from wfcore.rules.approval.agreement import items_hash, unanswered
from wfcore.rules.approval.question import question, title
from wfcore.time import DAY, HOUR, MINUTE, SECOND, EpochMs

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

MOST_ROWS = 20
MOST_COLUMNS = 30
LONGEST_CELL = 300
LONGEST_COMMENT = 2_000

_LAST_INSTANT = 253_402_300_799_000
_UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"))
_CHANNELS = {
    DecisionSource.API: "through the API",
    DecisionSource.WEBHOOK: "through the approval webhook",
    DecisionSource.LINK: "with the approval link",
    DecisionSource.CONSOLE: "in the console",
    DecisionSource.TIMEOUT: "automatically, because time ran out",
    DecisionSource.RULE: "automatically, by the rule of its step",
}
_PREFETCHING = ("purpose", "sec-purpose", "x-purpose", "x-moz")
_NAVIGATING = {
    "sec-fetch-site": ("same-origin", "none"),
    "sec-fetch-mode": ("navigate",),
    "sec-fetch-dest": ("document",),
}
_AHEAD = ("prefetch", "preview", "prerender")


class HtmlPage(NamedTuple):
    """A page and the nonce of its style, which goes into `PAGE_HEADERS`."""

    html: str
    nonce: str


@frozen
class RowTable:
    """A group of rows on a page: the first rows, and the number of all rows."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    count: int


def confirm_page(
    approval: Approval,
    verdict: Verdict,
    *,
    now: EpochMs,
    api_key: str | None = None,
    comment: str = "",
    workflow_name: str = "",
    changed: bool = False,
    url: str = "",
) -> HtmlPage:
    """
    The page that asks to confirm *verdict*. The button of the page sends a GET to the same address
    with *api_key*, the comment, a digest of the rows, and `confirm=1`. *changed*: the rows have
    changed since the previous page. *url*: the page for approvals with questions. AP-19, AP-30.
    """
    approves = verdict is Verdict.APPROVE
    return _page(
        "confirm.html",
        approval=approval,
        workflow=workflow_name or approval.workflow_id,
        verb="Approve" if verdict is Verdict.APPROVE else "Reject",
        approves=approves,
        tables=[_table(group) for group in approval.groups],
        expires=utc(approval.expires_at),
        remaining=remaining(approval.expires_at - now),
        api_key=api_key,
        comment=comment,
        longest_comment=LONGEST_COMMENT,
        url=url,
        lacking=[one.title for one in unanswered(approval)] if approves else [],
        items_hash=items_hash(approval) if approves and _has_content(approval) else None,
        changed=changed,
        given=len(approval.assents),
        required=approval.required_approvals,
        approved_by=[one.by for one in approval.assents],
    )


def _has_content(approval: Approval) -> bool:
    """Whether a verdict agrees to more than the message."""
    return bool(approval.groups or approval.attachments or approval.answers)


def decided_page(approval: Approval, *, workflow_name: str = "") -> HtmlPage:
    """The page of a decision: its author, time, channel and comment."""
    source = approval.decision_source
    return _page(
        "decided.html",
        approval=approval,
        workflow=workflow_name or approval.workflow_id,
        status=approval.status.capitalize(),
        decided=utc(approval.decided_at) if approval.decided_at is not None else None,
        channel=_CHANNELS[source] if source is not None else None,
        given=len(approval.assents),
        required=approval.required_approvals,
        approved_by=[one.by for one in approval.assents],
    )


def error_page(status: int, message: str) -> HtmlPage:
    """The page of an error; the title is the phrase of *status*."""
    known = status in HTTPStatus.__members__.values()
    title = HTTPStatus(status).phrase if known else "Error"
    return _page("error.html", status=status, title=title, message=message)


def PAGE_HEADERS(nonce: str) -> dict[str, str]:
    """
    The headers of a page: browsers load no other file, and do not frame, store or pass on the page.
    """
    policy = (
        "default-src 'none'",
        f"style-src 'nonce-{nonce}'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
    return {
        "Content-Security-Policy": "; ".join(policy),
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "X-Robots-Tag": "noindex",
    }


def may_decide(method: str, headers: Mapping[str, str]) -> bool:
    """
    Whether a request with `confirm=1` may be the action of a person.

    A browser sends `navigate` and `document` when its address bar changes. Fetches by scripts,
    prefetches, previews, HEAD, and pages that another site embeds or opens show the question again.
    Other clients send none of these headers. The names in *headers* are in lower case.
    """
    if method != "GET":
        return False
    hints = " ".join(headers.get(name, "") for name in _PREFETCHING).lower()
    if any(word in hints for word in _AHEAD):
        return False
    return all(
        headers.get(name, "").strip().lower() in ("", *meant) for name, meant in _NAVIGATING.items()
    )


def utc(at: EpochMs) -> str:
    """An instant in UTC, to the minute."""
    seconds = min(at, _LAST_INSTANT) / 1_000
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def remaining(left_ms: int) -> str | None:
    """A duration in its two largest units; None for a duration that is not positive."""
    if left_ms <= 0:
        return None
    parts: list[str] = []
    for size, name in _UNITS:
        count, left_ms = divmod(left_ms, size)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
        elif parts:
            break
    return " ".join(parts[:2]) or "less than a second"


def _table(group: Group) -> RowTable:
    shown = group.items[:MOST_ROWS]
    columns = (group.columns or columns_of(shown))[:MOST_COLUMNS]
    rows = tuple(tuple(_cell(row.get(one.key)) for one in columns) for row in shown)
    return RowTable(group.title or group.name, columns, rows, len(group.items))


def columns_of(rows: Sequence[JsonObject]) -> tuple[Column, ...]:
    """One column for each key, in order of first occurrence."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return tuple(Column(key, key, _type_of(rows, key)) for key in islice(keys, MOST_COLUMNS))


def _type_of(rows: Sequence[JsonObject], key: str) -> ColumnType:
    values = [row[key] for row in rows if row.get(key) is not None]
    numbers = values and all(type(one) in (int, float) for one in values)
    return ColumnType.NUMBER if numbers else ColumnType.STRING


def _cell(value: Json) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else dump_json(value).decode()
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"


def _page(template: str, **facts: Any) -> HtmlPage:
    nonce = secrets.token_urlsafe(18)
    return HtmlPage(_templates().get_template(template).render(nonce=nonce, **facts), nonce)


def question_html(approval: Approval) -> "Markup":
    """The question of an approval below its title, as HTML. MD-1."""
    from markupsafe import Markup

    text = markdown.below_title(question(approval))
    return Markup(markdown.html(text))  # noqa: S704 - made of escaped texts


@cache
def _templates() -> "Environment":
    """The templates, loaded with the first page: a server that shows no page starts faster."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(title=title, question=question_html)
    return made
