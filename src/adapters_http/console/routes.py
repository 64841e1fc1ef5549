"""
The routes of the pages. The pages are not part of the API: the OpenAPI document does not list them,
and without `HttpConfig.console` the pages do not exist.

Each route has the name of its handler, which the first request imports, so that a server whose
pages nobody opens does not load the handlers. Decision 125.
"""

from importlib import import_module
from typing import Any

from adapters_http.console.forms import (
    ActForm,
    ChannelForm,
    CheckForm,
    ConditionsForm,
    DecisionForm,
    DecisionsForm,
    DelegateForm,
    EditForm,
    GroupForm,
    InviteForm,
    KeyForm,
    LinkForm,
    MembersForm,
    NameForm,
    OnceForm,
    PasskeyForm,
    PeriodForm,
    PersonForm,
    RedriveForm,
    RegisterForm,
    ReleaseBody,
    RequireForm,
    RestoreForm,
    SecretForm,
    SettingsForm,
    ShareForm,
    SignInForm,
    SignOutForm,
    StartForm,
    StateForm,
    StatusForm,
    ViewForm,
    WebhookForm,
    ZoneForm,
)
from adapters_http.request import Request
from adapters_http.route import OWN_KEYS, Auth, Handler, Route
from wfcore.model.access import Scope
from wfcore.rules.limits import (
    EDITED_ROWS_BODY,
    SECRET_BYTES,
    SOURCE_BYTES,
    STATE_BYTES,
    TRIGGER_BODY,
)
from wfcore.wire import requests

_HTML = "text/html"
_FORM = 65_536
"""
The most bytes of a form: a comment of 4,000 characters, each up to nine bytes, and fifty hashes.
"""


def _lazily(module: str, name: str, framed: bool) -> Handler:
    async def handler(request: Request) -> Any:
        import_module("adapters_http.console.language").speak(request)
        found = getattr(import_module(f"adapters_http.console.{module}"), name)
        if framed:
            frame = import_module("adapters_http.console.rendering")
            request.waiting = await frame.waiting_for(request)
            request.owns = await frame.is_owner(request)
        return await found(request)

    handler.__module__, handler.__name__ = f"adapters_http.console.{module}", name
    return handler


def _page(method: str, path: str, handler: tuple[str, str], summary: str, **more: Any) -> Route:
    fields = {"auth": Auth.PAGE, "media": _HTML, "body_limit": _FORM, **more}
    framed = fields["auth"] is Auth.PAGE and fields["media"] == _HTML
    return Route(method, path, handler=_lazily(*handler, framed), summary=summary, **fields)


def _list(path: str, module: str, summary: str, name: str = "", **more: Any) -> tuple[Route, ...]:
    """A page with a list, and the stream of hints that the list has changed."""
    handlers = (f"show{name}", f"live{name}")
    return (
        _page("GET", path, (module, handlers[0]), summary, **more),
        _page("GET", f"{path}/live", (module, handlers[1]), f"{summary}: whether it changed",
              **more, media="text/event-stream"),
    )  # fmt: skip


def _approval_pages(at: str, **more: Any) -> tuple[Route, ...]:
    """The page of an approval and the actions on it, below one address."""
    json = {"media": "application/json", **more}
    edited = {"body": ReleaseBody, "body_limit": EDITED_ROWS_BODY, "keys_once": True}
    # fmt: off
    return (
        _page("GET", at, ("approval", "show"), "An approval", **more),
        _page("POST", at, ("approval_decisions", "decide_as_shown"), "Decide as shown",
              body=DecisionForm, **more),
        _page("POST", f"{at}/delegate", ("approval_decisions", "delegate"),
              "Let somebody else decide", body=DelegateForm, **more),
        _page("GET", f"{at}/rows", ("review_rows", "rows"), "The rows of an approval", **json),
        _page("GET", f"{at}/rows/{{group}}", ("review_rows", "download"), "The rows as CSV",
              **{**more, "media": "text/csv"}),
        _page("GET", f"{at}/state", ("review_rows", "state"), "What it is like now", **json),
        _page("GET", f"{at}/live", ("review_rows", "live"), "Whether it changed",
              **{**more, "media": "text/event-stream"}),
        _page("POST", f"{at}/approve", ("approval_decisions", "approve"),
              "Approve, with edited rows", **edited, **json),
        _page("POST", f"{at}/confirm", ("passkeys", "confirm"),
              "Ask for the passkey of a signed release",
              **{**edited, "body": requests.ApproveBody}, **json),
        _page("POST", f"{at}/reject", ("approval_decisions", "reject"), "Reject",
              body=requests.RejectBody, keys_once=True, **json),
        _page("POST", f"{at}/revise", ("approval_decisions", "revise"), "Ask for changes",
              body=requests.ReviseBody, keys_once=True, **json),
    )
    # fmt: on


