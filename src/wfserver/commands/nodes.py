"""`wfcore nodes`: the servers that work on this store."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from wfcore.usecases.administration import server
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup, pass_invocation
from wfserver.terminal.output import put_answer, put_fields, put_table


@click.group("nodes", cls=CommandGroup)
def nodes_command() -> None:
    """
    Servers of this store. One that was killed counts as gone after a minute without a sign of life,
    and is listed for an hour.
    """


@nodes_command.command("list")
@pass_invocation
def list_(invocation: Invocation) -> None:
    """Servers: what each does and can run, where it answers, and when it was seen last."""
    put_answer(invocation.json, invocation.perform(server.list_nodes), _table)


def _table(found: Any) -> None:
    columns: Mapping[str, Callable[[Any], object]] = {
        "id": lambda one: one["id"],
        "state": lambda one: one["state"],
        "role": lambda one: one["role"],
        "host": lambda one: f"{one['host']} ({one['pid']})",
        "slots": lambda one: one["places"],
        "seen": lambda one: one["seenAt"],
        "since": lambda one: one["startedAt"],
        "version": lambda one: one["version"],
        "address": lambda one: one["address"],
        "can run": _able,
    }
    rows = [[cell(one) for cell in columns.values()] for one in found["items"]]
    put_table(tuple(columns), rows, found["total"])


@nodes_command.command("drain")
@click.argument("id")
@click.option("--undo", is_flag=True, help="Let it take executions again.")
@pass_invocation
def drain(invocation: Invocation, id: str, undo: bool) -> None:
    """Let a server finish what it runs and take nothing new, so that you can stop it."""
    node = invocation.perform(server.drain_node, id=id, undo=undo)
    put_answer(
        invocation.json,
        node,
        lambda one: put_fields(
            {"id": one["id"], "host": one["host"], "state": one["state"], "takes": _from_when(one)}
        ),
    )


def _from_when(node: Any) -> str:
    """
    What the server takes, and from when on, in words: it reads its record only every `POLL_S` s.
    """
    from adapters_runtime.engine.presence import POLL_S

    what = "nothing new" if node["draining"] else "executions again"
    return f"{what}, {POLL_S:.0f} s from now at the latest"


def _able(node: Any) -> str:
    if not node["places"]:
        return "-"
    if node["able"] is None:
        return "everything"
    return ", ".join(word.removeprefix("language:").replace(":", " ") for word in node["able"])
