"""
The rows of the pages. They are rows like all others, but no part of the API: the description does
not list them, and without `HttpConfig.console` nothing of them is there.

A handler is named here and imported by the first request for it, so that a server whose pages
nobody opens does not load them. Decision 125.
"""

from importlib import import_module
from typing import Any

from adapters_http.console.forms import (
    ActForm,
    DecisionForm,
    LinkForm,
    SettingsForm,
    SignInForm,
    SignOutForm,
)
from adapters_http.request import Request
from adapters_http.route import Auth, Handler, Route
from wfcore.model.access import Scope
from wfcore.rules.limits import EDITED_ROWS_BODY
from wfcore.wire import requests

_HTML = "text/html"
_FORM = 16_384
"""Bytes of a form: a comment, an address, a password."""


def _lazily(module: str, name: str) -> Handler:
    async def handler(request: Request) -> Any:
        found = getattr(import_module(f"adapters_http.console.{module}"), name)
        return await found(request)

    handler.__module__, handler.__name__ = f"adapters_http.console.{module}", name
    return handler


def _page(method: str, path: str, handler: tuple[str, str], summary: str, **more: Any) -> Route:
    fields = {"auth": Auth.PAGE, "media": _HTML, "body_limit": _FORM, **more}
    return Route(method, path, handler=_lazily(*handler), summary=summary, **fields)


def _approval_pages(at: str, **more: Any) -> tuple[Route, ...]:
    """An approval and what can be done with it, below one address."""
    json = {"media": "application/json", **more}
    edited = {"body": requests.ApproveBody, "body_limit": EDITED_ROWS_BODY, "keys_once": True}
    # fmt: off
    return (
        _page("GET", at, ("approval", "show"), "An approval", **more),
        _page("POST", at, ("approval", "decide_as_shown"), "Decide as shown",
              body=DecisionForm, **more),
        _page("GET", f"{at}/rows", ("approval", "rows"), "The rows of an approval", **json),
        _page("GET", f"{at}/state", ("approval", "state"), "Whether it changed", **json),
        _page("POST", f"{at}/approve", ("approval", "approve"), "Approve, with edited rows",
              **edited, **json),
        _page("POST", f"{at}/reject", ("approval", "reject"), "Reject",
              body=requests.RejectBody, keys_once=True, **json),
        _page("POST", f"{at}/revise", ("approval", "revise"), "Ask for changes",
              body=requests.ReviseBody, keys_once=True, **json),
    )
    # fmt: on


# fmt: off
PAGES: tuple[Route, ...] = (
    # The way in and out
    _page("GET", "/", ("sign_in", "home"), "To the inbox"),
    _page("GET", "/sign-in", ("sign_in", "show"), "Sign in", auth=Auth.OPEN),
    _page("POST", "/sign-in", ("sign_in", "enter"), "Sign in",
          auth=Auth.LOGIN, body=SignInForm),
    _page("POST", "/sign-in/link", ("sign_in", "mail_link"), "Mail a link",
          auth=Auth.LOGIN, body=LinkForm),
    _page("GET", "/in/{token}", ("sign_in", "show_link"), "Who a link signs in", auth=Auth.OPEN),
    _page("POST", "/in/{token}", ("sign_in", "use_link"), "Sign in by a link",
          auth=Auth.LOGIN, body=requests.NoBody),
    _page("GET", "/sign-in/provider", ("sign_in", "depart"), "Sign in elsewhere", auth=Auth.OPEN),
    _page("GET", "/sign-in/back", ("sign_in", "arrive"), "Back from there", auth=Auth.OPEN),
    _page("POST", "/sign-out", ("sign_in", "leave"), "Sign out", body=SignOutForm),
    _page("POST", "/settings", ("sign_in", "settle"), "How pages look here",
          auth=Auth.LOGIN, body=SettingsForm),
    _page("GET", "/static/{hash}/{name}", ("static_files", "send"), "Styles and scripts",
          auth=Auth.OPEN, media="text/css"),

    # Executions
    _page("GET", "/executions", ("executions", "show"), "Executions",
          scope=Scope.EXECUTION_READ),
    _page("GET", "/live", ("executions", "live"), "Whether something of mine changed",
          scope=Scope.EXECUTION_READ, media="text/event-stream"),
    _page("GET", "/executions/cancel", ("acting", "show_cancel"), "What a cancellation stops",
          scope=Scope.EXECUTION_CANCEL),
    _page("POST", "/executions/cancel", ("acting", "cancel"), "Cancel",
          scope=Scope.EXECUTION_CANCEL, body=ActForm),
    _page("GET", "/executions/redrive", ("acting", "show_redrive"), "What a redrive keeps",
          scope=Scope.WORKFLOW_EXECUTE),
    _page("POST", "/executions/redrive", ("acting", "redrive_all"), "Redrive",
          scope=Scope.WORKFLOW_EXECUTE, body=ActForm, starts=True),
    _page("GET", "/executions/{id}", ("execution", "show"), "An execution",
          scope=Scope.EXECUTION_READ),
    _page("GET", "/executions/{id}/live", ("execution", "live"), "Whether it changed",
          scope=Scope.EXECUTION_READ, media="text/event-stream"),
    _page("GET", "/executions/{id}/output", ("execution", "output"), "Its result as a file",
          scope=Scope.EXECUTION_READ, media="application/json"),
    _page("GET", "/executions/{id}/steps/{name}", ("execution", "show"), "A step",
          scope=Scope.EXECUTION_READ),
    _page("GET", "/executions/{id}/steps/{name}/{round}", ("execution", "show"),
          "A step in one round", scope=Scope.EXECUTION_READ),
    _page("GET", "/executions/{id}/outputs/{name}", ("step", "output"),
          "The output of a step as a file", scope=Scope.EXECUTION_READ, media="application/json"),
    _page("GET", "/executions/{id}/compare", ("comparing", "pick"), "What to compare with",
          scope=Scope.EXECUTION_READ),
    _page("GET", "/executions/{id}/compare/{other}", ("comparing", "show"), "Two executions",
          scope=Scope.EXECUTION_READ),

    # Approvals
    _page("GET", "/inbox", ("inbox", "show"), "What waits for a decision",
          scope=Scope.APPROVAL_RESPOND),
    *_approval_pages("/approvals/{id}", scope=Scope.APPROVAL_RESPOND),
    *_approval_pages("/a/{token}", auth=Auth.PERSONAL),
)
# fmt: on
