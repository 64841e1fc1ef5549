"""
The clients: each act of a scenario is a coroutine that belongs to no process.

A client sends its request to one process after another until the client gets an answer. The answer
becomes a promise.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from attrs import evolve

from wfcore.errors import AlreadyDecided, RateLimited, StoreUnavailable, WfError
from wfcore.memory.disk import Rows
from wfcore.model.access import OPERATOR, Caller, Principal
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.execution import TriggerSource
from wfcore.model.page import PageRequest
from wfcore.model.workflow import Definition
from wfcore.ports.records import ApprovalFilter
from wfcore.rules.approval.machine import Approve, Choice, Reject, Revise, approvers_now
from wfcore.rules.auth.signed_links import personal_token
from wfcore.rules.execution.redrive import StepFate
from wfcore.testing.simulator.calls import sleep
from wfcore.testing.simulator.expectations import Expectations
from wfcore.testing.simulator.identities import emails_of, require
from wfcore.testing.simulator.node import Gone, SimNode
from wfcore.testing.simulator.scenario import Act
from wfcore.testing.simulator.scheduler import Mailbox, WorldScheduler
from wfcore.testing.simulator.seed_data import BUSY, DAN, PEOPLE
from wfcore.time import MINUTE, later
from wfcore.usecases.accounts import authenticate
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.delegating import delegate_approval
from wfcore.usecases.executions import executions, redriving, starting
from wfcore.usecases.executions.idempotency import Idempotency
from wfcore.usecases.executions.starting import StartReceipt
from wfcore.usecases.services import Services
from wfcore.usecases.webhooks import triggering, webhooks
from wfcore.usecases.workflows import workflows

R = TypeVar("R")
TRIES = 4
BACK_OFF_MS = 700
OPEN = ApprovalFilter(statuses=(ApprovalStatus.PENDING,))
RECENT = PageRequest(size=20)
ALREADY = "You have approved this already"


class ClientWorld(Protocol):
    """The world in which clients act."""

    @property
    def scheduler(self) -> WorldScheduler: ...
    @property
    def nodes(self) -> list[SimNode]: ...
    @property
    def expectations(self) -> Expectations: ...
    @property
    def accounts(self) -> Rows: ...
    @property
    def workflow_ids(self) -> Sequence[str]: ...
    @property
    def webhook_ids(self) -> Sequence[str]: ...
    def revised(self, flow: int) -> Definition:
        """Another definition under the same workflow name."""

    async def stop(self, node: SimNode, drain_ms: int, down_ms: int) -> None:
        """End a process in good order and start it again."""


class SimClient:
    """One act of a client. The label of the act names the client's requests in the trace."""

    def __init__(self, scene: ClientWorld, act: Act) -> None:
        self._scene = scene
        self._act = act
        self._label = act.label
        self._requests = 0

    async def act(self) -> None:
        """Wait for the instant of the act and perform it. Refusals count as answers, too."""
        await sleep(self._act.at)
        verbs: dict[str, Callable[[], Awaitable[None]]] = {
            "start": self._start,
            "trigger": self._trigger,
            "decide": self._decide,
            "review": self._review,
            "delegate": self._delegate,
            "cancel": self._cancel,
            "redrive": self._redrive,
            "look": self._look,
            "wait": self._wait,
            "apply": self._apply,
            "hook": self._hook,
            "spend": self._spend,
            "stop": self._stop,
        }
        expectations = self._scene.expectations
        try:
            await verbs[self._act.verb]()
        except StoreUnavailable:
            expectations.unheard += 1
        except WfError as refusal:
            expectations.refused += 1
            self._scene.scheduler.say(f"{self._label}: refused: {refusal}")
        else:
            expectations.answered += 1

    async def _ask(self, door: Callable[[Services], Awaitable[R]], tries: int = TRIES) -> R:
        """
        Return the answer of *door* from the first process that answers. Raises the refusal of
        *door*, and `StoreUnavailable` if no process answered in *tries*.
        """
        nodes = self._scene.nodes
        for number in range(tries):
            node = nodes[(self._act.node + number) % len(nodes)]
            try:
                return await self._at(node, door)
            except StoreUnavailable as unheard:
                self._scene.scheduler.say(f"{self._label}: not answered: {unheard.detail}")
                await sleep(BACK_OFF_MS * (number + 1))
        raise Gone("nobody answered")

    async def _at(self, node: SimNode, door: Callable[[Services], Awaitable[R]]) -> R:
        self._requests += 1
        if not node.up:
            raise Gone("connection refused")
        mailbox = Mailbox()
        node.spawn(f"{self._label}.{self._requests}", door(node.services), mailbox.post)
        answer: R = await mailbox.read()
        return answer

    @property
    def _who(self) -> Principal:
        return PEOPLE[self._number("by") % len(PEOPLE)]

    @property
    def _workflow_id(self) -> str:
        return self._scene.workflow_ids[self._number("flow")]

    def _number(self, name: str) -> int:
        found = self._act.what.get(name, 0)
        assert isinstance(found, int)
        return found

    def _started(self, tag: str, started: StartReceipt) -> None:
        self._scene.expectations.accepted(tag, started.execution_id)
        self._scene.scheduler.say(f"{self._label}: accepted {started.execution_id} for {tag}")

    async def _start(self) -> None:
        what, who, tag = self._act.what, self._who, str(self._act.what["tag"])
        once = Idempotency(tag, "f" * 64) if what.get("keyed") else None
        source = TriggerSource(str(what.get("source", TriggerSource.OPEN_API.value)))

        async def door(services: Services) -> StartReceipt:
            return await starting.start_execution(
                services,
                who,
                self._workflow_id,
                {"tag": tag},
                source=source,
                monitored=bool(what.get("monitored")),
                idempotency=once,
            )

        self._started(tag, await self._ask(door, TRIES if once else 1))

    async def _trigger(self) -> None:
        what, tag = self._act.what, str(self._act.what["tag"])
        once = Idempotency(tag, "f" * 64) if what.get("keyed") else None
        webhook_id = self._scene.webhook_ids[self._number("flow")]

        async def door(services: Services) -> StartReceipt:
            return await triggering.trigger_webhook(
                services, webhook_id, {"tag": tag}, idempotency=once
            )

        self._started(tag, await self._ask(door, TRIES if once else 1))

    async def _decide(self) -> None:
        who = self._who

        async def pending(services: Services) -> list[Approval]:
            page = await approvals.list_approvals(services, who, RECENT, OPEN)
            return list(page.rows)

        waiting = await self._ask(pending)
        if not waiting:
            return
        approval = waiting[self._number("which") % len(waiting)]
        by_link = bool(self._act.what.get("link"))
        source = DecisionSource.LINK if by_link else DecisionSource.API
        decision = await self._decision(approval)
        asked = deciding.Decide(approval.id, decision, source, self._label)

        async def door(services: Services) -> Approval:
            caller: Caller = who
            if by_link:
                token = personal_token(services.signing_key, approval, who.email)
                caller = await authenticate.admit_guest(services, token)
            return await deciding.decide_approval(services, caller, asked)

        decided = await self._ask(door)
        self._scene.expectations.decision(decided, who.account.email)
        self._scene.scheduler.say(f"{self._label}: {decided.id} is {decided.status}")

    async def _question(self) -> Approval | None:
        """An open approval with named approvers; None if there is none."""

        async def pending(services: Services) -> Sequence[Approval]:
            return (await approvals.list_approvals(services, OPERATOR, RECENT, OPEN)).rows

        waiting = [one for one in await self._ask(pending) if one.approvers]
        return waiting[self._number("which") % len(waiting)] if waiting else None

    async def _review(self) -> None:
        """
        Decide as an approver who was asked by name, sometimes through a personal link. If no answer
        came, or somebody else was faster, load the page again; the status it shows must not change
        later.
        """
        approval = await self._question()
        if approval is None:
            return
        email = self._reviewer(approval)
        await self._read_standing(approval, email)
        decision = await self._decision(approval)
        asked = deciding.Decide(approval.id, decision, DecisionSource.LINK, self._label)

        async def door(services: Services) -> Approval:
            caller = await self._caller(services, approval)
            return await deciding.decide_approval(services, caller, asked)

        async def again(services: Services) -> Approval:
            return await approvals.read_approval(services, OPERATOR, approval.id)

        try:
            decided = await self._ask(door, 1)
        except (StoreUnavailable, AlreadyDecided):
            seen = await self._ask(again)
            self._scene.expectations.shown(seen)
            self._scene.scheduler.say(f"{self._label}: {seen.id} is shown as {seen.status}")
        else:
            self._scene.expectations.decision(decided, email)
            self._scene.scheduler.say(f"{self._label}: {decided.id} is {decided.status}")

    async def _read_standing(self, approval: Approval, email: str) -> None:
        """
        Read, as a page does, whether the person has approved this already. Raises `Violation` if
        the answer contradicts the people behind the assents. AP-16, PL-3.
        """
        who = next((one for one in PEOPLE if one.account.email == email), None)
        if who is None:
            return  # guests see the page of their link alone

        async def door(services: Services) -> str | None:
            (found,) = (await approvals.standings(services, who, [approval])).values()
            return found.why_not

        with suppress(StoreUnavailable):
            refusal = await self._ask(door, 1)
            heard = [emails_of(one, self._scene.accounts) for one in approval.assents]
            spoke, told = email in set().union(*heard), refusal == ALREADY
            may = spoke and refusal is None
            require(not may, "told wrongly", f"{email} may approve {approval.id} again")
            require(spoke or not told, "told wrongly", f"{email} has not approved {approval.id}")

    async def _delegate(self) -> None:
        approval = await self._question()
        to = (*(who.account.email for who in PEOPLE), DAN)[self._number("to")]
        if approval is None:
            return

        async def door(services: Services) -> Approval:
            caller = await self._caller(services, approval)
            until = later(services.clock.deadline_now(), self._number("lasts"))
            ends = later(min(until, approval.expires_at), self._number("beyond"))
            return await delegate_approval(
                services, caller, approval.id, to, ends, DecisionSource.LINK
            )

        await self._ask(door)
        self._scene.scheduler.say(f"{self._label}: {to} may decide {approval.id}")

    def _reviewer(self, approval: Approval) -> str:
        """The email of a current approver, of the person delegated to last, or of `DAN`."""
        by = self._number("by")
        if by < 0 and approval.delegations:
            return approval.delegations[-1].to
        asked = (*approvers_now(approval), DAN)
        return asked[by % len(asked)]

    async def _caller(self, services: Services, approval: Approval) -> Caller:
        """The reviewer as a caller: with an account or by personal link."""
        email = self._reviewer(approval)
        known = [who for who in PEOPLE if who.account.email == email]
        if known and not self._act.what.get("link"):
            return known[0]
        token = personal_token(services.signing_key, approval, email)
        return await authenticate.admit_guest(services, token)

    async def _decision(self, approval: Approval) -> Choice:
        how = self._act.what.get("how")
        if how == "reject":
            return Reject()
        if approval.revisions_left and (how == "edit" or self._act.at % 3 == 0):
            return Revise()
        if how == "edit" and approval.groups:
            whole = await self._ask(lambda at: approvals.read_approval(at, OPERATOR, approval.id))
            return Approve({group.name: list(group.items[:1]) for group in whole.groups})
        return Approve()

    def _target(self) -> str | None:
        """The id of an execution whose start a client knows: the newest, or an older one."""
        known = list(self._scene.expectations.started.values())
        return known[-1 - self._number("which") % len(known)] if known else None

    async def _cancel(self) -> None:
        target, who = self._target(), self._who
        if target is None:
            return

        async def door(services: Services) -> object:
            return await executions.cancel_execution(services, who, target)

        await self._ask(door)
        self._scene.expectations.cancelled.add(target)
        self._scene.scheduler.say(f"{self._label}: {target} is cancelled")

    async def _redrive(self) -> None:
        target, who = self._target(), self._who
        if target is None:
            return

        async def preview(services: Services) -> redriving.PreparedRedrive:
            return await redriving.preview_redrive(services, who, target, wanted)

        async def door(services: Services) -> StartReceipt:
            return await redriving.redrive(services, who, target, wanted)

        wanted = redriving.Redrive(newest=bool(self._act.what.get("newest")))
        if self._act.what.get("from"):
            wanted = evolve(wanted, start=f"s{self._number('from')}")
        seen = await self._ask(preview)
        wanted = evolve(wanted, digest=seen.digest)
        again = (await self._ask(door, 1)).execution_id
        kept = frozenset(one.key for one in seen.plan.steps if one.fate is StepFate.KEPT)
        self._scene.expectations.repeated(again, target, seen.digest, kept)
        self._scene.scheduler.say(f"{self._label}: {again} redrives {target}")

    async def _look(self) -> None:
        target, who = self._target(), self._who

        async def door(services: Services) -> object:
            if target is None:
                return await executions.list_executions(services, who, RECENT)
            return await executions.read_execution(services, who, target)

        await self._ask(door)

    async def _wait(self) -> None:
        target, who = self._target(), self._who
        if target is None:
            return

        async def door(services: Services) -> object:
            return await executions.wait_for_rest(services, who, target, 3_000)

        await self._ask(door)

    async def _apply(self) -> None:
        owner, definition = self._who.account.id, self._scene.revised(self._number("flow"))

        async def door(services: Services) -> object:
            return await workflows.apply_workflow(services, owner, definition)

        await self._ask(door)

    async def _hook(self) -> None:
        """Create one more webhook, which the plan may forbid."""
        who, new = self._who, webhooks.NewWebhook(self._workflow_id, self._label)

        async def door(services: Services) -> object:
            return await webhooks.create_webhook(services, who, new)

        await self._ask(door, 1)

    async def _spend(self) -> None:
        """Send enough requests at once to exceed the quota."""
        who, expectations = self._who, self._scene.expectations

        async def door(services: Services) -> int:
            now = services.clock.now()
            await authenticate.take(services, BUSY, who.account)
            return now - now % MINUTE

        for _ in range(self._number("count")):
            try:
                minute = await self._ask(door, 1)
            except (RateLimited, StoreUnavailable):
                continue
            expectations.admitted[BUSY, minute] = expectations.admitted.get((BUSY, minute), 0) + 1

    async def _stop(self) -> None:
        nodes = self._scene.nodes
        node = nodes[self._act.node % len(nodes)]
        if node.up:
            drain, down = self._number("drain"), self._number("down")
            await self._scene.stop(node, drain, down)
