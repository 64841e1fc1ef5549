"""`wfcore webhook`: URLs that start workflows. Those without a key are made only here."""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import click

from wfcore.errors import InvalidInput
from wfcore.model.json import JsonObject
from wfcore.model.page import PageRequest
from wfcore.model.webhook import AuthMode, Scheme, Webhook, WebhookStatus
from wfcore.time import EpochMs
from wfcore.usecases.accounts.keys import find_key
from wfcore.usecases.executions.starting import Started
from wfcore.usecases.services import Services
from wfcore.usecases.webhooks import deliveries, webhooks
from wfcore.usecases.webhooks.webhooks import NewWebhook, WebhookChange
from wfcore.wire.converter import plain
from wfcore.wire.webhooks import delivery_view, trigger_view, webhook_view
from wfserver.serving.pidfile import base_url
from wfserver.terminal import lookup
from wfserver.terminal.invocation import Session
from wfserver.terminal.lookup import AT_THE_COMMAND_LINE
from wfserver.terminal.options import (
    Duration,
    Group,
    Member,
    Pair,
    limit,
    pass_session,
    read_line,
    secret,
)
from wfserver.terminal.output import instant, put_fields, put_json, put_list, put_table

_Listed: TypeAlias = tuple[Webhook, EpochMs | None]

MODES = {AuthMode.API_KEY: "key", AuthMode.SIGNATURE: "signature", AuthMode.NONE: "OPEN TO ALL"}
OPEN_WARNING = "Anybody who knows this URL can start the workflow: it has no key and no secret."


@click.group("webhook", cls=Group)
def webhook_command() -> None:
    """Webhooks. They need the plan PRO or above."""


@webhook_command.command("create")
@click.option("--workflow", required=True, metavar="ID-or-NAME", help="What it starts.")
@click.option("--name", required=True)
@click.option("--key", metavar="KEYID", help="Only this API key opens it; its account owns it.")
@click.option("--secret", help="Requests are signed with this secret.")
@secret
@click.option(
    "--scheme",
    type=Member(Scheme),
    help="Whose headers sign requests.  [default: wfcore]  Without --secret one is made.",
)
@click.option("--open", "open_", is_flag=True, help="No credential: whoever knows the URL.")
@click.option(
    "--map",
    "mapping",
    type=Pair(),
    multiple=True,
    metavar="VARIABLE=FIELD",
    help="A workflow variable and the payload's field it comes from. Repeatable.",
)
@pass_session
def create(
    session: Session,
    workflow: str,
    name: str,
    key: str | None,
    secret: str | None,
    secret_stdin: bool,
    scheme: Scheme | None,
    open_: bool,
    mapping: tuple[tuple[str, str], ...],
) -> None:
    """
    A new active webhook, with exactly one of --key, --secret (or --scheme) and --open.
    """
    secret = _secret(secret, secret_stdin)
    signed = secret is not None or scheme is not None
    if sum((key is not None, signed, open_)) != 1:
        raise click.UsageError("Give exactly one of --key, --secret (or --scheme) and --open")

    async def job(services: Services) -> Webhook:
        found = (await lookup.workflow(services, workflow)).workflow
        owner = await _key_owner(services, key) if key else found.owner_id
        who = await lookup.owner_of(services, owner)
        new = NewWebhook(
            found.id,
            name,
            key,
            dict(mapping) or None,
            secret,
            scheme or Scheme.WFCORE,
            makes_secret=signed,
        )
        return await webhooks.create_webhook(services, who, new, origin=AT_THE_COMMAND_LINE)

    made = session.work(job)
    _show(session, _json(session, made, None, made.secret_key), made=secret is None)


@webhook_command.command("set")
@click.argument("id")
@click.option("--status", type=Member(WebhookStatus), help="Disable it, or make it active again.")
@click.option("--scheme", type=Member(Scheme), help="Whose headers sign its requests.")
@click.option("--secret", help="From now on requests are signed with this secret.")
@secret
@click.option("--new-secret", is_flag=True, help="The same with a new one, which is shown once.")
@click.option(
    "--overlap",
    type=Duration(),
    help="How long the secret before stays good, too.  [default: 24h]",
)
@pass_session
def set_(
    session: Session,
    id: str,
    status: WebhookStatus | None,
    scheme: Scheme | None,
    secret: str | None,
    secret_stdin: bool,
    new_secret: bool,
    overlap: int | None,
) -> None:
    """Change a webhook's status, scheme or secret."""
    secret = _secret(secret, secret_stdin)
    if secret is not None and new_secret:
        raise click.UsageError("Give --secret or --new-secret, not both")
    given = {"status": status, "scheme": scheme, "secret": secret, "overlap": overlap}
    fields: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if new_secret:
        fields["secret"] = None
    if not fields:
        raise click.UsageError("Say what changes: --status, --scheme, --secret, --new-secret")

    async def job(services: Services) -> tuple[Webhook, int | None]:
        changed = await webhooks.update_webhook(
            services, None, id, WebhookChange(**fields), origin=AT_THE_COMMAND_LINE
        )
        return changed, await webhooks.last_triggered(services, id)

    changed, last = session.work(job)
    shown = changed.secret_key if "secret" in fields else None
    _show(session, _json(session, changed, last, shown), made=new_secret)


