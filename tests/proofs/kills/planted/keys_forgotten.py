"""Idempotency keys are kept in the memory of the process alone. IK-1."""

from typing import Any

from attrs import evolve

from adapters_store.sqlite.unit import SqliteUnit
from wfcore.model.execution import Replay


def plant() -> None:
    kept: dict[tuple[Any, ...], Replay] = {}
    read, write = SqliteUnit.get, SqliteUnit.put

    async def get(self: SqliteUnit, kind: type[Any], *key: Any) -> Any:
        return kept.get(key) if kind is Replay else await read(self, kind, *key)

    def put(self: SqliteUnit, record: Any) -> None:
        if isinstance(record, Replay):
            kept[record.scope, record.key] = evolve(record, version=record.version + 1)
        else:
            write(self, record)

    SqliteUnit.get = get  # type: ignore[method-assign]
    SqliteUnit.put = put  # type: ignore[method-assign]
