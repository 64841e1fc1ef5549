"""Recovery starts interrupted steps again, whoever asked for the execution. EX-14."""

from wfcore.rules import execution


def plant() -> None:
    execution._resumable = lambda run: True
