"""
The loop that announces this process to the other processes on the store, and reads whether it
drains.
"""

import asyncio
from collections.abc import Callable

from adapters_runtime.engine.loops import Loop
from wfcore.model.node import Node
from wfcore.usecases.nodes import NODE_LEASE_MS, announce_node, withdraw_node
from wfcore.usecases.services import Services

POLL_S = 4.0
"""The longest time until this process learns that an operator drains it, if the hint is lost."""
_RENEWED_MS = NODE_LEASE_MS // 3
"""The age at which an announcement is renewed. Rounds before then only read, which is cheap."""


class NodePresence:
    """
    Announces *node* until `stop`. After each read of the node's record, calls *draining* with
    whether the node drains. A hint that the record changed causes a read at once.
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
        services.wakeup.listen(reload=self._on_hint)

    def _on_hint(self, id: str) -> None:
        if id == self._node.id:
            self.loop.due.set()

    async def run(self) -> None:
        """Announce until `stop` of `loop`."""
        await self.loop.run()

    async def withdraw(self) -> None:
        """Delete the announcement, because this process takes no more executions."""
        await withdraw_node(self._services, self._node.id)

    async def _round(self) -> float:
        store = self._services.store
        async with store.view() as view:
            known = await view.get(Node, self._node.id)
        if known is None or known.seen_until - store.now() <= NODE_LEASE_MS - _RENEWED_MS:
            known = await announce_node(self._services, self._node)
        self._draining(known.draining)
        return POLL_S if self._node.places else _RENEWED_MS / 1_000
