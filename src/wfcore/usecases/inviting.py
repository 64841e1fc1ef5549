"""
Invitations of people by operators. AC-12.

An invitation is the account itself, until its person signs in for the first time: the account
stands among people from the beginning, may be a member of groups, and can be asked for approvals. A
record of its own would be a second kind of person for groups and approvers. The link is that of a
sign-in, valid for a day.
"""

from collections.abc import Sequence

from attrs import evolve

from wfcore.errors import AccountExists, Conflict, NotFound
from wfcore.model.access import Account, AccountStatus, Principal, Unrestricted
from wfcore.ports.store import Unit
from wfcore.rules.approval.groups import with_members
from wfcore.rules.auth.access import refuse_operator_from_elsewhere
from wfcore.rules.auth.session import signed_out
from wfcore.rules.limits import LOGIN_LINK_MAX
from wfcore.usecases.accounts.accounts import checked_email
from wfcore.usecases.accounts.groups import groups_in
from wfcore.usecases.audit.auditing import Origin, note
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried
from wfcore.usecases.upkeep.deleting_accounts import delete_account

INVITATION = LOGIN_LINK_MAX
"""How long the link of an invitation is valid."""


@retried
async def invite(
    services: Services,
    who: Principal | Unrestricted,
    email: str,
    groups: Sequence[str],
    origin: Origin,
) -> Account:
    """
    A new account for the person with *email*, who becomes a member of *groups*. The account cannot
    be an operator.

    Raises `InvalidInput` for the address or a group; `AccountExists`; `NotFound` for a group.
    """
    email = checked_email(email)
    now = services.clock.now()
    async with services.store.unit() as unit:
        if await unit.accounts.by_email(email) is not None:
            raise AccountExists(f"An account with the email {email} exists already", email)
        account = Account(
            services.ids.new("acc", now),
            email,
            services.policy.default_plan,
            AccountStatus.ACTIVE,
            now,
            invited_at=now,
        )
        operators = services.policy.operators
        refuse_operator_from_elsewhere(account, operators, False, before=None, new=True)
        unit.put(account)
        before = after = await groups_in(unit)
        for name in groups:
            after = with_members(after, name, [email])
        if after != before:
            unit.put(after)
        note(services, unit, "account.invite", who, account.id, origin, {"groups": list(groups)})
        await unit.commit()
    return account


@retried
async def renew_invitation(services: Services, account_id: str) -> Account:
    """
    The account of an invitation, whose earlier links end. Raises `NotFound`; `Conflict` if the
    person has signed in.
    """
    async with services.store.unit() as unit:
        account = await _invited(unit, account_id)
        unit.put(signed_out(evolve(account, invited_at=services.clock.now())))
        await unit.commit()
    return account


async def _invited(unit: Unit, account_id: str) -> Account:
    account = await unit.get(Account, account_id)
    if account is None:
        raise NotFound("Account")
    if account.invited_at is None:
        raise Conflict("The person has signed in; the account is no invitation any more")
    return account


async def withdraw_invitation(
    services: Services, who: Principal, account_id: str, origin: Origin
) -> None:
    """
    Delete the account of an invitation. Raises `NotFound`; `Conflict` if the person has signed in.
    """
    await _close(services, account_id)
    await delete_account(services, account_id, origin=evolve(origin, operator=who))


@retried
async def _close(services: Services, account_id: str) -> None:
    """Disable the account, so that its person cannot sign in while the account is deleted."""
    async with services.store.unit() as unit:
        account = await _invited(unit, account_id)
        unit.put(signed_out(evolve(account, status=AccountStatus.DISABLED)))
        await unit.commit()
