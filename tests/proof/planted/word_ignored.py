"""Recovery does not look at `onInterrupt`. EX-25."""

from wfcore.rules.execution import interruption


def plant() -> None:
    interruption._refused = lambda run, definition: None
