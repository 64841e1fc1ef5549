"""The 202 of a start is sent before the execution is stored. EX-1."""

from tests.proofs.kills.planted.acknowledged_early import acknowledge_early
from wfcore.usecases.executions import starting


def plant() -> None:
    acknowledge_early(starting, "start_execution")
