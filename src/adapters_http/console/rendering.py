"""
From facts to a page: templates, the headers of every page, errors as pages.

The content security policy lets in nothing but this server's own files, and no script may turn text
into markup (`require-trusted-types-for`): a name or a cell that slipped through the escaping
of the templates would still be inert. Decision 125.
"""

import re
from functools import cache
from hashlib import blake2b
from http import HTTPStatus
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import quote, urlsplit

from attrs import frozen
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import Response

from adapters_http.browsers import cookie
from adapters_http.console.routes import PAGES
from adapters_http.console.static_files import files, script_words
from adapters_http.console.words import (
    ACCOUNTS,
    CHOSEN,
    DENIALS,
    MARKS,
    N_,
    SCOPES,
    SOURCES,
    STATUSES,
    Said,
    _,
    amount,
    cell,
    count,
    iso,
    language,
    ngettext,
    number,
    orders,
    person,
    relative,
    short,
    signs,
    size,
    speak,
    tag,
    took,
    usd,
    utc,
)
from adapters_http.pages import question_html
from adapters_http.request import Request
from adapters_http.transport.connections import is_loopback
from wfcore.errors import InvalidInput
from wfcore.model.access import Scope
from wfcore.model.page import PageCursor, PageRequest
from wfcore.rules.approval.question import title
from wfcore.rules.paging import cursor_text, page_request
from wfcore.rules.triggers.trigger import SAYS
from wfcore.rules.visible import shown
from wfcore.rules.written_dates import is_date
from wfcore.time import EpochMs
from wfcore.usecases.approvals.reviewing import MOST_WAITING, count_waiting

_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types wfcore",
)
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
}
PLACES = {
    "inbox": N_("Inbox"),
    "executions": N_("Executions"),
    "workflows": N_("Workflows"),
    "operate": N_("Operate"),
}
"""What the frame leads to, by path and by key: `g` and the first letter."""
THEME, TIMES = "wfcore_theme", "wfcore_times"
"""Cookies with what the browser's owner chose; they say nothing of anybody."""
_THEMES = ("light", "dark")


def page(request: Request, template: str, status: int = 200, **facts: Any) -> Response:
    """
    A page as a response. *follows*: what a list shows, in short, where the page follows it; see
    `hints`.
    """
    if "follows" in facts:
        facts["mark"] = mark_of(facts.pop("follows"), request.waiting)
        path, _, query = path_here(request).partition("?")
        facts["live"] = f"{request.base_path}{path}/live?{query}"
    html = render(request, template, **facts)
    ms = (perf_counter() - request.began) * 1_000
    headers = {**page_headers(request), "Server-Timing": f"total;dur={ms:.1f}"}
    return Response(html, status, headers, "text/html")


def mark_of(seen: object, waiting: int | None) -> str:
    """What a page remembers of what it shows, to be compared with what is there later."""
    return blake2b(repr((seen, waiting)).encode(), digest_size=8).hexdigest()


async def waiting_for(request: Request) -> int | None:
    """How much waits for the reader, for the frame of each page; None: nobody is signed in."""
    who = getattr(request, "who", None)
    if who is None or (who.scopes and Scope.APPROVAL_RESPOND not in who.scopes):
        return None
    return await count_waiting(request.services, who)


def page_headers(request: Request) -> dict[str, str]:
    """The headers of a page: who may frame it, and what is told of its address elsewhere."""
    framers = " ".join(request.context.config.frame_ancestors)
    policy = "; ".join((*_POLICY, f"frame-ancestors {framers or NONE}"))
    headers = {**_HEADERS, "Content-Security-Policy": policy, "Referrer-Policy": _referrer(request)}
    return headers if framers else {**headers, "X-Frame-Options": "DENY"}


NONE = "'none'"


def _referrer(request: Request) -> str:
    """
    The address of a page with a token is told to nobody. Under `no-referrer` a form is sent with
    `Origin: null`, and then `Sec-Fetch-Site` must say where it comes from; over plain http browsers
    send that to loopback only, so elsewhere the origin is told, and never the path. Decision 141.
    """
    if "token" not in request.params:
        return "same-origin"
    url = urlsplit(request.base_url)
    trusted = url.scheme == "https" or is_loopback(url.hostname or "")
    return "no-referrer" if trusted else "strict-origin"


def render(request: Request, template: str, **facts: Any) -> str:
    """The HTML of a template. Facts of every page: who, where its files are, how it looks."""
    who = getattr(request, "who", None)
    now = request.services.clock.deadline_now()
    theme = cookie(request, THEME)
    return (
        _templates()
        .get_template(template)
        .render(
            base=request.base_path,
            static=f"{request.base_path}/static/{files().hash}",
            here=path_here(request),
            places=Said(_places()),
            account=who.account if who else None,
            waiting=request.waiting and count(request.waiting, MOST_WAITING),
            may_sign_out=who is not None and not who.scopes,
            theme=theme if theme in _THEMES else "",
            in_utc=cookie(request, TIMES) == "utc",
            language=cookie(request, CHOSEN),
            tag=tag(),
            signs=signs(),
            orders=orders(),
            words=script_words(language()),
            time=lambda at: _time(at, now),
            clock=_clock,
            **facts,
        )
    )


@cache
def _places() -> dict[str, str]:
    """Those of the places that this server has."""
    paths = {route.path for route in PAGES}
    return {name: title for name, title in PLACES.items() if f"/{name}" in paths}


