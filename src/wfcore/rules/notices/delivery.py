"""
How a notice is delivered: attempts, and the quiet rules. NT-4 to NT-6.

An attempt is on record before it is made, with the instant of the next one, as for callbacks
(CB-3). So a process that dies in between loses nothing: the notice is sent again, under the same
id, which is its `Message-ID`.
"""

from collections.abc import Sequence

from attrs import evolve, field, frozen

from wfcore.model.notice import Notice, NoticeStatus
from wfcore.time import DAY, HOUR, MINUTE, DurationMs, EpochMs, later

DELAYS = (
    DurationMs(MINUTE),
    DurationMs(5 * MINUTE),
    DurationMs(30 * MINUTE),
    DurationMs(2 * HOUR),
)
"""From the beginning of one attempt to the next; after the fifth it is given up. NT-4."""
MOST_AT_ONCE = 5
QUIET = DurationMs(10 * MINUTE)
"""So many messages go to one address within that time; what is more goes as one digest. NT-6."""
MOST_IN_DIGEST = 200


@frozen
class DeliveryChoice:
    """What is to be done: send the notice now, with `others` in one digest, or only at `at`."""

    others: tuple[Notice, ...] = field(factory=tuple)
    at: EpochMs | None = None


def due_now(notice: Notice, at_address: Sequence[Notice], now: EpochMs) -> DeliveryChoice:
    """
    How *notice*, which is due, is delivered. *at_address*: all of its address that are due some
    time or were attempted in the last `QUIET`. NT-6.

    After an attempt of which nobody knows the outcome the same is sent again, and nothing more: a
    receiver that has it already may pass over its id.
    """
    if notice.sending:
        return DeliveryChoice()
    since = later(now, -QUIET)
    sent = sorted(
        one.attempted_at
        for one in at_address
        if one.status is NoticeStatus.SENT
        and one.attempted_at is not None
        and one.attempted_at > since
    )
    if len(sent) >= MOST_AT_ONCE:
        return DeliveryChoice(at=later(sent[-MOST_AT_ONCE], QUIET))
    others = tuple(one for one in at_address if one.id != notice.id and _is_free(one))
    lines = sum(1 + len(one.gathered) for one in (notice, *others))
    if len(sent) + lines > MOST_AT_ONCE or _was_put_off(notice):
        return DeliveryChoice(others)
    return DeliveryChoice()


def _is_free(notice: Notice) -> bool:
    """Whether it waits, and no attempt of it may have arrived."""
    return notice.due_at is not None and not notice.sending


def _was_put_off(notice: Notice) -> bool:
    return notice.attempts == 0 and notice.due_at != notice.created_at


def attempted(notice: Notice, others: Sequence[Notice], now: EpochMs) -> Notice:
    """
    The notice with an attempt that begins now, which also tells *others*; stored before anything is
    sent. NT-4, NT-6.
    """
    attempts = notice.attempts + 1
    return evolve(
        notice,
        attempts=attempts,
        attempted_at=now,
        due_at=later(now, DELAYS[min(attempts, len(DELAYS)) - 1]),
        sending=True,
        gathered=(*notice.gathered, *(id for one in others for id in (one.id, *one.gathered))),
    )


def digested(notice: Notice, carrier: Notice) -> Notice:
    """The notice as one that is told within another one. NT-6."""
    return evolve(_over(notice, NoticeStatus.DIGESTED), digest=carrier.id)


def dropped(notice: Notice, why: str) -> Notice:
    """The notice as one that nobody needs any more. NT-5."""
    return _over(notice, NoticeStatus.DROPPED, why)


def sent(notice: Notice) -> Notice:
    """The notice after the other side has taken it."""
    return _over(notice, NoticeStatus.SENT)


def _over(notice: Notice, status: NoticeStatus, why: str | None = None) -> Notice:
    return evolve(notice, status=status, due_at=None, sending=False, last_error=why)


def failed(notice: Notice, why: str, *, for_good: bool = False) -> Notice:
    """
    The notice after a failed attempt: due again as its attempt said, or given up after the fifth
    and where trying again is of no use. NT-4.
    """
    if for_good or notice.attempts > len(DELAYS):
        return _over(notice, NoticeStatus.FAILED, why)
    return evolve(notice, last_error=why, sending=False)


def postponed(notice: Notice, why: str, at: EpochMs) -> Notice:
    """
    The notice after an attempt that does not count: the other side said when to come again. After
    a day it counts as failed all the same. NT-4.
    """
    if at > later(notice.created_at, DAY):
        return failed(notice, why, for_good=True)
    return evolve(notice, attempts=notice.attempts - 1, due_at=at, last_error=why, sending=False)


def tried_again(notice: Notice, now: EpochMs) -> Notice:
    """A notice that was given up, due at once, with all of its attempts before it. NT-7."""
    return evolve(notice, status=NoticeStatus.DUE, due_at=now, attempts=0)


def put_off(notice: Notice, at: EpochMs) -> Notice:
    """The notice, due only when its address may get another message. NT-6."""
    return evolve(notice, due_at=at)
