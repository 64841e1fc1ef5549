"""
The writes of a unit in memory: the common writes of every kind of record, and a few special writes.

Each function returns a change. A change is applied to the overlay of the unit before the unit's
next read, and again, strictly, when the unit commits (see `overlay`).
"""

from collections.abc import Callable, Collection
from itertools import takewhile
from typing import Any

from attrs import evolve

from wfcore.memory.disk import Changes, Medium
from wfcore.memory.overlay import Change, Overlay, Table
from wfcore.memory.tables import (
    APPROVALS,
    ARTIFACTS,
    AUDIT,
    CALLBACKS,
    CHAIN,
    DELIVERIES,
    EVENTS,
    EXECUTIONS,
    FINISHED,
    LEASES,
    LIMITS,
    LOGS,
    NOTICES,
    TALLIES,
    audit_chain,
    key_in,
    table_of,
)
from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution, Replay
from wfcore.model.webhook import Delivery, Tally
from wfcore.ports.records import KIND_OF
from wfcore.ports.store import Trimmed
from wfcore.rules.audit.chain import entry_text, extended, read_entry
from wfcore.rules.limits import DELIVERIES_KEPT
from wfcore.time import DAY, EpochMs, Now


def put(record: Any) -> Change:
    """Compare the version and set, if no other record has the same unique values."""
    kind = KIND_OF[type(record)]
    table, key = table_of(kind.type), key_in(kind, record)

    def change(overlay: Overlay) -> None:
        if kind.unique:
            taken = any(
                all(getattr(one, name) == getattr(record, name) for name in kind.unique)
                and key_in(kind, one) != key
                for one in overlay.all(table)
            )
            overlay.expect(table, key, not taken)
        if isinstance(record, Execution):
            _let_go(overlay, record)
        if isinstance(record, Replay):
            _forget_old(overlay, record)
        overlay.put(table, key, record)

    return change


def _let_go(overlay: Overlay, run: Execution) -> None:
    """Delete the lease of a worker that no longer holds the execution."""
    stored = overlay.get(EXECUTIONS, run.id)
    if run.worker is None or stored is None or stored.worker != run.worker:
        overlay.set(LEASES, run.id, None)


def _forget_old(overlay: Overlay, record: Replay) -> None:
    """
    Delete an idempotency record that is at least a day old, so that its key can be used again.
    """
    table, key = table_of(Replay), (record.scope, record.key)
    old = overlay.get(table, key)
    if old and record.version == 0 and record.created_at - old.created_at >= DAY:
        overlay.set(table, key, None)


def delete(record: Any) -> Change:
    """Compare the version and delete the record, with the records that its kind `owns`."""
    kind = KIND_OF[type(record)]
    key = key_in(kind, record)

    def change(overlay: Overlay) -> None:
        overlay.drop(table_of(kind.type), key, record)
        for owned, owner in kind.owns:
            overlay.clear(table_of(owned), _of(owner, record.id))

    return change


def _of(owner: str, id: str) -> Callable[[Any], bool]:
    return lambda one: bool(getattr(one, owner) == id)


def discard(kind: type[Any], key: tuple[str, ...]) -> Change:
    """Delete the record under *key*, whatever its version."""
    return lambda overlay: overlay.set(table_of(kind), key if key[1:] else key[0], None)


def log_event(event: Event, table: Table[tuple[Event, ...]] = EVENTS) -> Change:
    def change(overlay: Overlay) -> None:
        log = overlay.get(table, event.execution_id) or ()
        grown = (*log, event)
        if log and log[-1].number >= event.number:
            new = all(event.number != known.number for known in log)
            overlay.expect(table, event.execution_id, new)
            grown = tuple(sorted(grown, key=lambda known: known.number))
        overlay.set(table, event.execution_id, grown)

    return change


