"""What clients do while nodes fail, what they are told, and what is stored in the end."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx
from attrs import Factory, define, field, frozen

from tests.proofs.chaos.checker import Page, Seen
from tests.proofs.chaos.site import WAIT_S, Node
from tests.proofs.kills.flows import Ledger, flow
from tests.proofs.kills.world import FOREVER, MOST_TIMERS, PAGE, _all
from wfcore.memory import tables as names
from wfcore.model.access import OPERATOR, Account, Scope, Tier
from wfcore.model.approval import ApprovalStatus
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.page import PageRequest
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.rules.execution.machine import EXECUTION
from wfcore.testing.simulator.expectations import Expectations
from wfcore.testing.simulator.invariants import Tables
from wfcore.usecases.accounts.accounts import create_account
from wfcore.usecases.accounts.keys import create_key
from wfcore.usecases.approvals.approvals import list_approvals
from wfcore.usecases.executions.executions import list_executions
from wfcore.usecases.services import Services
from wfcore.usecases.workflows.workflows import apply_workflow
from wfserver.definitions.read import checked

CLIENTS = 4
AGAIN = (429, 503)
"""Answers after which a client tries again: the limit of its key, and what is not there now."""
STARTED = ("work", "narrow", "ask", "once")
"""Flows that clients start; `after` and `few` follow `work` and `once`, the latter three times."""
AT_ONCE = 2
"""How many executions of `narrow` may be at work."""
GREEDY = 80
"""Requests of the key that has 60 in a minute."""
PENDING = "/api/v1/approvals?status=PENDING&size=50"


def definition(name: str, ledger: Path) -> bytes:
    """The flows of the kill loop; `narrow` is `once` with a limit."""
    if name == "narrow":
        text = flow("leaf", ledger).replace(b"name: leaf\n", b"name: narrow\n", 1)
        return text + f"concurrency: {{limit: {AT_ONCE}}}\n".encode()
    if name == "work":  # a bucket that refuses fails the attempt
        last, more = b"- name: last\n", b"    retry: {attempts: 10, delay: 1s}\n"
        return flow("work", ledger).replace(last, last + more)
    return flow(name, ledger)


@frozen
class People:
    """`key`: of somebody for whom there is no limit. `greedy`: of one with a limit, and its id."""

    account: Account
    key: str = field(repr=False)
    greedy: str = field(repr=False)
    subject: str
    workflows: Mapping[str, str]


async def furnish(services: Services, ledger: Path) -> People:
    """Accounts with keys, and the workflows."""
    account = await create_account(services, "ann@example.org", Tier.ENTERPRISE)
    key = await create_key(services, account.id, "key", Scope.ordinary())
    other = await create_account(services, "bob@example.org", Tier.FREE)
    greedy = await create_key(services, other.id, "key", Scope.ordinary())
    flows = {}
    for name in (*STARTED, "after", "few"):
        about = checked(definition(name, ledger), name)
        flows[name] = (await apply_workflow(services, account.id, about)).id
    return People(account, key.text, greedy.text, greedy.key.id, flows)


@define(eq=False)
class Load:
    """
    Clients of whichever node answers. `odd`: answers that nobody should be given. `pages`: what
    happened to the live page of each node.
    """

    people: People
    nodes: list[Node]
    chance: Random
    promises: Expectations = Factory(Expectations)
    counted: Counter[str] = Factory(Counter)
    odd: list[str] = Factory(list)
    counts: Counter[str] = Factory(Counter)
    pages: dict[str, list[tuple[Page, str]]] = Factory(dict)
    http: httpx.AsyncClient = Factory(lambda: httpx.AsyncClient(timeout=4))
    _sent: int = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Clients are at work inside of this; each then ends what it has begun."""
        over = asyncio.Event()
        async with asyncio.timeout(5 * WAIT_S), asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(self._client(over))
            try:
                yield
            finally:
                over.set()

    async def _client(self, over: asyncio.Event) -> None:
        while not over.is_set():
            acts = (self.start, self.start, self._decide, self._cancel)
            await self.chance.choice(acts)()
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), self.chance.uniform(0.02, 0.15))

    async def _ask(self, method: str, path: str, **more: Any) -> httpx.Response | None:
        """One request to one node; None: not answered, or to be asked again."""
        node = self.chance.choice(self.nodes)
        key = more.pop("key", self.people.key)
        headers = {"Authorization": f"Bearer {key}", **more.pop("headers", {})}
        try:
            answer = await self.http.request(method, node.url + path, headers=headers, **more)
        except httpx.TransportError:
            self.counts["unheard"] += 1
            return None
        self.counts[str(answer.status_code)] += 1
        if answer.status_code in AGAIN:
            return None
        if answer.status_code not in (200, 202, 404, 409):
            self.odd.append(f"odd answer: {method} {path}: {answer.status_code} {answer.text}")
        return answer

    async def start(self, name: str = "", nap: str = "") -> str:
        """Start an execution, at one node after the other, until it is accepted; its id."""
        name = name or self.chance.choice(STARTED)
        self._sent += 1
        tag = f"t{self._sent}"
        values = {"tag": tag, "nap": nap or self.chance.choice(("0", "0.05", "0.3"))}
        path = f"/api/v1/workflows/{self.people.workflows[name]}/executions"
        headers, again = {"Idempotency-Key": tag}, self.chance.random() < 0.3
        while True:
            answer = await self._ask("POST", path, json={"inputs": values}, headers=headers)
            if answer is None or answer.status_code != 202:
                await asyncio.sleep(0.1)
                continue
            self.promises.accepted(tag, answer.json()["executionId"])
            if not again:
                return self.promises.started[tag]
            again = False  # the same one once more, wherever it arrives

    async def ended(self, execution_id: str) -> str:
        """Wait until it has ended, whichever node says so; its id."""
        while True:
            answer = await self._ask("GET", f"/api/v1/executions/{execution_id}")
            if answer is not None and ExecutionStatus(answer.json()["status"]) in EXECUTION.final:
                return execution_id
            await asyncio.sleep(0.1)

    @asynccontextmanager
    async def following(self, link: str) -> AsyncIterator[None]:
        """Somebody who came by *link* has the console's live page of each node open."""
        headers = {"Last-Event-ID": "none"}  # so the first thing told is what is there
        async with httpx.AsyncClient(timeout=WAIT_S, headers=headers) as http:
            entered = await http.post(self.nodes[0].url + link)
            assert http.cookies, entered.text
            tasks = [asyncio.create_task(self._follow(http, node)) for node in self.nodes]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
        for task in tasks:
            assert task.cancelled(), task.exception()

    async def _follow(self, http: httpx.AsyncClient, node: Node) -> None:
        """As a browser does: whenever the stream ends, it is opened again where it ended."""
        happened = self.pages[node.name] = []
        headers: dict[str, str] = {}
        while True:
            with suppress(httpx.TransportError):
                url = f"{node.url}/executions/live"
                async with http.stream("GET", url, headers=headers) as answer:
                    if answer.status_code not in (200, *AGAIN):
                        self.odd.append(f"odd answer: /live: {answer.status_code}")
                    async for line in answer.aiter_lines():
                        name, _, mark = line.partition(": ")
                        if name == "id":
                            headers["Last-Event-ID"] = mark
                            happened.append((Page.TOLD, mark))
            await asyncio.sleep(0.2)

    def note(self, what: Page, about: str) -> None:
        """The same happens to each live page."""
        for happened in self.pages.values():
            happened.append((what, about))

    async def _decide(self) -> None:
        listed = await self._ask("GET", PENDING)
        if listed is None or not (waiting := listed.json()["approvals"]):
            return
        one = self.chance.choice(waiting)["id"]
        verb = self.chance.choice(("approve", "approve", "reject"))
        said = await self._ask("POST", f"/api/v1/approvals/{one}/{verb}", json={})
        if said is not None and said.status_code == 200:
            if one in self.promises.decided:
                self.odd.append(f"decided twice: {one}")
            status = ApprovalStatus.APPROVED if verb == "approve" else ApprovalStatus.REJECTED
            self.promises.decided[one] = status

    async def _cancel(self) -> None:
        if not self.promises.started or self.chance.random() < 0.7:
            return
        id = self.chance.choice(list(self.promises.started.values())[-20:])
        said = await self._ask("POST", f"/api/v1/executions/{id}/cancel", json={})
        if said is not None and said.status_code == 200:
            self.promises.cancelled.add(id)

    async def use_up(self) -> None:
        """Ask more often than the limit allows, at all nodes at once."""
        path = f"/api/v1/executions/{next(iter(self.promises.started.values()))}"

        async def ask() -> None:
            answer = await self._ask("GET", path, key=self.people.greedy)
            self.counted[self.people.subject] += answer is not None

        await asyncio.gather(*(ask() for _ in range(GREEDY)))

    async def decide_all(self) -> None:
        """Approve or reject whatever still waits for somebody, as far as somebody answers."""
        listed = await self._ask("GET", PENDING)
        for _ in () if listed is None else listed.json()["approvals"]:
            await self._decide()

    async def fetched(self, node: Node, execution_id: str) -> str:
        """The artifact of a finished `work`, downloaded from that node."""
        path = f"{node.url}/api/v1/executions/{execution_id}/artifacts"
        headers = {"Authorization": f"Bearer {self.people.key}"}
        listed = await self.http.get(path, headers=headers, timeout=WAIT_S)
        (one,) = listed.json()["artifacts"]
        return (await self.http.get(node.url + one["downloadUrl"], timeout=WAIT_S)).text


