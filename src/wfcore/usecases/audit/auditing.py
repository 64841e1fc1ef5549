"""The audit log: each action with its actor and origin, and each refusal with its reason."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from attrs import evolve, frozen

from wfcore.errors import (
    AccountBlocked,
    AlreadyDecided,
    Conflict,
    Forbidden,
    ItemsChanged,
    NotFound,
    StoreUnavailable,
    TooManyAttempts,
    Unauthenticated,
)
from wfcore.model.access import OPERATOR, Caller, Principal, Unrestricted
from wfcore.model.approval import Approval
from wfcore.model.event import AuditEntry, AuditOutcome, ChainPoint
from wfcore.model.execution import Execution
from wfcore.model.json import JsonObject
from wfcore.model.trace import Trace
from wfcore.ports.store import Unit
from wfcore.rules.approval.agreement import files_of, items_hash
from wfcore.rules.approval.released_rows import standing_rows
from wfcore.rules.audit.chain import TRIM, start_record
from wfcore.rules.audit.evidence import act_of
from wfcore.rules.audit.refusals import NOT_FOUND, SHOWN
from wfcore.rules.auth.api_key import without_keys
from wfcore.rules.canonical import canonical, digest
from wfcore.rules.masking import mask_text, secret_values
from wfcore.time import EpochMs
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried


@frozen
class Origin:
    """
    The origin of a request, as far as known. Never contains a query string. `operator`: the
    operator who administers from another machine; the audit log names the operator, whoever owns
    the object. AC-8. `trace`: the trace of the request. TR-1.
    """

    path: str | None = None
    ip: str | None = None
    request_id: str | None = None
    operator: Principal | None = None
    trace: Trace | None = None


UNKNOWN = Origin()


@frozen
class Record:
    """A record stored with an entry, as canonical JSON, and its hash. AL-3."""

    text: str
    hash: str


def record_of(value: JsonObject) -> Record:
    """*value* as a record to store with an entry."""
    text = canonical(value)
    return Record(text, digest(text))


def note(
    services: Services,
    unit: Unit,
    event: str,
    who: Caller | Unrestricted | None,
    target: str | None,
    origin: Origin,
    details: JsonObject | None = None,
    *,
    execution_id: str | None = None,
    record: Record | None = None,
) -> None:
    """
    Add an entry about an action of *unit*: both are stored or neither. *who*: the person who acts;
    None: the service itself. *record*: data that is too
    large for a list, stored with the entry. AL-3.
    """
    who = origin.operator or who
    entry = evolve(
        _entry(services, event, origin, target),
        account_id=_account_id(who),
        key_id=_key_id(who),
        details=details,
        execution_id=execution_id,
        record_hash=record.hash if record is not None else None,
    )
    unit.append(entry, record.text if record is not None else None)


@frozen
class DecisionAudit:
    """The audit of a decision: its verb, the hash of the rows, and a record."""

    verb: str
    items_hash: str
    record: Record


def audit_of(verb: str, before: Approval, after: Approval) -> DecisionAudit:
    """
    The audit of *verb*, the decision that changed *before* into *after*. Pure; slow for many rows.
    AL-3.
    """
    record: JsonObject = {
        "approvalId": after.id,
        "executionId": after.execution_id,
        "workflowId": after.workflow_id,
        "stepName": after.step_name,
        "message": after.message,
        "decision": verb,
        "status": after.status,
        "rowsBefore": standing_rows(before),
        "rowsAfter": standing_rows(after),
    }
    if after.history:
        record = {**record, "act": act_of(after)}
    if after.fields:
        record = {**record, "answers": after.answers}
    if after.attachments:
        record = {**record, "attachments": files_of(after)}
    return DecisionAudit(verb, items_hash(after), record_of(record))


def act_record(after: Approval) -> Record:
    """
    The record of an action that leaves an approval undecided: the action's line of the history.
    """
    return record_of({"act": act_of(after), "status": after.status})


def note_decision(
    services: Services,
    unit: Unit,
    who: Caller | Unrestricted | None,
    approval: Approval,
    audit: DecisionAudit,
    run: Execution,
    comment: str | None,
    origin: Origin,
) -> None:
    """
    Add an audit entry for a decision. The entry records the rows decided on and the workflow
    version. AP-27.
    """
    if comment is not None:
        masked = mask_text(comment, secret_values(run)) if run.secrets else comment
        comment = without_keys(masked)
    details: JsonObject = {
        "itemsHash": audit.items_hash,
        "comment": comment,
        "workflowVersion": run.revision,
    }
    note(
        services,
        unit,
        f"approval.{audit.verb}",
        who,
        approval.id,
        origin,
        details,
        execution_id=run.id,
        record=audit.record,
    )


async def note_refusal(
    services: Services,
    event: str,
    who: Caller | Unrestricted,
    target: str,
    error: NotFound | Forbidden | Conflict,
    origin: Origin,
) -> None:
    """
    Record a refused decision of an authenticated caller on the approval *target*. A repetition
    within the same minute is only counted. AL-8. A refusal writes no other record, so the entry is
    a unit of its own; a store that cannot write does not change the answer.
    """
    await note_repeated(services, services.clock.now())
    who = origin.operator or who
    reason = next(word for kind, word in _REFUSED.items() if isinstance(error, kind))
    entry = evolve(
        _entry(services, event, origin, without_keys(target)[:SHOWN], reason),
        account_id=_account_id(who),
        key_id=_key_id(who),
    )
    await _note_first(services, entry)


async def _note_first(services: Services, entry: AuditEntry) -> None:
    if services.refusal_traffic.is_first(entry):
        with suppress(StoreUnavailable):
            await _write(services, entry)


_REFUSED: Mapping[type[Exception], str] = {
    NotFound: NOT_FOUND,
    Forbidden: "forbidden",
    ItemsChanged: "items_changed",
    AlreadyDecided: "already_decided",
    Conflict: "conflict",
}
"""The reason for the audit log; the first kind that fits counts."""


def trimmed(services: Services, start: ChainPoint) -> tuple[AuditEntry, str]:
    """The entry, and its record, for the deletion of the log up to *start* by retention. AL-9."""
    record = record_of(start_record(start))
    entry = _entry(services, TRIM, UNKNOWN, None)
    return evolve(entry, record_hash=record.hash), record.text


def note_skipped(
    services: Services, unit: Unit, event: str, reason: str, account_id: str, target: str
) -> None:
    """Add an entry about an action that the service itself would have taken and did not take."""
    entry = _entry(services, event, UNKNOWN, target, reason)
    unit.append(evolve(entry, account_id=account_id))


async def note_denial(
    services: Services,
    event: str,
    error: Unauthenticated | AccountBlocked | TooManyAttempts,
    origin: Origin,
    target: str | None = None,
) -> None:
    """
    Record a refusal with its reason. A repetition within the same minute is only counted. AL-8. A
    store that cannot write does not change the answer.
    """
    await note_repeated(services, services.clock.now())
    shown = without_keys(target)[:SHOWN] if target else None
    entry = evolve(
        _entry(services, event, origin, shown, _reason(error)),
        account_id=getattr(error, "account_id", None),
        key_id=getattr(error, "key_id", None),
    )
    await _note_first(services, entry)


async def note_repeated(services: Services, now: EpochMs | None = None) -> None:
    """
    Record the number of repetitions of each refusal in the minute before *now*; with *now* None, in
    the current minute as well.
    """
    entries = [
        evolve(
            one.last,
            id=services.ids.new("aud", services.clock.now()),
            at=services.clock.now(),
            details={"repeated": one.count, "lastAt": one.last.at},
        )
        for one in services.refusal_traffic.over(now)
    ]
    if entries:
        with suppress(StoreUnavailable):
            await _write(services, *entries)


@retried
async def _write(services: Services, *entries: AuditEntry) -> None:
    """Store entries in a unit of their own. An entry about an approval also names the execution."""
    async with services.store.unit() as unit:
        for entry in entries:
            about = entry.target if entry.event.startswith("approval.") else None
            approval = await unit.get(Approval, about) if about else None
            unit.append(evolve(entry, execution_id=approval.execution_id) if approval else entry)
        await unit.commit()


def _entry(
    services: Services, event: str, origin: Origin, target: str | None, reason: str | None = None
) -> AuditEntry:
    """The common part of every entry. An entry with a *reason* is about a refusal."""
    now = services.clock.now()
    return AuditEntry(
        id=services.ids.new("aud", now),
        at=now,
        event=event,
        outcome=AuditOutcome.DENIED if reason else AuditOutcome.ALLOWED,
        reason=reason,
        target=target,
        path=without_keys(origin.path)[:SHOWN] if origin.path else None,
        ip=origin.ip,
        request_id=origin.request_id,
    )


def _account_id(who: Caller | Unrestricted | None) -> str | None:
    return None if who is None or who is OPERATOR else who.identity


def _key_id(who: Caller | Unrestricted | None) -> str | None:
    return who.key.id if isinstance(who, Principal) and who.key else None


async def read_audit(
    services: Services, since: EpochMs, after_id: str | None, limit: int
) -> Sequence[AuditEntry]:
    """Entries since *since* with an id above *after_id*, oldest first."""
    async with services.store.view() as view:
        return await view.audit.list(since, after_id, limit)


@frozen
class AuditFilter:
    """The conditions of a search. An empty or None field does not narrow the search."""

    event: str = ""
    outcome: AuditOutcome | None = None
    account_id: str = ""
    key_id: str = ""
    target: str = ""
    since: EpochMs | None = None
    until: EpochMs | None = None

    def fits(self, entry: AuditEntry) -> bool:
        """Whether *entry* matches; `event` is a prefix, such as `approval`."""
        late = self.since is None or entry.at >= self.since
        return (
            entry.event.startswith(self.event)
            and self.outcome in (None, entry.outcome)
            and self.account_id in ("", entry.account_id)
            and self.key_id in ("", entry.key_id)
            and self.target in ("", entry.target, entry.execution_id)
            and late
            and (self.until is None or entry.at < self.until)
        )


@frozen
class AuditMatches:
    """
    Entries with their numbers, newest first. `next`: the number below which the search continues;
    None: the search is complete. `looked_at`: the number of entries read.
    """

    entries: Sequence[tuple[int, AuditEntry]]
    next: int | None
    looked_at: int


MOST_LOOKED_AT, _AT_ONCE = 5_000, 500


async def search_audit(
    services: Services, who: Principal, where: AuditFilter, before: int | None, size: int
) -> AuditMatches:
    """
    The actions and refusals of *who* (for an operator: of everybody), newest first. At most
    `MOST_LOOKED_AT` entries are read, so that a search for a rare entry takes no longer than a
    search for a frequent entry.
    """
    if not who.operator:
        where = evolve(where, account_id=who.account.id)
    entries: list[tuple[int, AuditEntry]] = []
    looked_at = 0
    async with services.store.view() as view:
        while len(entries) < size and looked_at < MOST_LOOKED_AT:
            rows = await view.audit.newest(before, _AT_ONCE)
            for number, entry in rows:
                before, looked_at = number, looked_at + 1
                if where.fits(entry):
                    entries.append((number, entry))
                    if len(entries) == size:
                        break
            if len(rows) < _AT_ONCE or (where.since is not None and rows[-1][1].at < where.since):
                if len(entries) < size:
                    before = None
                break
    return AuditMatches(entries, before, looked_at)


async def newest_audited(services: Services, who: Principal, since: int) -> int:
    """
    The number of the newest entry above *since* that *who* may read; *since* if there is no such
    entry. Cheap to repeat: if no entry was added, one entry is read. AL-1.
    """
    async with services.store.view() as view:
        head = await view.audit.newest(None, 1)
        if not head or head[0][0] <= since:
            return since
        rows = await view.audit.newest(None, min(head[0][0] - since, _AT_ONCE))
    mine = AuditFilter(account_id="" if who.operator else who.account.id)
    return next((number for number, entry in rows if number > since and mine.fits(entry)), since)


def _reason(error: Unauthenticated | AccountBlocked | TooManyAttempts) -> str:
    match error:
        case Unauthenticated():
            return error.reason.value
        case AccountBlocked():
            return "account_blocked"
        case TooManyAttempts():
            return "login_locked"
