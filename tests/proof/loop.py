"""The kill loop: rounds of a restless client and a killed server, and the checks between them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from time import time

import httpx
from attrs import Factory, define

from proof import checker
from proof.client import Client
from proof.flows import Ledger
from proof.machine import Machine
from proof.promises import Promises
from proof.world import Sight, World, furnish, history, look
from wfcore.usecases.services import Services
from wfserver.compose import open_system
from wfserver.settings import Settings

MOVING = {"PENDING", "RUNNING"}
ACTS = (10, 40)
MOMENT_S = 0.02
"""A kill comes after so many acts of the client, at some moment within the next one."""
PATIENCE_S = 20
RECOVERY_S = 5
DRAIN_S = 30


@define
class Report:
    """What was found wrong, and how much happened."""

    seed: int
    broken: list[str]
    counts: Counter[str]

    @property
    def kinds(self) -> set[str]:
        """The kinds of violations."""
        return {text.partition(":")[0] for text in self.broken}


async def kill_loop(folder: Path, rounds: int, seed: int, plants: Sequence[str] = ()) -> Report:
    """
    Kill the server *rounds* times and let the last one finish; what was found wrong.

    With *plants* it ends at the first round in which something is.
    """
    machine = Machine(folder, plants)
    try:
        async with (
            open_system(Settings(machine.data)) as system,
            httpx.AsyncClient(timeout=20) as http,
        ):
            world = await furnish(system.services, machine.ledger)
            promises = Promises()
            client = Client(http, world, promises)
            run = _Run(machine, system.services, world, http, Random(seed), promises, client)
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
    resting: dict[str, str] = Factory(dict)

    def found(self, wrong: Iterable[str]) -> None:
        """Note what is wrong."""
        self.promises.broken.extend(wrong)

    async def round(self) -> None:
        """The client at work, kill -9 at some moment; then the next server and the checks."""
        enough = asyncio.Semaphore(0)
        acts = [
            asyncio.create_task(self.client.act(Random(self.chance.random()), key, enough))
            for key in self.world.keys
        ]
        for _ in range(self.chance.randint(*ACTS)):
            await asyncio.wait_for(enough.acquire(), PATIENCE_S)
        await asyncio.sleep(self.chance.uniform(0, MOMENT_S))
        killed_at = time() * 1_000
        alive = self.machine.kill()
        await asyncio.gather(*acts)
        self.found(f"alive: process {pid}" for pid in alive)
        cut_off = Ledger(self.machine.ledger).cut_off
        self.serve()
        await self._check(cut_off, killed_at)
        await self._ask_again()
        self.promises.counts["kills"] += 1

    def serve(self) -> None:
        self.machine.serve()
        self.http.base_url = self.machine.url

    async def _check(self, cut_off: set[str], killed_at: float) -> None:
        sight = await self._until(RECOVERY_S, lambda sight: _recovered(sight, cut_off))
        ledger = Ledger(self.machine.ledger)
        self.found(checker.wrong(self.promises, ledger, sight))
        self.found(checker.not_interrupted(cut_off, self.promises, sight))
        self.found(checker.moved(self.resting, self.promises, sight))
        self.resting = checker.resting(sight)
        self.promises.counts["waited on"] += sum(
            one.status == "PENDING" and one.created_at < killed_at
            for one in sight.approvals.values()
        )

    async def _ask_again(self) -> None:
        """The same keys give the first answers; what was not answered is answered now."""
        recent = list(self.promises.started)[-3:]
        for start in (*self.promises.unanswered, *(self.promises.sent[tag] for tag in recent)):
            await self.client.send(start)

    async def finish(self) -> None:
        """Let everything end that can, and look at everything once more."""
        sight = await self._until(DRAIN_S, _at_rest)
        for approval in sight.approvals.values():
            if approval.status == "PENDING":
                await self.client.decide(approval.id, "approve", self.world.keys[0])
        sight = await self._until(DRAIN_S, _at_rest)
        ledger = Ledger(self.machine.ledger)
        self.found(checker.wrong(self.promises, ledger, sight))
        self.found(checker.moved(self.resting, self.promises, sight))
        for id in sight.executions:
            run, events = await history(self.services, id)
            self.found(checker.unlike_its_history(run, events))
            self.found(checker.unlike_the_ledger(run, ledger))
            self.promises.counts[run.status.value.lower()] += 1
            self.found([f"stuck: {id} is {run.status}"] if run.status in MOVING else [])

    async def _until(self, within_s: float, holds: Callable[[Sight], bool]) -> Sight:
        """Everything as soon as *holds*, or as it is after *within_s*."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while not holds(sight := await look(self.services)) and loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return sight


def _recovered(sight: Sight, cut_off: set[str]) -> bool:
    return not any(sight.status(id) in MOVING for id in cut_off)


def _at_rest(sight: Sight) -> bool:
    return not any(run.status in MOVING for run in sight.executions.values())
