"""Accounts, for operators: plan, status, sessions, and links that sign in. AC-7, SE-4, SE-7."""

from enum import StrEnum
from typing import TypeVar

from starlette.responses import Response

from adapters_http.browsers import session_token
from adapters_http.console.forms import InviteForm
from adapters_http.console.hints import followed, versions
from adapters_http.console.language import _
from adapters_http.console.operate import operate_page
from adapters_http.console.passkeys import problem_of
from adapters_http.console.paths import see_other
from adapters_http.console.positions import behind, cursor_after
from adapters_http.handlers.accounts import named_account
from adapters_http.invitations import send_invitation
from adapters_http.request import Request
from wfcore.errors import (
    AccountBlocked,
    AccountExists,
    Conflict,
    Forbidden,
    InvalidInput,
    NotConfirmed,
)
from wfcore.model.access import Account, AccountStatus, Tier
from wfcore.model.page import NEWEST, Page
from wfcore.rules.auth.access import require_operator
from wfcore.usecases import inviting
from wfcore.usecases.accounts import accounts, groups, keys, passkeys, sessions
from wfcore.wire.common import ACCOUNTS

SIZE = 50


async def show(request: Request) -> Response:
    """All accounts, newest first; or a redirect to the account with the given email or id."""
    require_operator(request.who)
    text = (request.query("q") or "").strip()
    if text:
        found = await accounts.find_account(request.services, text)
        return see_other(request, f"/operate/people/{found.id}")
    return await _list(request)


async def _list(
    request: Request,
    problem: str | None = None,
    form: InviteForm | None = None,
    invited: Account | None = None,
    link: str | None = None,
) -> Response:
    """The page. *invited*: a person who was just invited, with the *link* if it is not mailed."""
    page, services = await _people(request), request.services
    members = await groups.list_groups(services)
    return operate_page(
        request,
        "people",
        400 if problem else 200,
        rows=page.rows,
        groups_of=lambda one: [name for name, all in members.items() if one.email in all],
        groups=sorted(members),
        seen=await sessions.last_seen(services, [one.id for one in page.rows]),
        next=cursor_after(ACCOUNTS, page.next),
        later=bool(request.query("after")),
        form=form or InviteForm(""),
        invited=invited,
        link=link,
        mails=request.context.config.mail is not None,
        problem=problem,
        follows=versions(page.rows),
    )


async def invite(request: Request) -> Response:
    """Invite a person. AC-12."""
    require_operator(request.who)
    form, services = request.body, request.services
    assert isinstance(form, InviteForm)
    names = [str(name) for name in (form.groups or {}).values()]
    try:
        account = await inviting.invite(services, request.who, form.email, names, request.origin)
    except (AccountExists, InvalidInput) as wrong:
        return await _list(request, str(wrong), form)
    link = await send_invitation(request, account)
    return await _list(request, invited=account, link=link)


async def invite_again(request: Request) -> Response:
    """Send an invitation again; its earlier links end."""
    account = await named_account(request)
    try:
        account = await inviting.renew_invitation(request.services, account.id)
        link = await send_invitation(request, account)
    except (AccountBlocked, Conflict) as refusal:
        return await _list(request, str(refusal))
    return await _list(request, invited=account, link=link)


async def withdraw(request: Request) -> Response:
    """Delete the account of an invitation."""
    account = await named_account(request)
    try:
        await inviting.withdraw_invitation(
            request.services, request.who, account.id, request.origin
        )
    except Conflict as refusal:
        return await _list(request, refusal.message)
    return see_other(request, "/operate/people")


async def _people(request: Request) -> Page[Account]:
    require_operator(request.who)
    return await accounts.list_accounts(request.services, behind(request, ACCOUNTS, SIZE, NEWEST))


async def _snapshot(request: Request) -> object:
    return versions((await _people(request)).rows)


live = followed(_snapshot)


async def show_one(request: Request) -> Response:
    """One account."""
    return await _one(request)


async def _one(request: Request, problem: str | None = None, link: str | None = None) -> Response:
    account = await named_account(request)
    return operate_page(
        request,
        "person",
        400 if problem else 200,
        person=account,
        sessions=await sessions.list_sessions(request.services, account.id),
        keys=await keys.list_keys(request.services, account.id),
        plans=list(Tier),
        statuses=list(AccountStatus),
        problem=problem,
        link=link,
        now=request.services.clock.now(),
    )


E = TypeVar("E", bound=StrEnum)


def _one_of(kind: type[E], field: str, text: str) -> E:
    """A member of an enum. Raises `InvalidInput`, which lists the members."""
    try:
        return kind(text)
    except ValueError:
        raise InvalidInput(field, f"must be one of {', '.join(kind)}") from None


async def change(request: Request) -> Response:
    """Change plan and status. An operator cannot disable their own account."""
    account, form = await named_account(request), request.body
    plan, status = _one_of(Tier, "plan", form.plan), _one_of(AccountStatus, "status", form.status)
    try:
        await accounts.set_account(
            request.services,
            request.who,
            account.id,
            plan=plan,
            status=status,
            origin=request.origin,
        )
    except InvalidInput:  # plan and status are valid here
        return await _one(request, _("This is your own account; somebody else must disable it."))
    return see_other(request, f"/operate/people/{account.id}")


async def end_sessions(request: Request) -> Response:
    """Sign the account out everywhere."""
    account = await named_account(request)
    await sessions.end_sessions(request.services, request.who, account.id, request.origin)
    return see_other(request, f"/operate/people/{account.id}")


async def remove_passkey(request: Request) -> Response:
    """Remove a passkey that the person has lost; the person is told by mail. SR-5."""
    account = await named_account(request)
    try:
        await passkeys.remove_passkey(
            request.services,
            request.who,
            account.id,
            request.params["passkey"],
            request.origin,
            session_token(request),
        )
    except NotConfirmed as refused:
        return await _one(request, problem_of(refused))
    except Forbidden as refused:
        return await _one(request, _(refused.message))
    return see_other(request, f"/operate/people/{account.id}")


async def make_link(request: Request) -> Response:
    """Create a link that signs the account in once; only this response shows the link."""
    account = await named_account(request)
    try:
        token = await sessions.issue_login_link(
            request.services, request.who, account.id, request.origin
        )
    except AccountBlocked as refusal:
        return await _one(request, str(refusal))
    return await _one(request, link=f"{request.base_url}/in/{token}")
