"""Signing in and out at the console. Contract §6."""

from adapters_http.ask import Ask
from adapters_http.credentials import session_cookie, session_token
from wfcore.usecases.sessions import sign_in, sign_out
from wfcore.wire.shapes import DoneView, SessionView
from wfcore.wire.views import account_view


async def create(ask: Ask) -> SessionView:
    """Sign in; the answer sets the cookie."""
    signed_in = await sign_in(ask.services, ask.body.email, ask.body.password, ask.origin)
    ask.headers.append(session_cookie(ask, signed_in.token))
    return SessionView(account_view(signed_in.account))


async def read(ask: Ask) -> SessionView:
    """Who is signed in."""
    return SessionView(account_view(ask.who.account))


async def delete(ask: Ask) -> DoneView:
    """Sign out; the answer takes the cookie away."""
    await sign_out(ask.services, session_token(ask) or "", ask.origin)
    ask.headers.append(session_cookie(ask, ""))
    return DoneView(True)
