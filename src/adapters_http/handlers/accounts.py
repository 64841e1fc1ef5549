"""
Accounts, for operators with a session: the functions of the pages of people, for programs. AC-7,
SE-4, SE-7.
"""

from adapters_http.invitations import send_invitation
from adapters_http.params import page
from adapters_http.request import Request
from wfcore.model.access import Account
from wfcore.rules.auth.access import require_operator
from wfcore.rules.limits import WORKFLOW_PAGE
from wfcore.usecases import inviting
from wfcore.usecases.accounts import accounts, keys, sessions
from wfcore.wire.common import ACCOUNTS, DoneView, shown_of
from wfcore.wire.operating import (
    InvitationView,
    LoginLinkView,
    PersonDetail,
    PersonPage,
    PersonView,
    SignedInView,
    key_view,
    person_view,
)


async def list_all(request: Request) -> PersonPage:
    """All accounts, newest first."""
    require_operator(request.who)
    wanted = page(request, WORKFLOW_PAGE, ACCOUNTS)
    found = await accounts.list_accounts(request.services, wanted)
    return PersonPage(accounts=[*map(person_view, found.rows)], **shown_of(found, ACCOUNTS))


async def read(request: Request) -> PersonDetail:
    """One account, by id or email, with its sessions and its keys."""
    account = await named_account(request)
    signed_in = await sessions.list_sessions(request.services, account.id)
    return PersonDetail(
        account=person_view(account),
        sessions=[SignedInView(one.created_at, one.last_seen_at) for one in signed_in],
        keys=[key_view(one) for one in await keys.list_keys(request.services, account.id)],
    )


async def named_account(request: Request) -> Account:
    """The account that the address names. Raises `NotFound`, also to all but operators."""
    require_operator(request.who)
    return await accounts.find_account(request.services, request.params["id"])


async def change(request: Request) -> PersonView:
    """Change plan or status; nobody shuts themselves out."""
    account, body = await named_account(request), request.body
    changed = await accounts.set_account(
        request.services,
        request.who,
        account.id,
        plan=body.plan,
        status=body.status,
        origin=request.origin,
    )
    return person_view(changed)


async def end_sessions(request: Request) -> DoneView:
    """Sign the account out everywhere."""
    account = await named_account(request)
    await sessions.end_sessions(request.services, request.who, account.id, request.origin)
    return DoneView(True)


async def make_link(request: Request) -> LoginLinkView:
    """A link that signs the account in once, in this answer alone."""
    account = await named_account(request)
    token = await sessions.issue_login_link(
        request.services, request.who, account.id, request.origin
    )
    return LoginLinkView(f"{request.base_url}/in/{token}")


async def invite(request: Request) -> InvitationView:
    """Invite a person, whose account is there from now on. AC-12."""
    require_operator(request.who)
    body = request.body
    account = await inviting.invite(
        request.services, request.who, body.email, body.groups or (), request.origin
    )
    return InvitationView(person_view(account), await send_invitation(request, account))


async def invite_again(request: Request) -> InvitationView:
    """Send an invitation again; its earlier links end."""
    account = await named_account(request)
    account = await inviting.renew_invitation(request.services, account.id)
    return InvitationView(person_view(account), await send_invitation(request, account))


async def withdraw_invitation(request: Request) -> DoneView:
    """Delete the account of an invitation."""
    account = await named_account(request)
    await inviting.withdraw_invitation(request.services, request.who, account.id, request.origin)
    return DoneView(True)
