"""Recovery starts interrupted steps again, whoever asked for the execution. EX-14."""

from wfcore.rules.execution import interruption


def plant() -> None:
    interruption.obstacle = lambda run, definition: None
