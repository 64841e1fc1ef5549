"""Notices for operators: listing, retries, tests. NT-7."""

from wfcore.errors import Conflict, InvalidInput, NotFound
from wfcore.model.access import Principal, Unrestricted
from wfcore.model.notice import Notice, NoticeKind, NoticeStatus
from wfcore.model.page import Page, PageRequest
from wfcore.rules.notices.delivery import tried_again
from wfcore.rules.notices.facts import MAIL, notices
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried


async def list_notices(
    services: Services, page: PageRequest, statuses: tuple[NoticeStatus, ...] = ()
) -> Page[Notice]:
    """All notices with one of *statuses* (empty: any status), newest first. For operators."""
    async with services.store.view() as view:
        return await view.notices.list(statuses, page)


@retried
async def retry_notice(
    services: Services, who: Principal | Unrestricted, notice_id: str, origin: Origin = UNKNOWN
) -> Notice:
    """
    Make a notice that was given up due at once; its count of attempts begins again.

    Raises `NotFound`; `Conflict` for a notice that was not given up.
    """
    async with services.store.unit() as unit:
        notice = await unit.get(Notice, notice_id)
        if notice is None:
            raise NotFound("Notice")
        if notice.status is not NoticeStatus.FAILED:
            raise Conflict(f"The notice is {notice.status}; only one that is FAILED is retried")
        again = tried_again(notice, services.store.now())
        unit.put(again)
        note(services, unit, "notice.retry", who, notice_id, origin)
        await unit.commit()
    services.wakeup.timer()
    return again


@retried
async def send_test(
    services: Services,
    who: Principal | Unrestricted,
    channel: str,
    to: str = "",
    origin: Origin = UNKNOWN,
) -> Notice:
    """
    Send a notice without content, as a test. Raises `InvalidInput` for a channel that is not set up
    here, and for a mail without a recipient.
    """
    if channel not in services.policy.channels:
        known = ", ".join(sorted(services.policy.channels)) or "none is set up"
        raise InvalidInput("channel", f"there is no channel {channel!r}; there are: {known}")
    if channel == MAIL and "@" not in to:
        raise InvalidInput("to", "must be an email address")
    now = services.store.now()
    test = services.ids.new("test", services.clock.now())
    (made,) = notices(NoticeKind.TEST, test, (channel,), (to,), now)
    async with services.store.unit() as unit:
        unit.put(made)
        note(services, unit, "notice.test", who, made.id, origin)
        await unit.commit()
    services.wakeup.timer()
    return made
