"""The secrets of the account: names and uses. A value is written, and never shown. SC-5."""

from starlette.responses import Response

from adapters_http.console.hints import followed
from adapters_http.console.operate import operate_page
from adapters_http.console.paths import see_other
from adapters_http.handlers.operating import list_secrets
from adapters_http.request import Request
from wfcore.errors import InvalidInput
from wfcore.usecases.accounts import accounts
from wfcore.usecases.accounts.secret_uses import secret_uses


async def show(request: Request) -> Response:
    """The names of the secrets, each with the workflows that use it, and a form for a value."""
    return await _page(request)


async def _page(request: Request, problem: str | None = None, name: str = "") -> Response:
    found = (await list_secrets(request)).secrets
    return operate_page(
        request,
        "secrets",
        400 if problem else 200,
        secrets=found,
        uses=await secret_uses(request.services, request.who),
        problem=problem,
        name=name,
        follows=found,
    )


async def _snapshot(request: Request) -> object:
    return (await list_secrets(request)).secrets


live = followed(_snapshot)


async def put(request: Request) -> Response:
    """Set a secret, or replace its value."""
    form, who, value = request.body, request.who, request.body.value.replace("\r\n", "\n")
    try:
        await accounts.set_secret(
            request.services, who, who.account.id, form.name, value, request.origin
        )
    except InvalidInput as wrong:
        return await _page(request, str(wrong), form.name)
    return see_other(request, "/operate/secrets")


async def delete(request: Request) -> Response:
    """Delete a secret: steps that list it fail from now on."""
    name, who = request.params["name"], request.who
    await accounts.delete_secret(request.services, who, who.account.id, name, request.origin)
    return see_other(request, "/operate/secrets")
