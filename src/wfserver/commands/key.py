"""`wfcore key`: credentials for programs. A key's text is shown once and kept nowhere."""

import click

from wfcore.model.access import Account, ApiKey, Scope
from wfcore.rules.limits import ROTATION_OVERLAP
from wfcore.time import DurationMs
from wfcore.usecases.accounts import keys
from wfcore.usecases.accounts.keys import IssuedKey
from wfcore.usecases.services import Services
from wfserver.terminal import lookup
from wfserver.terminal.invocation import Session
from wfserver.terminal.lookup import AT_THE_COMMAND_LINE
from wfserver.terminal.options import Duration, Group, Member, pass_session
from wfserver.terminal.output import instant, put_fields, put_json, put_list, put_table
from wfserver.terminal.views import key_json


@click.group("key", cls=Group)
def key_command() -> None:
    """API keys. Give each connected system its own."""


@key_command.command("create")
@click.option("--account", required=True, metavar="ID-or-EMAIL", help="Whose key it is.")
@click.option("--name", required=True, help="What it is for.")
@click.option(
    "--scope",
    "scopes",
    type=Member(Scope),
    multiple=True,
    required=True,
    help=f"Repeatable: {', '.join(Scope)}.",
)
@click.option("--expires-in", type=Duration(), metavar="DURATION", help="Like 72h; else never.")
@pass_session
def create(
    session: Session,
    account: str,
    name: str,
    scopes: tuple[Scope, ...],
    expires_in: DurationMs | None,
) -> None:
    """A new key, with what it may do."""

    async def job(services: Services) -> IssuedKey:
        owner = await lookup.account(services, account)
        return await keys.create_key(
            services, owner.id, name, scopes, expires_in, origin=AT_THE_COMMAND_LINE
        )

    _show_once(session, session.work(job))


@key_command.command("rotate")
@click.argument("id")
@click.option(
    "--overlap",
    type=Duration(),
    default=f"{ROTATION_OVERLAP}ms",
    show_default="24h",
    help="How long the old secret stays good.",
)
@pass_session
def rotate(session: Session, id: str, overlap: DurationMs) -> None:
    """A new secret under the same id."""

    async def job(services: Services) -> IssuedKey:
        return await keys.rotate_key(services, id, overlap, origin=AT_THE_COMMAND_LINE)

    _show_once(session, session.work(job))


@key_command.command("revoke")
@click.argument("id")
@pass_session
def revoke(session: Session, id: str) -> None:
    """Refuse a key from the next request on."""

    async def job(services: Services) -> ApiKey:
        return await keys.revoke_key(services, id, origin=AT_THE_COMMAND_LINE)

    key = session.work(job)
    if session.json:
        put_json(key_json(key))
    else:
        click.echo(f"{key.id} is revoked")


@key_command.command("list")
@click.option("--account", required=True, metavar="ID-or-EMAIL", help="Whose keys.")
@pass_session
def list_(session: Session, account: str) -> None:
    """The keys of an account, newest first, with when they were last used."""

    async def job(services: Services) -> tuple[Account, list[ApiKey]]:
        owner = await lookup.account(services, account)
        return owner, list(await keys.list_keys(services, owner.id))

    owner, found = session.work(job)
    if session.json:
        put_list([key_json(key) for key in found], len(found))
    else:
        put_table(
            ("id", "name", "account", "scopes", "last used", "expires"),
            [
                (key.id, key.name, owner.email, _scopes(key), _used(key), _until(key))
                for key in found
            ],
            len(found),
        )


def _show_once(session: Session, issued: IssuedKey) -> None:
    if session.json:
        put_json(key_json(issued.key, issued.text, issued.callback_secret))
        return
    key = issued.key
    put_fields(
        {
            "key": issued.text,
            "callback secret": issued.callback_secret,
            "id": key.id,
            "name": key.name,
            "scopes": _scopes(key),
            "expires": _until(key),
            "old until": instant(key.previous_until) if key.previous_until else None,
        }
    )
    click.echo("The key and its callback secret are shown only now.", err=True)


def _scopes(key: ApiKey) -> str:
    return " ".join(sorted(key.scopes)) if len(key.scopes) < len(Scope) else "all"


def _used(key: ApiKey) -> str:
    return instant(key.last_used_at)


def _until(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return f"revoked {instant(key.revoked_at)}"
    return instant(key.expires_at) if key.expires_at is not None else "never"
