"""What the application around the HTTP adapter may set."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum
from ipaddress import IPv4Network, IPv6Network
from typing import TypeAlias

from attrs import field, frozen
from prometheus_client import CollectorRegistry
from starlette.types import Scope

import wfcore
from adapters_http.tracing import RequestTracing
from wfcore.errors import NotReady
from wfcore.model.access import SignOnTerms, Visitor
from wfcore.model.workflow import Definition
from wfcore.ports.identity import IdentityProvider
from wfcore.ports.notices import Notifier

Network: TypeAlias = IPv4Network | IPv6Network
Login: TypeAlias = Callable[[Scope], Awaitable[Visitor | None]]
"""Whom the outer application knows a request (its ASGI scope) to be of; None: nobody."""


class ServingStage(Enum):
    """What an application still does."""

    SERVING = "serving"
    """Everything."""
    DRAINING = "draining"
    """It is stopping: nothing new is started, and it is not ready; all else goes on."""
    ENDING = "ending"
    """Who waits is answered at once, streams end."""


@frozen
class SignOn:
    """Signing in with an identity provider: the name on its button, and whom it admits."""

    provider: IdentityProvider
    name: str
    terms: SignOnTerms = SignOnTerms()


@frozen
class HealthCheck:
    """What was checked, what was found, and what helps where it is not fine."""

    name: str
    ok: bool
    detail: str
    cure: str | None = None


@frozen
class HttpConfig:
    """
    `public_url`: how clients reach this application, a mount's path included; None: as the
    request says.
    `lifespan`: entered at start, left at the end (worker, store).
    `ready`: raises `StoreUnavailable` or `NotReady` while not ready; None: the store must answer.
    `stage`: what it still does; asked with every start and by whatever waits.
    `gauges`: what the metrics page shows beside the requests, each family described in
    `gauge_help`. `counted`: counters of the application, which it shows, too.
    `of_all`: the metrics of several processes by number, given how to get those of this one.
    `checks`: what the page about health shows of the machine.
    `trusted_proxies`: whose `X-Forwarded-For`, `-Proto` and `-Host` are believed.
    `allowed_hosts`: names that it answers to, in lower case, without port; None: to any.
    `cors_origins`: whose pages may call from a browser, with a key; `*`: anybody's.
    `console_edits`: whether a workflow may be changed by session, on its page or by API.
    `read_definition`: the definition that a text says; raises `InvalidDefinition` with lines.
    None: nothing is changed. `definition_warnings`: what is lacking here for one to run.
    `console`: whether there are pages for people; without them their paths are 404.
    `agents`: whether they are offered workflows at `/mcp`, which needs the extra `mcp`.
    `mail`: whose channel `mail` sends links that sign in; None: people cannot ask for them.
    `sign_on`: an identity provider that people may sign in with; None: there is none.
    `frame_ancestors`: origins whose pages may frame the pages, `https://example.org`; none by
    default.
    `probes_only`: nothing is answered but probes and metrics.
    `login`: asked where a request carries none of our keys; None: keys and sessions only.
    `tracing`: makes spans of requests; None: nobody does.
    """

    public_url: str | None = None
    version: str = wfcore.__version__
    lifespan: Callable[[], AbstractAsyncContextManager[None]] | None = None
    ready: Callable[[], Awaitable[None]] | None = None
    gauges: Callable[[], Awaitable[Mapping[str, float]]] | None = None
    gauge_help: Mapping[str, str] = field(factory=dict)
    counted: CollectorRegistry | None = None
    of_all: Callable[[Callable[[], Awaitable[bytes]]], Awaitable[Mapping[int, bytes]]] | None = None
    checks: Callable[[], Awaitable[Sequence[HealthCheck]]] | None = None
    trusted_proxies: Sequence[Network] = ()
    allowed_hosts: Collection[str] | None = None
    cors_origins: Sequence[str] = ()
    login: Login | None = None
    console: bool = False
    agents: bool = False
    probes_only: bool = False
    console_edits: bool = True
    read_definition: Callable[[bytes], Definition] | None = None
    definition_warnings: Callable[[Definition], Sequence[str]] = lambda definition: ()
    mail: Notifier | None = None
    sign_on: SignOn | None = None
    frame_ancestors: Sequence[str] = ()
    stage: Callable[[], ServingStage] = lambda: ServingStage.SERVING
    tracing: RequestTracing | None = None

    @property
    def ending(self) -> bool:
        """Whether nobody is to be kept waiting any more."""
        return self.stage() is ServingStage.ENDING

    def require_serving(self) -> None:
        """Raises `NotReady` while the server is stopping."""
        if self.stage() is not ServingStage.SERVING:
            raise NotReady("The server is stopping; try again in a moment")
