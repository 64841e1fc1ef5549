"""
No heartbeat: a server neither keeps its leases nor notices that it lost them.

No bug by itself, for the fencing numbers hold without it; it clears the way to them. EX-16.
"""

from adapters_runtime.engine.worker import Worker


def plant() -> None:
    async def nothing(self: Worker) -> None: ...

    Worker.keep_leases = nothing  # type: ignore[method-assign]
