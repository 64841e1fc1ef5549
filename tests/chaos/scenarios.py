"""
What goes wrong, one thing after the other; each gives everything back as it was.

`Chaos` is a running site with its clients and its operator. A scenario is a coroutine over it;
`HARMLESS` are those in which no worker may lose anything.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import httpx
from attrs import Factory, define

from chaos.checker import Seen, unsettled, wrong
from chaos.load import Load, moving, seen
from chaos.site import WAIT_S, Site
from wfcore.errors import StoreUnavailable
from wfcore.usecases.accounts.sessions import issue_login_link
from wfcore.usecases.audit.auditing import UNKNOWN
from wfcore.usecases.services import Services

ANSWERS = (b"SELECT 1\0", b"SELECT 1\0", b"COMMIT\0")


@define(eq=False)
class Chaos:
    """
    `long_s`: how long something lasts that only lasts. `stop_s`: longer than a lease. `unhurried`:
    leases are so long that a busy machine costs no worker its own, so none may be interrupted.
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
    _calm: set[str] = Factory(set)

    async def play(self, scenario: "Scenario") -> None:
        """Let it happen under load, wait until all is at rest, and judge everything so far."""
        before = set(self.load.promises.started.values())
        async with self.load.running():
            await scenario(self)
        if scenario in HARMLESS and self.unhurried:
            self._calm |= set(self.load.promises.started.values()) - before
        await self.settle()
        self.broken += [f"{one} ({scenario.__name__})" for one in await self.found()]

    async def found(self) -> list[str]:
        """What is wrong by now."""
        return [*self.load.odd, *wrong(await self.seen())]

    async def seen(self) -> Seen:
        about = await seen(self.services, self.load, self.ledger, frozenset(self._calm))
        about.promises.admitted.update(await self._quotas())
        return about

    @property
    def ledger(self) -> Path:
        return self.site.folder / "outside" / "ledger"

    async def _quotas(self) -> dict[tuple[str, int], int]:
        rows = await self.site.rows(
            "SELECT begins, admitted FROM quotas WHERE kind = 'minute' AND subject LIKE '%' || $1",
            self.load.people.subject,
        )
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

    async def live(self) -> None:
        """The console's live page of each node tells that something changed, wherever it did."""
        token = await issue_login_link(self.services, self.load.people.account.id, UNKNOWN)
        async with httpx.AsyncClient(timeout=WAIT_S) as http, asyncio.TaskGroup() as group:
            entered = await http.post(f"{self.site.fronts[0].url}/in/{token}")
            assert http.cookies, entered.text
            opened = [asyncio.Event() for _ in self.site.fronts]

            async def listen(url: str, opened: asyncio.Event) -> None:
                async with http.stream("GET", f"{url}/live") as answer:
                    assert answer.status_code == 200, url
                    async for line in answer.aiter_lines():
                        opened.set()
                        if line.startswith("event:"):
                            return

            for node, event in zip(self.site.fronts, opened, strict=True):
                group.create_task(listen(node.url, event))
            for event in opened:
                await event.wait()
            await self.load.start("once")

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
    await chaos.live()


async def many(chaos: Chaos, flow: str, nap: str) -> None:
    """Start it ten times at once."""
    await asyncio.gather(*(chaos.load.start(flow, nap) for _ in range(10)))


async def bursts(chaos: Chaos) -> None:
    """Many starts of one group, and of no group, at once at all nodes."""
    await asyncio.gather(many(chaos, "narrow", "0.3"), many(chaos, "once", "0.3"))


async def kills(chaos: Chaos) -> None:
    """kill -9 of each node in turn; one comes back with an empty folder."""
    for name, node in chaos.site.nodes.items():
        await asyncio.sleep(chaos.chance.uniform(0.2, 0.5) * chaos.long_s)
        await chaos.site.kill(name)
        if name == "two":
            chaos.site.forget(node)
        await asyncio.sleep(chaos.chance.uniform(0, 0.5))
        await chaos.site.start(name)


async def stands_still(chaos: Chaos) -> None:
    """A worker is frozen for longer than its leases last, and goes on."""
    await asyncio.sleep(chaos.long_s / 4)
    await many(chaos, "once", "0")
    await asyncio.sleep(0.2)
    async with chaos.site.stopped(chaos.chance.choice(("one", "three"))):
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


async def database_restarts(chaos: Chaos) -> None:
    """`pg_ctl -m immediate restart`."""
    await asyncio.sleep(chaos.long_s / 3)
    await chaos.site.restart_database()
    await asyncio.sleep(chaos.long_s / 3)


async def connections_end(chaos: Chaos) -> None:
    """`pg_terminate_backend`, ten times a second."""
    for _ in range(round(10 * chaos.long_s)):
        await chaos.site.sever()
        await asyncio.sleep(0.1)


async def answers_are_cut(chaos: Chaos) -> None:
    """The database commits, and its answer never arrives."""
    wire = chaos.site.wire
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


async def nobody_hears(chaos: Chaos) -> None:
    """The connections that listen are half open: what is told arrives nowhere."""
    chaos.site.listening.swallows = True
    await asyncio.sleep(chaos.long_s)
    chaos.site.listening.swallows = False


async def bucket_refuses(chaos: Chaos) -> None:
    """The bucket answers 503."""
    for _ in range(2):
        chaos.site.bucket.refuses = True
        await asyncio.sleep(chaos.long_s / 3)
        chaos.site.bucket.refuses = False
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
    async with chaos.site.full(chaos.chance.choice(("one", "three"))):
        await asyncio.sleep(chaos.long_s / 2)


SCENARIOS: tuple[Scenario, ...] = (
    nothing,
    bursts,
    kills,
    stands_still,
    clocks,
    database_restarts,
    connections_end,
    answers_are_cut,
    nobody_hears,
    bucket_refuses,
    queue_is_lost,
    disk_full,
)
HARMLESS: tuple[Scenario, ...] = (nothing, bursts, clocks, nobody_hears, bucket_refuses)
"""Scenarios without a kill, and with a database that can be reached."""
