"""Windows of a quota. Spec: rate limits."""

from attrs import frozen

from wfcore.time import EpochMs


@frozen
class Window:
    """
    One window of a quota: `kind` is "minute" or "day", [`start`, `end`) in epoch ms.

    `limit` None: unlimited (counted all the same).
    """

    kind: str
    start: EpochMs
    end: EpochMs
    limit: int | None


@frozen
class Taken:
    """
    What came of one attempt. `full` holds the kinds of the windows that were full
    (empty: admitted), `counts` what each window had admitted, this one included, in order.
    """

    full: tuple[str, ...]
    counts: tuple[int, ...]

    @property
    def admitted(self) -> bool:
        return not self.full
