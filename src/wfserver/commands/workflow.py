"""`wfcore workflow`: check and apply definitions, share and delete workflows."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from wfcore.errors import InvalidDefinition
from wfcore.model.access import Permission, Share
from wfcore.model.page import Page, PageRequest
from wfcore.model.workflow import Concurrency, Workflow
from wfcore.rules.definition.check import definition_schema
from wfcore.usecases.services import Services
from wfcore.usecases.workflows import workflows
from wfcore.usecases.workflows.workflows import Defined
from wfcore.wire import drawing
from wfcore.wire.converter import plain
from wfcore.wire.workflows import workflow_view
from wfserver import validation
from wfserver.ai import missing_from
from wfserver.commands.trigger import fires
from wfserver.definition import announce_packages, read_text
from wfserver.terminal import lookup
from wfserver.terminal.failures import FAILED
from wfserver.terminal.invocation import Session
from wfserver.terminal.lookup import AT_THE_COMMAND_LINE
from wfserver.terminal.options import Group, Member, limit, pass_session
from wfserver.terminal.output import clean, instant, put_fields, put_json, put_list, put_table
from wfserver.terminal.views import share_json


@click.group("workflow", cls=Group)
def workflow_command() -> None:
    """Workflows. WORKFLOW is an id or a name."""


@workflow_command.command("apply")
@click.argument("file")
@click.option("--owner", required=True, metavar="ID-or-EMAIL", help="Whose workflow it is.")
@pass_session
def apply(session: Session, file: str, owner: str) -> None:
    """Create a workflow, or update the owner's workflow of that name. FILE - is stdin."""
    text = read_text(file)
    definition = text.definition()

    async def job(services: Services) -> Workflow:
        account = await lookup.account(services, owner, "--owner")
        return await workflows.apply_workflow(
            services, account.id, definition, origin=AT_THE_COMMAND_LINE
        )

    announce_packages(definition, quiet=session.json)
    try:
        applied = session.work(job)
    except InvalidDefinition as error:
        raise text.located(error) from None
    document = {"id": applied.id, "name": applied.name, "version": applied.revision}
    warnings = missing_from(definition, session.settings().providers)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    if session.json:
        put_json({**document, "warnings": warnings} if warnings else document)
    else:
        put_fields(document)


@workflow_command.command("validate")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--sarif", "as_sarif", is_flag=True, help="One SARIF 2.1.0 document on stdout.")
@pass_session
def validate(session: Session, files: Sequence[str], as_sarif: bool) -> int:
    """
    Check definitions as apply does; nothing is stored, no server is needed. FILE - is stdin.

    Exit status 1: a definition has mistakes, or a file cannot be read.
    """
    if as_sarif and session.json:
        raise click.UsageError("--json and --sarif exclude each other")
    found = [validation.validated(file) for file in files]
    ok = not any(one.problems for one in found)
    if as_sarif or session.json:
        put_json(validation.sarif(found) if as_sarif else validation.report(found))
        return 0 if ok else FAILED
    for one in found:
        click.echo(clean("\n".join(one.lines())) if one.problems else f"{clean(one.file)}: ok")
    return 0 if ok else FAILED


@workflow_command.command("draw")
@click.argument("file")
@click.option(
    "--as", "form", type=click.Choice(("svg", "mermaid", "text")), default="svg", show_default=True
)
def draw(file: str, form: str) -> None:
    """A picture of a definition on stdout; nothing is stored. FILE - is stdin."""
    definition = read_text(file).definition(runs_here=False)
    match form:
        case "svg":
            click.echo(drawing.svg(definition.steps, definition.name), nl=False)
        case "mermaid":
            click.echo(drawing.mermaid(definition.steps), nl=False)
        case _:
            click.echo(clean("\n".join(drawing.text(definition.steps))))


@workflow_command.command("schema")
def schema() -> None:
    """The JSON Schema of definitions, by which editors complete and check them."""
    put_json(definition_schema())