async def moving(services: Services) -> dict[str, dict[Any, Any]]:
    """What says whether anything still has to happen: executions, without inputs, and timers."""
    found: dict[str, dict[Any, Any]] = defaultdict(dict)
    found[names.EXECUTIONS.name] = dict(await _all(partial(list_executions, services, OPERATOR)))
    async with services.store.view() as view:
        for timer in await view.timers.due(FOREVER, MOST_TIMERS):
            found[names.TIMERS.name][timer.id] = timer
    return found


async def tables_of(services: Services, people: People) -> Tables:
    """Everything stored, as the simulator's judge reads it."""
    found = await moving(services)
    heads = await _all(partial(list_approvals, services, OPERATOR))
    async with services.store.view() as view:
        runs = {id: await view.get(Execution, id) for id in found[names.EXECUTIONS.name]}
        found[names.EXECUTIONS.name] = dict(runs)
        for run_id in {one.execution_id for one in heads.values()}:
            for approval in await view.approvals.of_execution(run_id):
                found[names.APPROVALS.name][approval.id] = approval
        for id in runs:
            found[names.EVENTS.name][id] = tuple(await view.events.of_execution(id, 0, 10_000))
        for key in {(id, 1) for id in people.workflows.values()}:
            found[names.DEFINITIONS.name][key] = await view.get(DefinitionSnapshot, *key)
        for trigger in (await view.triggers.list(PageRequest(1, PAGE))).rows:
            found[names.TRIGGERS.name][trigger.id] = trigger
        for id in people.workflows.values():
            found[names.WORKFLOWS.name][id] = await view.get(Workflow, id)
    found[names.ACCOUNTS.name][people.account.id] = people.account
    found[names.LIMITS.name][people.workflows["narrow"]] = AT_ONCE
    return found


async def seen(services: Services, load: Load, ledger: Path, unharmed: frozenset[str]) -> Seen:
    """What is to be judged."""
    return Seen(
        await tables_of(services, load.people),
        load.promises,
        Ledger(ledger),
        load.counted,
        unharmed,
        load.pages,
    )
