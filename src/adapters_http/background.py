"""Work that continues after the response to its request."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger("wfcore.http")

_MOST = 32


class BackgroundTasks:
    """
    The tasks that outlive their requests. There are only a few at a time; further tasks are
    dropped, and the drop is logged.
    """

    def __init__(self) -> None:
        self._tasks = set[asyncio.Task[None]]()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Run *work*. Of an exception only the type is logged."""
        if len(self._tasks) >= _MOST:
            work.close()
            log.error("aside.full")
            return
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("aside.failed", extra={"error": type(error).__name__})