# fmt: off
PAGES: tuple[Route, ...] = (
    # The way in and out
    _page("GET", "/", ("first_visit", "home"), "To the reader's first page",
          visitors="it only leads on"),
    _page("GET", "/start", ("first_visit", "show"), "The first steps",
          visitors="it shows nothing of the account"),
    _page("POST", "/start/hide", ("first_visit", "hide"), "Do not show it again",
          body=requests.NoBody, visitors="it sets a cookie"),
    _page("POST", "/start/sample", ("first_visit", "run_sample"), "Run the sample",
          scope=Scope.WORKFLOW_EXECUTE, body=OnceForm, starts=True),
    _page("GET", "/start/runs/{id}", ("first_visit", "follow"), "To the approval of a run",
          scope=Scope.EXECUTION_READ),
    _page("GET", "/sign-in", ("sign_in", "show"), "Sign in", auth=Auth.OPEN),
    _page("POST", "/sign-in", ("sign_in", "enter"), "Sign in",
          auth=Auth.LOGIN, body=SignInForm),
    _page("POST", "/sign-in/passkey", ("sign_in", "enter_by_passkey"), "Sign in by a passkey",
          auth=Auth.LOGIN, body=PasskeyForm),
    _page("POST", "/sign-in/link", ("sign_in", "mail_link"), "Mail a link",
          auth=Auth.LOGIN, body=LinkForm),
    _page("GET", "/in/{token}", ("sign_in", "show_link"), "Who a link signs in", auth=Auth.OPEN),
    _page("POST", "/in/{token}", ("sign_in", "use_link"), "Sign in by a link",
          auth=Auth.LOGIN, body=requests.NoBody),
    _page("GET", "/sign-in/provider", ("sign_in", "depart"), "Sign in elsewhere", auth=Auth.OPEN),
    _page("GET", "/sign-in/back", ("sign_in", "arrive"), "Back from there", auth=Auth.OPEN),
    _page("POST", "/sign-out", ("sign_in", "leave"), "Sign out", body=SignOutForm),
    _page("GET", "/more", ("sign_in", "more"), "All places, and how pages look here",
          visitors="it only leads on"),
    _page("POST", "/settings", ("sign_in", "settle"), "How pages look here",
          auth=Auth.LOGIN, body=SettingsForm),
    _page("GET", "/account", ("passkeys", "show_account"), "The reader's passkeys"),
    _page("POST", "/account/passkeys", ("passkeys", "register"), "Register a passkey",
          body=RegisterForm),
    _page("POST", "/account/passkeys/{id}", ("passkeys", "rename"), "Name it", body=NameForm),
    _page("POST", "/account/passkeys/{id}/remove", ("passkeys", "remove"), "Remove it",
          body=requests.NoBody),
    _page("POST", "/account/zone", ("passkeys", "place"), "The time zone of messages",
          body=ZoneForm),
    _page("POST", "/account/require", ("passkeys", "require"), "Ask for it after the password",
          body=RequireForm),
    _page("GET", "/static/{hash}/{name}", ("static_files", "send"), "Styles and scripts",
          auth=Auth.OPEN, media="text/css"),

    _page("GET", "/search", ("finding", "show"), "Search everything",
          visitors="it finds what the reader's rights show"),

    *_list("/overview", "overview", "What happened lately", scope=Scope.EXECUTION_READ),

    # Executions
    *_list("/executions", "executions", "Executions", scope=Scope.EXECUTION_READ),
    _page("GET", "/executions/cancel", ("acting", "show_cancel"), "What a cancellation stops",
          scope=Scope.EXECUTION_CANCEL),
    _page("POST", "/executions/cancel", ("acting", "cancel"), "Cancel",
          scope=Scope.EXECUTION_CANCEL, body=ActForm),
    _page("GET", "/executions/redrive", ("acting", "show_redrive"), "What a redrive keeps",
          scope=Scope.WORKFLOW_EXECUTE),
    _page("POST", "/executions/redrive", ("acting", "redrive_all"), "Redrive",
          scope=Scope.WORKFLOW_EXECUTE, body=ActForm, starts=True),
    _page("POST", "/executions/views", ("executions", "save"), "Name a list of executions",
          scope=Scope.EXECUTION_READ, body=ViewForm),
    _page("GET", "/executions/{id}", ("execution", "show"), "An execution",
          scope=Scope.EXECUTION_READ),
    _page("GET", "/executions/{id}/redrive", ("redriving", "show"), "The plan of a redrive",
          scope=Scope.WORKFLOW_EXECUTE),
    _page("POST", "/executions/{id}/redrive", ("redriving", "carry_out"), "Redrive by a plan",
          scope=Scope.WORKFLOW_EXECUTE, body=RedriveForm, starts=True),
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
    _page("GET", "/executions/{id}/lines", ("step", "lines"),
          "The output lines as a file", scope=Scope.EXECUTION_READ, media="text/plain"),
    _page("GET", "/executions/{id}/lines/{name}", ("step", "lines"),
          "The output lines of a step as a file", scope=Scope.EXECUTION_READ, media="text/plain"),
    _page("GET", "/executions/{id}/compare", ("comparing", "pick"), "What to compare with",
          scope=Scope.EXECUTION_READ),
    _page("GET", "/executions/{id}/compare/{other}", ("comparing", "show"), "Two executions",
          scope=Scope.EXECUTION_READ),

    # Workflows
    *_list("/workflows", "workflows", "Workflows", scope=Scope.WORKFLOW_READ),
    _page("GET", "/workflows/new", ("editing", "choose"), "What a new workflow begins with"),
    _page("POST", "/workflows/new", ("editing", "create"), "Check and create it",
          body=EditForm, body_limit=4 * SOURCE_BYTES),
    _page("POST", "/workflows/check", ("checking", "check"), "Check a text as it is typed",
          body=CheckForm, body_limit=4 * SOURCE_BYTES),
    _page("GET", "/workflows/{id}", ("workflows", "show_one"), "A workflow",
          scope=Scope.WORKFLOW_READ),
    _page("GET", "/workflows/{id}/start", ("starting", "show"), "Start a workflow",
          scope=Scope.WORKFLOW_EXECUTE),
    _page("POST", "/workflows/{id}/start", ("starting", "start"), "Start it",
          scope=Scope.WORKFLOW_EXECUTE, body=StartForm, body_limit=TRIGGER_BODY, starts=True),
    _page("GET", "/workflows/{id}/versions", ("versions", "show_list"), "Its versions",
          scope=Scope.WORKFLOW_READ),
    _page("GET", "/workflows/{id}/difference", ("versions", "compare"), "Two versions",
          scope=Scope.WORKFLOW_READ),
    _page("GET", "/workflows/{id}/versions/{number}", ("versions", "show"), "A version",
          scope=Scope.WORKFLOW_READ),
    _page("POST", "/workflows/{id}/versions/{number}/restore", ("versions", "restore"),
          "Restore it", body=RestoreForm),
    _page("GET", "/workflows/{id}/sharing", ("sharing", "show"), "With whom it is shared"),
    _page("POST", "/workflows/{id}/sharing", ("sharing", "change"), "Share it", body=ShareForm),
    _page("GET", "/workflows/{id}/settings", ("sharing", "show_settings"),
          "Pausing, copying and deleting it", scope=Scope.WORKFLOW_READ),
    _page("POST", "/workflows/{id}/pause", ("sharing", "switch"), "Pause or resume it",
          scope=Scope.WORKFLOW_EXECUTE, body=StatusForm),
    _page("POST", "/workflows/{id}/delete", ("sharing", "delete"), "Delete it", body=NameForm),
    _page("GET", "/workflows/{id}/triggers", ("workflow_parts", "show_triggers"),
          "What starts it by itself", scope=Scope.WORKFLOW_READ),
    _page("GET", "/workflows/{id}/state", ("workflow_parts", "show_state"), "Its state",
          scope=Scope.WORKFLOW_READ),
    _page("POST", "/workflows/{id}/state", ("workflow_parts", "set_value"),
          "Set a value of its state",
          body=StateForm, body_limit=2 * STATE_BYTES),
    _page("GET", "/workflows/{id}/edit", ("editing", "show"), "Change a workflow"),
    _page("POST", "/workflows/{id}/edit", ("editing", "save"), "Check, compare and apply",
          body=EditForm, body_limit=4 * SOURCE_BYTES),

    # Operating
    _page("GET", "/operate", ("operate", "home"), "To the first of these pages",
          visitors="it only leads on"),
    *_list("/operate/keys", "keys", "Keys", visitors=OWN_KEYS),
    _page("POST", "/operate/keys", ("keys", "create"), "Create a key", visitors=OWN_KEYS,
          body=KeyForm),
    _page("GET", "/operate/keys/{id}", ("keys", "show_one"), "A key", visitors=OWN_KEYS),
    _page("POST", "/operate/keys/{id}/rotate", ("keys", "rotate"), "Rotate it",
          visitors=OWN_KEYS,
          body=requests.NoBody),
    _page("POST", "/operate/keys/{id}/revoke", ("keys", "revoke"), "Revoke it",
          visitors=OWN_KEYS,
          body=NameForm),
    *_list("/operate/webhooks", "webhooks", "Webhooks", scope=Scope.WORKFLOW_READ),
    _page("GET", "/operate/webhooks/new", ("connecting", "show"), "Connect a webhook",
          scope=Scope.WORKFLOW_EXECUTE),
    _page("POST", "/operate/webhooks", ("connecting", "create"), "Create a webhook",
          scope=Scope.WORKFLOW_EXECUTE, body=WebhookForm),
    _page("GET", "/operate/webhooks/{id}", ("webhooks", "show_one"), "A webhook",
          scope=Scope.WORKFLOW_READ),
    _page("POST", "/operate/webhooks/{id}/test", ("connecting", "send_test"), "Send a test",
          scope=Scope.WORKFLOW_EXECUTE, body=requests.NoBody, starts=True),
    _page("POST", "/operate/webhooks/{id}/deliveries/{delivery}", ("connecting", "replay"),
          "Replay a delivery", scope=Scope.WORKFLOW_EXECUTE, body=requests.NoBody, starts=True),
    _page("POST", "/operate/webhooks/{id}/rotate", ("connecting", "rotate"),
          "Give it a new secret", scope=Scope.WORKFLOW_EXECUTE, body=requests.NoBody),
    _page("POST", "/operate/webhooks/{id}/delete", ("connecting", "delete"), "Delete a webhook",
          scope=Scope.WORKFLOW_EXECUTE, body=NameForm),
    _page("POST", "/operate/webhooks/{id}", ("webhooks", "switch"),
          "Disable or enable it", scope=Scope.WORKFLOW_EXECUTE, body=StatusForm),
    _page("POST", "/operate/webhooks/{id}/conditions", ("webhooks", "condition"),
          "Change what it takes", scope=Scope.WORKFLOW_EXECUTE, body=ConditionsForm),
    _page("GET", "/operate/usage", ("operate", "show_usage"), "Usage"),
    *_list("/operate/schedules", "schedules", "Schedules",
           scope=Scope.WORKFLOW_READ),
    _page("POST", "/operate/schedules/{id}", ("schedules", "switch"),
          "Pause or resume a trigger", scope=Scope.WORKFLOW_EXECUTE, body=StatusForm),
    _page("GET", "/operate/schedules/{id}/backfill", ("schedules", "show_backfill"),
          "The past times of a schedule", scope=Scope.WORKFLOW_EXECUTE),
    _page("POST", "/operate/schedules/{id}/backfill", ("schedules", "backfill"),
          "Start them", scope=Scope.WORKFLOW_EXECUTE, body=PeriodForm, starts=True),
    *_list("/operate/audit", "auditing", "Audit"),
    _page("GET", "/operate/audit.csv", ("auditing", "download"), "Audit as CSV",
          media="text/csv"),
    *_list("/operate/secrets", "secrets", "Secrets"),
    _page("POST", "/operate/secrets", ("secrets", "put"), "Set a secret", body=SecretForm,
          body_limit=10 * SECRET_BYTES),
    _page("POST", "/operate/secrets/{name}/delete", ("secrets", "delete"), "Delete a secret",
          body=requests.NoBody),
    *_list("/operate/people", "people", "People"),
    _page("POST", "/operate/people", ("people", "invite"), "Invite a person", body=InviteForm),
    _page("POST", "/operate/people/{id}/invite", ("people", "invite_again"), "Invite again",
          body=requests.NoBody),
    _page("POST", "/operate/people/{id}/withdraw", ("people", "withdraw"),
          "Withdraw an invitation", body=requests.NoBody),
    _page("GET", "/operate/people/{id}", ("people", "show_one"), "Somebody"),
    _page("POST", "/operate/people/{id}", ("people", "change"), "Change plan and status",
          body=PersonForm),
    _page("POST", "/operate/people/{id}/sign-out", ("people", "end_sessions"),
          "Sign somebody out", body=requests.NoBody),
    _page("POST", "/operate/people/{id}/link", ("people", "make_link"), "A link to sign in",
          body=requests.NoBody),
    _page("POST", "/operate/people/{id}/passkeys/{passkey}/remove", ("people", "remove_passkey"),
          "Remove a lost passkey", body=requests.NoBody),
    *_list("/operate/groups", "groups", "Groups of people"),
    _page("POST", "/operate/groups", ("groups", "create"), "Create a group", body=GroupForm),
    _page("GET", "/operate/group/{name}", ("groups", "show_one"), "A group"),
    _page("POST", "/operate/group/{name}", ("groups", "change"), "Add or remove members",
          body=MembersForm),
    _page("POST", "/operate/group/{name}/delete", ("groups", "delete"), "Delete a group",
          body=NameForm),
    *_list("/operate/notices", "notices", "Notices"),
    _page("POST", "/operate/notices", ("notices", "send_test"), "Send a test to me",
          body=ChannelForm),
    _page("POST", "/operate/notices/{id}/retry", ("notices", "retry"), "Try again",
          body=requests.NoBody),
    _page("GET", "/operate/health", ("health", "show"), "Health"),

    # Approvals
    *_list("/inbox", "inbox", "What waits for a decision", scope=Scope.APPROVAL_RESPOND),
    _page("GET", "/inbox/decide", ("deciding", "preview"), "What several decisions mean",
          scope=Scope.APPROVAL_RESPOND),
    _page("POST", "/inbox/decide", ("deciding", "decide"), "Decide several approvals",
          scope=Scope.APPROVAL_RESPOND, body=DecisionsForm),
    *_approval_pages("/approvals/{id}", scope=Scope.APPROVAL_RESPOND),
    *_approval_pages("/a/{token}", auth=Auth.PERSONAL),
)
# fmt: on
