"""Nodes: processes that run executions announce themselves, and can be drained."""

from collections.abc import Sequence
from enum import StrEnum

from attrs import evolve

from wfcore.errors import NotFound
from wfcore.model.access import Principal
from wfcore.model.execution import ExecutionStatus
from wfcore.model.node import Node
from wfcore.model.page import OLDEST, PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.rules.explain.queue import waits_for_a_node, working
from wfcore.time import HOUR, MINUTE, DurationMs, EpochMs, later
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.notices.telling import tell_waiting
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import Report, apart, at_once, retried

NODE_LEASE_MS = DurationMs(MINUTE)
FORGOTTEN_MS = DurationMs(HOUR)
"""How long nodes that are gone without a word are kept."""
LOOKED_AT = 2_000
_PAGE = 200


class NodeState(StrEnum):
    """
    SERVING: it takes no executions, and serves the API. GONE: it ended without a word, less than
    `FORGOTTEN_MS` ago.
    """

    TAKING = "taking"
    SERVING = "serving"
    DRAINING = "draining"
    GONE = "gone"


def state_of(node: Node, now: EpochMs) -> NodeState | None:
    """*now*: the store's time. None: it has been gone for so long that it is forgotten."""
    if node.seen_until < now - FORGOTTEN_MS:
        return None
    if node.seen_until < now:
        return NodeState.GONE
    if not node.places:
        return NodeState.SERVING
    return NodeState.DRAINING if node.draining else NodeState.TAKING


@retried
async def announce_node(services: Services, node: Node) -> Node:
    """
    Keep *node* alive for another `NODE_LEASE_MS`; returns its record, with `draining` if others set
    it.
    """
    now = services.store.now()
    async with services.store.unit() as unit:
        known = await unit.get(Node, node.id)
        said = evolve(node, seen_until=later(now, NODE_LEASE_MS))
        if known is not None:
            said = evolve(said, draining=known.draining, version=known.version)
        unit.put(said)
        await unit.commit()
    return said


@retried
async def withdraw_node(services: Services, node_id: str) -> None:
    """The node ends, and so do, on record, those that have been gone for long."""
    now = services.store.now()
    async with services.store.unit() as unit:
        for node in await unit.nodes.list():
            if node.id == node_id or state_of(node, now) is None:
                unit.delete(node)
        await unit.commit()


async def list_nodes(services: Services) -> Sequence[Node]:
    """The nodes that take executions, by id. For operators."""
    async with services.store.view() as view:
        return working(await view.nodes.list(), services.store.now())


async def known_nodes(services: Services) -> Sequence[tuple[Node, NodeState]]:
    """All nodes with their states, by id; also those that only serve the API or are gone."""
    now = services.store.now()
    async with services.store.view() as view:
        found = [(node, state_of(node, now)) for node in await view.nodes.list()]
    return [(node, state) for node, state in found if state is not None]


async def tell_of_waiting(services: Services, report: Report = at_once) -> int:
    """
    Write a notice for each execution that no node can run, among the oldest `LOOKED_AT` that wait,
    once each. Returns the number of new notices. NT-9.
    """
    nodes, told, looked = await list_nodes(services), 0, 0
    now = services.store.now()
    where = ExecutionFilter(statuses=(ExecutionStatus.PENDING,), oldest_first=True)
    page: PageRequest | None = PageRequest(size=_PAGE, after=OLDEST)
    while nodes and page is not None and looked < LOOKED_AT:
        async with services.store.view() as view:
            found = await view.executions.list(where, page)
        for run in found.rows:
            if waits_for_a_node(run, nodes, now):
                with apart(report, "executions", run.id):
                    told += await tell_waiting(services, run)
        looked, page = looked + len(found.rows), found.rest
    if told:
        services.wakeup.timer()
    return told


@retried
async def drain_node(
    services: Services,
    who: Principal | None,
    node_id: str,
    draining: bool = True,
    origin: Origin = UNKNOWN,
) -> Node:
    """
    The node takes no more executions, and goes on with those that it has; with *draining* False it
    takes some again. Raises `NotFound`.
    """
    async with services.store.unit() as unit:
        node = await unit.get(Node, node_id)
        if node is None or not working([node], services.store.now()):
            raise NotFound("Node")
        told = evolve(node, draining=draining)
        unit.put(told)
        note(services, unit, "node.drain" if draining else "node.resume", who, node_id, origin)
        await unit.commit()
    services.wakeup.reload(node_id)
    return told
