"""`wfcore account`: who may own workflows and keys."""

import click

from wfcore.model.access import Account, AccountStatus, Plan
from wfcore.model.page import PageRequest
from wfcore.usecases.accounts import accounts
from wfcore.usecases.services import Services
from wfcore.wire.common import account_view
from wfcore.wire.converter import plain
from wfcore.wire.languages import LANGUAGES
from wfserver.terminal import lookup
from wfserver.terminal.invocation import Session
from wfserver.terminal.lookup import AT_THE_COMMAND_LINE
from wfserver.terminal.options import Group, Member, limit, pass_session, password, read_line
from wfserver.terminal.output import instant, put_fields, put_json, put_list, put_table

_OPERATOR = "It sees the pages for operators, with what belongs to everybody."


@click.group("account", cls=Group)
def account_command() -> None:
    """Accounts own workflows, keys and webhooks."""


@account_command.command("create")
@click.argument("email")
@click.option("--plan", type=Member(Plan), default="FREE", show_default=True)
@click.option("--operator", is_flag=True, help=_OPERATOR)
@password
@pass_session
def create(session: Session, email: str, plan: Plan, operator: bool, password_stdin: bool) -> None:
    """A new active account. With a password it may use the console."""
    password = read_line(password_stdin)

    async def job(services: Services) -> Account:
        return await accounts.create_account(
            services, email, plan, password, origin=AT_THE_COMMAND_LINE, operator=operator
        )

    _show(session, session.work(job, fresh=True))


@account_command.command("set")
@click.argument("account", metavar="ID-or-EMAIL")
@click.option("--plan", type=Member(Plan), help="A downgrade disables webhooks over its number.")
@click.option("--status", type=Member(AccountStatus), help="Only ACTIVE may use its keys.")
@click.option("--operator/--no-operator", default=None, help=_OPERATOR)
@click.option("--language", type=click.Choice(LANGUAGES), help="Of what is sent to it.")
@password
@pass_session
def set_(
    session: Session,
    account: str,
    plan: Plan | None,
    status: AccountStatus | None,
    operator: bool | None,
    language: str | None,
    password_stdin: bool,
) -> None:
    """Change plan, status, password or language, or make it an operator."""
    given = [one for one in (plan, status, operator, language) if one is not None]
    if not given and not password_stdin:
        options = "--plan, --status, --operator, --language or --password-stdin"
        raise click.UsageError(f"Nothing to change: give {options}")
    password = read_line(password_stdin)

    async def job(services: Services) -> Account:
        found = await lookup.account(services, account, "account")
        return await accounts.set_account(
            services,
            found.id,
            plan=plan,
            status=status,
            password=password,
            operator=operator,
            language=language,
            origin=AT_THE_COMMAND_LINE,
        )

    _show(session, session.work(job))


@account_command.command("list")
@limit
@pass_session
def list_(session: Session, limit: int) -> None:
    """All accounts, newest first."""
    found = session.work(lambda services: accounts.list_accounts(services, PageRequest(1, limit)))
    if session.json:
        put_list([plain(account_view(one)) for one in found.rows], found.total)
    else:
        rows = [
            (one.id, one.email, one.plan, one.status, instant(one.created_at)) for one in found.rows
        ]
        put_table(("id", "email", "plan", "status", "created"), rows, found.total)


def _show(session: Session, account: Account) -> None:
    document = {**plain(account_view(account)), "operator": account.operator}
    if session.json:
        put_json(document)
    else:
        put_fields(document)
