"""Signing in and out at the console. Contract §6."""

from adapters_http.credentials import session_cookie, session_token
from adapters_http.request import Ask
from wfcore.errors import InvalidInput
from wfcore.usecases.accounts.sessions import end_sessions, sign_in, sign_out
from wfcore.wire.shapes import DoneView, SessionView
from wfcore.wire.views import account_view


async def create(ask: Ask) -> SessionView:
    """Sign in; the answer sets the cookie."""
    before = session_token(ask)
    signed_in = await sign_in(ask.services, ask.body.email, ask.body.password, ask.origin, before)
    ask.headers.append(session_cookie(ask, signed_in.token))
    return SessionView(account_view(signed_in.account))


async def read(ask: Ask) -> SessionView:
    """Who is signed in."""
    return SessionView(account_view(ask.who.account))


async def delete(ask: Ask) -> DoneView:
    """Sign out, here or `everywhere`; the answer takes the cookie away. SE-4."""
    everywhere = ask.query("everywhere")
    if everywhere not in (None, "0", "1"):
        raise InvalidInput("everywhere", "must be 1, or left out")
    if everywhere == "1":
        await end_sessions(ask.services, ask.who.account.id, ask.origin, ask.who)
    await sign_out(ask.services, session_token(ask) or "", ask.origin)
    ask.headers.append(session_cookie(ask, ""))
    return DoneView(True)
