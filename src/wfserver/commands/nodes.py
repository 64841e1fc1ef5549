"""`wfcore nodes`: the servers that take executions from this store."""

from typing import Any

import click

from wfcore.usecases.administration import server
from wfserver.terminal.invocation import Session
from wfserver.terminal.options import Group, pass_session
from wfserver.terminal.output import put_answer, put_fields, put_table


@click.group("nodes", cls=Group)
def nodes_command() -> None:
    """Servers that run steps. One that was killed is listed for up to a minute."""


@nodes_command.command("list")
@pass_session
def list_(session: Session) -> None:
    """Servers that run steps now, what each can run, and which of them drain."""
    put_answer(session.json, session.perform(server.list_nodes), _table)


def _table(found: Any) -> None:
    rows = [
        (one["id"], one["host"], one["places"], one["startedAt"], _state(one), _able(one))
        for one in found["items"]
    ]
    put_table(("id", "host", "places", "since", "state", "can run"), rows, found["total"])


@nodes_command.command("drain")
@click.argument("id")
@click.option("--undo", is_flag=True, help="Let it take executions again.")
@pass_session
def drain(session: Session, id: str, undo: bool) -> None:
    """Let a server finish what it runs and take nothing new, so that you can stop it."""
    node = session.perform(server.drain_node, id=id, undo=undo)
    put_answer(
        session.json,
        node,
        lambda one: put_fields(
            {"id": one["id"], "host": one["host"], "state": _state(one), "takes": _from_when(one)}
        ),
    )


def _state(node: Any) -> str:
    return "draining" if node["draining"] else "taking"


def _from_when(node: Any) -> str:
    """What holds once the command is over: the server looks at its record, and may not have yet."""
    from adapters_runtime.engine.presence import LOOK_S

    what = "nothing new" if node["draining"] else "executions again"
    return f"{what}, {LOOK_S:.0f} s from now at the latest"


def _able(node: Any) -> str:
    if node["able"] is None:
        return "everything"
    return ", ".join(word.removeprefix("language:").replace(":", " ") for word in node["able"])
