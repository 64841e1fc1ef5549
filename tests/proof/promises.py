"""What the server has promised by its answers, and what was asked of it without an answer."""

from collections import Counter
from typing import Any

from attrs import Factory, define, field, frozen


@frozen
class Start:
    """One start as it was sent: always under the same key, tag and body, however often."""

    tag: str
    path: str
    api_key: str = field(repr=False)
    body: dict[str, Any]


@define
class Promises:
    """
    `started`: tag -> the execution of the first 202. `decided`: approval -> the status of the
    200. `asked`: approval -> every status that was asked for, answered or not; likewise
    `to_cancel` beside `cancelled`. `broken`: what was already seen to be wrong.
    """

    sent: dict[str, Start] = Factory(dict)
    started: dict[str, str] = Factory(dict)
    asked: dict[str, set[str]] = Factory(dict)
    decided: dict[str, str] = Factory(dict)
    to_cancel: set[str] = Factory(set)
    cancelled: set[str] = Factory(set)
    counts: Counter[str] = Factory(Counter)
    broken: list[str] = Factory(list)

    def accepted(self, start: Start, execution_id: str, replayed: bool) -> None:
        """A 202 was read."""
        first = self.started.setdefault(start.tag, execution_id)
        if first != execution_id:
            self.broken.append(f"another answer: {start.tag} was {first}, now {execution_id}")
        self.counts["replayed" if replayed else "started"] += 1

    def answered(self, approval_id: str, status: str) -> None:
        """A decision got its 200."""
        if approval_id in self.decided:
            self.broken.append(f"decided twice: {approval_id}")
        self.decided[approval_id] = status
        self.counts[status] += 1

    @property
    def unanswered(self) -> list[Start]:
        """Starts that may or may not have been accepted."""
        return [start for tag, start in self.sent.items() if tag not in self.started]
