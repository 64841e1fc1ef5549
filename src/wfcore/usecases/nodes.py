"""Nodes: processes that run executions, announce themselves, and can be drained."""

from collections.abc import Sequence
from enum import StrEnum

from attrs import evolve

from wfcore.errors import NotFound
from wfcore.model.access import Principal, Unrestricted
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
"""The time for which nodes that ended without notice are kept."""
LOOKED_AT = 2_000
_PAGE = 200


class NodeState(StrEnum):
    """
    The state of a node. SERVING: the node takes no executions and serves the API. GONE: the node
    ended without notice, less than `FORGOTTEN_MS` ago.
    """

    TAKING = "taking"
    SERVING = "serving"
    DRAINING = "draining"
    GONE = "gone"


def state_of(node: Node, now: EpochMs) -> NodeState | None:
    """
    The state of *node*; None for a node that has been gone for longer than `FORGOTTEN_MS`. *now*:
    the store's time.
    """
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
    Keep *node* alive for another `NODE_LEASE_MS`; returns its record, including a `draining` that
    was set in the meantime.
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
    """
    Delete the record of the node, which is ending, and the records of nodes that have been gone for
    long.
    """
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
    """All nodes with their states, by id, including nodes that only serve the API or are gone."""
    now = services.store.now()
    async with services.store.view() as view:
        found = [(node, state_of(node, now)) for node in await view.nodes.list()]
    return [(node, state) for node, state in found if state is not None]


async def tell_of_waiting(services: Services, report: Report = at_once) -> int:
    """
    Write one notice for each execution that no node can run, among the oldest `LOOKED_AT` waiting
    executions. Returns the number of new notices. NT-9.
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
    who: Principal | Unrestricted,
    node_id: str,
    draining: bool = True,
    origin: Origin = UNKNOWN,
) -> Node:
    """
    Drain the node: it takes no more executions and continues with its present executions. With
    *draining* False, the node takes executions again. Raises `NotFound`.
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
