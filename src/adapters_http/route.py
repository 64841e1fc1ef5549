"""
One row of the table of routes: all properties of one path and method.

Each row declares its authentication; a row without authentication cannot be built.
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from attrs import Factory, field, frozen

from adapters_http.request import Request
from wfcore.model.access import Scope, Visitor
from wfcore.rules.limits import TRIGGER_BODY

Handler: TypeAlias = Callable[[Request], Awaitable[Any]]
"""
A function that returns a shape of `wfcore.wire`, or a Starlette response if the answer is not JSON.
"""


class Auth(StrEnum):
    """The ways in which a route authenticates its caller, with the order of checks."""

    OPEN = "open"
    """No credentials."""
    KEY = "key"
    """Key, account, scope, rate; then the body."""
    KEY_AFTER_BODY = "key_after_body"
    """The size of the body first, then the checks of `KEY`."""
    TRIGGER = "trigger"
    """Webhook, size, the credentials of the webhook, rate, active, JSON object."""
    AGENT = "agent"
    """
    A key in a header that may not decide approvals, no page of another site, then the rate. MC-4.
    """
    SESSION = "session"
    """A console session; changes only from the console's own pages."""
    PAGE = "page"
    """A page of the console for people: a session, or a visitor that holds the row's scope."""
    PERSONAL = "personal"
    """A page of one approval, by the signed link that was sent to one of its approvers."""
    LOGIN = "login"
    """A route that begins a session: no credentials, but no cross-site request."""
    ADMIN = "admin"
    """An operator's key of scope ADMIN, in a header; then an object of JSON. No rate. AC-8."""
    DOWNLOAD = "download"
    """A signed link, else a key, else a session. No rate."""


EVERY_SCOPE = Visitor("").scopes
"""The scopes of a visitor with all rights of the account."""
OWN_KEYS = "a visitor sees and handles the keys that may do no more than they may themselves"

_TOLERANT = frozenset(
    {Auth.OPEN, Auth.TRIGGER, Auth.KEY_AFTER_BODY, Auth.DOWNLOAD, Auth.PAGE, Auth.PERSONAL}
)
_WITH_KEY = frozenset({Auth.KEY, Auth.KEY_AFTER_BODY, Auth.TRIGGER, Auth.AGENT, Auth.DOWNLOAD})


@frozen
class Parameter:
    """
    A query parameter or header of a route. Undeclared query parameters are refused.

    `repeats`: the parameter may occur several times, each time with one value of the schema.
    """

    name: str
    about: str
    schema: Mapping[str, Any] = Factory(lambda: {"type": "string"})
    repeats: bool = False


@frozen
class Route:
    """
    One row of the table of routes.

    `scope`: the scope that the key must have (every route that takes a key has a scope); on a page
    or a route by session, the scope that a visitor must have, as sessions have no scopes. Without
    `scope` a visitor needs every scope, unless `visitors` gives the reason why no scope is needed.
    AU-11. `body`: the shape of the body; None: no body is read. `keys_once`: a body in which an
    object repeats a key is refused. `returns`: the shape of a success; `otherwise`: the shapes of
    other successes, by status. `also`: the errors to which this route gives another status than
    other routes. `refuses`: further statuses, for the description. `starts`: the route starts new
    work, which a stopping server refuses.
    """

    method: str
    path: str
    auth: Auth
    handler: Handler
    summary: str
    scope: Scope | None = None
    body: type[Any] | None = None
    body_limit: int = TRIGGER_BODY
    keys_once: bool = False
    status: int = 200
    returns: type[Any] | None = None
    otherwise: Mapping[int, type[Any]] = Factory(dict)
    media: str = "application/json"
    files: tuple[str, ...] = ()
    query: tuple[Parameter, ...] = ()
    headers: tuple[Parameter, ...] = ()
    also: Mapping[type[Exception], int] = Factory(dict)
    refuses: tuple[int, ...] = ()
    starts: bool = False
    visitors: str | None = None
    names: tuple[str, ...] = field(init=False)
    html: bool = field(init=False)
    """Whether the route is a page for people; its errors are pages, too."""

    def __attrs_post_init__(self) -> None:
        may = self.auth in (Auth.PAGE, Auth.SESSION)
        if self.visitors is not None and not (may and self.scope is None):
            raise ValueError(f"{self.method} {self.path}: visitors need its scope, or a reason")
        if not may and (self.scope is not None) != (self.auth in _WITH_KEY):
            raise ValueError(f"{self.method} {self.path}: {self.auth} and scope do not fit")
        parts = self.path.split("/")
        names = tuple(part[1:-1] for part in parts if part.startswith("{"))
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "html", self.media == "text/html")

    def status_of(self, answer: object) -> int:
        """The status of the success *answer*."""
        found = (status for status, shape in self.otherwise.items() if type(answer) is shape)
        return next(found, self.status)

    @property
    def decides(self) -> bool:
        """Whether the body is a decision, in which no decimal is rounded. NU-2."""
        return self.keys_once and not self.starts

    @property
    def visitor_scopes(self) -> frozenset[Scope]:
        """The scopes that a visitor, vouched for by the outer application, must have. AU-11."""
        if self.visitors is not None:
            return frozenset()
        return EVERY_SCOPE if self.scope is None else frozenset({self.scope})

    @property
    def tolerant(self) -> bool:
        """
        Whether unknown query parameters are ignored. They are ignored on routes whose addresses
        senders, mailers and probes write and extend. PG-3.
        """
        return self.html or self.auth in _TOLERANT

    @property
    def limited(self) -> bool:
        """Whether admitted requests count against a quota. RL-5."""
        return self.auth in (Auth.KEY, Auth.KEY_AFTER_BODY, Auth.TRIGGER, Auth.AGENT)
