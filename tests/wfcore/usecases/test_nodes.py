"""Nodes on record: alive while they say so, drained by others' wish, forgotten when they end."""

import pytest
from attrs import evolve

from wfcore.errors import NotFound
from wfcore.model.access import OPERATOR
from wfcore.model.node import Node
from wfcore.time import HOUR, EpochMs
from wfcore.usecases.audit.auditing import read_audit
from wfcore.usecases.nodes import (
    FORGOTTEN_MS,
    NODE_LEASE_MS,
    NodeState,
    announce_node,
    drain_node,
    known_nodes,
    list_nodes,
    state_of,
    withdraw_node,
)

from .conftest import World


def node(name: str) -> Node:
    return Node(name, "here", places=1, started_at=EpochMs(0))


async def test_only_a_node_that_ends_is_taken_back(world: World) -> None:
    """And with it those that have been silent for an hour; one that is alive stays."""
    for name in ("silent", "first"):
        await announce_node(world.services, node(name))
    world.clock.advance(NODE_LEASE_MS + HOUR)
    await announce_node(world.services, node("first"))
    await announce_node(world.services, node("second"))
    async with world.services.store.view() as view:
        assert {one.id for one in await view.nodes.list()} == {"silent", "first", "second"}
    world.clock.advance(1)
    await withdraw_node(world.services, "second")
    async with world.services.store.view() as view:
        assert [one.id for one in await view.nodes.list()] == ["first"]


def test_a_node_that_is_silent_is_gone() -> None:
    """One that was killed takes nothing any more; after an hour it is not listed. One without
    places serves the API alone."""
    now = EpochMs(10 * HOUR)
    taking = evolve(node("n"), seen_until=now)
    assert state_of(taking, now) is NodeState.TAKING
    assert state_of(evolve(taking, draining=True), now) is NodeState.DRAINING
    assert state_of(evolve(taking, places=0), now) is NodeState.SERVING
    assert state_of(evolve(taking, seen_until=EpochMs(now - 1)), now) is NodeState.GONE
    assert state_of(evolve(taking, seen_until=EpochMs(now - FORGOTTEN_MS - 1)), now) is None


async def test_an_announcement_keeps_what_an_operator_asked_for(world: World) -> None:
    """A node learns by it that it drains, until it is told to go on; both are on record."""
    await announce_node(world.services, node("first"))
    for draining in (True, False):
        await drain_node(world.services, OPERATOR, "first", draining)
        assert (await announce_node(world.services, node("first"))).draining is draining
    said = [one.event for one in await read_audit(world.services, EpochMs(0), None, 99)]
    assert said == ["node.drain", "node.resume"]
    assert world.hints.told == [("reload", "first")] * 2


async def test_each_server_is_known_with_its_state(world: World) -> None:
    """One that only serves the API takes nothing; one that is silent is gone, then forgotten."""
    api = evolve(node("api"), places=0, able=(), address="127.0.0.1:8000")
    for one in (api, node("works"), node("drains")):
        await announce_node(world.services, one)
    await drain_node(world.services, OPERATOR, "drains")
    with pytest.raises(NotFound):
        await drain_node(world.services, OPERATOR, "api")
    assert [one.id for one in await list_nodes(world.services)] == ["drains", "works"]
    states = {"api": "serving", "drains": "draining", "works": "taking"}
    assert {one.id: state for one, state in await known_nodes(world.services)} == states
    world.clock.advance(NODE_LEASE_MS + 1)
    assert {state for _, state in await known_nodes(world.services)} == {"gone"}
    world.clock.advance(FORGOTTEN_MS)
    assert await known_nodes(world.services) == []


async def test_a_node_that_is_gone_is_told_nothing(world: World) -> None:
    """At the end of its lease it is still there, a moment later it is not."""
    await announce_node(world.services, node("first"))
    world.clock.advance(NODE_LEASE_MS)
    assert [one.id for one in await list_nodes(world.services)] == ["first"]
    await drain_node(world.services, OPERATOR, "first")
    world.clock.advance(1)
    assert not await list_nodes(world.services)
    for id in ("first", "nobody"):
        with pytest.raises(NotFound):
            await drain_node(world.services, OPERATOR, id)
