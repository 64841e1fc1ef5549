"""Idempotency keys are kept in the memory of the process alone. IK-1."""

from attrs import evolve

from adapters_store.sqlite.records import Replays
from wfcore.model.replay import Replay


def plant() -> None:
    kept: dict[tuple[str, str], Replay] = {}

    async def get(self: Replays, scope: str, key: str) -> Replay | None:
        return kept.get((scope, key))

    def put(self: Replays, record: Replay) -> None:
        kept[record.scope, record.key] = evolve(record, version=record.version + 1)

    Replays.get = get  # type: ignore[method-assign]
    Replays.put = put  # type: ignore[method-assign]
