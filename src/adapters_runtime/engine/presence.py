"""The loop that announces this process to the others on the store, and hears of its draining."""

import asyncio
from collections.abc import Callable

from adapters_runtime.engine.loops import Loop
from wfcore.model.node import Node
from wfcore.usecases.nodes import NODE_LEASE_MS, announce_node, withdraw_node
from wfcore.usecases.services import Services

LOOK_S = 2.0
"""How long it may go unheard that an operator drains this process, whose hint may not arrive."""
_RENEWED_MS = NODE_LEASE_MS // 3
"""How old an announcement gets: a round only reads until then, which costs next to nothing."""


class Presence:
    """
    Announces *node* until it is stopped, then takes it back. *draining* is called with whether the
    node drains: after each read of its record, and as soon as a hint says that somebody changed it.
    """

    def __init__(
        self,
        services: Services,
        node: Node,
        draining: Callable[[bool], None] = lambda draining: None,
    ) -> None:
        self._services = services
        self._node = node
        self._draining = draining
        self.loop = Loop("presence", self._round, asyncio.Event())
        services.wakeup.listen(reload=self._look)

    def _look(self, id: str) -> None:
        if id == self._node.id:
            self.loop.due.set()

    async def run(self) -> None:
        """Announce until `stop` of its loop."""
        await self.loop.run()

    async def withdraw(self) -> None:
        """This process takes no more executions: take the announcement back."""
        await withdraw_node(self._services, self._node.id)

    async def _round(self) -> float:
        store = self._services.store
        async with store.view() as view:
            known = await view.get(Node, self._node.id)
        if known is None or known.seen_until - store.now() <= NODE_LEASE_MS - _RENEWED_MS:
            known = await announce_node(self._services, self._node)
        self._draining(known.draining)
        return LOOK_S if self._node.places else _RENEWED_MS / 1_000
