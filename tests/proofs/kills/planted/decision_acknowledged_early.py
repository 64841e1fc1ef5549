"""The 200 of a decision is sent before the decision is stored. AP-6."""

from tests.proofs.kills.planted.acknowledged_early import acknowledge_early
from wfcore.usecases.approvals import deciding


def plant() -> None:
    acknowledge_early(deciding, "_decide")
