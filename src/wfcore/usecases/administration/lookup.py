"""Lookup of the accounts and workflows that operators name, by id, email or name."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from wfcore.errors import InvalidInput, NotFound
from wfcore.model.access import OPERATOR, Account, Principal
from wfcore.model.page import PageRequest
from wfcore.rules.definition.values import workflow_name
from wfcore.usecases.accounts.accounts import find_account
from wfcore.usecases.services import Services
from wfcore.usecases.workflows.workflows import WorkflowRow, list_workflows, read_workflow

_PAGE = 200


async def account(services: Services, id_or_email: str, parameter: str = "account") -> Account:
    """
    The account with that id or email. Raises `InvalidInput`, which names *parameter* and the value.
    """
    try:
        return await find_account(services, id_or_email)
    except NotFound:
        fix = f"no account has the id or email {id_or_email!r}; wfcore account list shows them"
        raise InvalidInput(parameter, fix) from None


async def emails(services: Services, account_ids: Iterable[str]) -> Mapping[str, str]:
    """The email of each account that exists."""
    found = {}
    for id in set(account_ids):
        with suppress(NotFound):
            found[id] = (await find_account(services, id)).email
    return found


async def workflow_names(services: Services, workflow_ids: Iterable[str]) -> Mapping[str, str]:
    """The name of each workflow that exists."""
    found = {}
    for id in set(workflow_ids):
        with suppress(NotFound):
            found[id] = (await read_workflow(services, OPERATOR, id)).workflow.name
    return found


async def owner_of(services: Services, account_id: str) -> Principal:
    """The account as a principal without a key, as at the console."""
    return Principal(await find_account(services, account_id))


async def workflow(services: Services, id_or_name: str) -> WorkflowRow:
    """
    The workflow with that id, or the only workflow with that name.

    Raises `InvalidInput` for no such workflow, or several workflows with that name.
    """
    try:
        return await read_workflow(services, OPERATOR, id_or_name)
    except NotFound:
        named = await workflows_named(services, workflow_name(id_or_name))
    if not named:
        fix = f"none has the id or name {id_or_name!r}; wfcore workflow list shows them"
        raise InvalidInput("workflow", fix)
    if len(named) > 1:
        ids = ", ".join(found.workflow.id for found in named)
        raise InvalidInput("workflow", f"several are named {id_or_name!r}; give an id: {ids}")
    return named[0]


async def workflows_named(services: Services, name: str) -> list[WorkflowRow]:
    """All workflows with that name, of all owners."""
    found: list[WorkflowRow] = []
    page: PageRequest | None = PageRequest(size=_PAGE)
    while page is not None:
        listed = await list_workflows(services, OPERATOR, page)
        found += [one for one in listed.rows if one.workflow.name == name]
        page = listed.rest
    return found