@workflow_command.command("list")
@limit
@pass_session
def list_(session: Session, limit: int) -> None:
    """All workflows, by name."""

    async def job(services: Services) -> tuple[Page[Defined], Mapping[str, str]]:
        found = await workflows.list_workflows(services, None, PageRequest(1, limit))
        owners = () if session.json else [one.workflow.owner_id for one in found.rows]
        return found, await lookup.emails(services, owners)

    found, emails = session.work(job)
    if session.json:
        put_list([_json(one) for one in found.rows], found.total)
    else:
        rows = [_row(one, emails) for one in found.rows]
        put_table(("id", "name", "steps", "version", "updated", "owner"), rows, found.total)


@workflow_command.command("show")
@click.argument("workflow")
@pass_session
def show(session: Session, workflow: str) -> None:
    """One workflow: its steps, variables and shares."""

    async def job(services: Services) -> tuple[Defined, Sequence[Share]]:
        found = await lookup.workflow(services, workflow)
        return found, await workflows.shares_of(services, found.workflow.id)

    found, shares = session.work(job)
    if session.json:
        put_json({**_json(found), "shares": [share_json(share) for share in shares]})
        return
    put_fields(
        {
            "id": found.workflow.id,
            "name": found.workflow.name,
            "description": found.definition.description,
            "owner": found.workflow.owner_id,
            "version": found.workflow.revision,
            "updated": instant(found.workflow.updated_at),
            "variables": ", ".join(found.definition.variables),
            "steps": " > ".join(step.name for step in found.definition.walk()),
            "triggers": "; ".join(fires(one.trigger.spec) for one in found.triggers),
            "at once": _at_once(found.definition.concurrency),
            "shared with": ", ".join(f"{one.account_id} {one.permission}" for one in shares),
        }
    )


@workflow_command.command("share")
@click.argument("workflow")
@click.option("--with", "other", required=True, metavar="ID-or-EMAIL")
@click.option("--permission", type=Member(Permission), required=True, help="Each includes less.")
@pass_session
def share(session: Session, workflow: str, other: str, permission: Permission) -> None:
    """Let another account VIEW, EXECUTE or EDIT a workflow."""
    shared = _share(session, workflow, other, permission)
    if session.json:
        put_json(shared)
    else:
        click.echo(f"{shared['accountId']} may {permission} {shared['workflowId']}")


@workflow_command.command("unshare")
@click.argument("workflow")
@click.option("--with", "other", required=True, metavar="ID-or-EMAIL")
@pass_session
def unshare(session: Session, workflow: str, other: str) -> None:
    """Take a share away. Webhooks that the account made there are disabled."""
    shared = _share(session, workflow, other, None)
    if session.json:
        put_json(shared)
    else:
        click.echo(f"{shared['accountId']} has no share of {shared['workflowId']} any more")


@workflow_command.command("delete")
@click.argument("workflow")
@pass_session
def delete(session: Session, workflow: str) -> None:
    """Delete a workflow. Its webhooks are disabled, its executions go on."""

    async def job(services: Services) -> str:
        found = await lookup.workflow(services, workflow)
        await workflows.delete_workflow(services, found.workflow.id, origin=AT_THE_COMMAND_LINE)
        return found.workflow.id

    id = session.work(job)
    if session.json:
        put_json({"ok": True, "id": id})
    else:
        click.echo(f"{id} is deleted")


def _share(session: Session, workflow: str, other: str, permission: Permission | None) -> Any:
    async def job(services: Services) -> dict[str, Any]:
        found = await lookup.workflow(services, workflow)
        account = await lookup.account(services, other, "--with")
        await workflows.share_workflow(
            services, found.workflow.id, account.id, permission, origin=AT_THE_COMMAND_LINE
        )
        return {
            "workflowId": found.workflow.id,
            "accountId": account.id,
            "permission": permission,
        }

    return session.work(job)


def _at_once(limit: Concurrency | None) -> str | None:
    """How many executions run at once, in a few words."""
    if limit is None:
        return None
    by = f" of each {limit.key}" if limit.key is not None else ""
    return f"{limit.limit}{by}, others {limit.on_limit}"


def _json(found: Defined) -> Any:
    return plain(workflow_view(found.workflow, found.definition, found.triggers))


def _row(found: Defined, emails: Mapping[str, str]) -> tuple[object, ...]:
    flow = found.workflow
    steps = sum(1 for _ in found.definition.walk())
    owner = emails.get(flow.owner_id, flow.owner_id)
    return flow.id, flow.name, steps, flow.revision, instant(flow.updated_at), owner
