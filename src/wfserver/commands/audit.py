"""`wfcore audit`: the audit log (who did what, and refusals with reasons), and its checks."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from wfcore.usecases.administration import server
from wfserver.failures import FAILED
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup, Since, pass_invocation
from wfserver.terminal.output import clean, instant, put_answer, put_json, put_table, say
from wfserver.terminal.perform import Perform

_BATCH = 1_000
_POLL_S = 0.25
_OVERLAP_MS = 5_000
_DEFAULT_SINCE = "24h"

C = TypeVar("C", bound=Callable[..., Any])


@click.group("audit", cls=CommandGroup, invoke_without_command=True)
@click.option(
    "--since",
    type=Since(),
    default=_DEFAULT_SINCE,
    show_default=True,
    metavar="WHEN",
    help="1h, an ISO date and time, or epoch milliseconds.",
)
@click.option("--follow", is_flag=True, help="Go on with what comes; with --json one entry a line.")
@pass_invocation
@click.pass_context
def audit_command(ctx: click.Context, invocation: Invocation, since: int, follow: bool) -> None:
    """The audit log, oldest first."""
    if ctx.invoked_subcommand is not None:
        return
    with invocation.operations() as perform:
        if follow:
            with suppress(KeyboardInterrupt):
                _follow(invocation, perform, since)
            return
        found = _all(perform, since)
    if invocation.json:
        put_json({"items": found, "total": len(found)})
    else:
        heads = ("at", "event", "outcome", "reason", "target", "account", "key", "ip")
        put_table(heads, [_row(entry) for entry in found], len(found))


def anchors(command: C) -> C:
    """The option `--anchor` of commands that verify."""
    option = click.option(
        "--anchor",
        "anchored",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        multiple=True,
        metavar="FILE",
        help="Must hold the entry of this anchor, written earlier. Repeatable.",
    )
    return option(command)


def anchor_texts(files: Sequence[Path]) -> Sequence[str]:
    """The texts in *files*."""
    return [file.read_text("utf-8", "replace") for file in files]


@audit_command.command("verify")
@anchors
@pass_invocation
def verify(invocation: Invocation, anchored: tuple[Path, ...]) -> int:
    """
    Whether each entry is as it was written, where it was written, and none is missing.

    Exit status 1 names the first that does not fit. That the end was cut off together with the
    log's note of it shows only with an anchor that was kept elsewhere.
    """
    checked = invocation.perform(server.verify_audit, anchors=anchor_texts(anchored))
    put_answer(invocation.json, checked, _put_checked)
    return 0 if checked["ok"] else FAILED


def _put_checked(checked: Any) -> None:
    last, fault = checked["last"], checked["fault"]
    if fault is None:
        say(f"{last - checked['first'] + 1} entries fit; the last is {last}")
    else:
        name = f"entry {fault['number']}" + (f" ({clean(fault['id'])})" if fault["id"] else "")
        say(f"DOES NOT FIT: {name}: {fault['why']}")


@audit_command.command("anchor")
@pass_invocation
def anchor(invocation: Invocation) -> None:
    """The log's end as one line of JSON. Keep it on another machine, for verify --anchor."""
    say(invocation.perform(server.anchor_audit)["anchor"])


def _all(perform: Perform, since: int) -> list[Any]:
    found: list[Any] = []
    while True:
        after = found[-1]["id"] if found else None
        batch = perform(server.read_entries, since=since, after=after, limit=_BATCH)["items"]
        found += batch
        if not batch:
            return found


def _follow(invocation: Invocation, perform: Perform, since: int) -> None:
    """
    Print new entries, each once. Entries of several processes may be stored a little out
    of order, so each poll goes a little back.
    """
    seen: frozenset[str] = frozenset()
    while True:
        found = _all(perform, since)
        for entry in found:
            if entry["id"] not in seen:
                _say(invocation, entry)
        if found:
            since = max(since, found[-1]["at"] - _OVERLAP_MS)
        seen = frozenset(entry["id"] for entry in found)
        time.sleep(_POLL_S)


def _say(invocation: Invocation, entry: Any) -> None:
    if invocation.json:
        put_json(entry, indent=None)
    else:
        say("  ".join(clean(value) for value in _row(entry) if value))
    sys.stdout.flush()


def _row(entry: Any) -> tuple[object, ...]:
    shown = ("event", "outcome", "reason", "target", "accountId", "keyId", "ip")
    return instant(entry["at"]), *(entry[name] for name in shown)
