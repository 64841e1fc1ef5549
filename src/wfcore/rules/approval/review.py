"""
The rows of an approval as a person reviews them: what was proposed beside what stands now.

A reviewer sees every row that the workflow proposed, also those that an approver before has left
out, and may take each back: `released_rows` checks against the proposed rows, too. AP-28.
"""

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from wfcore.model.approval import Approval, Group, HistoryEntry
from wfcore.model.json import JsonObject
from wfcore.rules.approval.edited_items import key_text, original_rows, same


@frozen
class ReviewRow:
    """
    A row under review. `proposed` None: an approver has added it. `standing` None: one has left it
    out. `by`: who made the last difference; None if the row stands as it was proposed.
    """

    proposed: JsonObject | None
    standing: JsonObject | None
    by: str | None = None


def review_rows(approval: Approval, group: Group) -> tuple[ReviewRow, ...]:
    """
    The rows of *group*, in the order in which they were proposed, added ones last. AP-28.

    Without a row key a row can only be told by its place: if rows were left out, nobody knows
    which, and those that stand are shown as they are.
    """
    first = original_rows(approval)[group.name]
    if first is group.items:
        return tuple(ReviewRow(row, row) for row in first)
    if group.row_key is not None:
        return tuple(_by_key(approval, group, first, group.row_key))
    if len(first) != len(group.items):
        return tuple(ReviewRow(row, row) for row in group.items)
    last = _last_editor(approval)
    pairs = zip(first, group.items, strict=True)
    return tuple(ReviewRow(one, now, None if same(one, now) else last) for one, now in pairs)


def _by_key(
    approval: Approval, group: Group, first: Sequence[JsonObject], key: str
) -> Iterator[ReviewRow]:
    standing = _keyed(group.items, key)
    editors = _editors(approval, group.name, key)
    for row in first:
        text = key_text(row.get(key))
        now = standing.pop(text, None)
        yield ReviewRow(row, now, None if now is not None and same(row, now) else editors.get(text))
    for text, now in standing.items():
        yield ReviewRow(None, now, editors.get(text))


def _editors(approval: Approval, group: str, key: str) -> Mapping[str, str | None]:
    """Who last changed, left out or took back each row, by its key."""
    found: dict[str, str | None] = {}
    for entry in _edits(approval):
        before = _keyed((entry.rows_before or {}).get(group, ()), key)
        after = _keyed((entry.rows_after or {}).get(group, ()), key)
        for text in {**before, **after}:
            if not same(before.get(text), after.get(text)):
                found[text] = entry.by
    return found


def _edits(approval: Approval) -> Iterator[HistoryEntry]:
    return (entry for entry in approval.history if entry.rows_after is not None)


def _last_editor(approval: Approval) -> str | None:
    return next((entry.by for entry in reversed(tuple(_edits(approval)))), None)


def _keyed(rows: Sequence[JsonObject], key: str) -> dict[str, JsonObject]:
    return {key_text(row.get(key)): row for row in rows}
