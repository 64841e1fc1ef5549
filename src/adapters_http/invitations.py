"""How the link of an invitation comes to its person, from the page and from the API. AC-12."""

from adapters_http.request import Request
from wfcore.model.access import Account
from wfcore.usecases.accounts import sessions
from wfcore.usecases.inviting import INVITATION


async def send_invitation(request: Request, account: Account) -> str | None:
    """Mail the link of an invitation; without mail, returns the link."""
    services, who, mail = request.services, request.who, request.context.config.mail
    if mail is None:
        token = await sessions.issue_login_link(
            services, who, account.id, request.origin, INVITATION
        )
        return f"{request.base_url}/in/{token}"
    request.context.background.begin(
        sessions.mail_login_link(
            services, request.who, mail, account.email, request.origin, INVITATION
        )
    )
    return None