def log_audit(entry: AuditEntry, record: str | None) -> Change:
    """Add an audit entry, linked to the entry before. AL-1."""
    text = entry_text(entry)

    def change(overlay: Overlay) -> None:
        overlay.expect(AUDIT, entry.id, overlay.get(AUDIT, entry.id) is None)
        chain, (linked,) = extended(audit_chain(overlay), [(text, record)])
        overlay.set(AUDIT, entry.id, linked)
        overlay.set(CHAIN, "", chain)

    return change


def over_time(disk: Medium, before: EpochMs, limit: int, trimmed: Trimmed | None = None) -> Changes:
    """
    The changes that delete up to *limit* old entries from the beginning of the chain and add the
    entry that records the deletion.
    """
    kept = sorted(Overlay(disk).all(AUDIT), key=lambda entry: entry.number)[:limit]
    entries = [(read_entry(one.text), one) for one in kept]
    old = list(takewhile(lambda pair: pair[0].at < before, entries))
    if not old:
        return {}
    chain = evolve(audit_chain(Overlay(disk)), start=old[-1][1].point)
    changed: dict[Any, Any] = {entry.id: None for entry, _ in old}
    if trimmed is not None:
        entry, record = trimmed(chain.start)
        chain, [changed[entry.id]] = extended(chain, [(entry_text(entry), record)])
    return {AUDIT.name: changed, CHAIN.name: {"": chain}}


def tally(webhook_id: str, date: str, status: int, at: EpochMs) -> Change:
    key = (webhook_id, date, status)

    def change(overlay: Overlay) -> None:
        old = overlay.get(TALLIES, key) or Tally(webhook_id, date, status, 0, at)
        new = evolve(old, count=old.count + 1, last_at=max(old.last_at, at))
        overlay.set(TALLIES, key, new)

    return change


def deliver(record: Delivery) -> Change:
    """
    Add a delivery. Of the webhook's deliveries with the same `authenticated`, the newest are kept.
    """

    def change(overlay: Overlay) -> None:
        overlay.set(DELIVERIES, record.id, record)
        alike = [
            one.id
            for one in overlay.all(DELIVERIES)
            if (one.webhook_id, one.authenticated) == (record.webhook_id, record.authenticated)
        ]
        for id in sorted(alike)[:-DELIVERIES_KEPT]:
            overlay.set(DELIVERIES, id, None)

    return change


def purge(ids: Collection[str]) -> Change:
    def change(overlay: Overlay) -> None:
        by_id: tuple[Table[Any], ...] = (EXECUTIONS, LEASES, EVENTS, LOGS, CALLBACKS)
        for id in ids:
            for table in by_id:
                overlay.set(table, id, None)
        overlay.clear(APPROVALS, lambda one: one.execution_id in ids)
        overlay.clear(ARTIFACTS, lambda one: one.execution_id in ids)
        overlay.clear(NOTICES, lambda one: one.execution_id in ids)

    return change


def require_abandoned(record: Execution, now: Now, ended: Collection[str]) -> Change:
    def change(overlay: Overlay) -> None:
        run = overlay.get(EXECUTIONS, record.id)
        held = run is not None and run.worker is not None and run.worker == record.worker
        overlay.expect(EXECUTIONS, record.id, held and is_gone(overlay, record, now(), ended))

    return change


def is_gone(overlay: Overlay, run: Execution, now: EpochMs, ended: Collection[str]) -> bool:
    """
    Whether the lease of the worker of *run* has expired, or the worker is known to have ended.
    """
    return (overlay.get(LEASES, run.id) or 0) < now or run.worker in ended


def limit_group(workflow_id: str, at_once: int | None) -> Change:
    return lambda overlay: overlay.set(LIMITS, workflow_id, at_once)


def require_room(group: str, at_once: int) -> Change:
    def change(overlay: Overlay) -> None:
        taken = sum(is_open(run, group) for run in overlay.all(EXECUTIONS))
        overlay.expect(LIMITS, group, taken < at_once)

    return change


def is_open(run: Execution, group: str) -> bool:
    """Whether *run* counts in that concurrency group."""
    return run.concurrency_group == group and run.status not in FINISHED
