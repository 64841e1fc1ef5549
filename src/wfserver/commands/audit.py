"""`wfcore audit`: who asked for what, from where, and why it was refused."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import click

from wfcore.instants import EpochMs
from wfcore.model.event import AuditEntry
from wfcore.usecases.auditing import read_audit
from wfcore.usecases.services import Services
from wfserver.output import clean, instant, put_json, put_list, put_table
from wfserver.params import Command, Since, pass_session
from wfserver.session import Session
from wfserver.shapes import audit_json

_BATCH = 1_000
_POLL_S = 0.25
_OVERLAP_MS = 5_000
_DEFAULT_SINCE = "24h"


@click.command("audit", cls=Command)
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
def audit_command(session: Session, since: int, follow: bool) -> None:
    """The audit log, oldest first."""
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


def _now() -> int:
    return int(datetime.now(UTC).timestamp() * 1_000)