@webhook_command.command("deliveries")
@click.argument("id")
@limit
@pass_session
def deliveries_(session: Session, id: str, limit: int) -> None:
    """The last deliveries to a webhook, and why some were refused."""
    page = session.work(
        lambda services: deliveries.list_deliveries(services, None, id, PageRequest(1, limit))
    )
    if session.json:
        put_list([plain(delivery_view(one)) for one in page.rows], page.total)
        return
    heads = ("id", "at", "status", "from", "execution", "reason")
    rows = [
        (one.id, instant(one.at), one.status, one.kind, one.execution_id, one.reason)
        for one in page.rows
    ]
    put_table(heads, rows, page.total)


@webhook_command.command("replay")
@click.argument("id")
@click.argument("delivery")
@pass_session
def replay(session: Session, id: str, delivery: str) -> None:
    """Start a new execution from what a delivery carried."""
    _put_started(
        session,
        id,
        session.work(
            lambda services: deliveries.replay_delivery(
                services, None, id, delivery, AT_THE_COMMAND_LINE
            )
        ),
    )


@webhook_command.command("test")
@click.argument("id")
@click.option("--payload", metavar="JSON", help="The object to deliver, instead of a sample.")
@pass_session
def test(session: Session, id: str, payload: str | None) -> None:
    """Deliver a sample, signed as the sender would, through every check."""
    content = _object(payload) if payload is not None else None
    _put_started(
        session,
        id,
        session.work(
            lambda services: deliveries.deliver_test(
                services, None, id, content, AT_THE_COMMAND_LINE
            )
        ),
    )


def _secret(given: str | None, stdin: bool) -> str | None:
    """The secret of --secret or --secret-stdin."""
    if given is not None and stdin:
        raise click.UsageError("Give --secret or --secret-stdin, not both")
    found = read_line(stdin) if stdin else given
    if found == "":
        raise click.UsageError("The secret must not be empty; --open makes a webhook without one")
    return found


def _object(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInput("--payload", f"not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidInput("--payload", "must be a JSON object")
    return value


def _put_started(session: Session, id: str, started: Started) -> None:
    if session.json:
        put_json(
            plain(trigger_view(id, started.execution_id, started.workflow_id, started.started_at))
        )
    else:
        put_fields({"execution": started.execution_id, "webhook": id})


@webhook_command.command("list")
@limit
@pass_session
def list_(session: Session, limit: int) -> None:
    """All webhooks, newest first."""

    async def job(services: Services) -> tuple[list[_Listed], int | None, Mapping[str, str]]:
        page = await webhooks.list_webhooks(services, None, PageRequest(1, limit))
        rows = [(one, await webhooks.last_triggered(services, one.id)) for one in page.rows]
        if session.json:
            return rows, page.total, {}
        names = await lookup.workflow_names(services, [one.workflow_id for one in page.rows])
        emails = await lookup.emails(services, [one.owner_id for one in page.rows])
        return rows, page.total, {**names, **emails}

    rows, total, names = session.work(job)
    if session.json:
        put_list([_json(session, *row) for row in rows], total)
        return
    heads = ("id", "name", "status", "workflow", "owner", "opened by", "last triggered")
    put_table(heads, [_row(*row, names) for row in rows], total)


@webhook_command.command("delete")
@click.argument("id")
@pass_session
def delete(session: Session, id: str) -> None:
    """Delete a webhook with its statistics."""
    session.work(
        lambda services: webhooks.delete_webhook(services, None, id, origin=AT_THE_COMMAND_LINE)
    )
    if session.json:
        put_json({"ok": True, "webhookId": id})
    else:
        click.echo(f"{id} is deleted")


async def _key_owner(services: Services, key_id: str) -> str:
    key = await find_key(services, key_id)
    if key is None:
        raise InvalidInput("--key", f"no key has the id {key_id!r}; wfcore key list shows them")
    return key.account_id


def _json(
    session: Session, webhook: Webhook, last_at: int | None, secret: str | None = None
) -> Any:
    url = f"{base_url(session.settings())}/api/webhooks/{webhook.id}/trigger"
    return plain(webhook_view(webhook, url, last_at, secret))


def _show(session: Session, document: Any, made: bool = False) -> None:
    if session.json:
        put_json(document)
        return
    put_fields(
        {
            "id": document["id"],
            "url": document["triggerUrl"],
            "name": document["name"],
            "workflow": document["workflowId"],
            "status": document["status"],
            "disabled": document["disabledReason"],
            "opened by": MODES[document["authMode"]],
            "scheme": document["scheme"],
            "key": document["apiKeyId"],
            "secret (shown once)": document.get("secretKey") if made else None,
            "old secret until": _until(document["oldSecretUntil"]),
        }
    )
    if document["authMode"] == AuthMode.NONE:
        click.secho(OPEN_WARNING, fg="red", bold=True, err=True)


def _until(at: int | None) -> str | None:
    return None if at is None else instant(at)


def _row(webhook: Webhook, last_at: int | None, names: Mapping[str, str]) -> tuple[object, ...]:
    status = webhook.disabled_reason or webhook.status
    opened_by = MODES[webhook.auth_mode]
    return (
        webhook.id,
        webhook.name,
        status if status == WebhookStatus.ACTIVE else f"DISABLED ({status})",
        names.get(webhook.workflow_id, webhook.workflow_id),
        names.get(webhook.owner_id, webhook.owner_id),
        opened_by,
        instant(last_at),
    )
