"""`wfcore account`: the accounts, which own workflows and keys."""

from typing import Any

import click

from wfcore.model.access import AccountStatus, Tier
from wfcore.usecases.administration import accounts
from wfcore.wire.languages import LANGUAGES
from wfserver.settings.channels import names_in
from wfserver.terminal.bulk import agreed
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import (
    CommandGroup,
    Member,
    limit,
    pass_invocation,
    password,
    read_line,
)
from wfserver.terminal.output import instant, put_answer, put_fields, put_table

_OPERATOR = "It sees the pages for operators, with what belongs to all accounts."


@click.group("account", cls=CommandGroup)
def account_command() -> None:
    """Accounts own workflows, keys and webhooks."""


@account_command.command("create")
@click.argument("email")
@click.option("--plan", type=Member(Tier), help="[default: WFCORE_DEFAULT_PLAN]")
@click.option("--operator", is_flag=True, help=_OPERATOR)
@password
@pass_invocation
def create(
    invocation: Invocation, email: str, plan: Tier | None, operator: bool, password_stdin: bool
) -> None:
    """A new active account. With a password it may use the console."""
    password = read_line(password_stdin)
    with invocation.operations(fresh=True) as perform:
        made = perform(
            accounts.create_account, email=email, plan=plan, password=password, operator=operator
        )
    put_answer(invocation.json, made, put_fields)


@account_command.command("invite")
@click.argument("email")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="A group that they join.")
@pass_invocation
def invite(invocation: Invocation, email: str, groups: tuple[str, ...]) -> None:
    """A new account for a person, and a link that signs the person in once, within a day."""
    made = invocation.perform(accounts.invite_account, email=email, groups=groups)
    put_answer(invocation.json, made, put_fields)


@account_command.command("set")
@click.argument("account", metavar="ID-or-EMAIL")
@click.option("--plan", type=Member(Tier), help="A downgrade disables webhooks over its number.")
@click.option("--status", type=Member(AccountStatus), help="Only ACTIVE may use its keys.")
@click.option("--operator/--no-operator", default=None, help=_OPERATOR)
@click.option("--language", type=click.Choice(LANGUAGES), help="The language of its mail.")
@click.option(
    "--failure-channels",
    metavar="NAMES",
    help="Where every failure of its workflows is told, like mail,ops; '' for nowhere.",
)
@password
@pass_invocation
def set_(
    invocation: Invocation,
    account: str,
    plan: Tier | None,
    status: AccountStatus | None,
    operator: bool | None,
    language: str | None,
    failure_channels: str | None,
    password_stdin: bool,
) -> None:
    """Change plan, status, password, language or channels, or make it an operator."""
    changes = (plan, status, operator, language, failure_channels)
    if all(one is None for one in changes) and not password_stdin:
        options = "--plan, --status, --operator, --language, --failure-channels or --password-stdin"
        raise click.UsageError(f"Nothing to change: give {options}")
    changed = invocation.perform(
        accounts.set_account,
        account=account,
        plan=plan,
        status=status,
        password=read_line(password_stdin),
        operator=operator,
        language=language,
        failure_channels=None if failure_channels is None else names_in(failure_channels),
    )
    put_answer(invocation.json, changed, put_fields)


@account_command.command("delete")
@click.argument("account", metavar="ID-or-EMAIL")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--cancel", is_flag=True, help="Cancel executions that have not ended.")
@click.option("--yes", is_flag=True, help="Without asking.")
@pass_invocation
def delete(invocation: Invocation, account: str, dry_run: bool, cancel: bool, yes: bool) -> None:
    """
    Delete an account with its workflows, executions, artifacts, keys, webhooks and shares.

    Shown first. The audit log stays. If it is interrupted, the account is disabled; call it again.
    """
    with invocation.operations() as perform:
        found = perform(accounts.preview_deletion, account=account)
        if not dry_run:
            lines = (f"{name}: {count}" for name, count in found.items())
            agreed("This would be deleted", lines, yes)
            found = perform(accounts.delete_account, account=account, cancel=cancel)
    put_answer(invocation.json, found, put_fields)


@account_command.command("list")
@limit
@pass_invocation
def list_(invocation: Invocation, limit: int) -> None:
    """All accounts, newest first."""
    put_answer(invocation.json, invocation.perform(accounts.list_accounts, limit=limit), _table)


def _table(found: Any) -> None:
    rows = [
        (one["id"], one["email"], one["plan"], one["status"], instant(one["createdAt"]))
        for one in found["items"]
    ]
    put_table(("id", "email", "plan", "status", "created"), rows, found["total"])
