"""Workflows: reading by API; applying, sharing and deleting by their authors."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial

from attrs import evolve, frozen

from wfcore.errors import (
    Conflict,
    Forbidden,
    InvalidDefinition,
    InvalidInput,
    NotFound,
    PackagesUnavailable,
    Problem,
    Unreadable,
)
from wfcore.model.access import OPERATOR, Account, Permission, Principal, Share, Unrestricted
from wfcore.model.json import JsonObject
from wfcore.model.page import Page, PageRequest
from wfcore.model.trigger import TriggerRow
from wfcore.model.webhook import DisabledReason
from wfcore.model.workflow import Definition, DefinitionSnapshot, Needs, Workflow
from wfcore.ports.store import Unit, View
from wfcore.rules.approval.people import People
from wfcore.rules.auth.access import includes
from wfcore.rules.definition.mail import literal_recipients
from wfcore.rules.definition.packages import locked, needs_of, with_locks_of
from wfcore.rules.definition.review import (
    doubtful_people,
    hidden_groups,
    literal_ids,
    server_groups,
    unknown_groups,
)
from wfcore.rules.definition.triggers import no_schedules
from wfcore.rules.definition.written import check_built
from wfcore.rules.execution.mail import not_admitted
from wfcore.rules.mailbox import same_name
from wfcore.rules.named_secrets import foreign_secrets, masked_defaults, missing_secrets
from wfcore.rules.state import dropped_text
from wfcore.rules.triggers.trigger import beyond_plan
from wfcore.rules.webhooks.webhook import disabled
from wfcore.usecases.accounts.groups import groups_in
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.notices.telling import tell_disabled
from wfcore.usecases.people import met
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import definition_of, retried, workflow_for
from wfcore.usecases.workflows.state import dropped_state, redeclared_state
from wfcore.usecases.workflows.triggers import arrange, triggers_of, wanted_triggers


@frozen
class WorkflowRow:
    """A workflow with its current definition, and the present state of its triggers."""

    workflow: Workflow
    definition: Definition
    triggers: tuple[TriggerRow, ...] = ()


async def list_workflows(
    services: Services, who: Principal | Unrestricted, page: PageRequest
) -> Page[WorkflowRow]:
    """The workflows that *who* sees (`OPERATOR`: all workflows), by name. AC-3, AC-6."""
    async with services.store.view() as view:
        if who is OPERATOR:
            found = await view.workflows.list(page)
        else:
            found = await view.workflows.visible_to(who.account.id, page)
        rows: list[WorkflowRow] = []
        for workflow in found.rows:
            with suppress(Unreadable):  # its definition; the log names it
                rows.append(await _defined(view, workflow))
    return Page(tuple(rows), found.total, found.page, found.size, found.next)


async def read_workflow(
    services: Services, who: Principal | Unrestricted, workflow_id: str
) -> WorkflowRow:
    """One workflow that *who* sees. Raises `NotFound`."""
    async with services.store.view() as view:
        return await _defined(view, await workflow_for(view, who, workflow_id, Permission.VIEW))


async def _defined(view: View, workflow: Workflow) -> WorkflowRow:
    definition = await definition_of(view, workflow.id, workflow.revision)
    triggers = await triggers_of(view, workflow.id) if definition.triggers else ()
    return WorkflowRow(workflow, definition, triggers)


async def apply_workflow(
    services: Services,
    owner_id: str,
    definition: Definition,
    origin: Origin = UNKNOWN,
    *,
    source: str = "",
    tests: str | None = None,
    after: int | None = None,
    who: Principal | None = None,
) -> Workflow:
    """
    Create a workflow, or give the owner's workflow of that name a new revision. DF-1.

    A *definition* made by a program is checked in the same way as a text, and stored in the form
    that the checker returns. DF-12. *source*: the text of the definition, stored with the
    definition. *tests*: the text of its scenarios; None keeps those of the present version.
    *after*: the version that must be the present version, 0 for a workflow that must not exist.
    *who*: the person who applies the definition, if not the owner.

    The same definition with the same tests again changes nothing; missing or damaged packages are
    installed again, as their locks list. Running executions keep their definition. The triggers
    take effect at once.

    Raises `NotFound` for the account, `Conflict` if *after* is not the present version,
    `InvalidDefinition` for every mistake, for triggers that the account cannot have, for secrets
    that the account lacks (SC-7), for masks in the place of secrets (SC-9), for values of the state
    that the definition does not admit (SV-5), and for packages of a step that cannot be installed
    (PK-3); in that case nothing is stored.
    """
    definition = await checked_definition(services, definition)
    if needs_of(definition):
        async with services.store.view() as view:
            old = await view.workflows.by_name(owner_id, definition.name)
            before = await definition_of(view, old.id, old.revision) if old else None
        definition = await prepare_packages(services, definition, before)
    text = _Text(definition, source, tests)
    return await _apply(services, owner_id, text, origin, after, who)


async def checked_definition(services: Services, definition: Definition) -> Definition:
    """
    *definition* in the form that the checker returns. Raises `InvalidDefinition` for every mistake
    (DF-12) and for masks in the place of secrets (SC-9).
    """
    calendar = services.calendar
    schedules = no_schedules if calendar is None else calendar.problems
    check = partial(check_built, definition, services.templates.problems, schedules)
    definition = await services.offload(check)
    if masked := tuple(masked_defaults(definition)):
        raise InvalidDefinition(masked)
    return definition


def beyond_owner(definition: Definition, owner: Account) -> tuple[Problem, ...]:
    """
    The problems for *owner*: steps with missing secrets, and schedules beyond the plan. SC-7, SH-7.
    """
    return (*missing_secrets(owner, definition), *beyond_plan(definition, owner.plan))


async def nobodies(
    services: Services, view: View | Unit, definition: Definition
) -> Sequence[Problem]:
    """
    A problem for each approver that is the id of no account, or a group that does not exist, and
    for each recipient who may get no mail. Approvers are anybody if one person answers every
    approval. AP-43, AP-49, ML-2.
    """
    recipients = [*literal_recipients(definition)]
    outsiders = People(outsiders=services.policy.mail_to)
    people = await met(view, outsiders, {same_name(name) for _, name in recipients})
    found = [
        Problem(path, f"{name!r} {not_admitted(name)}")
        for path, name in recipients
        if not people.admits(name)
    ]
    return found if services.policy.one_for_all else [*await _strangers(view, definition), *found]


async def _strangers(view: View | Unit, definition: Definition) -> Sequence[Problem]:
    """The approvers that are ids of no account, or groups that do not exist."""
    written = [*literal_ids(definition)]
    known = {one.id for one in await view.some(Account, {id for _, id in written})}
    found = [Problem(path, f"there is no account {i!r}") for path, i in written if i not in known]
    if any(True for _ in server_groups(definition)):
        found += unknown_groups(definition, (await groups_in(view)).members)
    return found


async def doubts(services: Services, definition: Definition) -> Sequence[str]:
    """
    The warnings about approvers of *definition*: addresses that may get no mail, and groups of the
    server that the definition hides. AP-43, AP-49.
    """
    found = [*doubtful_people(definition)]
    if definition.approver_groups:
        async with services.store.view() as view:
            found += hidden_groups(definition, (await groups_in(view)).members)
    return found


async def warnings_of(services: Services, owner_id: str, definition: Definition) -> Sequence[str]:
    """The `doubts`, and the values of state that applying *definition* would drop. SV-5."""
    found = await doubts(services, definition)
    dropped = await dropped_state(services, owner_id, definition)
    return [*found, dropped_text(dropped)] if dropped else found


@frozen
class _Text:
    """A definition as given, with its text and the text of its tests."""

    definition: Definition
    source: str
    tests: str | None

    def same_as(self, before: DefinitionSnapshot) -> bool:
        """Whether it says what *before* says."""
        return before.definition == self.definition and self.tests in (None, before.tests)


def _require_present(old: Workflow | None, name: str, after: int | None) -> None:
    """Raises `Conflict` if the version of *old* is not *after*; 0: there is no workflow."""
    if after is None or after == (old.revision if old else 0):
        return
    if after == 0:
        raise Conflict(f"There is a workflow {name!r} already; take another name, or edit that one")
    raise Conflict(f"The workflow is no longer at version {after}")


@retried
async def _apply(
    services: Services,
    owner_id: str,
    text: _Text,
    origin: Origin,
    after: int | None,
    who: Principal | None,
) -> Workflow:
    now, definition = services.clock.now(), text.definition
    async with services.store.unit() as unit:
        owner = await unit.get(Account, owner_id)
        if owner is None:
            raise NotFound("Account")
        lacking = (*beyond_owner(definition, owner), *await nobodies(services, unit, definition))
        old = await unit.workflows.by_name(owner_id, definition.name)
        kept = await unit.get(DefinitionSnapshot, old.id, old.revision) if old else None
        before = kept.definition if kept else None
        _require_present(old, definition.name, after)
        if old is None:
            id = services.ids.new("wf", now)
            workflow = Workflow(id, definition.name, owner_id, 1, now, now)
        elif kept is not None and text.same_as(kept) and not lacking:
            return old
        else:
            workflow = evolve(old, revision=old.revision + 1, updated_at=now)
        state = await redeclared_state(unit, workflow, definition)
        unit.put(workflow)  # first: a chain may be behind the workflow itself
        wanted, wrong = await wanted_triggers(services, unit, owner, workflow, definition)
        if problems := (*lacking, *wrong, *(state.problems if state else ())):
            raise InvalidDefinition(problems)
        if state is not None:  # also unchanged: who writes by the older declaration writes again
            unit.put(state.state)
        tests = (kept.tests if kept else "") if text.tests is None else text.tests
        by = who.account.id if who else owner.id
        version = workflow.id, workflow.revision, definition, text.source, tests, now, by
        unit.put(DefinitionSnapshot(*version))
        due = await arrange(services, unit, workflow, wanted, now)
        if (before.concurrency if before else None) != definition.concurrency:
            limit = definition.concurrency
            unit.limit_group(workflow.id, limit.limit if limit is not None else None)
        about: JsonObject = {"workflowVersion": workflow.revision}
        if state is not None and state.dropped:
            about = {**about, "droppedState": state.dropped}
        note(services, unit, "workflow.apply", who or Principal(owner), workflow.id, origin, about)
        await unit.commit()
    if due:
        services.wakeup.timer()
    services.wakeup.runner()
    return workflow


async def owned(unit: View | Unit, who: Principal | Unrestricted, workflow_id: str) -> Workflow:
    """The workflow, for its owner and `OPERATOR`. AC-14. Raises `NotFound`, `Forbidden`."""
    workflow = await workflow_for(unit, who, workflow_id, Permission.VIEW)
    if who is not OPERATOR and workflow.owner_id != who.account.id:
        raise Forbidden("Only the owner of the workflow may do this")
    return workflow


@retried
async def delete_workflow(
    services: Services,
    who: Principal | Unrestricted,
    workflow_id: str,
    origin: Origin = UNKNOWN,
) -> None:
    """
    Delete the workflow with its triggers; its webhooks are disabled, its executions continue.
    WH-10, SH-5.

    Only the owner and an operator may do it. AC-14. Raises `NotFound`, `Forbidden`.
    """
    now = services.clock.now()
    async with services.store.unit() as unit:
        workflow = await owned(unit, who, workflow_id)
        for webhook in await unit.webhooks.of_workflow(workflow_id):
            off = disabled(webhook, DisabledReason.WORKFLOW_DELETED, now)
            unit.put(off)
            await tell_disabled(services, unit, webhook, off)
        for trigger in await unit.triggers.of_workflow(workflow_id):
            unit.delete(trigger)
        unit.delete(workflow)
        note(services, unit, "workflow.delete", who, workflow_id, origin)
        await unit.commit()


@retried
async def share_workflow(
    services: Services,
    who: Principal | Unrestricted,
    workflow_id: str,
    account_id: str,
    permission: Permission | None,
    origin: Origin = UNKNOWN,
) -> Share | None:
    """
    Give an account *permission* on a workflow; None: remove the account's share. AC-2.

    An account that may no longer edit the workflow loses its webhooks on the workflow. WH-10.

    Only the owner and an operator may do it. AC-14. Raises `NotFound`, `Forbidden`, `InvalidInput`
    (the owner needs no share).
    """
    now = services.clock.now()
    async with services.store.unit() as unit:
        workflow = await owned(unit, who, workflow_id)
        if workflow.owner_id == account_id:
            raise InvalidInput("with", "is the workflow's owner, who may do everything already")
        old = await unit.get(Share, workflow_id, account_id)
        share = None
        if permission is None:
            if old is None:
                raise NotFound("Share")
            unit.discard(Share, workflow_id, account_id)
        else:
            share = Share(
                workflow_id, account_id, permission, now, version=old.version if old else 0
            )
            unit.put(share)
        if permission is None or not includes(permission, Permission.EDIT):
            for webhook in await unit.webhooks.of_workflow(workflow_id):
                if webhook.owner_id == account_id:
                    off = disabled(webhook, DisabledReason.ACCESS_LOST, now)
                    unit.put(off)
                    await tell_disabled(services, unit, webhook, off)
        note(services, unit, "workflow.share", who, workflow_id, origin)
        await unit.commit()
    return share


async def shares_of(services: Services, workflow_id: str) -> Sequence[Share]:
    """The shares of a workflow."""
    async with services.store.view() as view:
        return await view.shares.of_workflow(workflow_id)


async def prepare_packages(
    services: Services, definition: Definition, before: Definition | None = None
) -> Definition:
    """
    Install all packages that the steps of *definition* import; returns *definition* with locks that
    list these packages. Packages that have not changed since *before* keep their lock. PK-3, PK-9.

    Raises `InvalidDefinition` with a problem for each field whose packages could not be installed.
    """
    definition = with_locks_of(definition, before)
    found: dict[Needs, Needs] = {}
    problems = []
    for needs, path in needs_of(definition).items():
        try:
            found[needs] = await services.environments.prepare(needs)
        except PackagesUnavailable as refusal:
            problems.append(Problem(path, str(refusal)))
    if problems:
        raise InvalidDefinition(tuple(problems))
    return locked(definition, found)


async def prune_packages(services: Services) -> int:
    """Remove environments that no definition in use refers to; returns the number removed. PK-6."""

    async def in_use() -> Collection[Needs]:
        async with services.store.view() as view:
            snapshots = await view.definitions.in_use()
        return {needs for one in snapshots for needs in needs_of(one.definition)}

    return await services.environments.prune(in_use)


async def edit_workflow(
    services: Services,
    who: Principal,
    workflow_id: str,
    definition: Definition,
    source: str,
    version: int,
    origin: Origin = UNKNOWN,
    tests: str | None = None,
) -> Workflow:
    """
    Store *definition*, with its text and the text of its *tests* (None: those of the present
    version), as the version after *version*.

    Raises `NotFound`, `Forbidden` (no EDIT), `Conflict` if *version* is not the present version,
    `InvalidInput` for another name, `InvalidDefinition` for secrets of the owner that the present
    version does not use (SC-8), and the errors of `apply_workflow`. After an error nothing is
    stored.
    """
    async with services.store.view() as view:
        workflow = await workflow_for(view, who, workflow_id, Permission.EDIT)
        present = await definition_of(view, workflow.id, workflow.revision)
    if definition.name != workflow.name:
        raise InvalidInput("name", f"must stay {workflow.name!r}")
    if workflow.revision != version:
        raise Conflict(f"The workflow is at version {workflow.revision} now, not {version}")
    if who.account.id != workflow.owner_id and (added := foreign_secrets(present, definition)):
        raise InvalidDefinition(tuple(added))
    return await apply_workflow(
        services,
        workflow.owner_id,
        definition,
        origin,
        source=source,
        tests=tests,
        after=version,
        who=who,
    )
