"""
One row of the table of routes: everything that is to be said of one path and method.

Authentication is declared here and nowhere inferred; a row without it cannot be built.
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from attrs import Factory, field, frozen

from adapters_http.request import Request
from wfcore.model.access import Scope, Visitor
from wfcore.rules.limits import TRIGGER_BODY

Handler: TypeAlias = Callable[[Request], Awaitable[Any]]
"""Gives a shape of `wfcore.wire`, or a Starlette response where it is no JSON."""


class Auth(StrEnum):
    """How a route authenticates its caller, and in which order it checks things."""

    OPEN = "open"
    """Nobody is asked."""
    KEY = "key"
    """Key, account, scope, rate; then the body."""
    KEY_AFTER_BODY = "key_after_body"
    """The body's size first, then as `KEY`."""
    TRIGGER = "trigger"
    """Webhook, size, its own credentials, rate, active, JSON object."""
    AGENT = "agent"
    """A key in a header that cannot decide approvals, and no foreign page; then the rate. MC-4."""
    SESSION = "session"
    """A console session; changes only from the console's own pages."""
    PAGE = "page"
    """A page of the console for people: a session, or a visitor that holds the row's scope."""
    PERSONAL = "personal"
    """A page of one approval, by the signed link that one of its approvers was sent."""
    LOGIN = "login"
    """The door to a session: nobody yet, but no cross-site request."""
    ADMIN = "admin"
    """An operator's key of scope ADMIN, in a header; then an object of JSON. No rate. AC-8."""
    DOWNLOAD = "download"
    """A signed link, else a key, else a session. No rate."""


EVERY_SCOPE = Visitor("").scopes
"""What a visitor holds who may do all that the account may."""
OWN_KEYS = "a visitor sees and handles the keys that may do no more than they may themselves"

_TOLERANT = frozenset(
    {Auth.OPEN, Auth.TRIGGER, Auth.KEY_AFTER_BODY, Auth.DOWNLOAD, Auth.PAGE, Auth.PERSONAL}
)
_WITH_KEY = frozenset({Auth.KEY, Auth.KEY_AFTER_BODY, Auth.TRIGGER, Auth.AGENT, Auth.DOWNLOAD})


@frozen
class Parameter:
    """
    A query parameter or header, for the description, and to recognize unknown ones.

    `repeats`: it may occur several times, each time with one value of that schema.
    """

    name: str
    about: str
    schema: Mapping[str, Any] = Factory(lambda: {"type": "string"})
    repeats: bool = False


@frozen
class Route:
    """
    `scope`: what the key must hold (every route that takes a key has one); of a page or a route by
    session, what a visitor must hold, as sessions have no scopes. Without one a visitor must hold
    every scope, unless `visitors` says why none is needed. AU-11.
    `body`: the shape of the body; None: no body is read. `keys_once`: an object in it that has
    a key twice is refused. `returns`: the shape of a success.
    `also`: errors that this row answers with another status than the rest.
    `refuses`: further statuses, for the description. `starts`: it makes new work, which a server
    that is stopping does not take.
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
    """Whether people look at it: errors are pages, too."""

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

    @property
    def decides(self) -> bool:
        """Whether its body is a decision, in which no decimal is rounded. NU-2."""
        return self.keys_once and not self.starts

    @property
    def visitor_scopes(self) -> frozenset[Scope]:
        """What a visitor must hold here, whom an application around this one vouches for. AU-11."""
        if self.visitors is not None:
            return frozenset()
        return EVERY_SCOPE if self.scope is None else frozenset({self.scope})

    @property
    def tolerant(self) -> bool:
        """
        Whether unknown query parameters are ignored, on routes whose addresses senders, mailers and
        probes write and extend. PG-3.
        """
        return self.html or self.auth in _TOLERANT

    @property
    def limited(self) -> bool:
        """Whether admitted requests count against a quota. RL-5."""
        return self.auth in (Auth.KEY, Auth.KEY_AFTER_BODY, Auth.TRIGGER, Auth.AGENT)
