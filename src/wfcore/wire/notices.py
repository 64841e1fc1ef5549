"""How the wire shows notices to operators. Contract §11."""

from collections.abc import Sequence

from attrs import define

from wfcore.model.notice import Notice, NoticeKind, NoticeStatus
from wfcore.wire.common import ListPage


@define(eq=False)
class NoticeView:
    """
    A notice. `to`: an email, or null where the channel is a room. `subject`: the id of what it is
    about. `dueAt`: when it is sent, or tried again; `digest`: the notice that it was told with.
    """

    id: str
    kind: NoticeKind
    status: NoticeStatus
    channel: str
    to: str | None
    subject: str
    execution_id: str | None
    created_at: int
    due_at: int | None
    attempts: int
    attempted_at: int | None
    last_error: str | None
    digest: str | None


@define(eq=False, kw_only=True)
class NoticePage(ListPage):
    notices: Sequence[NoticeView]


def notice_view(notice: Notice) -> NoticeView:
    """A notice without what it says."""
    return NoticeView(
        id=notice.id,
        kind=notice.kind,
        status=notice.status,
        channel=notice.channel,
        to=notice.to or None,
        subject=notice.subject,
        execution_id=notice.execution_id,
        created_at=notice.created_at,
        due_at=notice.due_at,
        attempts=notice.attempts,
        attempted_at=notice.attempted_at,
        last_error=notice.last_error,
        digest=notice.digest,
    )
