"""The kill loop: rounds of a restless client and a killed server, and the checks between them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from random import Random
from re import search
from time import time

import httpx
from attrs import Factory, define

from tests.adapters_runtime.notices.mail_server import MailServer, a_mail_server
from tests.proofs.kills import checker, records, triggers
from tests.proofs.kills.callee import Callee
from tests.proofs.kills.checker import under_way
from tests.proofs.kills.client import EDITED, Client
from tests.proofs.kills.flows import COUNTING, STATEFUL, Attempt, Ledger
from tests.proofs.kills.machine import LATER_MS, Machine
from tests.proofs.kills.promises import Answer, Promises
from tests.proofs.kills.world import SIGNED, Known, Sight, World, furnish, history, look
from wfcore.model.approval import Approval
from wfcore.time import EpochMs
from wfcore.usecases.services import Services
from wfserver.compose import open_system
from wfserver.settings.record import Settings

Act = asyncio.Task[None]
ACTS = (10, 40)
MOMENT_S = 0.02
"""A kill comes after so many acts of the client, at some moment within the next one."""
PATIENCE_S = 20
RECOVERY_S = 5
SHARED_RECOVERY_S = 25
"""Only leases tell there that a worker is gone, and who sweeps."""
DRAIN_S = 30
TAKE_OVER_S = 20
FAULT_S = 0.005
STRIKE_S = 5
"""How much longer a planted server may take to come to its moment."""
LAST_FLOWS = ("tree", "tree", "tree", "ask", "ask", "ask")
"""Nobody kills, decides or cancels these before they have come to rest."""
LAST_RESULTS = 50


@define
class SharedStore:
    """Where two servers work on one store. *later* sets its time beyond every grace."""

    url: str
    later: Callable[[], None]


@define
class Report:
    """What was found wrong, and how much happened."""

    seed: int
    broken: list[str]
    counts: Counter[str]

    @property
    def figures(self) -> Mapping[str, int]:
        """How much happened, for the record."""
        counts = self.counts
        ends = sum(counts[name] for name in counts if name.endswith(" completed"))
        decisions = counts["APPROVED"] + counts["REJECTED"]
        told = {name: counts[name] for name in ("kills", "started", "cut off", "cancelled")}
        return {**told, "completed": ends, "decisions": decisions}

    @property
    def kinds(self) -> set[str]:
        """The kinds of violations."""
        return {text.partition(":")[0] for text in self.broken}


async def kill_loop(
    folder: Path,
    rounds: int,
    seed: int,
    plants: Sequence[str] = (),
    shared: SharedStore | None = None,
) -> Report:
    """
    Kill the server *rounds* times and let the last one finish; what was found wrong.

    With *plants* it ends at the first round in which something is. *shared*: a store that two
    servers share, which are killed together.
    """
    with a_mail_server() as post:
        machine = Machine(folder, post.url, plants, shared.url if shared else None)
        try:
            async with (
                open_system(Settings(machine.data, store=machine.store)) as system,
                httpx.AsyncClient(timeout=60) as http,
            ):
                world = await furnish(system.services, machine.ledger)
                promises, chance = Promises(), Random(seed)
                secret = world.callback_secret
                async with Callee(system.services, secret, promises, Random(seed)) as callee:
                    client = Client(http, world, promises, system.services, callee.url)
                    run = _Run(
                        machine,
                        system.services,
                        world,
                        http,
                        chance,
                        promises,
                        client,
                        callee,
                        post,
                    )
                    run.shared = shared
                    run.known.stateful = world.workflows[STATEFUL]
                    run.known.counting = world.workflows[COUNTING]
                    run.serve()
                    for _ in range(rounds):
                        await run.round()
                        if plants and run.promises.broken:
                            break
                    else:
                        await run.finish()
        finally:
            machine.close()
    return Report(seed, run.promises.broken, run.promises.counts)


@define
class _Run:
    machine: Machine
    services: Services
    world: World
    http: httpx.AsyncClient
    chance: Random
    promises: Promises
    client: Client
    callee: Callee
    post: MailServer
    known: Known = Factory(Known)
    served_at: EpochMs = EpochMs(0)
    seen: Sight | None = None
    resting: dict[str, str] = Factory(dict)
    cut_off: set[Attempt] = Factory(set)
    shared: "SharedStore | None" = None

    def found(self, wrong: Iterable[str]) -> None:
        """Note what is wrong."""
        self.promises.broken.extend(wrong)

    async def round(self) -> None:
        """The client at work, kill -9 at some moment; then the next server and the checks."""
        acts = await self._busy_time()
        killed_at = time() * 1_000
        if held := self.machine.faults.struck:
            await self._take_over(held, acts)
        alive = self.machine.kill(alone=self.chance.random() < 0.5)
        await _ended(acts)
        self.found(f"alive: process {pid}" for pid in alive)
        before, self.cut_off = self.cut_off, Ledger(self.machine.ledger).cut_off
        self.serve()
        await self._check(killed_at)
        await self._ask_again()
        self._count(self.cut_off - before)

    async def _busy_time(self) -> list[Act]:
        """The client acts, up to some moment; or a planted server freezes."""
        enough = asyncio.Semaphore(0)
        self.machine.faults.arm()
        acts = [
            asyncio.create_task(self.client.act(Random(self.chance.random()), key, enough))
            for key in self.world.keys
        ]
        moment = asyncio.create_task(self._moment(enough))
        while not moment.done() and self.machine.faults.struck is None:
            await asyncio.wait((moment,), timeout=FAULT_S)
        self.machine.faults.disarm()
        if self.machine.faults.struck is None:
            await moment
        moment.cancel()
        return acts

    async def _moment(self, enough: asyncio.Semaphore) -> None:
        for _ in range(self.chance.randint(*ACTS)):
            await asyncio.wait_for(enough.acquire(), PATIENCE_S)
        expected = self.machine.faults.is_expected
        await asyncio.sleep(STRIKE_S if expected else self.chance.uniform(0, MOMENT_S))

    async def _take_over(self, held: str, acts: Sequence[Act]) -> None:
        """
        A server froze while it held an execution. Another one takes that over, and has begun a
        step of it when the frozen one wakes up; that one may end what it was about to do.
        """
        for act in acts:
            act.cancel()
        await _ended(acts)
        woken, machine = self.machine.url, self.machine
        machine.hold()
        self.serve()
        await _holds(TAKE_OVER_S, lambda: held in Ledger(machine.ledger).begun_of)
        machine.wake()
        await _holds(TAKE_OVER_S, lambda: machine.faults.is_over)
        machine.release()
        while not await self._is_idle(woken):  # noqa: ASYNC110
            await asyncio.sleep(FAULT_S)
        self.promises.counts["taken over"] += 1

    async def _is_idle(self, url: str) -> bool:
        """Whether that server works on nothing, by its own account."""
        page = (await self.http.get(f"{url}/metrics")).text
        return search(r"(?m)^wfcore_executions_running 0(\.0)?$", page) is not None

    def serve(self, later: bool = False) -> None:
        self.served_at = EpochMs(int(time() * 1_000) + (LATER_MS if later else 0))
        self.machine.serve(later)
        self.http.base_url = self.machine.url

    async def _check(self, killed_at: float) -> None:
        cut_off = self.cut_off
        within_s = SHARED_RECOVERY_S if self.shared else RECOVERY_S
        await self._until(within_s, lambda sight: not any(under_way(cut_off, sight)))
        sight = await self._wrong()
        self.found(checker.not_interrupted(cut_off, sight))
        self.found(checker.moved(self.resting, self.promises, sight))
        self.resting = checker.resting(sight)
        self.promises.counts["waited on"] += sum(
            one.status == "PENDING" and one.created_at < killed_at
            for one in sight.approvals.values()
        )

    async def _wrong(self) -> Sight:
        """The ledger, then what is stored: what has run by then was stored before it ran."""
        ledger = Ledger(self.machine.ledger)
        sight = await look(self.services, self.known)
        self.found(checker.wrong(self.promises, ledger, sight))
        self._wrong_by_itself(sight)
        return sight

    def _wrong_by_itself(self, sight: Sight) -> None:
        """What triggers have started, and who was called back."""
        self.found(triggers.wrong(self.world, sight))
        self.found(triggers.missed(self.world, self.served_at, sight))
        self.found(triggers.not_started(self.world, self.seen or sight, sight))
        self.found(triggers.without_inputs(sight, Ledger(self.machine.ledger)))
        self.found(self.callee.wrong(sight))
        mails = [(str(one["Subject"]).split(), str(one["Message-ID"])) for one in self.post.mails]
        taken = [(words[1], id) for words, id in mails if words[0] == "counted"]
        self.found(checker.mails(sight, taken))
        self.promises.counts["mailed"] = len(taken)
        self.seen = sight

    async def _ask_again(self) -> None:
        """
        The same keys give the first answers; what was not answered is answered now; what was
        left behind is still there.
        """
        promises = self.promises
        recent = (promises.sent[tag] for tag in list(promises.started)[-3:])
        for start in (*promises.unanswered, *recent):
            await self.client.send(start)
        for tag in [tag for tag, id in promises.started.items() if id in promises.left][-2:]:
            await self.client.fetch(tag, self.world.keys[0])
        for id in list(promises.results)[-2:]:
            await self.client.ask_result(id, self.world.keys[0])

    def _count(self, cut_off: Set[Attempt]) -> None:
        """What this kill has hit."""
        counts = self.promises.counts
        counts["kills"] += 1
        hit = Counter(attempt.execution_id for attempt in cut_off)
        counts["cut off at once"] += sum(times > 1 for times in hit.values())
        counts["rounds cut off"] += sum("." in attempt.step for attempt in cut_off)

    async def finish(self) -> None:
        """Let everything end that can, look at everything; then what only time ends."""
        key = self.world.keys[0]
        for flow in LAST_FLOWS:
            await self.client.start(flow, {"nap": "0"}, by_webhook=flow == SIGNED)
        while asked := await self._open_questions():
            for one in asked:
                edits = one.groups and self.chance.random() < EDITED
                await self.client.decide(one.id, Answer("approve", "late" if edits else None), key)
        sight = await self._wrong()
        self.found(checker.moved(self.resting, self.promises, sight))
        self.found(checker.orphans(sight))
        self.found(triggers.not_followed(self.world, sight))
        self.promises.counts["interrupted"] = sum(
            run.status == "INTERRUPTED" for run in sight.executions.values()
        )
        begun = Ledger(self.machine.ledger).begun
        self.promises.counts["gone on"] = sum(attempt.number > 1 for attempt in begun)
        self.machine.kill()
        self.callee.moody = False
        if self.shared is not None:
            await asyncio.to_thread(self.shared.later)
        self.serve(later=True)
        await self._look_back(checker.resting(sight))

    async def _open_questions(self) -> list[Approval]:
        """The approvals that wait, once nothing else moves."""
        sight = await self._until(DRAIN_S, self._at_rest)
        moving = (run for run in sight.executions.values() if not checker.rests(run, sight))
        self.found(f"stuck: {run.id} is {run.status}" for run in moving)
        return [one for one in sight.approvals.values() if one.status == "PENDING"]

    async def _look_back(self, before: Mapping[str, str]) -> None:
        """The grace of everything is over: all have ended, and their records are whole."""
        sight = await self._until(DRAIN_S, self._all_over)
        ledger = Ledger(self.machine.ledger)
        self._wrong_by_itself(sight)
        self.found(self.callee.undelivered(sight))
        self.found(checker.not_over(sight, before))
        for id in sight.executions:
            run, events = await history(self.services, id)
            self.found(records.unlike_its_history(run, events))
            self.found(records.unlike_the_ledger(run, events, ledger))
            self.promises.counts[f"{run.workflow_name} {run.status.value.lower()}"] += 1
        for id in list(self.promises.results)[-LAST_RESULTS:]:
            await self.client.ask_result(id, self.world.keys[0])
        for tag, id in self.promises.started.items():
            if sight.executions[id].workflow_name == "work" and sight.status(id) == "COMPLETED":
                await self.client.fetch(tag, self.world.keys[0])
                self.found([] if id in self.promises.left else [f"artifact: {id} has none"])

    def _at_rest(self, sight: Sight) -> bool:
        follows = any(triggers.not_followed(self.world, sight))
        return not follows and all(checker.rests(run, sight) for run in sight.executions.values())

    def _all_over(self, sight: Sight) -> bool:
        owes = any(self.callee.undelivered(sight))
        return not owes and all(run.status in checker.ENDED for run in sight.executions.values())

    async def _until(self, within_s: float, holds: Callable[[Sight], bool]) -> Sight:
        """Everything as soon as *holds*, or as it is after *within_s*."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while not holds(sight := await look(self.services, self.known)) and loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return sight


async def _holds(within_s: float, holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(FAULT_S)


async def _ended(acts: Sequence[Act]) -> None:
    """Wait for the acts; what went wrong in one that was not cancelled is raised."""
    await asyncio.wait(acts)
    for act in acts:
        if not act.cancelled():
            act.result()
