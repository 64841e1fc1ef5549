"""
No heartbeat: a server neither keeps its leases nor notices that it lost them.

No bug by itself, for the fencing numbers hold without it; it clears the way to them. EX-16.
"""

from adapters_runtime.engine.worker import Dispatcher


def plant() -> None:
    async def nothing(self: Dispatcher) -> None: ...

    Dispatcher.keep_leases = nothing  # type: ignore[method-assign]
