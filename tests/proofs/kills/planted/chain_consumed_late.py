"""A chain's start and the end of its timer are two units of work. CH-1."""

from tests.proofs.kills.planted.consumed_late import consume_late
from wfcore.model.trigger import Chain


def plant() -> None:
    consume_late(Chain)
