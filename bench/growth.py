"""
`python -m bench [--long] growth`: what everyday work takes with many executions stored, in relation
to few: 10,000 beside 1,000,000, or with `--long` 10,000,000.

Both stores are filled alike (`fill`): `ACCOUNTS` with workflows of three steps, of which the one
that is asked holds a quarter; ended in each way, started by requests and by webhooks, evenly over
`DAYS`, with steps and events; and some that wait for a decision. 1,000,000 take 0.9 GB of disk and
a minute, 10,000,000 take 9 GB: copies are packed in order. What an execution really
takes up is a row of its own (`kept_kb`).

Each row asks the two in turns, one request after another, so that a busy moment meets both; the
figures are of the turn in the middle, by the relation of the 99th percentiles of `SAMPLES`.
"""

import asyncio
import http.client
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import TypeAlias

from attrs import frozen

from bench.fill import DATABASE, ended, fill, id_of, pack_all, waiting
from bench.http import STARTS, http_alone, whole
from wfcore.model.access import Principal, Scope, Tier
from wfcore.model.execution import TriggerSource
from wfcore.model.page import PageCursor
from wfcore.model.workflow import ApprovalStep, CodeStep, Definition, Language
from wfcore.ports.records import SEARCHED
from wfcore.ports.runtime import StepEnd
from wfcore.rules.paging import cursor_text
from wfcore.usecases.accounts import accounts, keys
from wfcore.usecases.administration.lookup import owner_of
from wfcore.usecases.executions import executions, starting, worker
from wfcore.usecases.services import Services
from wfcore.usecases.upkeep.sweeping import next_deadline, sweep
from wfcore.usecases.workflows import workflows
from wfcore.wire.common import EXECUTIONS
from wfserver.compose import open_system
from wfserver.settings.record import settings_from

Ask: TypeAlias = Callable[[], object]
FEW, USUAL, LONG = 10_000, 1_000_000, 10_000_000
ACCOUNTS, WORKFLOWS, KEYS = 20, 3, 40
OPEN = 4
"""Times fifty that wait for a decision."""
DAYS = 25
DAY_MS = 86_400_000
SHARES = {"done": 75, "hooked": 15, "failed": 7, "cancelled": 3}
"""Of how the executions of a workflow came and ended, in percent."""
CYCLE = 1_000
"""After so many copies the models come in the same order again."""
DRAWN = 1_000
ROUNDS, WRITTEN = 5, 300
"""Executions whose size is measured: so many each time, then upkeep."""
TURNS, SAMPLES, MOST_S = 5, 300, 20
"""A turn ends after `MOST_S`, too."""
KEPT = {"WFCORE_KEEP_EXECUTIONS": "365d"}
MOST, MOST_TOTAL = 1.3, 2.0
_THREE_STEPS = tuple(CodeStep(f"s{n}", Language.BASH, ":") for n in range(3))


