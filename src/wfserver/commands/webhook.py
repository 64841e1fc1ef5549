"""`wfcore webhook`: URLs that start workflows. Those without a key are made only here."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import click

from wfcore.errors import InvalidInput
from wfcore.instants import EpochMs
from wfcore.model.page import PageRequest
from wfcore.model.webhook import AuthMode, Webhook, WebhookStatus
from wfcore.usecases import webhooks
from wfcore.usecases.keys import find_key
from wfcore.usecases.services import Services
from wfcore.usecases.webhooks import Change, NewWebhook
from wfcore.wire.converter import plain
from wfcore.wire.views import webhook_view
from wfserver import finding
from wfserver.finding import AT_THE_COMMAND_LINE
from wfserver.output import instant, put_fields, put_json, put_list, put_table
from wfserver.params import Group, Member, Pair, limit, pass_session
from wfserver.presence import base_url
from wfserver.session import Session

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
@click.option("--secret", help="Requests are signed with this secret (the old way).")
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
    open_: bool,
    mapping: tuple[tuple[str, str], ...],
) -> None:
    """A new active webhook, with exactly one of --key, --secret and --open."""
    if sum((key is not None, secret is not None, open_)) != 1:
        raise click.UsageError("Give exactly one of --key, --secret and --open")
    if secret == "":
        raise click.UsageError("--secret must not be empty; --open makes a webhook without one")

    async def job(services: Services) -> Webhook:
        found = (await finding.workflow(services, workflow)).workflow
        owner = await _key_owner(services, key) if key else found.owner_id
        who = await finding.owner_of(services, owner)
        new = NewWebhook(found.id, name, key, dict(mapping) or None, secret)
        return await webhooks.create_webhook(services, who, new, origin=AT_THE_COMMAND_LINE)

    made = session.work(job)
    _show(session, _json(session, made, None, secret))


@webhook_command.command("set")
@click.argument("id")
@click.option("--status", type=Member(WebhookStatus), required=True)
@pass_session
def set_(session: Session, id: str, status: WebhookStatus) -> None:
    """Disable a webhook, or make it active again within the plan's number."""

    async def job(services: Services) -> tuple[Webhook, int | None]:
        changed = await webhooks.update_webhook(
            services, None, id, Change(status=status), origin=AT_THE_COMMAND_LINE
        )
        return changed, await webhooks.last_triggered(services, id)

    _show(session, _json(session, *session.work(job)))


@webhook_command.command("list")
@limit
@pass_session
def list_(session: Session, limit: int) -> None:
    """All webhooks, newest first."""

    async def job(services: Services) -> tuple[list[_Listed], int, Mapping[str, str]]:
        page = await webhooks.list_webhooks(services, None, PageRequest(1, limit))
        rows = [(one, await webhooks.last_triggered(services, one.id)) for one in page.rows]
        if session.json:
            return rows, page.total, {}
        names = await finding.workflow_names(services, [one.workflow_id for one in page.rows])
        emails = await finding.emails(services, [one.owner_id for one in page.rows])
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


def _show(session: Session, document: Any) -> None:
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
            "key": document["apiKeyId"],
        }
    )
    if document["authMode"] == AuthMode.NONE:
        click.secho(OPEN_WARNING, fg="red", bold=True, err=True)


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
