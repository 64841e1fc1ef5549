"""What is there before the first server starts, and what of the store is seen from beside it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from attrs import Factory, define, evolve, field, frozen

from tests.proofs.kills.flows import BY_THEMSELVES, FLOWS, flow
from tests.proofs.kills.often import Often
from wfcore.model.access import OPERATOR, Account, Principal, Scope, Tier
from wfcore.model.approval import Approval
from wfcore.model.event import Event
from wfcore.model.execution import Callback, Execution, TriggerSource
from wfcore.model.json import Json, JsonObject
from wfcore.model.page import Page, PageRequest
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.workflow import WorkflowState
from wfcore.ports.store import View
from wfcore.time import EpochMs
from wfcore.usecases.accounts.accounts import create_account
from wfcore.usecases.accounts.keys import create_key
from wfcore.usecases.approvals.approvals import list_approvals
from wfcore.usecases.executions.executions import list_executions, read_events
from wfcore.usecases.services import Services
from wfcore.usecases.webhooks.webhooks import NewWebhook, create_webhook
from wfcore.usecases.workflows.workflows import apply_workflow
from wfserver.definitions.read import checked

T = TypeVar("T", Execution, Approval)
CLIENTS = 3
PAGE = 200
FOREVER = EpochMs(10**15)
MOST_TIMERS = 1_000
BY_TRIGGER = {TriggerSource.SCHEDULE, TriggerSource.DELAYED_COMPLETION}
SECRET = "the secret of the kill loop"
SIGNED = "ask"
"""The flow whose webhook is told by a signature; those of the others are bound to a key."""


@frozen
class World:
    """
    An account with keys, and for each flow a workflow, a webhook and a trigger, by the flow's
    name. Starts by API are those of the first key; `callback_secret` signs what they are told.
    """

    account: Account
    keys: tuple[str, ...] = field(repr=False)
    callback_secret: str = field(repr=False)
    hook_key: str = field(repr=False)
    workflows: Mapping[str, str]
    webhooks: Mapping[str, str]
    triggers: Mapping[str, str]


async def furnish(services: Services, ledger: Path) -> World:
    """Make the world."""
    services = evolve(services, calendar=Often())
    account = await create_account(services, "ann@example.org", Tier.ENTERPRISE)
    keys = [
        await create_key(services, account.id, "key", Scope.ordinary()) for _ in range(CLIENTS + 1)
    ]
    workflows, webhooks, triggers = {}, {}, {}
    for name in (*FLOWS, *BY_THEMSELVES):
        definition = checked(flow(name, ledger), name)
        workflows[name] = (await apply_workflow(services, account.id, definition)).id
    for name in BY_THEMSELVES:
        async with services.store.view() as view:
            (trigger,) = await view.triggers.of_workflow(workflows[name])
        triggers[name] = trigger.id
    for name in FLOWS:
        mode = {"secret": SECRET} if name == SIGNED else {"api_key_id": keys[-1].key.id}
        new = NewWebhook(workflows[name], name, **mode)
        webhooks[name] = (await create_webhook(services, Principal(account), new)).id
    texts = tuple(key.text for key in keys)
    secret = keys[0].callback_secret or ""
    return World(account, texts[:-1], secret, texts[-1], workflows, webhooks, triggers)


@define
class Known:
    """What never changes any more is read once: the first events of executions, settled calls."""

    origins: dict[str, JsonObject] = Factory(dict)
    settled: dict[str, Callback] = Factory(dict)
    stateful: str | None = None
    counting: str | None = None


@frozen
class Sight:
    """
    Everything stored: executions, approvals, callbacks and triggers by id, timers by trigger,
    the earliest first; `origins`: what the first event says of an execution that a trigger started.
    `states`: what the state of `STATEFUL` said before the executions were read, and afterwards;
    `counts`: likewise the count of `COUNTING`.
    """

    executions: Mapping[str, Execution]
    approvals: Mapping[str, Approval]
    callbacks: Mapping[str, Callback]
    triggers: Mapping[str, Trigger]
    timers: Mapping[str, Sequence[Timer]]
    origins: Mapping[str, JsonObject]
    states: tuple[str | None, str | None] = (None, None)
    counts: tuple[int, int] = (0, 0)

    def status(self, execution_id: str | None) -> str | None:
        """The execution's status; None: nobody knows it."""
        run = self.executions.get(execution_id or "")
        return run.status.value if run else None


async def look(services: Services, known: Known) -> Sight:
    """
    Everything as it is now; the approvals first, so that the execution of an open one has come
    to rest by the time it is looked at, and the timers, so that what one of them has started is
    seen when its successor is.
    """
    approvals = await _all(partial(list_approvals, services, OPERATOR))
    async with services.store.view() as view:
        due = await view.timers.due(FOREVER, MOST_TIMERS)
    before = await _last(services, known), await _count(services, known)
    runs = await _all(partial(list_executions, services, OPERATOR))
    async with services.store.view() as view:
        by_trigger = [id for id, run in runs.items() if run.trigger_source in BY_TRIGGER]
        origins = {id: await _origin(view, id, known) for id in by_trigger}
        owed = {id: await _callback(view, id, known) for id in runs if runs[id].callback_url}
        triggers = (await view.triggers.list(PageRequest(1, PAGE))).rows
    timers = {id: [one for one in due if one.trigger_id == id] for id in (t.id for t in triggers)}
    callbacks = {id: one for id, one in owed.items() if one is not None}
    by_id = {one.id: one for one in triggers}
    states = before[0], await _last(services, known)
    counts = before[1], await _count(services, known)
    return Sight(runs, approvals, callbacks, by_id, timers, origins, states, counts)


async def _last(services: Services, known: Known) -> str | None:
    """What the state of `STATEFUL` says: an execution, and an attempt of its last step."""
    last = await _value(services, known.stateful, "last")
    return None if last is None else str(last)


async def _count(services: Services, known: Known) -> int:
    """What the state of `COUNTING` says: how many of its executions have counted."""
    count = await _value(services, known.counting, "count")
    return int(str(count or 0))


async def _value(services: Services, workflow_id: str | None, name: str) -> Json:
    async with services.store.view() as view:
        found = await view.get(WorkflowState, workflow_id) if workflow_id else None
    return found.values.get(name) if found is not None else None


async def _origin(view: View, id: str, known: Known) -> JsonObject:
    if id not in known.origins:
        (first,) = await view.events.of_execution(id, 0, 1)
        known.origins[id] = first.data
    return known.origins[id]


async def _callback(view: View, id: str, known: Known) -> Callback | None:
    if id in known.settled:
        return known.settled[id]
    found = await view.get(Callback, id)
    if found is not None and found.due_at is None:
        known.settled[id] = found
    return found


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
    run, events = await read_events(services, OPERATOR, execution_id, 0)
    return run, list(events)
