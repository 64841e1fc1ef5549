"""
The frame of the pages below `/operate`, and the pages of usage, secrets and health.

An owner sees the records of the account, an operator all records. For other readers, pages for
operators do not exist (AC-7). The pages call the same use cases as the API.
"""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from adapters_http.console.hints import followed
from adapters_http.console.paths import see_other
from adapters_http.console.places import FOR_OPERATORS, TABS
from adapters_http.console.rendering import page
from adapters_http.handlers.operating import list_secrets, read_health
from adapters_http.request import Request
from wfcore.usecases.accounts.usage import read_usage

SIZE = 50


def operate_page(request: Request, tab: str, status: int = 200, **facts: Any) -> Response:
    """A page below `/operate`."""
    operator = request.who.operator
    titles: Mapping[str, str] = {**TABS, **FOR_OPERATORS}
    template, shown = f"operate_{tab}.html", _BELOW.get(tab, tab)
    facts |= {"tab": shown, "title": titles[shown], "operator": operator}
    return page(request, template, status, **facts)


_BELOW = {
    "key": "keys",
    "made": "keys",
    "webhook": "webhooks",
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


async def show_secrets(request: Request) -> Response:
    """The names of the account's secrets, never a value."""
    found = await list_secrets(request)
    return operate_page(request, "secrets", secrets=found.secrets, follows=found.secrets)


async def _look_secrets(request: Request) -> object:
    return (await list_secrets(request)).secrets


live_secrets = followed(_look_secrets)


async def show_health(request: Request) -> Response:
    """The figures of `/metrics`, the checks of the server, and the number of failed notices."""
    found = await read_health(request)
    return operate_page(request, "health", health=found)