def _time(at: EpochMs, now: EpochMs) -> Markup:
    """An instant, relative; a script adds local time, and says it anew each minute."""
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        iso(at), utc(at), relative(at, now)
    )


def _clock(at: EpochMs) -> Markup:
    """An instant by the clock: in UTC, which a script turns into local time."""
    return Markup('<time data-clock datetime="{}" title="{}">{}</time>').format(
        iso(at), utc(at), utc(at)
    )


def behind(request: Request, list: str, size: int, top: PageCursor) -> PageRequest:
    """
    The rows of a list behind the one that the address names, else from *top*, before all of them;
    an address that was cut begins there, too. A list that is asked for so counts nothing. PG-6.
    """
    text = request.query("after")
    try:
        if text:
            return page_request(None, None, (size, size), text, list)
    except InvalidInput:
        pass
    return PageRequest(size=size, after=top)


def after(list: str, next: PageCursor | None) -> str | None:
    """`after` of the next page."""
    return cursor_text(list, next) if next else None


def see_other(request: Request, path: str) -> Response:
    """To another page of ours."""
    location = quote(request.base_path + path, safe="/?&=%+:~,;@!$'()*")
    return Response(None, 303, {**page_headers(request), "Location": location})


def form_facts(
    request: Request, next: str, problem: str | None = None, email: str = ""
) -> dict[str, Any]:
    """What the form to sign in shows."""
    sign_on = request.context.config.sign_on
    return {
        "problem": problem,
        "email": email,
        "next": next,
        "provider": sign_on.name if sign_on else None,
        "mails": request.context.config.mail is not None,
    }


def path_here(request: Request) -> str:
    """
    The path of this page, below the mount, if it can be opened again, as that to which a form was
    sent often can; else the inbox.
    """
    path: str = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    if not _pages().fullmatch(path):
        return "/inbox"
    query = request.scope["query_string"].decode("latin-1")
    return own_path(quote(path) + (f"?{query}" if query else ""))


@cache
def _pages() -> re.Pattern[str]:
    """The paths that open a page."""
    opened = (one.path for one in PAGES if one.html and one.method == "GET")
    paths = {re.sub(r"\{\w+\}", "[^/]+", path) for path in opened}
    return re.compile("|".join(sorted(paths)))


def own_path(text: str) -> str:
    """*text* where it is a path of ours to open after signing in; else the inbox."""
    plain = text.isascii() and text.isprintable() and "\\" not in text
    if not plain or not text.startswith("/") or text.startswith("//"):
        return "/inbox"
    path = urlsplit(text).path
    return "/inbox" if path == "/" or path.startswith(("/sign-", "/in/", "/static/")) else text


def error_page(
    request: Request,
    status: int,
    says: str,
    personal: bool = False,
    retry_s: int | None = None,
) -> str:
    """
    An error as a page that says what to do: of a 401 the way in, which leads back here. *personal*:
    at a personal link. *retry_s*: after how many seconds it is worth another try, where known.
    """
    speak(request)
    if status == HTTPStatus.UNAUTHORIZED:
        return render(request, "sign_in.html", **form_facts(request, path_here(request)))
    advices = _ADVICE_AT_A_LINK if personal else _ADVICE
    title, advice = advices.get(status, (HTTPStatus(status).phrase, ""))
    said = [_(advice)] if advice else []
    if retry_s is not None:
        wait = f"{retry_s} s" if retry_s < _LONG_S else f"{-(-retry_s // 60)} min"
        said.append(_("Try again in {wait}.").format(wait=wait))
    facts = {"title": _(title), "says": _(says), "advice": " ".join(said)}
    return render(request, "error.html", status=status, navigates=not personal, **facts)


_LONG_S = 120

_ADVICE = {
    403: (N_("Not permitted"), N_("Ask the owner of the workflow, or sign in as somebody else.")),
    404: (
        N_("Not found"),
        N_("It no longer exists, or the account that you are signed in with may not see it."),
    ),
    410: (
        N_("This link is no longer valid"),
        N_("Each link signs you in once. On the server, wfcore login creates another one."),
    ),
    429: (N_("Too many attempts"), N_("Nothing is lost.")),
    503: (
        N_("Not available"),
        N_("Nothing was changed."),
    ),
}
_ADVICE_AT_A_LINK = {
    **_ADVICE,
    403: (N_("Not permitted"), N_("Sign in to decide, or ask the owner of the workflow.")),
    404: (N_("Not found"), N_("The approval no longer exists, or is no longer yours to decide.")),
    410: (
        N_("This link is no longer valid"),
        N_("A personal link is valid until its approval is decided or expires."),
    ),
}


@frozen
class _Kept:
    """A text that a form sends back: it goes out as it is stored, and so is no text to `shown`."""

    text: str

    def __html__(self) -> str:
        return escape(self.text)


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    made.globals.update(STATUSES=STATUSES, MARKS=MARKS, SOURCES=SOURCES, REFUSALS=SAYS)
    made.globals.update(SCOPES=SCOPES, ACCOUNTS=ACCOUNTS, DENIALS=DENIALS)
    made.filters.update(took=took, short=short, number=number, usd=usd)
    made.filters.update(cell=cell, person=person, size=size, amount=amount)
    made.filters["kept"] = _Kept
    made.filters.update(title=title, question=question_html)
    made.tests["date"] = is_date
    made.install_gettext_callables(_, ngettext, newstyle=True)  # type: ignore[attr-defined]
    return made
