"""
The ASGI application: the table of routes behind one pipeline. The application can be mounted
anywhere.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache, lru_cache, partial

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from adapters_http.agents.serving import AGENTS
from adapters_http.config import HttpConfig
from adapters_http.console.routes import PAGES
from adapters_http.dispatch import Pipeline, RouteTree
from adapters_http.metrics import Metrics
from adapters_http.openapi.document import describe
from adapters_http.request import Context
from adapters_http.routes import ROUTES
from wfcore.usecases.services import Services

__all__ = ["HttpConfig", "create_app"]

PROBES = ("/healthz", "/readyz", "/metrics")
_PROBE_ROUTES = RouteTree([route for route in ROUTES if route.path in PROBES])
_MOST_MOUNTS = 16
_REQUEST_HEADERS = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "Last-Event-ID",
    "X-API-Key",
)
_RESPONSE_HEADERS = (
    *("ETag", "Link", "Location", "Retry-After", "X-Request-Id"),
    *("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Window"),
)


class Application(Starlette):
    """
    Starlette with the pipeline in place of its middleware stack: the pipeline answers every error
    itself.
    """

    context: Context

    def build_middleware_stack(self) -> ASGIApp:
        routes = _routes(self.context.config)
        app: ASGIApp = Pipeline(self.router, routes, self.context)
        for factory, args, options in reversed(self.user_middleware):
            app = factory(app, *args, **options)
        return app


def _routes(config: HttpConfig) -> RouteTree:
    return _PROBE_ROUTES if config.probes_only else _routes_with(config.console, config.agents)


@cache
def _routes_with(console: bool, agents: bool) -> RouteTree:
    return RouteTree((*ROUTES, *(PAGES if console else ()), *(AGENTS if agents else ())))


def _sharing(origins: Sequence[str]) -> Sequence[Middleware]:
    """The middleware that lets pages of *origins* call the API with a key, and without cookies."""
    if not origins:
        return ()
    return (
        Middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=("GET", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=_REQUEST_HEADERS,
            expose_headers=_RESPONSE_HEADERS,
        ),
    )


def create_app(services: Services, config: HttpConfig | None = None) -> Application:
    """
    The HTTP interface over *services*.

    The lifespan of the application enters `config.lifespan`. An application that mounts this
    application must enter `config.lifespan` instead.
    """
    chosen = config or HttpConfig()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if chosen.lifespan is None:
            yield
            return
        async with chosen.lifespan():
            yield

    app = Application(lifespan=lifespan, middleware=_sharing(chosen.cors_origins))
    describing = lru_cache(2 * _MOST_MOUNTS)(partial(describe, chosen))
    app.context = Context(services, chosen, Metrics(), describing)
    return app
