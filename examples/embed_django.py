"""
Django views that call the core: one on the pure rules, two on the use cases.

    uvicorn embed_django:application

Django has no start and no end of its own under ASGI; the few lines of Starlette around it
open the store and let a worker run, and close both again.
"""

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from django.conf import settings as django_settings
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from starlette.applications import Starlette
from starlette.routing import Mount

from wfcore import (
    CodeStep,
    Definition,
    JsonObject,
    Language,
    Principal,
    Services,
    Variable,
    apply_workflow,
    ensure_account,
    find_account,
    map_payload,
    signature_fits,
    start_execution,
    wait_for_rest,
)
from wfcore.errors import NotFound, WfError
from wfcore.wire.converter import plain
from wfcore.wire.executions import status_view
from wfserver.compose import open_system
from wfserver.serving.engine import engine, new_runner
from wfserver.settings.record import settings_from

SECRET = "s3cret"
OWNER = "shop@example.org"
REFUND = Definition(
    "Refund",
    (CodeStep("refund", Language.COMMAND, command=("echo", "refunded {{ variables.order }}")),),
    variables={"order": Variable("order")},
)
opened: dict[str, Services] = {}


def hook(request: HttpRequest) -> HttpResponse:
    """A webhook that Django itself receives: signature and mapping are the core's rules."""
    if not signature_fits(SECRET, request.body, request.headers.get("X-Webhook-Signature")):
        return JsonResponse({"error": "Unauthorized"}, status=401)
    payload: JsonObject = json.loads(request.body)
    return JsonResponse({"variables": map_payload(payload, {"order": "number"})})


async def refund(request: HttpRequest, order: str) -> HttpResponse:
    """Start a workflow from a view, with whatever login this site has."""
    services = opened["services"]
    owner = Principal(await find_account(services, OWNER))
    workflow = await apply_workflow(services, owner.account.id, REFUND)
    started = await start_execution(services, owner, workflow.id, {"order": order})
    return JsonResponse({"execution": started.execution_id}, status=202)


async def status(request: HttpRequest, execution: str) -> HttpResponse:
    """Show an execution; what the core refuses is a page of this site."""
    services = opened["services"]
    owner = Principal(await find_account(services, OWNER))
    try:
        run = await wait_for_rest(services, owner, execution, wait_ms=10_000)
    except NotFound as missing:
        return JsonResponse({"error": str(missing)}, status=404)
    except WfError as refusal:
        return JsonResponse({"error": str(refusal)}, status=409)
    return JsonResponse(plain(status_view(run)))


urlpatterns = [
    path("hook", hook),
    path("orders/<str:order>/refund", refund),
    path("executions/<str:execution>", status),
]
if not django_settings.configured:
    django_settings.configure(
        ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="yours", USE_TZ=True
    )


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncGenerator[None, None]:
    """Store and worker, from the start of this process to its end."""
    settings = settings_from(data=os.environ.get("WFCORE_DATA"))
    async with open_system(settings) as system, engine(system, new_runner(system)):
        opened["services"] = system.services
        await ensure_account(system.services, OWNER)
        yield


application = Starlette(routes=[Mount("/", app=get_asgi_application())], lifespan=lifespan)
