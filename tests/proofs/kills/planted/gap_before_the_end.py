"""The terminal event leaves a gap in the numbers. EX-20."""

from typing import Any

from attrs import evolve

from wfcore.model.event import Event, EventKind
from wfcore.rules.execution import fold

ENDS = {EventKind.EXECUTION_COMPLETED, EventKind.EXECUTION_CANCELLED}


def plant() -> None:
    numbered = fold._numbered

    def with_gap(*args: Any) -> tuple[Event, ...]:
        return tuple(
            evolve(event, number=event.number + (event.kind in ENDS)) for event in numbered(*args)
        )

    fold._numbered = with_gap  # type: ignore[assignment]
