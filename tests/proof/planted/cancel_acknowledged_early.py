"""The 200 of a cancel is sent before the cancel is stored. EX-7."""

from proof.planted.acknowledged_early import acknowledge_early
from wfcore.usecases import executions


def plant() -> None:
    acknowledge_early(executions, "cancel_execution")
