"""Named secrets of an account, as the operator manages them. SC-5, contract §11."""

from collections.abc import Callable, Sequence

from wfcore.errors import NotFound
from wfcore.model.access import Account, NamedSecret
from wfcore.rules.named_secrets import with_secret, without_secret
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.retry import retried
from wfcore.usecases.services import Services


async def set_secret(
    services: Services, account_id: str, name: str, value: str, origin: Origin = UNKNOWN
) -> None:
    """
    Set a secret, or give it another value: for the steps that begin from now on.

    Raises `NotFound` for the account, `InvalidInput`.
    """
    now = services.clock.now()
    change = lambda account: with_secret(account, name, value, now)  # noqa: E731
    await _change(services, account_id, "secret.set", name, change, origin)


async def delete_secret(
    services: Services, account_id: str, name: str, origin: Origin = UNKNOWN
) -> None:
    """Delete a secret: steps that list it fail from now on. Raises `NotFound`."""
    change = lambda account: without_secret(account, name)  # noqa: E731
    await _change(services, account_id, "secret.delete", name, change, origin)


async def list_secrets(services: Services, account_id: str) -> Sequence[NamedSecret]:
    """The secrets of an account by name; nobody is to show their values. Raises `NotFound`."""
    async with services.store.view() as view:
        account = await view.get(Account, account_id)
    if account is None:
        raise NotFound("Account")
    return account.secrets


@retried
async def _change(
    services: Services,
    account_id: str,
    event: str,
    name: str,
    change: Callable[[Account], Account],
    origin: Origin,
) -> None:
    async with services.store.unit() as unit:
        account = await unit.get(Account, account_id)
        if account is None:
            raise NotFound("Account")
        unit.put(change(account))
        note(services, unit, event, None, account_id, origin, {"name": name})
        await unit.commit()
