"""The ASGI application: the table of routes behind one pipeline. Can be mounted anywhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache, partial

from starlette.applications import Starlette
from starlette.types import ASGIApp

from adapters_http.config import HttpConfig
from adapters_http.console.routes import PAGES
from adapters_http.dispatch import Lookup, Pipeline
from adapters_http.metrics import Metrics
from adapters_http.openapi import describe
from adapters_http.request import Context
from adapters_http.routes import ROUTES
from wfcore.usecases.services import Services

__all__ = ["HttpConfig", "create_app"]

_LOOKUP = Lookup(ROUTES)
_LOOKUP_WITH_PAGES = Lookup((*ROUTES, *PAGES))
_MOST_MOUNTS = 16


class _Application(Starlette):
    """
    Starlette with the pipeline in place of its middleware stack: the pipeline answers every error
    itself.
    """

    context: Context

    def build_middleware_stack(self) -> ASGIApp:
        lookup = _LOOKUP_WITH_PAGES if self.context.config.console else _LOOKUP
        app: ASGIApp = Pipeline(self.router, lookup, self.context)
        for factory, args, options in reversed(self.user_middleware):
            app = factory(app, *args, **options)
        return app


def create_app(services: Services, config: HttpConfig | None = None) -> Starlette:
    """
    The HTTP interface over *services*.

    Its lifespan enters `config.lifespan`; if the application is mounted in another one, that one's
    lifespan has to.
    """
    chosen = config or HttpConfig()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if chosen.lifespan is None:
            yield
            return
        async with chosen.lifespan():
            yield

    app = _Application(lifespan=lifespan)
    describing = lru_cache(2 * _MOST_MOUNTS)(partial(describe, chosen))
    app.context = Context(services, chosen, Metrics(), describing)
    return app
