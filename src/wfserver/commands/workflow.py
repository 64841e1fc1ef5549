"""`wfcore workflow`: checks and applies definitions, shares and deletes workflows."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from wfcore.model.access import Permission
from wfcore.model.workflow import Runtime
from wfcore.rules.definition.check import definition_schema
from wfcore.usecases.administration import workflows
from wfcore.wire import drawing
from wfserver.commands.trigger import fires
from wfserver.definitions.read import announce_packages, read_text
from wfserver.definitions.validate import report, sarif, validated
from wfserver.failures import FAILED
from wfserver.terminal import applying
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup, Member, Pair, limit, pass_invocation
from wfserver.terminal.output import (
    clean,
    instant,
    put_answer,
    put_fields,
    put_json,
    put_table,
    put_text,
    say,
)


@click.group("workflow", cls=CommandGroup)
def workflow_command() -> None:
    """Workflows. WORKFLOW is an id or a name."""


@workflow_command.command("apply")
@click.argument("file", metavar="FILE-or-FOLDER")
@click.option("--owner", required=True, metavar="ID-or-EMAIL", help="Whose workflow it is.")
@click.option("--dry-run", is_flag=True, help="Show what would change; status 3 if anything would.")
@click.option("--prune", is_flag=True, help="Delete the owner's workflows that FOLDER lacks.")
@click.option("--yes", is_flag=True, help="With --prune: delete without asking.")
@click.option("--no-test", is_flag=True, help="Apply without playing the scenarios beside FILE.")
@pass_invocation
def apply(
    invocation: Invocation,
    file: str,
    owner: str,
    dry_run: bool,
    prune: bool,
    yes: bool,
    no_test: bool,
) -> int | None:
    """
    Create workflows, or update the owner's workflows of these names. FILE - is stdin.

    Of a FOLDER all definitions (.yaml, .yml, .json) are applied; none if one has mistakes. What is
    not in it stays, unless --prune says otherwise. Scenarios beside them (*.test.yaml of the
    folder, or FILE.test.yaml) are played first; nothing is applied if one fails.
    """
    if prune and not Path(file).is_dir():
        raise click.UsageError("--prune goes with a folder")
    here = invocation.elsewhere is None
    javascript = invocation.settings().steps.javascript if here else Runtime.NODE
    texts = applying.texts_of(file, runs_here=here, javascript=javascript)
    if not no_test:
        applying.require_tests(file)
    with invocation.operations() as perform:
        gone = applying.missing(perform, owner, texts) if prune else []
        if dry_run:
            return applying.preview(invocation, perform, owner, texts, gone)
        if gone and not yes:
            applying.confirm(gone)
        if Path(file).is_dir():
            applying.preview_all(perform, owner, texts)
            done = applying.apply_all(perform, owner, texts)
            for one in gone:
                perform(workflows.delete_workflow, workflow=one["id"])
            applying.put_applied(invocation, done, gone)
        else:
            announce_packages(texts[0].definition, quiet=invocation.json)
            (done,) = applying.apply_all(perform, owner, texts)
            put_answer(invocation.json, done, applying.put_one)
    return None


@workflow_command.command("versions")
@click.argument("workflow")
@limit
@pass_invocation
def versions(invocation: Invocation, workflow: str, limit: int) -> None:
    """The versions of a workflow, newest first."""
    found = invocation.perform(workflows.list_versions, workflow=workflow, limit=limit)
    put_answer(invocation.json, found, _put_versions)


def _put_versions(found: Any) -> None:
    rows = [
        (
            one["version"],
            "now" if one["current"] else "",
            one["steps"],
            "as written" if one["written"] else "JSON",
        )
        for one in found["items"]
    ]
    put_table(("version", "", "steps", "text"), rows, found["total"])


@workflow_command.command("rollback")
@click.argument("workflow")
@click.option("--to", required=True, type=click.IntRange(1), metavar="VERSION")
@pass_invocation
def rollback(invocation: Invocation, workflow: str, to: int) -> None:
    """Apply what an earlier version said, as the next version. Running executions keep theirs."""
    done = invocation.perform(workflows.roll_back_workflow, workflow=workflow, to=to)
    applying.say_warnings(done)
    put_answer(invocation.json, done, applying.put_one)


@workflow_command.command("state")
@click.argument("workflow")
@click.argument("values", metavar="[NAME=VALUE]...", nargs=-1, type=Pair())
@click.option("--reset", multiple=True, metavar="NAME", help="Back to its default. Repeatable.")
@click.option("--stdin", metavar="NAME", help="Set NAME to what stdin says, where nobody sees it.")
@pass_invocation
def state(
    invocation: Invocation,
    workflow: str,
    values: tuple[tuple[str, str], ...],
    reset: tuple[str, ...],
    stdin: str | None,
) -> None:
    """
    The state of a workflow: values that outlive its executions. With NAME=VALUE or --reset they are
    changed first.

    VALUE is text, or JSON where the type of the name is not string. Secret values are not shown.
    """
    given = dict(values)
    if stdin is not None:
        given[stdin] = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    if given or reset:
        changes = {"values": given, "reset": reset}
        found = invocation.perform(workflows.set_state, workflow=workflow, **changes)
    else:
        found = invocation.perform(workflows.read_state, workflow=workflow)
    put_answer(invocation.json, found, _put_state)


def _put_state(found: Any) -> None:
    shown = [(name, json.dumps(one, ensure_ascii=False)) for name, one in found["state"].items()]
    secret = [(name, "(secret)" if one else "null") for name, one in found["secrets"].items()]
    put_table(("name", "value"), [*shown, *secret], None)


@workflow_command.command("export")
@click.argument("workflow")
@click.option("--version", type=click.IntRange(1), help="Another than the present one.")
@pass_invocation
def export(invocation: Invocation, workflow: str, version: int | None) -> None:
    """The text of a workflow as it was written, on stdout."""
    found = invocation.perform(workflows.export_workflow, workflow=workflow, version=version)
    if not found["written"]:
        say(_NOT_WRITTEN, err=True)
    put_answer(invocation.json, found, lambda one: put_text(one["text"]))


_NOT_WRITTEN = (
    "warning: this is JSON of what it says, with defaults of secrets masked: its text is not "
    "stored, or holds such a default"
)


@workflow_command.command("validate")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--sarif", "as_sarif", is_flag=True, help="One SARIF 2.1.0 document on stdout.")
@pass_invocation
def validate(invocation: Invocation, files: Sequence[str], as_sarif: bool) -> int:
    """
    Check definitions as apply does; nothing is stored, no server is needed. FILE - is stdin.

    Only `apply --dry-run` finds what a server knows: its groups, accounts, secrets and state.

    Exit status 1: a definition has mistakes, or a file cannot be read.
    """
    if as_sarif and invocation.json:
        raise click.UsageError("--json and --sarif exclude each other")
    found = [validated(file) for file in files]
    ok = not any(one.problems for one in found)
    if as_sarif or invocation.json:
        put_json(sarif(found) if as_sarif else report(found))
        return 0 if ok else FAILED
    for one in found:
        say(clean("\n".join(one.lines())) if one.problems else f"{clean(one.file)}: ok")
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
            say(drawing.svg(definition), nl=False)
        case "mermaid":
            say(drawing.mermaid(definition), nl=False)
        case _:
            say(clean("\n".join(drawing.text(definition))))


@workflow_command.command("schema")
def schema() -> None:
    """The JSON Schema of definitions, by which editors complete and check them."""
    put_json(definition_schema())


@workflow_command.command("list")
@limit
@pass_invocation
def list_(invocation: Invocation, limit: int) -> None:
    """All workflows, by name."""

    found = invocation.perform(workflows.list_workflows, limit=limit)
    put_answer(invocation.json, found, _table)


def _table(found: Any) -> None:
    heads = ("id", "name", "steps", "version", "updated", "owner")
    put_table(heads, map(_row, found["items"]), found["total"])


@workflow_command.command("show")
@click.argument("workflow")
@pass_invocation
def show(invocation: Invocation, workflow: str) -> None:
    """One workflow: its steps, variables and shares."""

    put_answer(
        invocation.json, invocation.perform(workflows.read_workflow, workflow=workflow), _put
    )


def _put(found: Any) -> None:
    put_fields(
        {
            "id": found["id"],
            "name": found["name"],
            "description": found["description"],
            "owner": found["ownerId"],
            "version": found["version"],
            "updated": instant(found["updatedAt"]),
            "variables": ", ".join(one["name"] for one in found["variables"]),
            "steps": " > ".join(found["stepNames"]),
            "triggers": "; ".join(fires(one["definition"]) for one in found["triggers"]),
            "at once": _at_once(found["concurrency"]),
            "shared with": ", ".join(
                f"{one['accountId']} {one['permission']}" for one in found["shares"]
            ),
        }
    )


@workflow_command.command("share")
@click.argument("workflow")
@click.option("--with", "other", required=True, metavar="ID-or-EMAIL")
@click.option("--permission", type=Member(Permission), required=True, help="Each includes less.")
@pass_invocation
def share(invocation: Invocation, workflow: str, other: str, permission: Permission) -> None:
    """Let another account VIEW, EXECUTE or EDIT a workflow."""
    shared = invocation.perform(
        workflows.share_workflow, workflow=workflow, account=other, permission=permission
    )
    put_answer(
        invocation.json,
        shared,
        lambda one: say(f"{one['accountId']} may {permission} {one['workflowId']}"),
    )


@workflow_command.command("unshare")
@click.argument("workflow")
@click.option("--with", "other", required=True, metavar="ID-or-EMAIL")
@pass_invocation
def unshare(invocation: Invocation, workflow: str, other: str) -> None:
    """Take a share away. Webhooks that the account made there are disabled."""
    taken = invocation.perform(workflows.share_workflow, workflow=workflow, account=other)
    put_answer(
        invocation.json,
        taken,
        lambda one: say(f"{one['accountId']} has no share of {one['workflowId']} any more"),
    )


@workflow_command.command("delete")
@click.argument("workflow")
@pass_invocation
def delete(invocation: Invocation, workflow: str) -> None:
    """Delete a workflow. Its webhooks are disabled, its executions go on."""
    done = invocation.perform(workflows.delete_workflow, workflow=workflow)
    put_answer(invocation.json, done, lambda one: say(f"{one['id']} is deleted"))


def _at_once(limit: Any) -> str | None:
    """The limit on executions at once, in a few words."""
    if limit is None:
        return None
    by = f" of each {limit['key']}" if limit["key"] is not None else ""
    return f"{limit['limit']}{by}, others {limit['onLimit']}"


def _row(found: Any) -> tuple[object, ...]:
    return (
        found["id"],
        found["name"],
        len(found["stepNames"]),
        found["version"],
        instant(found["updatedAt"]),
        found["ownerEmail"] or found["ownerId"],
    )
