"""Rendering of pages: the templates, and the facts of the frame around every page."""

from contextvars import ContextVar
from functools import cache
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import Any

from attrs import frozen
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import Response

from adapters_http.browsers import cookie
from adapters_http.console.formats import (
    amount,
    cell,
    count,
    day_or_time,
    initials,
    iso,
    number,
    person,
    relative,
    short,
    since,
    size,
    took,
    usd,
    utc,
)
from adapters_http.console.headers import page_headers
from adapters_http.console.history import said
from adapters_http.console.language import (
    CHOSEN,
    TranslatedTexts,
    _,
    language,
    ngettext,
    orders,
    signs,
    tag,
)
from adapters_http.console.paths import path_here
from adapters_http.console.pictures import KINDS, path_of
from adapters_http.console.places import places_for
from adapters_http.console.static_files import files, script_words
from adapters_http.console.values import columns, padding
from adapters_http.console.words import (
    ACCOUNTS,
    APPROVALS,
    DENIALS,
    MARKS,
    PARTS,
    SCOPES,
    SOURCES,
    STATUSES,
    TYPES,
)
from adapters_http.pages import question_html
from adapters_http.request import Request
from wfcore.model.access import Scope
from wfcore.model.page import NEWEST, PageRequest
from wfcore.rules.approval.question import title
from wfcore.rules.explain.source_lines import cause_of
from wfcore.rules.phrase import translated
from wfcore.rules.triggers.trigger import SAYS
from wfcore.rules.visible import shown
from wfcore.rules.written_dates import is_date
from wfcore.time import EpochMs
from wfcore.usecases.approvals.approvals import list_approvals
from wfcore.usecases.approvals.reviewing import MOST_WAITING, Tab, count_of
from wfcore.usecases.executions.browsing import workflow_names

THEME, TIMES, DENSITY = "wfcore_theme", "wfcore_times", "wfcore_density"
"""The names of cookies with the choices of the browser's owner; these cookies identify nobody."""
_THEMES = ("light", "dark")


def page(request: Request, template: str, status: int = 200, **facts: Any) -> Response:
    """
    A page as a response. The fact `follows`: the content of a list in short, if the page follows
    changes of the list; see `hints`.
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
    """A digest of the content of a page, to compare with the content at a later time."""
    return blake2b(repr((seen, waiting)).encode(), digest_size=8).hexdigest()


async def waiting_for(request: Request) -> int | None:
    """The number of approvals that wait for the reader; None if nobody is signed in."""
    who = getattr(request, "who", None)
    if who is None or (who.scopes and Scope.APPROVAL_RESPOND not in who.scopes):
        return None
    return await count_of(request.services, who, Tab.WAITING)


async def is_owner(request: Request) -> bool:
    """
    Whether the frame offers the places of an owner: not to somebody who sees approvals, but no
    workflow.
    """
    who, services = getattr(request, "who", None), request.services
    if who is None:
        return False
    if await workflow_names(services, who, 1):
        return True
    return not (await list_approvals(services, who, PageRequest(size=1, after=NEWEST))).rows


_STATIC: ContextVar[str] = ContextVar("address of the static files")


def render(request: Request, template: str, **facts: Any) -> str:
    """The HTML of a template. Adds the facts of every page: reader, paths of files, appearance."""
    who = getattr(request, "who", None)
    now = request.services.clock.deadline_now()
    theme = cookie(request, THEME)
    static = f"{request.base_path}/static/{files().hash}"
    _STATIC.set(static)
    return (
        _templates()
        .get_template(template)
        .render(
            base=request.base_path,
            static=static,
            here=path_here(request),
            places=places_for(request.owns, bool(who and who.operator)),
            account=who.account if who else None,
            waiting=request.waiting and count(request.waiting, MOST_WAITING),
            may_sign_out=who is not None and not who.scopes,
            theme=theme if theme in _THEMES else "",
            in_utc=cookie(request, TIMES) == "utc",
            density=cookie(request, DENSITY) == "comfortable",
            language=cookie(request, CHOSEN),
            tag=tag(),
            signs=signs(),
            orders=orders(),
            words=script_words(language()),
            time=lambda at: _time(at, now),
            when=lambda at: _when(at, now),
            clock=_clock,
            **facts,
        )
    )


def _time(at: EpochMs, now: EpochMs) -> Markup:
    """
    A relative instant as a time element; a script adds local time, and renews the text each minute.
    """
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        iso(at), utc(at), relative(at, now)
    )


def _when(at: EpochMs, now: EpochMs) -> Markup:
    """
    An instant in a list, as a time element: the time of a day, a weekday or a date, whichever says
    enough. In UTC; a script turns it into local time.
    """
    return Markup('<time class="at" tabindex="0" datetime="{}" title="{}">{}</time>').format(
        iso(at), utc(at), day_or_time(at, now)
    )


def _clock(at: EpochMs) -> Markup:
    """An instant as a time element, in UTC; a script turns it into local time."""
    return Markup('<time data-clock datetime="{}" title="{}">{}</time>').format(
        iso(at), utc(at), utc(at)
    )


def icon(name: str, about: str = "") -> Markup:
    """A picture of the sprite by its name; with *about*, a text for readers without pictures."""
    about = Markup('role="img" aria-label="{}"').format(about) if about else _HIDDEN
    return Markup('<svg class="i" {}><use href="{}/icons.svg#{}"/></svg>').format(
        about, _STATIC.get(), name
    )


_HIDDEN = Markup('aria-hidden="true"')


def state_mark(status: str, word: str | None = None) -> Markup:
    """A status as its shape and word; see `STATUSES`. Without *word*, the word of the status."""
    shape = status.lower()
    return Markup('<span class="status {}">{} <span>{}</span></span>').format(
        shape, icon(shape), word or STATUSES[status]
    )


def avatar(email: str) -> Markup:
    """The initials of a person in a circle; the tint tells persons apart."""
    return Markup('<span class="who {}" aria-hidden="true">{}</span>').format(
        "abcd"[sum(email.encode()) % 4], initials(email)
    )


def by(text: str, kind: str = "") -> Markup:
    """A person with initials, or the machine of *kind* with its icon, and the name."""
    circle = Markup('<span class="who sys">{}</span>').format(icon(kind)) if kind else avatar(text)
    return Markup('<span class="by">{}<span class="cut" title="{}">{}</span></span>').format(
        circle, shown(text), shown(text)
    )


@frozen
class _Kept:
    """
    A text that a form sends back. The text is rendered as stored, without the signs of `shown`.
    """

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
    made.globals.update(STATUSES=STATUSES, APPROVALS=APPROVALS, MARKS=MARKS, SOURCES=SOURCES)
    made.globals.update(REFUSALS=TranslatedTexts(SAYS))
    made.filters["translated"] = lambda text: translated(text, _)
    made.globals.update(
        said=said,
        KINDS=KINDS,
        path_of=path_of,
        icon=icon,
        state_mark=state_mark,
        avatar=avatar,
        by=by,
    )
    made.globals.update(PARTS=PARTS, TYPES=TYPES, SCOPES=SCOPES, ACCOUNTS=ACCOUNTS, DENIALS=DENIALS)
    made.filters.update(utc=utc, took=took, since=since, short=short, number=number, usd=usd)
    made.filters.update(
        padding=padding, columns=columns, cell=cell, person=person, size=size, amount=amount
    )
    made.filters.update(kept=_Kept, cause=cause_of)
    made.filters.update(title=title, question=question_html)
    made.tests["date"] = is_date
    made.install_gettext_callables(_, ngettext, newstyle=True)  # type: ignore[attr-defined]
    return made
