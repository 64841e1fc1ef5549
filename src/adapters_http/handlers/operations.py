"""For whoever runs the server: alive, ready, metrics, description."""

from starlette.responses import Response

from adapters_http.metrics import CONTENT_TYPE
from adapters_http.params import require_serving
from adapters_http.request import Ask
from wfcore.wire.shapes import HealthView


async def healthz(ask: Ask) -> HealthView:
    """The process answers."""
    return HealthView("ok", ask.context.config.version)


async def readyz(ask: Ask) -> HealthView:
    """The store is reachable, nothing is stopping, and whatever else the composition asks for."""
    require_serving(ask)
    await (ask.context.config.ready or ask.services.store.ping)()
    return HealthView("ready", ask.context.config.version)


async def metrics(ask: Ask) -> Response:
    """Prometheus text."""
    gauges = ask.context.config.gauges() if ask.context.config.gauges is not None else {}
    return Response(ask.context.metrics.render(gauges), media_type=CONTENT_TYPE)


async def openapi(ask: Ask) -> Response:
    """The description of this interface."""
    return Response(ask.context.description(ask.base_path), media_type="application/json")
