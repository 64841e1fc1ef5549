"""Bugs to plant in the mails of steps. See `planted`."""

from typing import Any

import pytest
from attrs import evolve

from wfcore.model.notice import Notice, NoticeKind
from wfcore.rules.notices import delivery
from wfcore.time import SECOND, later
from wfcore.usecases.executions import worker
from wfcore.usecases.notices import sending


def the_cancelled_get_mail(patch: pytest.MonkeyPatch) -> None:
    """What is due goes out, whether its step waits for it or not."""
    patch.setattr(sending, "is_awaited", lambda run, notice: True)


def mails_are_lost(patch: pytest.MonkeyPatch) -> None:
    """A step waits for a mail that nobody wrote."""

    async def send(services: Any, unit: Any, outcome: Any, now: Any, left: Any) -> Any:
        return outcome

    patch.setattr(worker, "send_mails", send)


def the_taken_goes_out_again(patch: pytest.MonkeyPatch) -> None:
    """A mail that was taken is recorded so, and due again."""
    once, awaited = delivery.sent, sending.is_awaited
    again: set[str] = set()

    def sent(notice: Notice) -> Notice:
        if notice.kind is not NoticeKind.STEP_MAIL or notice.id in again:
            return once(notice)
        again.add(notice.id)
        assert notice.attempted_at is not None
        return evolve(once(notice), due_at=later(notice.attempted_at, SECOND))

    patch.setattr(delivery, "sent", sent)
    patch.setattr(sending, "is_awaited", lambda run, one: one.id in again or awaited(run, one))
