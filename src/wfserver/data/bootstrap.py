"""Making the first account, its key and the sample workflow, if a store has none."""

from contextlib import suppress
from pathlib import Path

from attrs import frozen

from wfcore.errors import Unauthenticated
from wfcore.model.access import OPERATOR, Account, Scope, Tier
from wfcore.model.page import PageRequest
from wfcore.model.workflow import Workflow
from wfcore.rules.auth import api_key
from wfcore.usecases.accounts.accounts import create_account, list_accounts
from wfcore.usecases.accounts.keys import create_key, find_key, list_keys
from wfcore.usecases.administration.lookup import workflows_named
from wfcore.usecases.administration.operator import AT_THE_COMMAND_LINE
from wfcore.usecases.services import Services
from wfcore.usecases.workflows.workflows import apply_workflow, list_workflows
from wfserver import sample
from wfserver.data.folder import write_key
from wfserver.definitions.read import checked
from wfserver.settings.names import FIRST_KEY_FILE

EMAIL = "you@example.org"


@frozen
class First:
    """
    The first account and what belongs to it. `new_key`: the text of a key that was just made.
    `key_file` None: the data folder has no key of the account. `sample` None: the store has other
    workflows. `way_in`: the token of a link to the console; None: there are no pages.
    """

    account: Account
    new_key: str | None
    key_file: Path | None
    sample: Workflow | None
    way_in: str | None = None

    def __repr__(self) -> str:
        return f"First({self.account.id})"


async def first_things(services: Services, data: Path, plan: Tier) -> First:
    """
    Make the account (on *plan*), key and sample that are missing; a second call makes nothing.
    """
    account = await _account(services, plan)
    file = data / FIRST_KEY_FILE
    new_key = None
    if not await _fits(services, read_key(data)):
        if any(key.revoked_at is None for key in await list_keys(services, account.id)):
            return First(account, None, None, await _sample(services, account))
        issued = await create_key(
            services, account.id, "first", Scope.ordinary(), origin=AT_THE_COMMAND_LINE
        )
        new_key = issued.text
        write_key(file, f"{new_key}\n".encode(), replace=True)
    return First(account, new_key, file, await _sample(services, account))


def read_key(data: Path) -> str | None:
    """The API key in the data folder; None: there is no key file."""
    with suppress(FileNotFoundError):
        return (data / FIRST_KEY_FILE).read_text("utf-8", errors="replace").strip()
    return None


async def _account(services: Services, plan: Tier) -> Account:
    """The oldest account, or else a new account that is an operator. AC-7."""
    total = (await list_accounts(services, PageRequest(1, 1))).total
    if total:
        return (await list_accounts(services, PageRequest(total, 1))).rows[0]
    return await create_account(services, EMAIL, plan, origin=AT_THE_COMMAND_LINE, operator=True)


async def _fits(services: Services, text: str | None) -> bool:
    if text is None:
        return False
    try:
        presented = api_key.parse(text)
        api_key.check(await find_key(services, presented.id), presented, services.clock.now())
    except Unauthenticated:
        return False
    return True


async def _sample(services: Services, account: Account) -> Workflow | None:
    named = await workflows_named(services, sample.NAME)
    mine = [found.workflow for found in named if found.workflow.owner_id == account.id]
    if mine or (await list_workflows(services, OPERATOR, PageRequest(1, 1))).total:
        return mine[0] if mine else None
    definition = checked(sample.text(), "refunds.yaml", runs_here=False)
    return await apply_workflow(services, account.id, definition, origin=AT_THE_COMMAND_LINE)
