"""What is there before the first server starts, and what of the store is seen from beside it."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from attrs import field, frozen

from proof.flows import FLOWS, flow
from wfcore.model.access import Account, Plan, Principal, Scope
from wfcore.model.approval import Approval
from wfcore.model.event import Event
from wfcore.model.execution import Execution
from wfcore.model.page import Page, PageRequest
from wfcore.usecases.accounts import create_account
from wfcore.usecases.approvals import list_approvals
from wfcore.usecases.executions import list_executions, read_events
from wfcore.usecases.keys import create_key
from wfcore.usecases.services import Services
from wfcore.usecases.webhooks import NewWebhook, create_webhook
from wfcore.usecases.workflows import apply_workflow
from wfserver.definition import checked

T = TypeVar("T", Execution, Approval)
CLIENTS = 3
PAGE = 200
SECRET = "the secret of the kill loop"
SIGNED = "ask"
"""The flow whose webhook is told by a signature; those of the others are bound to a key."""


@frozen
class World:
    """An account with keys, and for each flow a workflow and a webhook, by the flow's name."""

    account: Account
    keys: tuple[str, ...] = field(repr=False)
    hook_key: str = field(repr=False)
    workflows: Mapping[str, str]
    webhooks: Mapping[str, str]


async def furnish(services: Services, ledger: Path) -> World:
    """Make the world."""
    account = await create_account(services, "ann@example.org", Plan.ENTERPRISE)
    keys = [await create_key(services, account.id, "key", tuple(Scope)) for _ in range(CLIENTS + 1)]
    workflows, webhooks = {}, {}
    for name in FLOWS:
        definition = checked(flow(name, ledger), name)
        workflows[name] = (await apply_workflow(services, account.id, definition)).id
        mode = {"secret": SECRET} if name == SIGNED else {"api_key_id": keys[-1].key.id}
        new = NewWebhook(workflows[name], name, **mode)
        webhooks[name] = (await create_webhook(services, Principal(account), new)).id
    texts = tuple(key.text for key in keys)
    return World(account, texts[:-1], texts[-1], workflows, webhooks)


@frozen
class Sight:
    """Everything stored: executions and approvals by id."""

    executions: Mapping[str, Execution]
    approvals: Mapping[str, Approval]

    def status(self, execution_id: str | None) -> str | None:
        """The execution's status; None: nobody knows it."""
        run = self.executions.get(execution_id or "")
        return run.status.value if run else None


async def look(services: Services) -> Sight:
    """
    All executions and approvals as they are now; the approvals first, so that the execution
    of an open one has come to rest by the time it is looked at.
    """
    approvals = await _all(partial(list_approvals, services, None))
    runs = await _all(partial(list_executions, services, None))
    return Sight(runs, approvals)


async def _all(listed: Callable[[PageRequest], Awaitable[Page[T]]]) -> dict[str, T]:
    rows: dict[str, T] = {}
    for number in count(1):
        page = await listed(PageRequest(number, PAGE))
        rows |= {row.id: row for row in page.rows}
        if number * PAGE >= page.total:
            break
    return rows


async def history(services: Services, execution_id: str) -> tuple[Execution, list[Event]]:
    """One execution with its whole event log."""
    run, events = await read_events(services, None, execution_id, 0)
    return run, list(events)
