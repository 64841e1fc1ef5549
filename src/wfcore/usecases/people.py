"""The accounts behind names, read from the store. AP-41, ML-2."""

from collections.abc import Collection

from attrs import evolve

from wfcore.model.access import Account, Permission
from wfcore.ports.store import Unit, View
from wfcore.rules.approval.people import People
from wfcore.rules.mailbox import same_name


async def met(
    view: View | Unit, people: People, names: Collection[str], workflow_id: str | None = None
) -> People:
    """*people* with the accounts that *names* name and the accounts that may edit the workflow."""
    editors: tuple[str, ...] = ()
    if workflow_id is not None:
        shares = await view.shares.of_workflow(workflow_id)
        editors = tuple(one.account_id for one in shares if one.permission is Permission.EDIT)
    wanted = {*names, *editors} - people.accounts.keys()
    ids = [name for name in wanted if "@" not in name]
    found: dict[str, Account | None] = dict.fromkeys(wanted)
    found |= {same_name(one.id): one for one in await view.some(Account, ids)}
    for name in wanted.difference(ids):
        found[name] = await view.accounts.by_email(name)
    return evolve(people, accounts={**people.accounts, **found}, editors=editors)
