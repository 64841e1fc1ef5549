"""`wfcore group`: the groups of the server, which approvers of any definition may name."""

from typing import Any

import click

from wfcore.usecases.administration import groups
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup, pass_invocation
from wfserver.terminal.output import put_answer, put_fields, put_table, say

_PEOPLE = "[EMAIL-or-ID]..."


@click.group("group", cls=CommandGroup)
def group_command() -> None:
    """Groups of people, for approvers of any definition: `group:NAME`."""


@group_command.command("create")
@click.argument("name")
@click.argument("members", nargs=-1, metavar=_PEOPLE)
@pass_invocation
def create(invocation: Invocation, name: str, members: tuple[str, ...]) -> None:
    """A new group. Its members may be addresses without an account."""
    _put(invocation, invocation.perform(groups.create_group, name=name, members=members))


@group_command.command("add")
@click.argument("name")
@click.argument("members", nargs=-1, required=True, metavar=_PEOPLE)
@pass_invocation
def add(invocation: Invocation, name: str, members: tuple[str, ...]) -> None:
    """Add members, for approvals that open from now on."""
    _put(invocation, invocation.perform(groups.add_members, name=name, members=members))


@group_command.command("remove")
@click.argument("name")
@click.argument("members", nargs=-1, required=True, metavar=_PEOPLE)
@pass_invocation
def remove(invocation: Invocation, name: str, members: tuple[str, ...]) -> None:
    """Remove members, for approvals that open from now on."""
    _put(invocation, invocation.perform(groups.remove_members, name=name, members=members))


@group_command.command("list")
@pass_invocation
def list_(invocation: Invocation) -> None:
    """The groups by name, with their members."""
    put_answer(invocation.json, invocation.perform(groups.list_groups), _table)


@group_command.command("show")
@click.argument("name")
@pass_invocation
def show(invocation: Invocation, name: str) -> None:
    """A group: its members, and the workflows that name it."""
    put_answer(invocation.json, invocation.perform(groups.read_group, name=name), _detail)


@group_command.command("delete")
@click.argument("name")
@pass_invocation
def delete(invocation: Invocation, name: str) -> None:
    """Delete a group; refused while a workflow names it as an approver."""
    done = invocation.perform(groups.delete_group, name=name)
    put_answer(invocation.json, done, lambda _: say(f"{name} is deleted"))


def _put(invocation: Invocation, answer: Any) -> None:
    put_answer(invocation.json, answer, _fields)


def _fields(found: Any) -> None:
    put_fields({"name": found["name"], "members": ", ".join(found["members"]) or None})


def _detail(found: Any) -> None:
    rows = [(one["email"], one["status"] or "no account") for one in found["members"]]
    put_table(("member", "account"), rows, len(rows))
    for one in found["usedBy"]:
        say(f"used by {one['name']} ({one['id']})")


def _table(found: Any) -> None:
    rows = [(one["name"], ", ".join(one["members"]) or "-") for one in found["items"]]
    put_table(("name", "members"), rows, found["total"])
