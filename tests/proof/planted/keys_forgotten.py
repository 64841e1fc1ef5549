"""An idempotency key never finds its first answer. IK-1."""

from typing import Any

from wfcore.usecases import starting


def plant() -> None:
    async def nothing(*_: Any) -> None:
        return None

    starting._first_answer = nothing  # type: ignore[assignment]
