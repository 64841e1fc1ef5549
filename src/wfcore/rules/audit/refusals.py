"""
Repeated refusals: the first refusal of a minute is recorded, further refusals are counted. AL-8.
"""

from collections.abc import Sequence

from attrs import define, evolve, field, frozen

from wfcore.errors import AuthReason
from wfcore.model.event import AuditEntry
from wfcore.rules.auth.session import one_client
from wfcore.time import MINUTE, EpochMs

MOST = 256
"""The kinds of refusals that are counted separately in one minute, in one process."""
NOT_FOUND = "not_found"
"""The reason in an entry about a record that its caller does not see, or that does not exist."""
SHOWN = 200
"""The characters of a path or target in an entry."""

Kind = tuple[str, str | None, str | None, str | None]
"""
The event, the client (for a decision: the account or guest), the reason, and the key, webhook or
approval in question.
"""


@frozen
class RepeatedRefusals:
    """
    The refusals of one kind after the recorded refusal: the `last` of them, and their `count`.
    """

    last: AuditEntry
    count: int


@define
class RefusalTraffic:
    """
    Counts the refusals of the current minute in one process. Beyond `MOST` kinds, clients are
    counted together, so that nobody fills the log or this record by using many addresses.
    """

    _minute: EpochMs = EpochMs(-1)
    _of: dict[Kind, RepeatedRefusals] = field(factory=dict)

    def is_first(self, entry: AuditEntry) -> bool:
        """
        Count *entry*. Returns whether *entry* is the first of its kind in this minute. Call `over`
        first.
        """
        kind = kind_of(entry)
        if kind not in self._of and len(self._of) >= MOST:
            entry = evolve(entry, ip=None, key_id=None, account_id=None)
            kind = (entry.event, None, entry.reason, None)
        known = self._of.get(kind)
        self._of[kind] = RepeatedRefusals(entry, known.count + 1 if known else 0)
        return known is None

    def over(self, now: EpochMs | None) -> Sequence[RepeatedRefusals]:
        """
        The repeated refusals of the counted minute, once that minute is over at *now*; with *now*
        None, at once. The count then begins anew.
        """
        minute = None if now is None else EpochMs(now - now % MINUTE)
        if minute is not None and minute == self._minute:
            return ()
        found = [one for one in self._of.values() if one.count]
        self._minute = EpochMs(-1) if minute is None else minute
        self._of.clear()
        return found


def kind_of(entry: AuditEntry) -> Kind:
    """
    The kind as which *entry* counts. The caller chooses the id of an unknown key and any target
    except a webhook or an approval that the caller sees, so neither makes a kind of its own.
    """
    if entry.event.startswith("approval."):
        seen = "" if entry.reason == NOT_FOUND else entry.target
        return entry.event, entry.account_id, entry.reason, seen
    about = None if entry.reason == AuthReason.UNKNOWN_KEY else entry.key_id
    if about is None and entry.event == "webhook.trigger":
        about = entry.target
    return entry.event, entry.ip and one_client(entry.ip), entry.reason, about