@frozen
class Filled:
    """
    A folder, and what is asked of it: keys of an account, one of its workflows, the places of its
    executions among each `CYCLE`; how many there are, and the instants of the first and the last.
    """

    data: Path
    account_id: str
    keys: Sequence[str]
    workflow_id: str
    own: Sequence[int]
    wanted: int
    begin: int
    end: int

    def ids(self) -> Iterator[str]:
        """Ids of the account's executions, at random, each once as long as there are others."""
        order = random.Random(0)
        cycles = order.sample(range(self.wanted // CYCLE), min(self.wanted // CYCLE, DRAWN))
        numbers = [CYCLE * number + place for number in cycles for place in self.own]
        order.shuffle(numbers)
        return cycle(map(id_of, numbers))


@frozen
class Growth:
    """A row: the 99th percentiles in ms with few and with many, and how much more is promised."""

    what: str
    few_ms: float
    many_ms: float
    most: float = MOST


def filled(data: Path, wanted: int) -> Filled:
    """A store of so many ended executions."""
    began = round(time.time() * 1_000) - DAYS * DAY_MS
    apart_ms = DAYS * DAY_MS // wanted
    asked, models, own = asyncio.run(_models(data))
    fill(data, models, wanted, began + wanted * apart_ms, apart_ms)
    return Filled(data, *asked, own, wanted, began, began + wanted * apart_ms)


Asked: TypeAlias = tuple[str, Sequence[str], str]
"""An account, its keys, and one of its workflows."""


async def _models(data: Path) -> tuple[Asked, Sequence[str], Sequence[int]]:
    """Who is asked; the executions to copy, in their order; the places of the account's own."""
    async with open_system(settings_from({}, data=str(data))) as system:
        services = system.services
        made: list[dict[str, Sequence[str]]] = []
        for number in range(ACCOUNTS):
            email = f"bench{number}@example.org"
            who = Principal(await accounts.create_account(services, email, Tier.ENTERPRISE))
            kinds: dict[str, list[str]] = {kind: [] for kind in SHARES}
            for flow in range(WORKFLOWS):
                definition = Definition(f"flow {flow}", _THREE_STEPS, ())
                id = (await workflows.apply_workflow(services, who.account.id, definition)).id
                for kind in SHARES:
                    kinds[kind].append(await _model(services, who, id, kind))
            made.append(dict(kinds))
            if not number:
                asked, workflow_id = who, id
        asks = Definition("asks", (ApprovalStep("review", "Look"),), ())
        asking = await workflows.apply_workflow(services, asked.account.id, asks)
        for _ in range(OPEN):
            await waiting(services, asked, asking.id)
        issued = [
            (await keys.create_key(services, asked.account.id, f"key {n}", Scope.ordinary())).text
            for n in range(KEYS)
        ]
    order = random.Random(0)
    owners = [0 if order.random() < 1 / 4 else order.randrange(1, ACCOUNTS) for _ in range(CYCLE)]
    drawn = order.choices(list(SHARES), list(SHARES.values()), k=CYCLE)
    models = [order.choice(made[owner][kind]) for owner, kind in zip(owners, drawn, strict=True)]
    own = [place for place, owner in enumerate(owners) if not owner]
    return (asked.account.id, issued, workflow_id), models, own


async def _model(services: Services, who: Principal, workflow_id: str, kind: str) -> str:
    if kind == "cancelled":
        id = (await starting.start_execution(services, who, workflow_id, {})).execution_id
        await executions.cancel_execution(services, who, id)
        return id
    end = StepEnd(error="no") if kind == "failed" else StepEnd()
    source = TriggerSource.WEBHOOK if kind == "hooked" else TriggerSource.OPEN_API
    return await ended(services, who, workflow_id, end, source)


def kept_kb(data: Path) -> tuple[float, float]:
    """
    KB of the database for an ended execution of three steps without outputs: at first, and once
    upkeep has packed it. Executions and upkeep take turns, and use the room that they make.
    """
    return asyncio.run(_kept_kb(data))


async def _kept_kb(data: Path) -> tuple[float, float]:
    async with open_system(settings_from({}, data=str(data))) as system:
        services = system.services
        who = Principal(
            await accounts.create_account(services, "bench@example.org", Tier.ENTERPRISE)
        )
        definition = Definition("flow", _THREE_STEPS, ())
        id = (await workflows.apply_workflow(services, who.account.id, definition)).id
        with closing(sqlite3.connect(data / DATABASE)) as connection:
            before, kept = _used(connection), 0
            for _ in range(ROUNDS):
                for _ in range(WRITTEN):
                    await _model(services, who, id, "done")
                fresh = _used(connection) - before - kept
                pack_all(data)
                kept = _used(connection) - before
            return fresh / WRITTEN / 1_000, kept / (ROUNDS * WRITTEN) / 1_000


def _used(connection: sqlite3.Connection) -> int:
    """Bytes, without those that wait to be used again."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def filters(of: Filled) -> Iterator[tuple[str, str]]:
    """Each filter of lists, by what it is called in a row."""
    yield "list", ""
    yield "list by workflow", f"&workflowId={of.workflow_id}"
    for status in ("COMPLETED", "FAILED", "CANCELLED", "RUNNING", "AWAITING_APPROVAL"):
        yield f"list, {status}", f"&status={status}"
    yield "list, FAILED or CANCELLED", "&status=FAILED&status=CANCELLED"
    yield "list by webhook", "&triggerSource=webhook"
    yield "list by schedule (none)", "&triggerSource=schedule"
    span = (of.end - of.begin) // 10
    yield "list, from … to", f"&from={of.begin + 4 * span}&to={of.begin + 6 * span}"


def measured(few: Filled, many: Filled) -> Iterator[Growth]:
    """All rows, as soon as they are measured."""
    yield Growth("readiness", *_readiness(few, many))
    yield from asked(few, many)
    yield from inside(few, many)


def asked(few: Filled, many: Filled) -> Iterator[Growth]:
    """What clients ask of a server."""
    with ExitStack() as stack:
        here, there = (stack.enter_context(_asking(of)) for of in (few, many))
        one, other = next(few.ids()), next(many.ids())
        yield Growth("poll", *p99s(here.polls(cycle([one])), there.polls(cycle([other]))))
        what = "poll of another one each time"
        yield Growth(what, *p99s(here.polls(few.ids()), there.polls(many.ids())))
        for (what, one), (_, other) in zip(filters(few), filters(many), strict=True):
            yield Growth(
                what, *p99s(here.lists(one + here.above), there.lists(other + there.above))
            )
            totals = p99s(here.lists(one), there.lists(other))
            yield Growth(f"{what}, with total", *totals, MOST_TOTAL)
        what, ends = "list by the end of an id", f"&idEnd=zzzzzz{here.above}"
        yield Growth(what, *p99s(here.lists(ends), there.lists(ends)), SEARCHED * 4 / FEW)
        yield Growth("start", *p99s(here.starts(), there.starts()))


def _readiness(few: Filled, many: Filled) -> tuple[float, float]:
    """The middle of some starts, in ms."""
    took: list[list[float]] = [[], []]
    for _ in range(STARTS):
        for of, found in zip((few, many), took, strict=True):
            with whole(of.data, **KEPT) as server:
                found.append(server.ready_s * 1_000)
    return median(took[0]), median(took[1])


@contextmanager
def _asking(of: Filled) -> Iterator["Asking"]:
    """A server of its own for the store, and a connection to it that stays open."""
    with http_alone(of.data, **KEPT) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        with closing(connection):
            yield Asking(of, connection)


class Asking:
    """What is asked of a filled store over a connection."""

    above = "&after=" + cursor_text(EXECUTIONS, PageCursor((1 << 53) - 1, ""))
    """Behind a row that would be above all, so that nothing is counted."""

    def __init__(self, of: Filled, connection: http.client.HTTPConnection) -> None:
        self._workflow_id, self._keys = of.workflow_id, cycle(of.keys)
        self._connection = connection

    def _ask(self, method: str, path: str, body: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {next(self._keys)}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status // 100 != 2:
            raise AssertionError(f"{path}: {answer.status} {text!r}")

    def polls(self, ids: Iterator[str]) -> Ask:
        return lambda: self._ask("GET", f"/api/v1/executions/{next(ids)}")

    def lists(self, narrowed: str) -> Ask:
        return lambda: self._ask("GET", f"/api/v1/executions?size=50{narrowed}")

    def starts(self) -> Ask:
        path = f"/api/v1/workflows/{self._workflow_id}/executions"
        return lambda: self._ask("POST", path, '{"inputs":{}}')


def p99s(few: Ask, many: Ask) -> tuple[float, float]:
    """The 99th percentiles of both in ms, of the turn in the middle."""
    for ask in (few, many):
        ask()  # the first time pays for opening
    turns = [_turn(few, many) for _ in range(TURNS)]
    return sorted(turns, key=lambda turn: turn[1] / turn[0])[TURNS // 2]


def _turn(few: Ask, many: Ask) -> tuple[float, float]:
    took: list[list[float]] = [[], []]
    until = time.perf_counter() + MOST_S
    while len(took[0]) < SAMPLES and time.perf_counter() < until:
        for ask, found in zip((few, many), took, strict=True):
            began = time.perf_counter()
            ask()
            found.append((time.perf_counter() - began) * 1_000)
    last = int(len(took[0]) * 0.99)
    return sorted(took[0])[last], sorted(took[1])[last]


def inside(few: Filled, many: Filled) -> Iterator[Growth]:
    """What an engine asks of its store: sweeps as the scheduler does them, and claims."""
    with asyncio.Runner() as runner, ExitStack() as stack:
        here, there = (stack.enter_context(_opened(runner, of)) for of in (few, many))
        sweeps = p99s(lambda: runner.run(_sweep(here)), lambda: runner.run(_sweep(there)))
        yield Growth("sweep", *sweeps)
        for of, services in ((few, here), (many, there)):
            runner.run(_started(services, of, TURNS * SAMPLES + 1))
        claims = p99s(lambda: runner.run(_claim(here)), lambda: runner.run(_claim(there)))
        yield Growth("claim", *claims)


@contextmanager
def _opened(runner: asyncio.Runner, of: Filled) -> Iterator[Services]:
    opening = open_system(settings_from({}, data=str(of.data)))
    yield runner.run(opening.__aenter__()).services
    runner.run(opening.__aexit__(None, None, None))


async def _sweep(services: Services) -> None:
    await sweep(services)
    await next_deadline(services)
    await worker.next_due(services)


async def _started(services: Services, of: Filled, count: int) -> None:
    who = await owner_of(services, of.account_id)
    for _ in range(count):
        await starting.start_execution(services, who, of.workflow_id, {})


async def _claim(services: Services) -> None:
    """One execution, by a worker that holds nothing else."""
    if len(await worker.claim(services, f"bench {services.tokens.text(8)}", 1)) != 1:
        raise AssertionError("nothing to claim")
