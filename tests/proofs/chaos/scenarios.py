"""
What goes wrong, one thing after the other; each gives everything back as it was.

`Chaos` is a running site with its clients and its operator. A scenario is a coroutine over it;
`SCENARIOS` says on which parts of a stack each depends; `HARMLESS` are those in which no worker may
lose anything.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from random import Random
from signal import SIGKILL

from attrs import Factory, define

from adapters_http.console.executions import SIZE, snapshot
from adapters_http.console.rendering import mark_of
from tests.proofs.chaos.checker import Page, Pages, Seen, silent, unsettled, wrong
from tests.proofs.chaos.load import AGAIN, Load, moving, seen
from tests.proofs.chaos.site import WAIT_S, Bucket, Part, Site, Stack, until
from tests.proofs.kills.flows import Ledger
from wfcore.errors import StoreUnavailable
from wfcore.model.access import Principal
from wfcore.model.page import NEWEST, PageRequest
from wfcore.usecases.approvals.reviewing import Tab, count_of
from wfcore.usecases.executions.executions import EVERY_EXECUTION
from wfcore.usecases.services import Services

ANSWERS = (b"SELECT 1\0", b"SELECT 1\0", b"COMMIT\0")


@define(eq=False)
class Chaos:
    """
    `long_s`: how long something lasts that only lasts. `stop_s`: longer than a lease. `unhurried`:
    leases are so long that a busy machine costs no worker its own, so none may be interrupted.
    `calm`: executions that began and ended while nothing was wrong.
    """

    site: Site
    load: Load
    services: Services
    chance: Random
    long_s: float
    stop_s: float
    unhurried: bool = True
    cuts: int = 20
    settles_s: float = 90
    broken: list[str] = Factory(list)
    calm: set[str] = Factory(set)

    async def play(self, scenario: "Scenario") -> None:
        """Let it happen under load, wait until all is at rest, and judge everything so far."""
        before = set(self.load.promises.started.values())
        async with self.load.running():
            await scenario(self)
            await self.told_of(scenario.__name__)
        if scenario in HARMLESS:
            self.calm |= set(self.load.promises.started.values()) - before
        await self.settle()
        self.broken += [f"{one} ({scenario.__name__})" for one in await self.found()]

    async def found(self) -> list[str]:
        """What is wrong by now."""
        return [*self.load.odd, *wrong(await self.seen())]

    async def seen(self) -> Seen:
        calm = self.calm if self.unhurried else ()
        about = await seen(self.services, self.load, self.ledger, frozenset(calm))
        about.promises.admitted.update(await self._quotas())
        return about

    def figures(self) -> Mapping[str, int]:
        """How much happened so far."""
        told, counts = self.load.promises, self.load.counts
        return {
            "accepted": len(told.started),
            "attempts": Ledger(self.ledger).begun.total(),
            "decisions": len(told.decided),
            "cancels": len(told.cancelled),
            "requests": counts.total(),
            "unanswered": counts["unheard"],
            "refused for a time": sum(counts[str(status)] for status in AGAIN),
        }

    @property
    def ledger(self) -> Path:
        return self.site.folder / "outside" / "ledger"

    async def _quotas(self) -> dict[tuple[str, int], int]:
        rows = await self.site.quotas(self.load.people.subject)
        return {(self.load.people.subject, begins): admitted for begins, admitted in rows}

    async def settle(self) -> None:
        """Wait until everything that was accepted has ended, or rests until somebody decides."""
        left = ["never looked"]
        try:
            async with asyncio.timeout(self.settles_s):
                while left:
                    await asyncio.sleep(0.2)
                    await self.load.decide_all()
                    try:
                        left = unsettled(await moving(self.services))
                    except StoreUnavailable:
                        left = ["the database is away"]
        except TimeoutError:
            self.broken += [f"no end: {one}" for one in left]
        await self._pages_know()

    async def told_of(self, fault: str) -> None:
        """*fault* is over: of what is accepted from now on each live page is told."""
        self.load.note(Page.FAULT, fault)
        await self.load.start("once")
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settles_s):
                while any(silent(self.load.pages)):  # noqa: ASYNC110 - processes tell nobody
                    await asyncio.sleep(0.05)

    async def _pages_know(self) -> None:
        """Nothing moves any more: wait until each live page knows what is stored."""
        me, mark = Principal(self.load.people.account), ""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settles_s):
                while not mark or any(silent(self._at_rest(mark))):
                    await asyncio.sleep(0.05)
                    with suppress(StoreUnavailable):
                        mark = await self._mark(me)
        self.load.note(Page.REST, mark)

    async def _mark(self, me: Principal) -> str:
        """Of the first page of what was started: what its stream tells at last."""
        first = PageRequest(size=SIZE, after=NEWEST)
        seen = await snapshot(self.services, me, first, EVERY_EXECUTION)
        return mark_of(seen, await count_of(self.services, me, Tab.WAITING))

    def _at_rest(self, mark: str) -> Pages:
        return {name: [*all, (Page.REST, mark)] for name, all in self.load.pages.items()}

    async def downloads(self) -> int:
        """Download each artifact that is there from every node; how many there were."""
        about = await self.seen()
        runs = about.tables["execution"]
        tags = {id: tag for tag, id in self.load.promises.started.items()}
        ended = {id for id, run in runs.items() if run.status == "COMPLETED"}
        done = [id for id in tags if id in ended and runs[id].workflow_name == "work"]
        for id in done[-8:]:
            for node in self.site.fronts:
                text = await self.load.fetched(node, id)
                if text != f"{tags[id]}\n":
                    self.broken.append(f"artifact: {tags[id]} at {node.name}: {text!r}")
        return len(done)


Scenario = Callable[[Chaos], Awaitable[None]]


async def nothing(chaos: Chaos) -> None:
    """Clients alone; one asks more often than it may, at all nodes."""
    await asyncio.sleep(chaos.long_s / 2)
    await chaos.load.start()
    await chaos.load.use_up()


async def many(chaos: Chaos, flow: str, nap: str) -> list[str]:
    """Start it ten times at once; the ids."""
    return await asyncio.gather(*(chaos.load.start(flow, nap) for _ in range(10)))


async def bursts(chaos: Chaos) -> None:
    """Many starts of one group, and of no group, at once at all nodes."""
    await asyncio.gather(many(chaos, "narrow", "0.3"), many(chaos, "once", "0.3"))


async def kills(chaos: Chaos) -> None:
    """kill -9 of each server in turn; of several, one comes back with an empty folder."""
    for name, node in chaos.site.nodes.items():
        await asyncio.sleep(chaos.chance.uniform(0.2, 0.5) * chaos.long_s)
        await chaos.site.kill(name)
        if name == "two":
            chaos.site.forget(node)
        await asyncio.sleep(chaos.chance.uniform(0, 0.5))
        await chaos.site.start(name)
        await chaos.told_of(f"kill -9 of {name}")


async def a_process_dies(chaos: Chaos) -> None:
    """kill -9 of one process of a server, while the others go on; it is started again."""
    (node,) = chaos.site.nodes.values()
    for _ in range(2):
        await asyncio.sleep(chaos.chance.uniform(0.2, 0.5) * chaos.long_s)
        before = node.processes
        os.kill(chaos.chance.choice(before), SIGKILL)
        await until(lambda: len(set(node.processes) - set(before)) == 1, "a process is forked")  # noqa: B023
        await chaos.told_of("kill -9 of a process")


async def replaced(chaos: Chaos) -> None:
    """Each server is stopped in order and replaced, as for a new version."""
    for name in chaos.site.nodes:
        await asyncio.sleep(chaos.long_s / 4)
        await chaos.site.replace(name)
        await chaos.told_of(f"another {name}")


async def stands_still(chaos: Chaos) -> None:
    """A worker is frozen for longer than its leases last, and goes on."""
    await asyncio.sleep(chaos.long_s / 4)
    await many(chaos, "once", "0")
    await asyncio.sleep(0.2)
    async with chaos.site.stopped(
        chaos.chance.choice(chaos.chance.choice(chaos.site.workers).processes)
    ):
        await asyncio.sleep(chaos.stop_s)
    await asyncio.sleep(chaos.long_s / 4)


async def clocks(chaos: Chaos) -> None:
    """A minute ahead, a minute behind, and one that jumps to and fro."""
    one, two, three = chaos.site.nodes.values()
    await many(chaos, "once", str(chaos.stop_s))
    one.set_clock(60_000)
    three.set_clock(-60_000)
    for _ in range(round(chaos.stop_s * 4)):
        await asyncio.sleep(0.25)
        two.set_clock(chaos.chance.choice((-60_000, -5_000, 0, 5_000, 60_000)))
        if chaos.chance.random() < 0.3:
            three.set_clock(chaos.chance.choice((-60_000, 0, 60_000)))
    for node in chaos.site.nodes.values():
        node.set_clock(0)


async def clock_jumps(chaos: Chaos) -> None:
    """The clock of the only machine jumps by up to a minute, to and fro."""
    (node,) = chaos.site.nodes.values()
    await many(chaos, "once", str(chaos.stop_s))
    for _ in range(round(chaos.stop_s / 2)):
        await asyncio.sleep(2)
        node.set_clock(chaos.chance.choice((-60_000, -5_000, 0, 5_000, 60_000)))
    node.set_clock(0)


async def database_restarts(chaos: Chaos) -> None:
    """PostgreSQL is restarted at once (`pg_ctl -m immediate restart`)."""
    await asyncio.sleep(chaos.long_s / 3)
    await chaos.site.postgres.restart()
    await asyncio.sleep(chaos.long_s / 3)


async def connections_end(chaos: Chaos) -> None:
    """Connections to the database are ended ten times a second (`pg_terminate_backend`)."""
    for _ in range(round(10 * chaos.long_s)):
        await chaos.site.postgres.sever()
        await asyncio.sleep(0.1)


async def answers_are_cut(chaos: Chaos) -> None:
    """The database commits, and its answer never arrives: twenty times."""
    wire = chaos.site.postgres.wire
    until = wire.lost + chaos.cuts
    async with asyncio.timeout(WAIT_S + chaos.cuts):
        while wire.lost < until:
            wire.loses, wire.spares = chaos.chance.choice(ANSWERS), chaos.chance.randrange(4)
            lost = wire.lost
            for _ in range(25):
                await asyncio.sleep(0.02)
                if wire.lost > lost:
                    break
            wire.loses = None
            await asyncio.sleep(0.05)


async def statements_hang(chaos: Chaos) -> None:
    """The connections for statements are half open: what was sent arrives nowhere, unnoticed."""
    chaos.site.postgres.wire.swallows = True
    await asyncio.sleep(chaos.long_s / 2)
    chaos.site.postgres.wire.swallows = False
    await asyncio.sleep(chaos.long_s / 2)


async def nobody_hears(chaos: Chaos) -> None:
    """The connections for hints are half open: no hint arrives, unnoticed."""
    chaos.site.postgres.listening.swallows = True
    await asyncio.sleep(chaos.long_s)
    chaos.site.postgres.listening.swallows = False


async def somebody_locks(chaos: Chaos) -> None:
    """Another program holds the write lock of the SQLite file, twice."""
    for _ in range(2):
        await asyncio.sleep(chaos.long_s / 6)
        async with chaos.site.locked():
            await asyncio.sleep(chaos.long_s / 3)


async def bucket_fails(chaos: Chaos) -> None:
    """The bucket answers 503, then never answers, then ends connections in the middle."""
    for how in (Bucket.REFUSES, Bucket.HANGS, Bucket.BREAKS_OFF):
        chaos.site.bucket.now = how
        await asyncio.sleep(chaos.long_s / 3)
        chaos.site.bucket.now = Bucket.WELL
        await asyncio.sleep(chaos.long_s / 6)


async def queue_is_lost(chaos: Chaos) -> None:
    """NATS is killed, and comes back with nothing of what it had."""
    await asyncio.sleep(chaos.long_s / 4)
    chaos.site.nats.kill()
    await asyncio.sleep(chaos.long_s / 2)
    chaos.site.nats.wipe()
    await asyncio.to_thread(chaos.site.nats.start)
    await asyncio.sleep(chaos.long_s / 4)


async def disk_full(chaos: Chaos) -> None:
    """One server can write nothing into its folder."""
    async with chaos.site.full(chaos.chance.choice(chaos.site.workers)):
        await asyncio.sleep(chaos.long_s / 2)


async def storm(chaos: Chaos) -> None:
    """
    The worst of these under one load. In between nothing is wrong: what is accepted then ends
    before the next blow, and nothing interrupts it.
    """
    for blow in (kills, database_restarts, bucket_fails, queue_is_lost, stands_still):
        await blow(chaos)
        await chaos.told_of(blow.__name__)
        begun = await many(chaos, "once", "0.3")
        chaos.calm.update(await asyncio.gather(*map(chaos.load.ended, begun)))


SCENARIOS: Mapping[Scenario, Set[Part]] = {
    nothing: frozenset(),
    bursts: frozenset(),
    kills: frozenset(),
    a_process_dies: {Part.SQLITE},
    replaced: frozenset(),
    stands_still: frozenset(),
    clocks: {Part.MACHINES},
    clock_jumps: {Part.SQLITE},
    somebody_locks: {Part.SQLITE},
    database_restarts: {Part.POSTGRES},
    connections_end: {Part.POSTGRES},
    answers_are_cut: {Part.POSTGRES},
    statements_hang: {Part.POSTGRES},
    nobody_hears: {Part.POSTGRES},
    bucket_fails: {Part.BUCKET},
    queue_is_lost: {Part.NATS},
    disk_full: frozenset(),
}
"""The parts of a stack that each needs."""
HARMLESS: Set[Scenario] = {nothing, bursts, clocks, clock_jumps, nobody_hears, bucket_fails}
"""Scenarios without a kill, and with a database that can be reached."""


def scenarios_of(stack: Stack) -> Sequence[Scenario]:
    """The scenarios that a stack allows."""
    return [one for one, needed in SCENARIOS.items() if needed <= stack.parts]
