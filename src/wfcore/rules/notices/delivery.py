"""
The delivery of notices: attempts, and the quiet rules. NT-4 to NT-6.

An attempt is recorded before it is made, with the instant of the next attempt, as for callbacks
(CB-3). So if a process dies in between, nothing is lost: the notice is sent again, under the same
id, which is its `Message-ID`.
"""

from collections.abc import Sequence

from attrs import evolve, field, frozen

from wfcore.model.notice import Notice, NoticeKind, NoticeStatus
from wfcore.time import DAY, HOUR, MINUTE, DurationMs, EpochMs, later

DELAYS = (
    DurationMs(MINUTE),
    DurationMs(5 * MINUTE),
    DurationMs(30 * MINUTE),
    DurationMs(2 * HOUR),
)
"""
The times from the beginning of one attempt to the next; after the fifth, the notice is given up.
NT-4.
"""
MOST_AT_ONCE = 5
QUIET = DurationMs(10 * MINUTE)
"""
At most `MOST_AT_ONCE` messages go to one address within this time; further messages become one
digest. NT-6.
"""
MOST_IN_DIGEST = 200


@frozen
class DeliveryChoice:
    """The way to deliver a notice: now, with `others` in one digest, or only at `at`."""

    others: tuple[Notice, ...] = field(factory=tuple)
    at: EpochMs | None = None


def due_now(notice: Notice, at_address: Sequence[Notice], now: EpochMs) -> DeliveryChoice:
    """
    The way to deliver the due *notice*. *at_address*: all notices of its address that are due at
    some time or were attempted in the last `QUIET`. NT-6.

    After an attempt with an unknown outcome, exactly the same message is sent again: a receiver
    that has it already may ignore the second copy by its id. The mail of a step is always a message
    of its own. ML-1.
    """
    if notice.sending or notice.kind is NoticeKind.STEP_MAIL:
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
    """Whether the notice waits and no attempt of it may have arrived."""
    return notice.due_at is not None and not notice.sending


def _was_put_off(notice: Notice) -> bool:
    return notice.attempts == 0 and notice.due_at != notice.created_at


def attempted(notice: Notice, others: Sequence[Notice], now: EpochMs) -> Notice:
    """
    The notice with an attempt that begins now, which includes *others*; stored before anything is
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
    """The notice as part of the message of *carrier*. NT-6."""
    return evolve(_over(notice, NoticeStatus.DIGESTED), digest=carrier.id)


def dropped(notice: Notice, why: str) -> Notice:
    """The notice, no longer needed. NT-5."""
    return _over(notice, NoticeStatus.DROPPED, why)


def sent(notice: Notice) -> Notice:
    """The notice after the receiver has accepted the message."""
    return _over(notice, NoticeStatus.SENT)


def _over(notice: Notice, status: NoticeStatus, why: str | None = None) -> Notice:
    return evolve(notice, status=status, due_at=None, sending=False, last_error=why)


def failed(notice: Notice, why: str, *, for_good: bool = False) -> Notice:
    """
    The notice after a failed attempt: due again at the recorded instant, or given up, after the
    fifth attempt or if another is of no use. NT-4.
    """
    if for_good or notice.attempts > len(DELAYS):
        return _over(notice, NoticeStatus.FAILED, why)
    return evolve(notice, last_error=why, sending=False)


def postponed(notice: Notice, why: str, at: EpochMs) -> Notice:
    """
    The notice after an attempt that does not count: the receiver said when to come again. After a
    day, such an attempt counts as failed. NT-4.
    """
    if at > later(notice.created_at, DAY):
        return failed(notice, why, for_good=True)
    return evolve(notice, attempts=notice.attempts - 1, due_at=at, last_error=why, sending=False)


def tried_again(notice: Notice, now: EpochMs) -> Notice:
    """A notice that was given up, due at once, with all attempts left. NT-7."""
    return evolve(notice, status=NoticeStatus.DUE, due_at=now, attempts=0)


def put_off(notice: Notice, at: EpochMs) -> Notice:
    """The notice, due when its address may get another message. NT-6."""
    return evolve(notice, due_at=at)
