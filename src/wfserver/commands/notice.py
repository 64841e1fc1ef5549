"""`wfcore notice`: who was told of what, and who could not be."""

import click

from wfcore.model.notice import Notice, NoticeStatus
from wfcore.model.page import Page, PageRequest
from wfcore.usecases.notices import managing
from wfcore.usecases.services import Services
from wfcore.wire.converter import plain
from wfcore.wire.notices import notice_view
from wfserver.terminal.invocation import Session
from wfserver.terminal.lookup import AT_THE_COMMAND_LINE
from wfserver.terminal.options import Group, Member, limit, pass_session
from wfserver.terminal.output import instant, put_fields, put_json, put_list, put_table


@click.group("notice", cls=Group)
def notice_command() -> None:
    """Notices: mail and messages to chats. What is due is sent by the running server."""


@notice_command.command("list")
@click.option("--status", type=Member(NoticeStatus), multiple=True, help="Only these. Repeatable.")
@limit
@pass_session
def list_(session: Session, status: tuple[NoticeStatus, ...], limit: int) -> None:
    """Notices, newest first. FAILED ones were given up."""

    async def job(services: Services) -> Page[Notice]:
        return await managing.list_notices(services, PageRequest(1, limit), status)

    found = session.work(job)
    if session.json:
        put_list([plain(notice_view(one)) for one in found.rows], found.total)
        return
    rows = [
        (one.id, one.status, one.kind, one.to or one.channel, instant(one.due_at), one.last_error)
        for one in found.rows
    ]
    put_table(("id", "status", "about", "to", "due", "last error"), rows, found.total)


@notice_command.command("retry")
@click.argument("id")
@pass_session
def retry(session: Session, id: str) -> None:
    """Try a notice again that was given up."""

    async def job(services: Services) -> Notice:
        return await managing.retry_notice(services, None, id, AT_THE_COMMAND_LINE)

    _show(session, session.work(job))


@notice_command.command("test")
@click.argument("channel", default="mail")
@click.option("--to", default="", metavar="EMAIL", help="Who gets the mail.")
@pass_session
def test(session: Session, channel: str, to: str) -> None:
    """Send a test over CHANNEL, here and now, and say what came of it."""
    from wfserver.notices import try_channel

    settings = session.settings()

    async def job(services: Services) -> str:
        return await try_channel(settings, services, channel, to)

    answer = session.work(job, fresh=True)
    if session.json:
        put_json({"ok": True, "channel": channel, "answer": answer})
    else:
        click.echo(f"{channel}: {answer}")


def _show(session: Session, notice: Notice) -> None:
    if session.json:
        put_json(plain(notice_view(notice)))
    else:
        put_fields({"id": notice.id, "status": notice.status, "due": instant(notice.due_at)})
