"""What the server has promised by its answers, and what was asked of it without an answer."""

from collections import Counter
from typing import Any

from attrs import Factory, define, frozen

from tests.proofs.kills.flows import NOTE, ROWS


@frozen
class Start:
    """One start as it was sent: always under the same key, tag and body, however often."""

    tag: str
    flow: str
    path: str
    body: dict[str, Any]
    by_webhook: bool = False


@frozen
class Answer:
    """What somebody says to an approval; with a *note* only one row is let go, and it says so."""

    verb: str
    note: str | None = None

    @property
    def status(self) -> str:
        """What the approval becomes by it."""
        return {"approve": "APPROVED", "reject": "REJECTED"}[self.verb]

    @property
    def body(self) -> dict[str, Any]:
        """What is sent."""
        row = {"order": ROWS[0], "note": self.note}
        return {"editedItems": {"rows": [row]}} if self.note else {}

    @property
    def released(self) -> str:
        """What the step behind the approval is given, as it writes it down."""
        return f"1*{self.note}" if self.note else f"{len(ROWS)}*{NOTE}"


@define
class Promises:
    """
    `started`: tag -> the execution of the first 202; `by_hand`: likewise, started beside the
    server. `decided`: approval -> the answer that got
    its 200. `asked`: approval -> every answer that was given, acknowledged or not; likewise
    `to_cancel` beside `cancelled`. `left`: execution -> the artifact that was seen of it;
    `results`: execution -> its whole result, as it was told.
    `broken`: what was already seen to be wrong.
    """

    sent: dict[str, Start] = Factory(dict)
    started: dict[str, str] = Factory(dict)
    by_hand: dict[str, str] = Factory(dict)
    asked: dict[str, list[Answer]] = Factory(dict)
    decided: dict[str, Answer] = Factory(dict)
    to_cancel: set[str] = Factory(set)
    cancelled: set[str] = Factory(set)
    left: dict[str, str] = Factory(dict)
    results: dict[str, Any] = Factory(dict)
    counts: Counter[str] = Factory(Counter)
    broken: list[str] = Factory(list)

    def accepted(self, start: Start, execution_id: str, replayed: bool) -> None:
        """A 202 was read."""
        first = self.started.setdefault(start.tag, execution_id)
        if first != execution_id:
            self.broken.append(f"another answer: {start.tag} was {first}, now {execution_id}")
        self.counts["replayed" if replayed else "started"] += 1

    def answered(self, approval_id: str, answer: Answer) -> None:
        """A decision got its 200."""
        if approval_id in self.decided:
            self.broken.append(f"decided twice: {approval_id}")
        self.decided[approval_id] = answer
        self.counts[answer.status] += 1
        self.counts["edited"] += answer.note is not None

    def fetched(self, tag: str, artifact_id: str, content: str) -> None:
        """The artifact of a start was downloaded."""
        execution_id = self.started[tag]
        first = self.left.setdefault(execution_id, artifact_id)
        if (artifact_id, content) != (first, f"{tag}\n"):
            self.broken.append(f"artifact: {first} of {tag} is {artifact_id}, {content!r}")
        self.counts["fetched"] += 1

    def told(self, execution_id: str, result: Any) -> None:
        """A result was read: it is for good."""
        first = self.results.setdefault(execution_id, result)
        if result != first:
            self.broken.append(f"other result: {execution_id} was {first}, now {result}")
        self.counts["results"] += 1

    @property
    def unanswered(self) -> list[Start]:
        """Starts that may or may not have been accepted."""
        return [start for tag, start in self.sent.items() if tag not in self.started]
