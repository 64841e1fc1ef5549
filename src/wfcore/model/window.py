"""Windows of a quota. Spec: rate limits."""

from attrs import frozen

from wfcore.time import EpochMs


@frozen
class Window:
    """
    One quota window: `kind` is "minute" or "day", [`start`, `end`) in epoch ms.

    `limit` None: unlimited, but counted.
    """

    kind: str
    start: EpochMs
    end: EpochMs
    limit: int | None


@frozen
class Taken:
    """
    The result of one attempt. `full`: the kinds of the windows that were full (empty: admitted);
    `counts`: what each window has admitted, including this one, in order.
    """

    full: tuple[str, ...]
    counts: tuple[int, ...]

    @property
    def admitted(self) -> bool:
        return not self.full
