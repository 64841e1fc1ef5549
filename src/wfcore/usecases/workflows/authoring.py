"""
Workflows in the hands of their authors: new ones, versions with their differences, and shares.

Operators at the command line have `versions` and `workflows`, which look at no permissions.
"""

from collections.abc import Sequence
from functools import partial

from attrs import frozen

from wfcore.model.access import Account, Permission, Principal, Share
from wfcore.model.page import Page, PageRequest
from wfcore.model.workflow import ChildStep, Definition, DefinitionSnapshot, Workflow
from wfcore.ports.store import View
from wfcore.rules.definition.changes import Diff, diff
from wfcore.rules.definition.written import text_of
from wfcore.time import EpochMs
from wfcore.usecases.accounts.accounts import find_account
from wfcore.usecases.audit.auditing import UNKNOWN, Origin
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import definition_of, workflow_for
from wfcore.usecases.workflows.browsing import masked_version, stored_version
from wfcore.usecases.workflows.workflows import (
    apply_workflow,
    edit_workflow,
    owned,
    share_workflow,
)


async def create_workflow(
    services: Services,
    who: Principal,
    definition: Definition,
    source: str,
    tests: str = "",
    origin: Origin = UNKNOWN,
) -> Workflow:
    """
    A new workflow of *who*, with its text and the text of its tests. DF-21.

    Raises `Conflict` if *who* has a workflow of that name, and the errors of `apply_workflow`.
    """
    return await apply_workflow(
        services, who.account.id, definition, origin, source=source, tests=tests, after=0, who=who
    )


@frozen
class VersionEntry:
    """
    A version in a list. `applied_by`: an email, empty if the account is gone. `added`, `removed`:
    lines, compared with the version before.
    """

    number: int
    applied_at: EpochMs
    applied_by: str
    added: int
    removed: int


async def list_changes(
    services: Services, who: Principal, workflow_id: str, page: PageRequest
) -> Page[VersionEntry]:
    """The versions of a workflow, newest first, with their changes. DF-22. Raises `NotFound`."""
    async with services.store.view() as view:
        workflow = await workflow_for(view, who, workflow_id, Permission.VIEW)
        present = await definition_of(view, workflow.id, workflow.revision)
        first = max(workflow.revision - page.offset, 0)
        numbers = range(first, max(first - page.size - 1, 0), -1)
        found = await _versions(view, workflow, present, numbers)
        people = await view.some(Account, {one.applied_by for one in found})
    emails = {one.id: one.email for one in people}
    rows = await services.offload(partial(_entries, found, emails, page.size))
    return Page(rows, workflow.revision, page.page, page.size)


async def _versions(
    view: View, workflow: Workflow, present: Definition, numbers: range
) -> Sequence[DefinitionSnapshot]:
    found = [await view.get(DefinitionSnapshot, workflow.id, number) for number in numbers]
    return [masked_version(one, present) for one in found if one is not None]


def _entries(
    found: Sequence[DefinitionSnapshot], emails: dict[str, str], size: int
) -> tuple[VersionEntry, ...]:
    texts = {one.revision: text_of(one) for one in found}
    return tuple(
        _entry(one, emails, diff(texts.get(one.revision - 1, ""), texts[one.revision]))
        for one in found[:size]
    )


def _entry(one: DefinitionSnapshot, emails: dict[str, str], change: Diff) -> VersionEntry:
    marks = [mark for mark, _ in change]
    by = emails.get(one.applied_by, "")
    return VersionEntry(one.revision, one.applied_at, by, marks.count("+"), marks.count("-"))


async def compare_versions(
    services: Services, who: Principal, workflow_id: str, old: int, new: int
) -> tuple[Workflow, DefinitionSnapshot, DefinitionSnapshot]:
    """
    Two versions of a workflow, with the secrets of the present definition masked. DF-22, SC-9.
    Raises `NotFound`.
    """
    async with services.store.view() as view:
        workflow = await workflow_for(view, who, workflow_id, Permission.VIEW)
        present = await definition_of(view, workflow.id, workflow.revision)
        before = await stored_version(view, workflow.id, old)
        after = await stored_version(view, workflow.id, new)
    return workflow, masked_version(before, present), masked_version(after, present)


async def restore_version(
    services: Services,
    who: Principal,
    workflow_id: str,
    to: int,
    version: int,
    origin: Origin = UNKNOWN,
) -> Workflow:
    """
    Apply what version *to* said, with its tests, as the version after *version*. DF-23.

    Raises the errors of `edit_workflow`; `NotFound` for the version.
    """
    async with services.store.view() as view:
        await workflow_for(view, who, workflow_id, Permission.EDIT)
        wanted = await stored_version(view, workflow_id, to)
    definition, source = wanted.definition, wanted.source
    return await edit_workflow(
        services, who, workflow_id, definition, source, version, origin, wanted.tests
    )


async def list_shares(
    services: Services, who: Principal, workflow_id: str
) -> Sequence[tuple[Share, str]]:
    """
    The shares of a workflow, each with the email of its holder, for the owner alone. AC-14. Raises
    `NotFound`, `Forbidden`.
    """
    async with services.store.view() as view:
        workflow = await owned(view, who, workflow_id)
        shares = await view.shares.of_workflow(workflow.id)
        people = await view.some(Account, {one.account_id for one in shares})
    emails = {one.id: one.email for one in people}
    return [(one, emails.get(one.account_id, one.account_id)) for one in shares]


async def share_own(
    services: Services,
    who: Principal,
    workflow_id: str,
    account: str,
    permission: Permission | None,
    origin: Origin = UNKNOWN,
) -> Account:
    """
    Give *account*, an id or email, a permission on a workflow of *who*, or with None take the share
    away; returns the account. AC-14. Raises the errors of `share_workflow`.
    """
    async with services.store.view() as view:
        await owned(view, who, workflow_id)  # first: a stranger learns nothing of accounts
    other = await find_account(services, account)
    await share_workflow(services, who, workflow_id, other.id, permission, origin)
    return other


async def started_by(
    services: Services, owner_id: str, definition: Definition
) -> Sequence[Definition]:
    """The present definitions of the owner's workflows that *definition* starts, at any depth."""
    found = {definition.name: definition}
    wanted = [definition]
    async with services.store.view() as view:
        while wanted:
            steps = wanted.pop().walk()
            for name in {one.workflow for one in steps if isinstance(one, ChildStep)} - {*found}:
                if child := await view.workflows.by_name(owner_id, name):
                    found[name] = await definition_of(view, child.id, child.revision)
                    wanted.append(found[name])
    return [one for name, one in found.items() if name != definition.name]
