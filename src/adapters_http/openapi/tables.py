"""The words and tables of the OpenAPI document: subjects, security, shared headers and errors."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from adapters_http.route import Auth
from wfcore.wire.schema import Schema

TAGS: Mapping[str, tuple[str, str]] = {
    "admin": ("Administration", "What the command line does, from elsewhere"),
    "artifacts": ("Artifacts", "Files that executions left"),
    "gates": ("Gates", "Questions to people by programs without a workflow, such as agents"),
    "approval": ("Approvals", "Questions to people, and their decisions"),
    "webhook": ("Webhooks", "Triggers for other systems, and their management by session"),
    "keys": ("Keys", "API keys, by session"),
    "usage": ("Usage", "What keys and models have used, by session"),
    "triggers": ("Triggers", "Schedules and chains, by session"),
    "audit": ("Audit", "Who did what, and what was refused, by session"),
    "accounts": ("Accounts", "People, for operators, by session"),
    "invitations": ("Invitations", "People who have not signed in yet, for operators, by session"),
    "secrets": ("Secrets", "Values that steps receive by name, by session"),
    "groups": ("Groups", "People as approvers of any workflow, for operators, by session"),
    "notices": ("Notices", "What people are told by mail and chat, for operators, by session"),
    "session": ("Sessions", "Signing in at the console"),
    "v1/executions": ("Executions", "Reading, following, cancelling and redriving executions"),
    "/workflows": ("Workflows", "Workflows, and starting them; their versions by session"),
    "": ("Operations", "Health, metrics and this description"),
}
"""
The subjects by a word in the path. The subject of a path belongs to the first of these words that
is in the path.
"""

_KEYS: list[dict[str, list[str]]] = [{"bearer": []}, {"apiKeyHeader": []}, {"apiKeyQuery": []}]
SIGNATURES: Mapping[str, str] = {
    "webhookSignature": "X-Webhook-Signature",
    "standardWebhooks": "webhook-signature",
    "githubSignature": "X-Hub-Signature-256",
    "stripeSignature": "Stripe-Signature",
    "slackSignature": "X-Slack-Signature",
}
_SIGNED: list[dict[str, list[str]]] = [{name: []} for name in SIGNATURES]
SECURITY: Mapping[Auth, list[dict[str, list[str]]]] = {
    Auth.OPEN: [],
    Auth.LOGIN: [],
    Auth.KEY: _KEYS,
    Auth.KEY_AFTER_BODY: _KEYS,
    Auth.TRIGGER: [*_KEYS, *_SIGNED, {}],
    Auth.SESSION: [{"session": []}],
    Auth.ADMIN: [{"bearer": []}, {"apiKeyHeader": []}],
    Auth.DOWNLOAD: [{}, {"bearer": []}, {"apiKeyHeader": []}, {"session": []}],
}
PATH_PARAMETERS: Mapping[str, str] = {
    "account": "The account's id or email",
    "aid": "The artifact's id",
    "decision": "approve or reject, in any case",
    "deliveryId": "The delivery's id",
    "executionId": "The execution's id",
    "id": "The id of the {subject}",
    "name": "The name of the {subject}",
    "operation": "By noun and verb, as `account.create`",
    "number": "The version, from 1 on",
    "key": "The step's name; in a loop `loop.<index>.<name>`",
}
_INTEGER: Schema = {"type": "integer"}
HEADERS: Schema = {
    "RequestId": {"schema": {"type": "string"}, "description": "In the operator's log, too"},
    "RateLimit": {"schema": _INTEGER, "description": "Requests that the window allows"},
    "RateRemaining": {"schema": _INTEGER, "description": "Requests left in the window"},
    "RateWindow": {
        "schema": {"type": "string", "enum": ["minute", "day"]},
        "description": "The tighter of the two windows",
    },
    "RetryAfter": {"schema": _INTEGER, "description": "Seconds to wait"},
    "Replayed": {
        "schema": {"type": "string", "enum": ["true"]},
        "description": "The first answer to the same Idempotency-Key; nothing was started",
    },
}
COMMON = {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}}
RATE = {
    "X-RateLimit-Limit": {"$ref": "#/components/headers/RateLimit"},
    "X-RateLimit-Remaining": {"$ref": "#/components/headers/RateRemaining"},
    "X-RateLimit-Window": {"$ref": "#/components/headers/RateWindow"},
}
RETRY = {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}}
REPLAYED = {"Idempotent-Replayed": {"$ref": "#/components/headers/Replayed"}}


class _SharedError(NamedTuple):
    """A shared response: its name, its description, and an example of its body."""

    name: str
    about: str
    example: dict[str, Any]


# fmt: off
ERRORS: Final[Mapping[int, _SharedError]] = {
    400: _SharedError("BadRequest", "A malformed body, field or parameter; the words name it",
                {"error": "size: must be a number from 1 to 200"}),
    401: _SharedError("Unauthorized", "No credential that opens this; the cause is never said",
                {"error": "Unauthorized"}),
    403: _SharedError("Forbidden", "The account is disabled or locked, or may not do this",
                {"error": "The account is disabled or locked"}),
    404: _SharedError("NotFound", "Missing, not visible to the caller, or over already",
                {"error": "Execution not found"}),
    408: _SharedError("RequestTimeout", "The body did not arrive in time",
                {"error": "The request body did not arrive in time"}),
    409: _SharedError("Conflict", "The state does not allow it",
                {"error": "The approval has already been decided"}),
    413: _SharedError("PayloadTooLarge", "The body is over its limit",
                {"error": "Request body is over its limit of 1048576 bytes"}),
    416: _SharedError("RangeNotSatisfiable", "The range is outside of the file",
                {"error": "The range is outside of the file"}),
    429: _SharedError("RateLimited", "The quota of the key is used up; wait for Retry-After",
                {"error": "Rate limit of 60 requests per minute reached; retry in 12 s",
                 "window": "minute", "limit": 60, "retryAfterSeconds": 12}),
    431: _SharedError("HeadersTooLarge", "The address and the headers together are too long",
                {"error": "Request header fields are too large"}),
    500: _SharedError("InternalError", "A defect, or a stored record that cannot be read",
                {"error": "Internal error"}),
    503: _SharedError("Unavailable", "The store is unavailable, or the server is stopping; "
                "nothing was done, try again after Retry-After",
                {"error": "The store is unavailable; retry later"}),
}
# fmt: on
"""The shared response of each status."""
