"""The 200 of a cancel is sent before the cancel is stored. EX-7."""

from tests.proofs.kills.planted.acknowledged_early import acknowledge_early
from wfcore.usecases.executions import executions


def plant() -> None:
    acknowledge_early(executions, "cancel_execution")
