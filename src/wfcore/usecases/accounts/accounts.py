"""Accounts and their named secrets, managed by the operator. SC-5."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from attrs import evolve

from wfcore.errors import AccountExists, Forbidden, InvalidInput, NotFound
from wfcore.model.access import (
    OPERATOR,
    Account,
    AccountStatus,
    NamedSecret,
    Permission,
    Principal,
    Tier,
    Unrestricted,
)
from wfcore.model.page import Page, PageRequest
from wfcore.model.webhook import DisabledReason
from wfcore.ports.store import Unit
from wfcore.rules.auth.access import refuse_operator_from_elsewhere
from wfcore.rules.auth.session import normal_password, signed_out
from wfcore.rules.mailbox import mailbox, same_name
from wfcore.rules.named_secrets import with_secret, without_secret
from wfcore.rules.webhooks.webhook import back_within, disabled, enabled, over_limit
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.notices.telling import tell_disabled
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried, workflow_for
from wfcore.wire.languages import LANGUAGES

MIN_PASSWORD = 8
MAX_PASSWORD = 1_024


@retried
async def create_account(
    services: Services,
    email: str,
    plan: Tier | None = None,
    password: str | None = None,
    origin: Origin = UNKNOWN,
    *,
    operator: bool = False,
    on_host: bool = True,
) -> Account:
    """
    A new active account; *plan* None: the default plan of the policy. *on_host*: whether the caller
    is on the server's host. AC-10.

    Raises `InvalidInput`; `AccountExists` if the email is taken.
    """
    plan = plan or services.policy.default_plan
    now = services.clock.now()
    email = checked_email(email)
    hashed = await _hashed(services, password)
    async with services.store.unit() as unit:
        if await unit.accounts.by_email(email) is not None:
            raise AccountExists(f"An account with the email {email} exists already", email)
        id = services.ids.new("acc", now)
        account = Account(id, email, plan, AccountStatus.ACTIVE, now, hashed, operator=operator)
        named = services.policy.operators
        refuse_operator_from_elsewhere(account, named, on_host, before=None, new=True)
        unit.put(account)
        note(services, unit, "account.create", OPERATOR, account.id, origin)
        await unit.commit()
    return account


@retried
async def set_account(
    services: Services,
    who: Principal | Unrestricted,
    account_id: str,
    *,
    plan: Tier | None = None,
    status: AccountStatus | None = None,
    password: str | None = None,
    operator: bool | None = None,
    language: str | None = None,
    failure_channels: Sequence[str] | None = None,
    origin: Origin = UNKNOWN,
    on_host: bool = True,
) -> Account:
    """
    Change plan, status, password or language, the right to operate the server (AC-7), or the
    channels for failures of the account's workflows (NT-8). A downgrade disables the newest
    webhooks above the new limit; an upgrade enables these webhooks again. WH-5, WH-16. A new
    password, a status other than ACTIVE, and becoming an operator end every session and link. SE-4.

    Raises `NotFound`; `InvalidInput` for bad values, for disabling one's own account, and, unless
    *on_host*, for a new operator or the password of an operator (AC-10).
    """
    if (
        who is not OPERATOR
        and who.account.id == account_id
        and status not in (None, AccountStatus.ACTIVE)
    ):
        raise InvalidInput("status", "it is your own account; somebody else must disable it")
    now = services.clock.now()
    hashed = await _hashed(services, password)
    async with services.store.unit() as unit:
        old = await unit.get(Account, account_id)
        if old is None:
            raise NotFound("Account")
        account = evolve(
            old,
            plan=plan or old.plan,
            status=status or old.status,
            password_hash=hashed or old.password_hash,
            operator=old.operator if operator is None else operator,
            language=old.language if language is None else _checked_language(language),
            failure_channels=_checked_channels(services, old, failure_channels),
        )
        named, is_new = services.policy.operators, hashed is not None
        refuse_operator_from_elsewhere(account, named, on_host, before=old, new=is_new)
        promoted = account.operator and not old.operator
        if hashed is not None or promoted or account.status is not AccountStatus.ACTIVE:
            account = signed_out(account)
        unit.put(account)
        written = await _fit_webhooks(services, unit, account, now)
        note(services, unit, "account.set", who, account_id, origin)
        await unit.commit()
    if written:
        services.wakeup.timer()
    return account


def _checked_language(language: str) -> str:
    if language not in LANGUAGES:
        raise InvalidInput("language", f"must be one of {', '.join(LANGUAGES)}")
    return language


def _checked_channels(
    services: Services, old: Account, named: Sequence[str] | None
) -> tuple[str, ...]:
    if named is None:
        return old.failure_channels
    offered = services.policy.channels
    for channel in named:
        if channel not in offered:
            known = f"one of {', '.join(sorted(offered))}" if offered else "none is set up here"
            raise InvalidInput("failure_channels", f"{channel!r} is not a channel here; {known}")
    return tuple(dict.fromkeys(named))


async def _fit_webhooks(services: Services, unit: Unit, owner: Account, now: EpochMs) -> bool:
    """
    Disable the webhooks that exceed the plan. Enable the webhooks that an earlier plan disabled, if
    the plan has room and the owner may still EDIT the workflow. WH-5, WH-16. Returns whether
    notices were written.
    """
    webhooks, written = await unit.webhooks.all_of_owner(owner.id), False
    for webhook in over_limit(owner.plan, webhooks):
        off = disabled(webhook, DisabledReason.PLAN_LIMIT, now)
        unit.put(off)
        written |= await tell_disabled(services, unit, webhook, off)
    for webhook in back_within(owner.plan, webhooks):
        with suppress(NotFound, Forbidden):
            await workflow_for(unit, Principal(owner), webhook.workflow_id, Permission.EDIT)
            unit.put(enabled(webhook, now))
    return written


async def list_accounts(services: Services, page: PageRequest) -> Page[Account]:
    """All accounts, newest first."""
    async with services.store.view() as view:
        return await view.accounts.list(page)


async def find_account(services: Services, id_or_email: str) -> Account:
    """The account with that id or email. Raises `NotFound`."""
    async with services.store.view() as view:
        account = await view.get(Account, id_or_email)
        account = account or await view.accounts.by_email(same_name(id_or_email))
    if account is None:
        raise NotFound("Account")
    return account


async def ensure_account(services: Services, email: str, plan: Tier = Tier.PRO) -> Account:
    """
    The account of *email*, created if it does not exist: for programs that start repeatedly. An
    existing account does not change. Raises `InvalidInput`.
    """
    while True:
        with suppress(NotFound):
            return await find_account(services, email)
        with suppress(AccountExists):  # another process was faster
            return await create_account(services, email, plan)


def checked_email(email: str) -> str:
    """*email* as stored. Raises `InvalidInput`."""
    try:
        return mailbox(email)
    except ValueError:
        raise InvalidInput("email", "must be an email address") from None


async def _hashed(services: Services, password: str | None) -> str | None:
    if password is None:
        return None
    password = normal_password(password)
    if not MIN_PASSWORD <= len(password) <= MAX_PASSWORD:
        raise InvalidInput("password", f"must have {MIN_PASSWORD} to {MAX_PASSWORD} characters")
    return await services.passwords.hash(password)


async def set_secret(
    services: Services,
    who: Principal | Unrestricted,
    account_id: str,
    name: str,
    value: str,
    origin: Origin = UNKNOWN,
) -> None:
    """
    Set a secret, or change its value, for steps that begin from now on.

    Raises `NotFound` for the account, `InvalidInput`.
    """
    now = services.clock.now()
    change = lambda account: with_secret(account, name, value, now)  # noqa: E731
    await _change_secrets(services, account_id, "secret.set", name, change, origin, who)


async def delete_secret(
    services: Services,
    who: Principal | Unrestricted,
    account_id: str,
    name: str,
    origin: Origin = UNKNOWN,
) -> None:
    """Delete a secret: steps that list it fail from now on. Raises `NotFound`."""
    change = lambda account: without_secret(account, name)  # noqa: E731
    await _change_secrets(services, account_id, "secret.delete", name, change, origin, who)


async def list_secrets(services: Services, account_id: str) -> Sequence[NamedSecret]:
    """The secrets of an account by name. Callers must not show the values. Raises `NotFound`."""
    async with services.store.view() as view:
        account = await view.get(Account, account_id)
    if account is None:
        raise NotFound("Account")
    return account.secrets


@retried
async def _change_secrets(
    services: Services,
    account_id: str,
    event: str,
    name: str,
    change: Callable[[Account], Account],
    origin: Origin,
    who: Principal | Unrestricted,
) -> None:
    async with services.store.unit() as unit:
        account = await unit.get(Account, account_id)
        if account is None:
            raise NotFound("Account")
        unit.put(change(account))
        note(services, unit, event, who, account_id, origin, {"name": name})
        await unit.commit()
