"""
The frame of the pages below `/operate`, and the page of usage.

An owner sees the records of the account, an operator all records. For other readers, pages for
operators do not exist (AC-7). The pages call the same use cases as the API.
"""

from collections.abc import Mapping
from typing import Any

from attrs import evolve
from starlette.responses import Response

from adapters_http.console.paths import see_other
from adapters_http.console.places import FOR_OPERATORS, TABS
from adapters_http.console.rendering import page
from adapters_http.request import Request
from wfcore.model.access import Principal
from wfcore.usecases.accounts.usage import read_usage

SIZE = 50


def operate_page(request: Request, tab: str, status: int = 200, **facts: Any) -> Response:
    """A page below `/operate`."""
    operator = request.who.operator
    titles: Mapping[str, str] = {**TABS, **FOR_OPERATORS}
    template, shown = f"operate_{tab}.html", _BELOW.get(tab, tab)
    facts |= {
        "tab": shown,
        "title": titles[shown],
        "operator": operator,
        "mine": only_mine(request),
    }
    return page(request, template, status, **facts)


def only_mine(request: Request) -> bool:
    """Whether an operator chose the own records alone, by `of=mine` in the address."""
    return request.query("of") == "mine"


def reader_of(request: Request) -> Principal:
    """The reader, for whose records a page asks; an operator who chose so without that right."""
    return evolve(request.who, operator=False) if only_mine(request) else request.who


_BELOW = {
    "key": "keys",
    "made": "keys",
    "webhook": "webhooks",
    "new_webhook": "webhooks",
    "hook_secret": "webhooks",
    "backfill": "schedules",
    "person": "people",
    "group": "groups",
}
"""The place of each page that is below a place."""


async def home(request: Request) -> Response:
    """Redirect to the first of these pages."""
    return see_other(request, "/operate/webhooks")


async def show_usage(request: Request) -> Response:
    """The use of quotas against the plan, and the cost of models."""
    return operate_page(request, "usage", usage=await read_usage(request.services, request.who))
