"""`wfcore key`: the API keys of programs. The text of a key is shown once and stored nowhere."""

from typing import Any

import click

from wfcore.model.access import Scope
from wfcore.rules.limits import ROTATION_OVERLAP
from wfcore.time import DurationMs
from wfcore.usecases.administration import accounts
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup, Duration, Member, pass_invocation
from wfserver.terminal.output import instant, put_answer, put_fields, put_table, say


@click.group("key", cls=CommandGroup)
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
    help=f"Repeatable: {', '.join(Scope)}. ADMIN is all of --url; on this host, for operators.",
)
@click.option("--expires-in", type=Duration(), metavar="DURATION", help="Like 72h; else never.")
@click.option(
    "--approvers",
    multiple=True,
    metavar="ID-or-EMAIL",
    help="Repeatable, or separated by commas: the only people whom it may ask through gates.",
)
@pass_invocation
def create(
    invocation: Invocation,
    account: str,
    name: str,
    scopes: tuple[Scope, ...],
    expires_in: DurationMs | None,
    approvers: tuple[str, ...],
) -> None:
    """A new key, with what it may do."""
    made = invocation.perform(
        accounts.create_key,
        account=account,
        name=name,
        scopes=scopes,
        expires_in=expires_in,
        approvers=[one for text in approvers for one in text.replace(",", " ").split()],
    )
    put_answer(invocation.json, made, _once)


@key_command.command("rotate")
@click.argument("id")
@click.option(
    "--overlap",
    type=Duration(),
    default=f"{ROTATION_OVERLAP}ms",
    show_default="24h",
    help="How long the old secret stays good.",
)
@pass_invocation
def rotate(invocation: Invocation, id: str, overlap: DurationMs) -> None:
    """A new secret under the same id."""
    put_answer(
        invocation.json, invocation.perform(accounts.rotate_key, id=id, overlap=overlap), _once
    )


@key_command.command("revoke")
@click.argument("id")
@pass_invocation
def revoke(invocation: Invocation, id: str) -> None:
    """Refuse a key from the next request on."""
    revoked = invocation.perform(accounts.revoke_key, id=id)
    put_answer(invocation.json, revoked, lambda key: say(f"{key['id']} is revoked"))


@key_command.command("list")
@click.option("--account", required=True, metavar="ID-or-EMAIL", help="Whose keys.")
@pass_invocation
def list_(invocation: Invocation, account: str) -> None:
    """The keys of an account, newest first, with when they were last used."""
    put_answer(invocation.json, invocation.perform(accounts.list_keys, account=account), _table)


def _table(found: Any) -> None:
    heads = ("id", "name", "account", "scopes", "asks only", "last used", "expires")
    rows = [
        (
            key["id"],
            key["name"],
            found["email"],
            _scopes(key),
            ", ".join(key["approvers"]) or "-",
            instant(key["lastUsedAt"]),
            _until(key),
        )
        for key in found["items"]
    ]
    put_table(heads, rows, found["total"])


def _once(key: Any) -> None:
    old_until = key["previousUntil"]
    put_fields(
        {
            "key": key["apiKey"],
            "callback secret": key.get("callbackSecret"),
            "id": key["id"],
            "name": key["name"],
            "scopes": _scopes(key),
            "asks only": ", ".join(key["approvers"]) or None,
            "expires": _until(key),
            "old until": instant(old_until) if old_until else None,
        }
    )
    say("The key and its callback secret are shown only now.", err=True)


def _scopes(key: Any) -> str:
    """The scopes of a key in a few words; ADMIN is always named."""
    all_ordinary = set(key["scopes"]) == set(Scope.ordinary())
    return "all" if all_ordinary else " ".join(sorted(key["scopes"]))


def _until(key: Any) -> str:
    if key["revokedAt"] is not None:
        return f"revoked {instant(key['revokedAt'])}"
    return instant(key["expiresAt"]) if key["expiresAt"] is not None else "never"
