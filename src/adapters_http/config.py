"""The settings of the HTTP adapter, given by the application around it."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, TypeAlias

from attrs import field, frozen
from starlette.types import Scope

import wfcore
from adapters_http.tracing import RequestTracing
from wfcore.errors import NotReady
from wfcore.model.access import SignOnTerms, Visitor
from wfcore.model.workflow import Definition
from wfcore.ports.identity import IdentityProvider
from wfcore.ports.notices import Notifier

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from wfcore.scenarios.judging import ScenarioResult

Network: TypeAlias = IPv4Network | IPv6Network
Login: TypeAlias = Callable[[Scope], Awaitable[Visitor | None]]
"""
A function that returns the user to whom the outer application attributes a request (its ASGI
scope), or None.
"""


class ServingStage(Enum):
    """The phases of an application from start to end."""

    SERVING = "serving"
    """The application does all its work."""
    DRAINING = "draining"
    """
    The application is stopping: it starts no new work and is not ready; all other work continues.
    """
    ENDING = "ending"
    """Waiting requests are answered at once, and streams end."""


@frozen
class SignOn:
    """
    Sign-in with an identity provider: the name on the button, and the terms for the people whom it
    admits.
    """

    provider: IdentityProvider
    name: str
    terms: SignOnTerms = SignOnTerms()


PlayScenarios: TypeAlias = Callable[
    [bytes, Definition, Sequence[Definition]], "Sequence[ScenarioResult]"
]
"""
A function that plays the scenarios of a text with a definition and with those that it starts.
Raises `InvalidDefinition` with lines.
"""


@frozen
class ExampleDefinition:
    """
    A definition to begin with: its name in addresses, its title and description for people, its
    text, and the text of its tests.
    """

    name: str
    title: str
    text: str
    description: str = ""
    tests: str = ""


@frozen
class HealthCheck:
    """One check of the machine: its name, its result, and a cure if the check failed."""

    name: str
    ok: bool
    detail: str
    cure: str | None = None


@frozen
class HttpConfig:
    """
    The settings of the HTTP adapter.

    `public_url`: the URL by which clients reach this application, with the path of a mount; None:
    the URL is taken from the request.
    `lifespan`: entered at start, left at the end (worker, store).
    `ready`: raises `StoreUnavailable` or `NotReady` while not ready; None: the store must answer.
    `stage`: the present phase; called with every start and by waiting requests.
    `gauges`: the values that the metrics page has beside the counters of requests; `gauge_help`
    describes each family.
    `counted`: a registry with counters of the application, for the same page.
    `of_all`: returns the metrics of all processes by number, given a function for the metrics of
    this process.
    `checks`: the checks of the machine for the page about health.
    `trusted_proxies`: the proxies whose `X-Forwarded-For`, `-Proto` and `-Host` are believed.
    `allowed_hosts`: the accepted names in `Host`, in lower case, without port; None: any name.
    `cors_origins`: the origins whose pages may call from a browser, with a key; `*`: all.
    `console_edits`: whether a session may change a workflow, on its page or by API.
    `read_definition`: reads a definition from text; raises `InvalidDefinition` with lines. None:
    no workflow can be changed.
    `sample`: returns the definition and the text of the workflow that the start page offers; None:
    the start page offers no workflow.
    `read_lines`: the line of each field of such a text by its path, for mistakes that the reader
    does not see.
    `play_scenarios`: plays the scenarios of a text. None: pages play none.
    `example_definitions`: texts of definitions to begin with, by name.
    `definition_warnings`: returns a warning for each need of a definition that this server lacks.
    `console`: whether there are pages for people; without pages their paths are 404.
    `agents`: whether agents can call workflows at `/mcp`, which needs the extra `mcp`.
    `mail`: the notifier whose channel `mail` sends links for signing in; None: no links are sent.
    `sign_on`: the identity provider for signing in; None: there is no provider.
    `frame_ancestors`: the origins that may frame the pages, `https://example.org`; by default
    no origin.
    `probes_only`: whether only probes and metrics are answered.
    `login`: called if a request carries no key of this server; None: keys and sessions only.
    `tracing`: makes spans of requests; None: there are no spans.
    """

    public_url: str | None = None
    version: str = wfcore.__version__
    lifespan: Callable[[], AbstractAsyncContextManager[None]] | None = None
    ready: Callable[[], Awaitable[None]] | None = None
    gauges: Callable[[], Awaitable[Mapping[str, float]]] | None = None
    gauge_help: Mapping[str, str] = field(factory=dict)
    counted: "CollectorRegistry | None" = None
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
    sample: Callable[[], tuple[Definition, str]] | None = None
    read_lines: Callable[[bytes], Mapping[str, int]] = lambda text: {}
    play_scenarios: PlayScenarios | None = None
    example_definitions: Callable[[], Sequence[ExampleDefinition]] = lambda: ()
    definition_warnings: Callable[[Definition], Sequence[str]] = lambda definition: ()
    mail: Notifier | None = None
    sign_on: SignOn | None = None
    frame_ancestors: Sequence[str] = ()
    stage: Callable[[], ServingStage] = lambda: ServingStage.SERVING
    tracing: RequestTracing | None = None

    @property
    def ending(self) -> bool:
        """Whether waiting requests must be answered now."""
        return self.stage() is ServingStage.ENDING

    def require_serving(self) -> None:
        """Raises `NotReady` while the server is stopping."""
        if self.stage() is not ServingStage.SERVING:
            raise NotReady("The server is stopping; try again in a moment")
