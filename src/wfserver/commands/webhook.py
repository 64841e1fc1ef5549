"""`wfcore webhook`: the URLs that start workflows. Only here are webhooks made without a key."""

import json
from typing import Any

import click

from wfcore.errors import InvalidInput
from wfcore.model.json import JsonObject
from wfcore.model.webhook import AuthMode, Scheme, WebhookStatus
from wfcore.usecases.administration import webhooks
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import (
    CommandGroup,
    Duration,
    Member,
    Pair,
    limit,
    pass_invocation,
    read_line,
    secret,
)
from wfserver.terminal.output import instant, put_answer, put_fields, put_json, put_table, say

MODES = {AuthMode.API_KEY: "key", AuthMode.SIGNATURE: "signature", AuthMode.NONE: "OPEN TO ALL"}
OPEN_WARNING = "Anybody who knows this URL can start the workflow: it has no key and no secret."


@click.group("webhook", cls=CommandGroup)
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
@click.option("--when", metavar="TEMPLATE", help="Only deliveries for which this is true.")
@click.option(
    "--header",
    "headers",
    type=Pair(),
    multiple=True,
    metavar="VARIABLE=HEADER",
    help="A workflow variable and the header it comes from. Repeatable.",
)
@pass_invocation
def create(
    invocation: Invocation,
    workflow: str,
    name: str,
    key: str | None,
    secret: str | None,
    secret_stdin: bool,
    scheme: Scheme | None,
    open_: bool,
    mapping: tuple[tuple[str, str], ...],
    when: str | None,
    headers: tuple[tuple[str, str], ...],
) -> None:
    """
    A new active webhook, with exactly one of --key, --secret (or --scheme) and --open.
    """
    secret = _secret(secret, secret_stdin)
    signed = secret is not None or scheme is not None
    if sum((key is not None, signed, open_)) != 1:
        raise click.UsageError("Give exactly one of --key, --secret (or --scheme) and --open")

    made = invocation.perform(
        webhooks.create_webhook,
        workflow=workflow,
        name=name,
        key=key,
        secret=secret,
        scheme=scheme,
        open=open_,
        mapping=dict(mapping) or None,
        when=when,
        headers=dict(headers) or None,
    )
    _show(invocation, made, made=secret is None)


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
@click.option("--when", metavar="TEMPLATE", help="Only deliveries for which this is true; '': all.")
@click.option(
    "--header",
    "headers",
    type=Pair(),
    multiple=True,
    metavar="VARIABLE=HEADER",
    help="A workflow variable and the header it comes from. Repeatable.",
)
@click.option("--no-headers", is_flag=True, help="No header sets a variable any more.")
@pass_invocation
def set_(
    invocation: Invocation,
    id: str,
    status: WebhookStatus | None,
    scheme: Scheme | None,
    secret: str | None,
    secret_stdin: bool,
    new_secret: bool,
    overlap: int | None,
    when: str | None,
    headers: tuple[tuple[str, str], ...],
    no_headers: bool,
) -> None:
    """Change a webhook's status, scheme, secret or conditions."""
    secret = _secret(secret, secret_stdin)
    if secret is not None and new_secret:
        raise click.UsageError("Give --secret or --new-secret, not both")
    if headers and no_headers:
        raise click.UsageError("Give --header or --no-headers, not both")
    conditions = when is not None or headers or no_headers
    if not any((status, scheme, secret, new_secret, overlap is not None, conditions)):
        raise click.UsageError(
            "Say what changes: --status, --scheme, --secret, --new-secret, --when, --header"
        )
    changed = invocation.perform(
        webhooks.set_webhook,
        id=id,
        status=status,
        scheme=scheme,
        secret=secret,
        new_secret=new_secret,
        overlap=overlap,
        when=when,
        headers=dict(headers) if headers or no_headers else None,
    )
    _show(invocation, changed, made=new_secret)


@webhook_command.command("deliveries")
@click.argument("id")
@limit
@pass_invocation
def deliveries_(invocation: Invocation, id: str, limit: int) -> None:
    """The last deliveries to a webhook, and why some were refused."""
    put_answer(
        invocation.json, invocation.perform(webhooks.list_deliveries, id=id, limit=limit), _sent
    )


def _sent(found: Any) -> None:
    heads = ("id", "at", "status", "from", "execution", "reason")
    shown = ("status", "kind", "executionId", "reason")
    rows = [
        (one["id"], instant(one["at"]), *(one[name] for name in shown)) for one in found["items"]
    ]
    put_table(heads, rows, found["total"])


@webhook_command.command("replay")
@click.argument("id")
@click.argument("delivery")
@pass_invocation
def replay(invocation: Invocation, id: str, delivery: str) -> None:
    """Start a new execution from what a delivery carried."""
    started = invocation.perform(webhooks.replay_delivery, id=id, delivery=delivery)
    put_answer(invocation.json, started, _put_started)


@webhook_command.command("test")
@click.argument("id")
@click.option("--payload", metavar="JSON", help="The object to deliver, instead of a sample.")
@pass_invocation
def test(invocation: Invocation, id: str, payload: str | None) -> None:
    """Deliver a sample, signed as the sender would, through every check."""
    content = _object(payload) if payload is not None else None
    started = invocation.perform(webhooks.try_webhook, id=id, payload=content)
    put_answer(invocation.json, started, _put_started)


def _secret(given: str | None, stdin: bool) -> str | None:
    """The secret of `--secret` or `--secret-stdin`, if one is given."""
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


def _put_started(started: Any) -> None:
    if started.get("ignored"):
        say("ignored: the webhook's `when` is not true for it")
        return
    put_fields({"execution": started["executionId"], "webhook": started["webhookId"]})


@webhook_command.command("list")
@limit
@pass_invocation
def list_(invocation: Invocation, limit: int) -> None:
    """All webhooks, newest first."""
    put_answer(invocation.json, invocation.perform(webhooks.list_webhooks, limit=limit), _table)


def _table(found: Any) -> None:
    heads = ("id", "name", "status", "workflow", "owner", "opened by", "last triggered")
    put_table(heads, map(_row, found["items"]), found["total"])


@webhook_command.command("delete")
@click.argument("id")
@pass_invocation
def delete(invocation: Invocation, id: str) -> None:
    """Delete a webhook with its statistics."""
    done = invocation.perform(webhooks.delete_webhook, id=id)
    put_answer(invocation.json, done, lambda _: say(f"{id} is deleted"))


def _show(invocation: Invocation, document: Any, made: bool = False) -> None:
    if invocation.json:
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
            "when": document["when"],
            "headers": _headers(document["headers"]),
            "key": document["apiKeyId"],
            "secret (shown once)": document.get("secretKey") if made else None,
            "old secret until": _until(document["oldSecretUntil"]),
        }
    )
    if document["authMode"] == AuthMode.NONE:
        click.secho(OPEN_WARNING, fg="red", bold=True, err=True)


def _headers(headers: dict[str, str] | None) -> str | None:
    return ", ".join(f"{name}={header}" for name, header in (headers or {}).items()) or None


def _until(at: int | None) -> str | None:
    return None if at is None else instant(at)


def _row(webhook: Any) -> tuple[object, ...]:
    status = webhook["disabledReason"] or webhook["status"]
    return (
        webhook["id"],
        webhook["name"],
        status if status == WebhookStatus.ACTIVE else f"DISABLED ({status})",
        webhook["workflowName"] or webhook["workflowId"],
        webhook["ownerEmail"] or "",
        MODES[webhook["authMode"]],
        instant(webhook["lastTriggeredAt"]),
    )
