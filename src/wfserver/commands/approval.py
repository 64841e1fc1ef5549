"""`wfcore approval`: what waits for people, decided by the operator."""

import click

from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.page import PageRequest
from wfcore.rules.approval import Approve, Reject
from wfcore.rules.quorum import items_hash
from wfcore.usecases import approvals
from wfcore.usecases.approvals import Decide
from wfcore.wire.converter import plain
from wfcore.wire.views import approval_detail, approval_view
from wfserver.finding import AT_THE_COMMAND_LINE
from wfserver.output import console, instant, put_fields, put_json, put_list, put_table
from wfserver.params import Group, Member, limit, pass_session
from wfserver.review import put_groups
from wfserver.session import Session


@click.group("approval", cls=Group)
def approval_command() -> None:
    """Approvals. The operator may decide each of them."""


@approval_command.command("list")
@click.option("--status", type=Member(ApprovalStatus), help="Only these.")
@limit
@pass_session
def list_(session: Session, status: ApprovalStatus | None, limit: int) -> None:
    """Approvals, newest first."""
    found = session.work(
        lambda services: approvals.list_approvals(services, None, PageRequest(1, limit), status)
    )
    if session.json:
        put_list([plain(approval_view(one)) for one in found.rows], found.total)
    else:
        heads = ("id", "step", "status", "expires", "message", "execution")
        put_table(heads, [_row(one) for one in found.rows], found.total)


@approval_command.command("show")
@click.argument("id")
@pass_session
def show(session: Session, id: str) -> None:
    """One approval with its rows."""
    _show(session, session.work(lambda services: approvals.read_approval(services, None, id)))


@approval_command.command("approve")
@click.argument("id")
@click.option("--comment", help="Kept in the approval's history.")
@click.option("--expect", metavar="HASH", help="Only if `show` still tells this itemsHash.")
@click.option("--alone", is_flag=True, help="Enough, however many approvals are required.")
@pass_session
def approve(
    session: Session, id: str, comment: str | None, expect: str | None, alone: bool
) -> None:
    """
    Release all rows as they are; the execution goes on.

    Where several approvals are required, the operator is one approver, unless --alone.
    """
    _decide(session, Decide(id, Approve(), DecisionSource.CONSOLE, comment, expect, alone))


@approval_command.command("reject")
@click.argument("id")
@click.option("--comment", help="Kept in the approval's history.")
@pass_session
def reject(session: Session, id: str, comment: str | None) -> None:
    """Stop the execution; no later step runs."""
    _decide(session, Decide(id, Reject(), DecisionSource.CONSOLE, comment))


def _decide(session: Session, asked: Decide) -> None:
    decided = session.work(
        lambda services: approvals.decide_approval(
            services, None, asked, origin=AT_THE_COMMAND_LINE
        )
    )
    if session.json:
        put_json(plain(approval_detail(decided)))
    else:
        click.echo(f"{decided.id} is {decided.status}{_still_needed(decided)}")


def _still_needed(approval: Approval) -> str:
    if approval.status is not ApprovalStatus.PENDING:
        return ""
    return f": {len(approval.assents)} of {approval.required_approvals} approvals"


def _show(session: Session, approval: Approval) -> None:
    if session.json:
        put_json(plain(approval_detail(approval)))
        return
    decided = approval.decided_at and (
        f"{instant(approval.decided_at)} by {approval.decided_by or approval.decision_source}"
    )
    put_fields(
        {
            "id": approval.id,
            "step": approval.step_name,
            "execution": approval.execution_id,
            "status": approval.status,
            "message": approval.message,
            "expires": instant(approval.expires_at),
            "decided": decided,
            "comment": approval.comment,
            "approvals": _assents(approval),
            "itemsHash": items_hash(approval),
        }
    )
    put_groups(plain(approval_detail(approval))["reviewableGroups"], console())


def _assents(approval: Approval) -> str | None:
    """Who has approved so far, where several must."""
    if approval.required_approvals == 1:
        return None
    names = ", ".join(one.by for one in approval.assents)
    return f"{len(approval.assents)} of {approval.required_approvals} {names}".strip()


def _row(one: Approval) -> tuple[object, ...]:
    until = instant(one.expires_at)
    return one.id, one.step_name, one.status, until, one.message, one.execution_id
