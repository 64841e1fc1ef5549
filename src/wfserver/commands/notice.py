"""`wfcore notice`: the notices that were sent, that are due, and that were given up."""

from typing import TYPE_CHECKING, Any

import click

from wfcore.model.notice import NoticeStatus
from wfcore.usecases.administration import server
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup, Member, limit, pass_invocation
from wfserver.terminal.output import instant, put_answer, put_fields, put_json, put_table, say

if TYPE_CHECKING:
    from wfserver.compose import System


@click.group("notice", cls=CommandGroup)
def notice_command() -> None:
    """Notices: mail and messages to chats. What is due is sent by the running server."""


@notice_command.command("list")
@click.option("--status", type=Member(NoticeStatus), multiple=True, help="Only these. Repeatable.")
@limit
@pass_invocation
def list_(invocation: Invocation, status: tuple[NoticeStatus, ...], limit: int) -> None:
    """Notices, newest first. FAILED ones were given up."""

    found = invocation.perform(server.list_notices, status=status, limit=limit)
    put_answer(invocation.json, found, _table)


def _table(found: Any) -> None:
    rows = [
        (
            one["id"],
            one["status"],
            one["kind"],
            one["to"] or one["channel"],
            instant(one["dueAt"]),
            one["lastError"],
        )
        for one in found["items"]
    ]
    put_table(("id", "status", "about", "to", "due", "last error"), rows, found["total"])


@notice_command.command("retry")
@click.argument("id")
@pass_invocation
def retry(invocation: Invocation, id: str) -> None:
    """Try a notice again that was given up."""
    put_answer(invocation.json, invocation.perform(server.retry_notice, id=id), _put)


def _put(notice: Any) -> None:
    put_fields({"id": notice["id"], "status": notice["status"], "due": instant(notice["dueAt"])})


@notice_command.command("test")
@click.argument("channel", default="mail")
@click.option("--to", default="", metavar="EMAIL", help="Who gets the mail.")
@pass_invocation
def test(invocation: Invocation, channel: str, to: str) -> None:
    """Send a test over CHANNEL, and say what came of it; with --url the server sends it."""
    if invocation.elsewhere is not None:
        made = invocation.perform(server.try_notice, channel=channel, to=to)
        put_answer(invocation.json, made, _put)
        return
    from wfserver.notices import try_channel

    async def job(system: "System") -> str:
        return await try_channel(system.settings, system.services, channel, to)

    answer = invocation.work_in(job, fresh=True)
    if invocation.json:
        put_json({"ok": True, "channel": channel, "answer": answer})
    else:
        say(f"{channel}: {answer}")
