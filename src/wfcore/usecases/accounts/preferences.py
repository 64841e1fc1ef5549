"""What a person chooses: named lists of executions, and the time zone of messages."""

from attrs import evolve

from wfcore.errors import InvalidInput, NotFound
from wfcore.model.access import Account, Principal, SavedView
from wfcore.rules.limits import VIEWS_PER_ACCOUNT
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried

_NAME = 60
"""The most characters of a name."""


@retried
async def save_view(services: Services, who: Principal, view: SavedView) -> None:
    """
    Keep *view* for *who*; a view of the same name is replaced.

    Raises `InvalidInput` for an empty or long name, or too many views.
    """
    if not 1 <= len(view.name) <= _NAME:
        raise InvalidInput("name", f"must have 1 to {_NAME} characters")
    async with services.store.unit() as unit:
        account = await unit.get(Account, who.account.id)
        if account is None:
            raise NotFound("Account")
        views = (*_others(account, view.name), view)
        if len(views) > VIEWS_PER_ACCOUNT:
            raise InvalidInput("name", f"at most {VIEWS_PER_ACCOUNT} views; forget one first")
        unit.put(evolve(account, views=tuple(sorted(views, key=lambda one: one.name))))
        await unit.commit()


@retried
async def forget_view(services: Services, who: Principal, name: str) -> None:
    """Drop the view of that name, if there is one."""
    async with services.store.unit() as unit:
        account = await unit.get(Account, who.account.id)
        if account is None:
            raise NotFound("Account")
        unit.put(evolve(account, views=_others(account, name)))
        await unit.commit()


@retried
async def set_zone(services: Services, who: Principal, name: str) -> None:
    """
    Set the time zone of messages to *who*; the empty name is UTC.

    Raises `InvalidInput` for an unknown zone.
    """
    if name and not _is_zone(services, name):
        raise InvalidInput("zone", "is no time zone; write one like Europe/Berlin")
    async with services.store.unit() as unit:
        account = await unit.get(Account, who.account.id)
        if account is None:
            raise NotFound("Account")
        unit.put(evolve(account, zone=name or None))
        await unit.commit()


def _is_zone(services: Services, name: str) -> bool:
    try:
        return services.calendar is not None and services.calendar.zone(name) is not None
    except ValueError:
        return False


def _others(account: Account, name: str) -> tuple[SavedView, ...]:
    return tuple(one for one in account.views if one.name != name)
