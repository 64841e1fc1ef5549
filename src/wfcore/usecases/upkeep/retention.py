"""
Deletion of expired records: piece by piece, oldest first, until no expired record is left. PK-6.

One call of `delete_expired` is one piece, small enough that starts are answered at the same time.
The caller rests between pieces and may stop after any piece. Files are deleted before the rows that
name them. So a crash leaves rows without files, which the next piece finds again, and never unknown
files. A duty or an execution that fails is reported and left out; other duties and executions
continue.
"""

from collections.abc import Awaitable, Sequence
from functools import partial

from attrs import frozen

from wfcore.rules.limits import DELIVERIES_KEPT_FOR, REPLAY_WINDOW, SESSION_MAX
from wfcore.time import DAY, later
from wfcore.usecases.audit.auditing import trimmed
from wfcore.usecases.nodes import tell_of_waiting
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import DutyFailure, Report, at_once
from wfcore.usecases.upkeep.sweeping import DUTY
from wfcore.usecases.workflows.firing import plan_anew
from wfcore.usecases.workflows.workflows import prune_packages

EXECUTIONS = 50
RECORDS = 200
TALLIED = 1_000
"""The executions that one piece counts for the totals of lists."""
PACKED = 20
"""The executions that one piece packs: writers wait some milliseconds for a piece."""
ROOM = 1 << 20
"""The bytes that one piece returns to the system."""
KEEP_COUNTERS = 2 * DAY
MOST_LEFT_OUT = 200
"""
The number of executions with undeletable files at which purging stops: so many failures have a
common cause.
"""


@frozen
class DeletionPiece:
    """
    The result of one piece. `executions` and `records`: the numbers deleted; `released`: bytes
    returned to the system, once few old records are left; `left_out`: executions that could not be
    deleted; `tallied`: executions counted for totals; `packed`: executions examined for packing.
    """

    executions: int
    records: int
    released: int
    left_out: int = 0
    tallied: int = 0
    packed: int = 0

    @property
    def more(self) -> bool:
        """
        Whether the piece deleted anything, or counted or packed as many executions as a piece may.
        """
        gone = self.executions or self.records or self.released or self.left_out
        return bool(gone) or self.tallied >= TALLIED or self.packed >= PACKED


async def delete_expired(
    services: Services, report: Report = at_once, left_out: set[str] | None = None
) -> DeletionPiece:
    """
    Do one piece of upkeep: delete ended executions with artifacts and events, audit entries,
    idempotency records, sessions, logins and webhook deliveries that are past their time; count
    ended executions for the totals of lists; and pack ended executions.

    Failures are passed to *report*, which raises by default. *left_out*: executions whose files
    could not be deleted; they are skipped, and the executions left out by this piece are added.
    """
    left_out = set() if left_out is None else left_out
    before = len(left_out)
    executions = await _tried("executions", _purge_some(services, report, left_out), report)
    records = await _tried("records", _trim_some(services), report)
    released = packed = 0
    if executions < EXECUTIONS and records < RECORDS:  # what goes soon is not packed first
        released = await _tried("room", services.store.release(ROOM), report)
        packed = await _tried("packing", services.store.pack(PACKED), report)
    tallied = await _tried("tallies", services.store.tally(TALLIED), report)
    return DeletionPiece(executions, records, released, len(left_out) - before, tallied, packed)


async def _tried(duty: str, work: Awaitable[int], report: Report) -> int:
    try:
        return await work
    except Exception as error:
        report(DutyFailure(DUTY, duty, error))
        return 0


async def _purge_some(services: Services, report: Report, left_out: set[str]) -> int:
    if len(left_out) >= MOST_LEFT_OUT:
        return 0
    before = later(services.clock.now(), -services.policy.keep_executions_ms)
    async with services.store.view() as view:
        found = await view.executions.ended_before(before, EXECUTIONS + len(left_out))
    old = [id for id in found if id not in left_out][:EXECUTIONS]
    without_files = await _delete_files(services, old, report) if old else old
    left_out.update(set(old).difference(without_files))
    if without_files:
        async with services.store.unit() as unit:
            unit.purge(*without_files)
            await unit.commit()
    return len(without_files)


async def _delete_files(services: Services, ids: Sequence[str], report: Report) -> Sequence[str]:
    """
    Delete the files of executions, all at once or, if that fails, one by one; returns the
    executions whose files are gone.
    """
    try:
        await services.files.delete_executions(*ids)
    except Exception:
        return [id for id in ids if await _are_gone(services, id, report)]
    return ids


async def _are_gone(services: Services, id: str, report: Report) -> bool:
    try:
        await services.files.delete_executions(id)
    except Exception as error:
        report(DutyFailure("artifacts", id, error))
        return False
    return True


async def _trim_some(services: Services) -> int:
    now = services.clock.now()
    return await services.store.trim(
        later(now, -services.policy.audit_ms),
        later(now, -REPLAY_WINDOW),
        later(now, -SESSION_MAX),
        later(now, -DELIVERIES_KEPT_FOR),
        RECORDS,
        partial(trimmed, services),
    )


async def run_upkeep(services: Services, report: Report = at_once) -> None:
    """
    Trim old quota counters, remove unused packages, plan schedules again, and write notices of
    executions that no worker can run. Failures are passed to *report*. PK-6, NT-9.
    """
    await _tried("counters", _trim_counters(services), report)
    await _tried("packages", prune_packages(services), report)
    await _tried("schedules", plan_anew(services, report), report)
    await _tried("waiting", tell_of_waiting(services, report), report)


async def _trim_counters(services: Services) -> int:
    await services.counters.trim(later(services.clock.now(), -KEEP_COUNTERS))
    return 0
