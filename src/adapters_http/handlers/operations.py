"""Probes and metrics for operators, and descriptions of the API for programs."""

from functools import cache, partial

from starlette.responses import Response

from adapters_http.json_text import dump_json
from adapters_http.metrics import CONTENT_TYPE, by_process
from adapters_http.params import flag
from adapters_http.request import Context, Request
from wfcore.rules.definition.check import definition_schema
from wfcore.wire.common import HealthView


async def healthz(request: Request) -> HealthView:
    """The process answers."""
    return HealthView("ok", request.context.config.version)


async def readyz(request: Request) -> HealthView:
    """The store is reachable, nothing is stopping, and what else the composition checks."""
    request.context.config.require_serving()
    await (request.context.config.ready or request.services.store.ping)()
    return HealthView("ready", request.context.config.version)


async def metrics(request: Request) -> Response:
    """Prometheus text."""
    own, of_all = partial(own_metrics, request.context), request.context.config.of_all
    text = await own() if of_all is None else by_process(await of_all(own))
    return Response(text, media_type=CONTENT_TYPE)


async def own_metrics(context: Context) -> bytes:
    """The metrics of this process as Prometheus text."""
    config = context.config
    gauges = await config.gauges() if config.gauges is not None else {}
    return context.metrics.render(gauges, config.gauge_help, config.counted)


async def openapi(request: Request) -> Response:
    """The description of this interface."""
    text = request.context.description(request.base_path, flag(request, "webhooks"))
    return Response(text, media_type="application/json")


async def schema(request: Request) -> Response:
    """The JSON Schema by which editors complete and check definitions. DF-10."""
    return Response(_schema(), media_type="application/schema+json")


@cache
def _schema() -> bytes:
    return dump_json(definition_schema())
