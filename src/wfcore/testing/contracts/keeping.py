"""How the contracts put records into a store under test."""

from typing import Any

from wfcore.model.event import AuditEntry, Event
from wfcore.ports.store import Store, Unit


def collect(unit: Unit, *records: Any) -> None:
    """Put every record (append every log entry) into *unit*."""
    for record in records:
        if isinstance(record, Event | AuditEntry):
            unit.append(record)
        else:
            unit.put(record)


async def keep(store: Store, *records: Any) -> None:
    """Store every record in one unit."""
    async with store.unit() as unit:
        collect(unit, *records)
        await unit.commit()
