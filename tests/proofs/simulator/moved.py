"""
Simulated worlds that are moved in the middle: `Cut` kills every process of a world at one moment,
and lets something be done to what is stored before the first of them starts again; `through`
carries it through real databases.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import attrs
from attrs import define

from adapters_store.postgres.moving import PostgresSide
from adapters_store.postgres.store import PostgresStore
from adapters_store.sql.kinds import TABLE_OF
from adapters_store.sql.moving import KeyRange, Row, Side, move
from adapters_store.sql.sealing import AeadSealer, new_key
from adapters_store.sqlite.connection import connect_writer
from adapters_store.sqlite.moving import SqliteSide
from adapters_store.sqlite.store import SqliteStore
from wfcore.memory import Disk, MemoryStore
from wfcore.memory.disk import Changes, SchedulingPoint
from wfcore.memory.overlay import Overlay
from wfcore.memory.tables import (
    AUDIT,
    CHAIN,
    DELIVERIES,
    EVENTS,
    LEASES,
    LIMITS,
    LOGS,
    NODES,
    SERVED,
    TALLIES,
    WEBHOOKS,
    audit_chain,
)
from wfcore.model.execution import Execution
from wfcore.model.node import Node
from wfcore.ports.records import RECORDS, RecordKind
from wfcore.ports.store import Store, View
from wfcore.ports.system import Sealer
from wfcore.rules.audit.chain import read_entry
from wfcore.testing.simulator import FaultKind, InjectedFault, WorldResult, play, scenario_from
from wfcore.testing.simulator.faults import FaultSource
from wfcore.time import EpochMs

Where = str | Path
"""The URL of a database, or the path of a file."""
Carry = Callable[[Disk], None]
DOWN_MS = (100, 4_000, 60_000)
"""How long no process runs: less than a lease, about as long, and much longer."""
ALL = 1_000_000
OF_THE_STORE = (
    (SERVED.name, "served", "owner_id", "at"),
    (LIMITS.name, "group_limits", "workflow_id", "at_once"),
    (LEASES.name, "executions", "id", "lease_until"),
)
"""What no record says: the table, and where a database has it."""
KINDS = tuple(kind for kind in RECORDS if kind.type is not Node)
"""Records that a move carries: which processes are alive is left."""


def stay(disk: Disk) -> None:
    """Nothing is moved."""


@define
class Cut:
    """
    Kills all processes at the call with that number (0: never) of those that this can happen to.
    What is stored is carried before they start again. Nobody at the other place knows who has died:
    lock files stay behind, and leases run out. Satisfies `FaultSource` and `NewStore`.
    """

    chance: FaultSource
    at: int = 0
    down_ms: int = 0
    carry: Carry = stay
    calls: int = 0
    disk: Disk | None = None
    _over: bool = False

    def fault(
        self, label: str, number: int, possible: frozenset[FaultKind]
    ) -> InjectedFault | None:
        if FaultKind.POWER_CUT in possible and not self._over:
            self.calls += 1
            if self.calls == self.at:
                return InjectedFault(FaultKind.POWER_CUT, self.down_ms)
        return self.chance.fault(label, number, possible)

    def calm(self) -> None:
        self._over = True
        self.chance.calm()

    def __call__(
        self, gate: SchedulingPoint, disk: Disk, *, now: Callable[[], EpochMs], ended: set[str]
    ) -> MemoryStore:
        """The first process that starts after the cut finds what was carried."""
        self.disk = disk
        if self.at and self.calls >= self.at:
            self.at = 0
            ended.clear()
            self.carry(disk)
        return MemoryStore(gate, disk, now=now, ended=ended)


def played(seed: int, carry: Carry) -> tuple[WorldResult, Disk]:
    """The world of *seed*, cut at a moment that the seed decides, and what is stored at its end."""
    random = Random(f"{seed} moved")
    at, down_ms = random.randint(1, _calls(seed)), random.choice(DOWN_MS)
    scenario, chance = scenario_from(seed)
    cut = Cut(chance, at, down_ms, carry)
    found = play(scenario, cut, traced=True, store=cut)
    assert cut.disk is not None
    return found, cut.disk


@cache
def _calls(seed: int) -> int:
    """How many calls of that world a cut can meet."""
    scenario, chance = scenario_from(seed)
    counted = Cut(chance)
    play(scenario, counted, store=counted)
    return max(counted.calls, 1)


def through(*stops: Where) -> Carry:
    """
    Write everything into the file that is the first of *stops*, move it from each of them to the
    next one, and read it from the last.
    """

    async def carried(disk: Disk) -> None:
        sealer = AeadSealer([new_key()])
        first, last = stops[0], stops[-1]
        assert isinstance(first, Path)
        await _write(first, sealer, disk)
        for here, there in pairwise(stops):
            async with AsyncExitStack() as stack:
                source, target = await _side(stack, here), await _side(stack, there)
                await move(source, target, lambda told: None, _no_files)
        _replace(disk, await _read(last, sealer, disk))

    return lambda disk: asyncio.run(carried(disk))


async def _no_files(rows: object) -> None:
    """Simulated steps leave none."""


async def _side(stack: AsyncExitStack, where: Where) -> Side:
    if isinstance(where, Path):
        return stack.enter_context(SqliteSide.opened(where, where.parent))
    return await stack.enter_async_context(PostgresSide.opened(where))


async def _opened(where: Where, sealer: Sealer) -> Store:
    if isinstance(where, Path):
        return await SqliteStore.open(where, sealer=sealer)
    return await PostgresStore.open(where, sealer=sealer)


async def _write(path: Path, sealer: Sealer, disk: Disk) -> None:
    """What is on *disk* as a store of that file would keep it."""
    rows, chain = disk.tables, audit_chain(Overlay(disk))
    assert not rows[NODES.name]
    await (await SqliteStore.open(path, sealer=sealer)).close()
    begin = "UPDATE audit_chain SET id = ?, start_number = ?, start_hash = ?, end_number = ?,"
    start = (chain.start.number, chain.start.hash)
    _execute(path, [(f"{begin} end_hash = ?", (chain.id, *start, *start))])
    store = await SqliteStore.open(path, sealer=sealer)
    async with store.unit() as unit:
        for workflow_id, at_once in rows[LIMITS.name].items():
            unit.limit_group(str(workflow_id), at_once)
        for kind in KINDS:
            for record in rows[kind.name].values():
                unit.put(attrs.evolve(record, version=0))
        for log in rows[EVENTS.name].values():
            for event in log:
                unit.append(event)
        for log in rows[LOGS.name].values():
            for line in log:
                unit.log(line)
        for tally in rows[TALLIES.name].values():
            for _ in range(tally.count):
                unit.tally(tally.webhook_id, tally.date, tally.status, tally.last_at)
        for delivery in rows[DELIVERIES.name].values():
            unit.deliver(delivery)
        for entry in sorted(rows[AUDIT.name].values(), key=lambda one: one.number):
            unit.append(read_entry(entry.text), entry.record)
        await unit.commit()
    await store.close()
    _execute(path, _what_only_the_store_knows(rows))


def _execute(path: Path, statements: Iterable[tuple[str, Row]]) -> None:
    connection = connect_writer(path)
    connection.execute("BEGIN IMMEDIATE")
    for sql, values in statements:
        connection.execute(sql, values)
    connection.execute("COMMIT")
    connection.close()


def _what_only_the_store_knows(rows: Mapping[str, Any]) -> Iterable[tuple[str, Row]]:
    for kind in KINDS:
        found = " AND ".join(f"{name} = ?" for name in kind.key)
        for record in rows[kind.name].values():
            set_version = f"UPDATE {_table(kind)} SET version = ? WHERE {found}"
            yield set_version, (record.version, *kind.key_of(record))
    for id, until in rows[LEASES.name].items():
        yield "UPDATE executions SET lease_until = ? WHERE id = ?", (until, id)
    for owner_id, at in rows[SERVED.name].items():
        yield "INSERT INTO served (owner_id, at) VALUES (?, ?)", (owner_id, at)


def _table(kind: RecordKind) -> str:
    return "executions" if kind.type is Execution else TABLE_OF[kind.type]


async def _read(where: Where, sealer: Sealer, disk: Disk) -> Changes:
    """What a store at *where* finds there, by table and key."""
    found: Changes = {name: {} for name in disk.tables}
    async with AsyncExitStack() as stack:
        side = await _side(stack, where)

        async def rows(table: str, *columns: str) -> list[Row]:
            return await side.between(KeyRange(table, columns))

        for name, table, *columns in OF_THE_STORE:
            pairs = await rows(table, *columns)
            found[name] = {id: value for id, value in pairs if value is not None}
        keys = {kind: await rows(_table(kind), *kind.key) for kind in KINDS}
        logged = {str(row[0]) for row in await rows("events", "execution_id")}
    store = await _opened(where, sealer)
    async with store.view() as view:
        for kind in KINDS:
            for key in keys[kind]:
                found[kind.name][key if key[1:] else key[0]] = await view.get(kind.type, *key)
        await _read_logs(view, logged, found)
    await store.close()
    return found


async def _read_logs(view: View, executions: Iterable[str], found: Changes) -> None:
    """Of *executions*, of the webhooks that were found, and of the audit."""
    for id in executions:
        found[EVENTS.name][id] = tuple(await view.events.of_execution(id, 0, ALL))
        if lines := await view.logs.of_execution(id, 0, ALL):
            found[LOGS.name][id] = tuple(lines)
    for id in map(str, found[WEBHOOKS.name]):
        for tally in await view.webhooks.tallies(id):
            found[TALLIES.name][tally.webhook_id, tally.date, tally.status] = tally
        for delivery in await view.webhooks.deliveries(id):
            found[DELIVERIES.name][delivery.id] = delivery
    for entry in await view.audit.chained(0, ALL):
        found[AUDIT.name][read_entry(entry.text).id] = entry
        found[CHAIN.name] = {"": await view.audit.chain()}


def _replace(disk: Disk, found: Changes) -> None:
    """Nothing of what was on *disk* stays, but for the order, which says nothing."""
    for name, table in disk.tables.items():
        order = {key: place for place, key in enumerate(table)}
        table.clear()
        table.update(sorted(found[name].items(), key=lambda row: order.get(row[0], len(order))))
