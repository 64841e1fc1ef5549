"""`wfcore audit`: who asked for what, from where, and why it was refused; and its checks."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import attrs
import click

from wfcore.model.event import Anchor, AuditEntry
from wfcore.rules.audit.chain import anchor_text, read_anchor
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import read_audit
from wfcore.usecases.audit.evidence import audit_anchor, check_audit
from wfcore.usecases.services import Services
from wfserver.terminal.failures import FAILED
from wfserver.terminal.invocation import Session
from wfserver.terminal.options import Group, Since, pass_session
from wfserver.terminal.output import clean, instant, put_json, put_list, put_table
from wfserver.terminal.views import audit_json

_BATCH = 1_000
_POLL_S = 0.25
_OVERLAP_MS = 5_000
_DEFAULT_SINCE = "24h"

C = TypeVar("C", bound=Callable[..., Any])


@click.group("audit", cls=Group, invoke_without_command=True)
@click.option(
    "--since",
    type=Since(),
    default=_DEFAULT_SINCE,
    show_default=True,
    metavar="WHEN",
    help="1h, an ISO date and time, or epoch milliseconds.",
)
@click.option("--follow", is_flag=True, help="Go on with what comes; with --json one entry a line.")
@pass_session
@click.pass_context
def audit_command(ctx: click.Context, session: Session, since: int, follow: bool) -> None:
    """The audit log, oldest first."""
    if ctx.invoked_subcommand is not None:
        return
    if follow:
        with suppress(KeyboardInterrupt):
            session.work(lambda services: _follow(session, services, EpochMs(since)))
        return
    found = session.work(lambda services: _all(services, EpochMs(since)))
    if session.json:
        put_list([audit_json(entry) for entry in found], len(found))
    else:
        heads = ("at", "event", "outcome", "reason", "target", "account", "key", "ip")
        put_table(heads, [_row(entry) for entry in found], len(found))


def anchors(command: C) -> C:
    """The option --anchor of what is checked."""
    option = click.option(
        "--anchor",
        "anchored",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        multiple=True,
        metavar="FILE",
        help="Must hold the entry of this anchor, written earlier. Repeatable.",
    )
    return option(command)


def read_anchors(files: Sequence[Path]) -> Sequence[Anchor]:
    """The anchors in *files*. Raises `InvalidInput`."""
    return [read_anchor(file.read_text("utf-8", "replace")) for file in files]


@audit_command.command("verify")
@anchors
@pass_session
def verify(session: Session, anchored: tuple[Path, ...]) -> int:
    """
    Whether each entry is as it was written, where it was written, and none is missing.

    Exit status 1 names the first that does not fit. That the end was cut off together with the
    log's note of it shows only with an anchor that was kept elsewhere.
    """
    known = read_anchors(anchored)
    checked = session.work(lambda services: check_audit(services, known))
    chain, fault = checked.chain, checked.fault
    if session.json:
        put_json(
            {
                "ok": fault is None,
                "chain": chain.id,
                "first": chain.start.number + 1,
                "last": chain.end.number,
                "hash": chain.end.hash,
                "fault": attrs.asdict(fault) if fault else None,
            }
        )
    elif fault is None:
        click.echo(f"{checked.entries} entries fit; the last is {chain.end.number}")
    else:
        name = f"entry {fault.number}" + (f" ({clean(fault.id)})" if fault.id else "")
        click.echo(f"DOES NOT FIT: {name}: {fault.why}")
    return 0 if fault is None else FAILED


@audit_command.command("anchor")
@pass_session
def anchor(session: Session) -> None:
    """The log's end as one line of JSON. Keep it on another machine, for verify --anchor."""
    click.echo(anchor_text(session.work(audit_anchor)))


async def _all(services: Services, since: EpochMs) -> Sequence[AuditEntry]:
    return [entry async for batch in _batches(services, since) for entry in batch]


async def _batches(services: Services, since: EpochMs) -> AsyncIterator[Sequence[AuditEntry]]:
    last: str | None = None
    while batch := await read_audit(services, since, last, _BATCH):
        yield batch
        last = batch[-1].id


async def _follow(session: Session, services: Services, since: EpochMs) -> None:
    """
    Show what comes, each entry once. Entries of several processes may be stored a little out
    of order, so each look goes a little back.
    """
    seen: frozenset[str] = frozenset()
    while True:
        found = await _all(services, since)
        for entry in found:
            if entry.id not in seen:
                _say(session, entry)
        if found:
            since = max(since, EpochMs(found[-1].at - _OVERLAP_MS))
        seen = frozenset(entry.id for entry in found)
        await asyncio.sleep(_POLL_S)


def _say(session: Session, entry: AuditEntry) -> None:
    if session.json:
        put_json(audit_json(entry), indent=None)
    else:
        click.echo("  ".join(clean(value) for value in _row(entry) if value))
    sys.stdout.flush()


def _row(entry: AuditEntry) -> tuple[object, ...]:
    return (
        instant(entry.at),
        entry.event,
        entry.outcome,
        entry.reason,
        entry.target,
        entry.account_id,
        entry.key_id,
        entry.ip,
    )
