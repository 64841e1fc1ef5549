"""
Deletion of an account and all its belongings. AC-9.

First the account is disabled, so that nothing new begins; the account itself is deleted last. Each
part is a unit of its own and finds the remaining records: after a crash, or beside another operator
with the same call, the call continues. Files are deleted before the rows that name them, as in
retention.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from attrs import asdict, evolve, frozen

from wfcore.errors import AlreadyFinished, Conflict, InvalidInput, NotFound
from wfcore.model.access import OPERATOR, Account, AccountStatus, ApiKey, Session, Share
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.notice import Notice
from wfcore.model.page import OLDEST, PageRequest
from wfcore.model.workflow import Workflow
from wfcore.ports.records import ExecutionFilter
from wfcore.ports.store import View
from wfcore.rules.auth.session import signed_out
from wfcore.rules.execution.machine import EXECUTION
from wfcore.time import EpochMs
from wfcore.usecases.accounts.groups import leave_groups
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.executions.executions import cancel_execution
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried
from wfcore.usecases.webhooks.webhooks import delete_webhook
from wfcore.usecases.workflows.workflows import delete_workflow

_BATCH = 50
MOST_COUNTED = 100_000
_GOING = tuple(one for one in ExecutionStatus if one not in EXECUTION.final)
MAIL = "mail"
MOST_NOTICES = 1_000
"""
The most notices deleted for one address; remaining notices are dropped when they would be sent, or
by retention.
"""


@frozen
class Belongings:
    """
    The records that are deleted with an account. `going`: executions of the account or of its
    workflows that have not ended. `executions`: executions of the account, counted up to
    `MOST_COUNTED` in each status; artifacts, events, approvals, callbacks and notices are deleted
    with their execution.
    """

    workflows: int
    shares: int
    webhooks: int
    keys: int
    sessions: int
    executions: int
    going: int


async def read_belongings(services: Services, account_id: str) -> Belongings:
    """The records that deleting the account would delete. Raises `NotFound`."""
    async with services.store.view() as view:
        if await view.get(Account, account_id) is None:
            raise NotFound("Account")
        visible = [one async for one in _workflows(view, account_id)]
        own = [one for one in visible if one.owner_id == account_id]
        mine = await view.executions.by_status(ExecutionFilter(account_id), MOST_COUNTED)
        return Belongings(
            workflows=len(own),
            shares=len(visible) - len(own),
            webhooks=len(await view.webhooks.all_of_owner(account_id)),
            keys=len(await view.keys.of_account(account_id)),
            sessions=len(await view.sessions.of_account(account_id)),
            executions=sum(mine.values()),
            going=len([one async for one in _going(view, account_id)]),
        )


async def delete_account(
    services: Services, account_id: str, *, cancel: bool = False, origin: Origin = UNKNOWN
) -> Belongings:
    """
    Delete the account with its belongings; the audit log stays. *cancel*: whether to cancel the
    executions that have not ended.

    Raises `NotFound`; `InvalidInput` for the caller's own account; `Conflict`, without *cancel*,
    for executions that have not ended, and for executions that began in the meantime.
    """
    if origin.operator is not None and origin.operator.account.id == account_id:
        raise InvalidInput("account", "is the one whose key asks for this")
    found = await read_belongings(services, account_id)
    if found.going and not cancel:
        raise Conflict(f"{found.going} executions have not ended; cancel them, or say so")
    await _disable(services, account_id)
    if cancel:
        await _cancel_all(services, account_id, origin)
    await _give_up_access(services, account_id, origin)
    await _purge_executions(services, account_id)
    await _delete(services, account_id, found, origin)
    return found


@retried
async def _disable(services: Services, account_id: str) -> None:
    """
    Disable the account: it makes no more requests, and its triggers start nothing. AC-1, SH-7.
    """
    async with services.store.unit() as unit:
        account = await unit.get(Account, account_id)
        if account is None:
            raise NotFound("Account")
        unit.put(signed_out(evolve(account, status=AccountStatus.DISABLED)))
        await unit.commit()


async def _cancel_all(services: Services, account_id: str, origin: Origin) -> None:
    async with services.store.view() as view:
        going = [one.id async for one in _going(view, account_id)]
    for id in going:
        with suppress(NotFound, AlreadyFinished):  # also as the child of one before
            await cancel_execution(services, OPERATOR, id, origin)


@retried
async def _give_up_access(services: Services, account_id: str, origin: Origin) -> None:
    """
    Delete webhooks, workflows with their triggers, shares, keys, sessions, memberships of groups,
    and unsent notices.
    """
    async with services.store.view() as view:
        webhooks = await view.webhooks.all_of_owner(account_id)
        workflows = [one async for one in _workflows(view, account_id)]
    for webhook in webhooks:
        with suppress(NotFound):
            await delete_webhook(services, OPERATOR, webhook.id, origin)
    for workflow in workflows:
        if workflow.owner_id == account_id:
            with suppress(NotFound):
                await delete_workflow(services, OPERATOR, workflow.id, origin)
    await _discard_access(services, account_id, [one.id for one in workflows])


@retried
async def _discard_access(services: Services, account_id: str, workflow_ids: Sequence[str]) -> None:
    async with services.store.unit() as unit:
        account = await unit.get(Account, account_id)
        for id in workflow_ids:
            unit.discard(Share, id, account_id)
        for key in await unit.keys.of_account(account_id):
            unit.discard(ApiKey, key.id)
        for session in await unit.sessions.of_account(account_id):
            unit.discard(Session, session.id)
        to = account.email if account is not None else ""
        for notice in await unit.notices.at_address(MAIL, to, EpochMs(0), MOST_NOTICES):
            unit.discard(Notice, notice.id)
        await leave_groups(unit, to)
        await unit.commit()


@retried
async def _purge_executions(services: Services, account_id: str) -> None:
    """
    Delete the ended executions, oldest first. If open executions exist, the last step refuses.
    """
    ended = ExecutionFilter(account_id, statuses=tuple(EXECUTION.final), oldest_first=True)
    while True:
        async with services.store.view() as view:
            found = await view.executions.list(ended, PageRequest(size=_BATCH, after=OLDEST))
        ids = [run.id for run in found.rows]
        if not ids:
            return
        await services.files.delete_executions(*ids)
        await _purge(services, ids)


@retried
async def _purge(services: Services, ids: Sequence[str]) -> None:
    async with services.store.unit() as unit:
        unit.purge(*ids)
        await unit.commit()


@retried
async def _delete(services: Services, account_id: str, found: Belongings, origin: Origin) -> None:
    async with services.store.unit() as unit:
        account = await unit.get(Account, account_id)
        if account is None:
            raise NotFound("Account")
        if left := [one async for one in _going(unit, account_id)]:
            raise Conflict(
                f"{len(left)} executions began meanwhile; the account is disabled; again"
            )
        unit.delete(account)
        details = {name: int(count) for name, count in asdict(found).items()}
        note(services, unit, "account.delete", OPERATOR, account_id, origin, details)
        await unit.commit()


async def _workflows(view: View, account_id: str) -> AsyncIterator[Workflow]:
    """The workflows that the account owns or that are shared with the account."""
    page: PageRequest | None = PageRequest(size=_BATCH)
    while page is not None:
        found = await view.workflows.visible_to(account_id, page)
        for workflow in found.rows:
            yield workflow
        page = found.rest


async def _going(view: View, account_id: str) -> AsyncIterator[Execution]:
    """Executions of the account or of its workflows that have not ended, each once."""
    where = [ExecutionFilter(account_id, statuses=_GOING)]
    where += [
        ExecutionFilter(workflow_id=one.id, statuses=_GOING)
        async for one in _workflows(view, account_id)
        if one.owner_id == account_id
    ]
    seen: set[str] = set()
    for each in where:
        page: PageRequest | None = PageRequest(size=_BATCH)
        while page is not None:
            found = await view.executions.list(each, page)
            for run in found.rows:
                if run.id not in seen:
                    seen.add(run.id)
                    yield run
            page = found.rest
