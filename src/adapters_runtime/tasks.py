"""Tasks of asyncio, and their cancellation."""

import asyncio


def is_cancelled() -> bool:
    """Whether a cancellation is of this task itself, and not of a task that this task awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
