"""Signing in and out at the console."""

from adapters_http.browsers import session_cookie, session_token
from adapters_http.request import Request
from wfcore.errors import InvalidInput
from wfcore.usecases.accounts.sessions import end_sessions, sign_in, sign_out
from wfcore.wire.common import DoneView, SessionView, account_view


async def create(request: Request) -> SessionView:
    """Sign in; the answer sets the cookie."""
    before = session_token(request)
    signed_in = await sign_in(
        request.services, request.body.email, request.body.password, request.origin, before
    )
    request.headers.append(session_cookie(request, signed_in.token))
    return SessionView(account_view(signed_in.account))


async def read(request: Request) -> SessionView:
    """Who is signed in."""
    return SessionView(account_view(request.who.account))


async def delete(request: Request) -> DoneView:
    """Sign out, here or `everywhere`; the answer takes the cookie away. SE-4."""
    everywhere = request.query("everywhere")
    if everywhere not in (None, "0", "1"):
        raise InvalidInput("everywhere", "must be 1, or left out")
    if everywhere == "1":
        await end_sessions(request.services, request.who, request.who.account.id, request.origin)
    await sign_out(request.services, session_token(request) or "", request.origin)
    request.headers.append(session_cookie(request, ""))
    return DoneView(True)
