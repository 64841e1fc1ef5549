"""Queries for executions, approvals, artifacts, callbacks and notices."""
# ruff: noqa: S608 - only constant text of this package is put together

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar, cast

from attrs import define, evolve

from adapters_store.sql.cache import ENTRY_BYTES, KnownRecord
from adapters_store.sql.cells import Cells, Row, cost_of
from adapters_store.sql.execution_rows import (
    COLUMNS,
    LISTED,
    SELECT_HEAD,
    decode,
    decode_listed,
)
from adapters_store.sql.kinds import APPROVALS, ARTIFACTS, CALLBACKS, NOTICES, Kind
from adapters_store.sql.queries import Listing, Query, Where, query
from adapters_store.sql.statement import insert
from adapters_store.sql.unit_of_work import SqlUnitOfWork
from wfcore.model.approval import Approval, ApprovalHead, ApprovalStatus
from wfcore.model.execution import Artifact, Callback, Execution, ExecutionStatus
from wfcore.model.notice import Notice, NoticeStatus
from wfcore.model.page import Page, PageRequest
from wfcore.ports.records import SEARCHED, ApprovalFilter, ExecutionFilter
from wfcore.rules.execution.machine import EXECUTION
from wfcore.time import DurationMs, EpochMs

CLAIMABLE = """worker IS NULL AND due_at IS NOT NULL
    AND status IN ('PENDING', 'RUNNING', 'AWAITING_APPROVAL') AND queued = 0"""
_ROWS = "rows of executions"
"""The name in the cache of executions as lists have them, beside those that are read by id."""
_PAGE = 100
"""The most rows of a page that are cached: what walks through all executions caches none."""
FAILED_OR_CANCELLED = frozenset({ExecutionStatus.FAILED, ExecutionStatus.CANCELLED})
EXECUTION_PAGES = Listing("executions", COLUMNS, ("accepted_at", "id"), computed=LISTED)
APPROVAL_PAGES = Listing("approvals")
NOTICE_PAGES = Listing("notices")
AT_ADDRESS = """SELECT version, body, id FROM notices WHERE id IN (
    SELECT id FROM notices WHERE channel = ? AND recipient = ? AND due_at IS NOT NULL
    UNION SELECT id FROM notices
        WHERE channel = ? AND recipient = ? AND attempted_at IS NOT NULL AND attempted_at >= ?)
    ORDER BY created_at, id"""

MAY_SEE = """r.id IN (
    SELECT id FROM approvals WHERE owner_id = ?{among}
    UNION SELECT id FROM approvals WHERE workflow_owner_id = ?{among}
    UNION SELECT approval_id FROM approval_approvers WHERE approver IN (?, ?)
    UNION SELECT a.id FROM shares s JOIN approvals a ON a.workflow_id = s.workflow_id
        WHERE s.account_id = ? AND s.permission = 'EDIT' AND a.named = 0)"""
"""
The condition that an account may see an approval. `{among}`: the condition on the status, which an
index answers alone.
"""

MAY_DECIDE = """CASE WHEN r.named = 1
    THEN EXISTS (SELECT 1 FROM approval_approvers p
        WHERE p.approval_id = r.id AND p.approver IN (?, ?))
    ELSE ? IN (r.owner_id, r.workflow_owner_id) OR EXISTS (SELECT 1 FROM shares s
        WHERE s.workflow_id = r.workflow_id AND s.account_id = ? AND s.permission = 'EDIT') END"""
"""
The condition that an account may decide an approval. Each row is checked, for filters that leave
few rows. Unlike with `MAY_SEE`, being an owner is not enough if approvers are named.
"""
ASSENTED = "EXISTS (SELECT 1 FROM json_each(r.assented) WHERE value IN (?, ?))"
AGREED = f"r.status = 'PENDING' AND r.assented <> '[]' AND {ASSENTED}"
"""
The condition that an account agreed to a pending approval, in the words of the index
`approvals_agreed`, so that only the rows in that index are read.
"""
UNDECIDED = f"""(r.allow_self_approval = 1 OR r.owner_id <> ?)
    AND NOT {ASSENTED} AND NOT EXISTS (SELECT 1 FROM json_each(r.idle) WHERE value IN (?, ?))"""


def execution_page(
    where: ExecutionFilter, page: PageRequest, total: tuple[str, Sequence[Any]] | None = None
) -> Query:
    """
    The query for one page of executions. The indexes of lists hold everything that the query reads,
    except for the rows of the page. *total*: an expression for the number of all rows, with its
    values; None: the rows are counted.
    """
    wanted = conditions(where, where.statuses)
    if where.id_end is not None:
        floor = f"""SELECT r.accepted_at FROM executions r WHERE {wanted.text}
            ORDER BY r.accepted_at DESC LIMIT 1 OFFSET {SEARCHED - 1}"""
        before = wanted.values  # with one lower bound: a second one would be compared row by row
        wanted = conditions(evolve(where, since=None), where.statuses)
        wanted.add(f"r.accepted_at >= coalesce(({floor}), ?)", *before, where.since or 0)
        length = len(where.id_end) - 1
        wanted.add("substr(r.id, length(r.id) - ?) = ?", length, where.id_end)
    pages = evolve(EXECUTION_PAGES, descending=not where.oldest_first)
    return pages.page(wanted.text, tuple(wanted.values), page, total)


def excludes_ended(statuses: Sequence[ExecutionStatus]) -> bool:
    return bool(statuses) and EXECUTION.final.isdisjoint(statuses)


def conditions(where: ExecutionFilter, statuses: Sequence[ExecutionStatus]) -> Where:
    """
    The conditions of a filter. The condition of a partial index is written in the words of that
    index, so that the planner finds it. Decision 147.
    """
    wanted = Where()
    # A reference leaves the fewest rows, so its index is used: no other has these expressions.
    of = "{}" if where.reference is None else "({} || '')"
    wanted.equal("r.reference", where.reference)
    wanted.equal(of.format("r.owner_id"), where.owner_id)
    wanted.equal(of.format("r.workflow_id"), where.workflow_id)
    wanted.among("r.status", statuses)
    if statuses and FAILED_OR_CANCELLED.issuperset(statuses):
        wanted.add("r.status IN ('FAILED', 'CANCELLED')")
    elif excludes_ended(statuses):
        wanted.add("r.status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')")
    wanted.among("r.trigger_source", where.sources)
    wanted.within("r.accepted_at", where.since, where.until)
    return wanted


def counts_by_status(where: ExecutionFilter, most: int) -> Query:
    """
    The query that returns one row for each status: its name, and the number of executions up to
    *most*.
    """
    each, values = [], list[Any]()
    for status in ExecutionStatus:
        wanted = conditions(where, (status,))
        rows = f"SELECT 1 FROM executions r{_index(where, status)} WHERE {wanted.text} LIMIT ?"
        each.append(f"SELECT '{status}', (SELECT count(*) FROM ({rows}) found)")
        values += (*wanted.values, most)
    return query(" UNION ALL ".join(each), *values)


def _index(where: ExecutionFilter, status: ExecutionStatus) -> str:
    """
    The hint for the index of COMPLETED executions of some sources, or "". Without the hint the
    planner takes the index of all executions of the owner or workflow, because it covers the query,
    and reads all of them even if the source starts few. Decision 147.
    """
    if status is not ExecutionStatus.COMPLETED or not where.sources or where.reference is not None:
        return ""
    if where.workflow_id is not None:
        return " INDEXED BY executions_of_workflow_by_source"
    return " INDEXED BY executions_by_source" if where.owner_id is not None else ""


def durations_of(owner_id: str, since: EpochMs, span: DurationMs, spans: int, most: int) -> Query:
    """
    The query for rows `(number of the span, duration)`. A SELECT for each span reads the end of a
    range of the owner's index.
    """
    one = """SELECT * FROM (SELECT {} AS place, completed_at - accepted_at AS took FROM executions
        WHERE owner_id = ? AND status = 'COMPLETED' AND accepted_at >= ? AND accepted_at < ?
        ORDER BY accepted_at DESC, id DESC LIMIT ?) s{}"""
    each = " UNION ALL ".join(one.format(place, place) for place in range(spans))
    begins = [since + place * span for place in range(spans)]
    values = [value for at in begins for value in (owner_id, at, at + span, most)]
    return query(f"{each} ORDER BY 1, 2", *values)


_PURGED = "(SELECT value FROM json_each(?))"
PURGE = (
    f"""DELETE FROM approval_approvers
        WHERE approval_id IN (SELECT id FROM approvals WHERE execution_id IN {_PURGED})""",
    f"DELETE FROM approvals WHERE execution_id IN {_PURGED}",
    f"DELETE FROM artifacts WHERE execution_id IN {_PURGED}",
    f"DELETE FROM callbacks WHERE id IN {_PURGED}",
    f"DELETE FROM notices WHERE execution_id IN {_PURGED}",
    f"DELETE FROM events WHERE execution_id IN {_PURGED}",
    f"DELETE FROM logs WHERE execution_id IN {_PURGED}",
    f"DELETE FROM step_results WHERE execution_id IN {_PURGED}",
    f"DELETE FROM execution_variables WHERE execution_id IN {_PURGED}",
    f"DELETE FROM executions WHERE id IN {_PURGED}",
)
"""
The statements that delete executions with their parts. Each statement takes any number of ids, so
that a batch needs no more statements than one execution.
"""

FORGET_APPROVERS = "DELETE FROM approval_approvers WHERE approval_id = ?"
ADD_APPROVER = insert("approval_approvers", ("approver", "approval_id"))


@define(eq=False)
class Executions(ABC):
    unit: SqlUnitOfWork

    async def list(self, where: ExecutionFilter, page: PageRequest) -> Page[Execution]:
        found = execution_page(where, page, self._total(where))
        decode = self._listed if page.size <= _PAGE else decode_listed
        return await self.unit.page("executions", decode, found, page)

    def _listed(self, row: Row, cells: Cells) -> Execution:
        """The execution in a row of a list, decoded once for each version."""
        cache, key = self.unit.reads.cache, (row[-1],)
        known = cache.entries.get((_ROWS, key))
        if known is None or known.version != row[0]:
            record = decode_listed(row, cells)
            size = sum(cost_of(text) for text in row if isinstance(text, str))
            known = KnownRecord(row[0], record, ENTRY_BYTES + cells.cost + size)
            cache.keep(_ROWS, key, known)
        return cast("Execution", known.record)

    async def by_status(self, where: ExecutionFilter, most: int) -> Mapping[ExecutionStatus, int]:
        found = await self.unit.rows(counts_by_status(where, most))
        return {ExecutionStatus(status): count for status, count in found}

    async def durations(
        self, owner_id: str, since: EpochMs, span: DurationMs, spans: int, most: int
    ) -> Mapping[int, Sequence[DurationMs]]:
        found = defaultdict[int, list[DurationMs]](list)
        for place, took in await self.unit.rows(durations_of(owner_id, since, span, spans, most)):
            found[place].append(DurationMs(took))
        return found

    async def grace_over(self, limit: int) -> Sequence[Execution]:
        where = "r.status = 'INTERRUPTED' AND r.due_at <= ? ORDER BY r.due_at, r.id"
        return await self._some(where, limit, self.unit.now())

    async def next_due(self, able: Collection[str] | None = None) -> EpochMs | None:
        sql = f"SELECT min(due_at) FROM executions WHERE {CLAIMABLE}"
        of_all = await _instant(self.unit, sql)
        if able is None or of_all is None:  # mostly nothing waits, and that is seen at once
            return of_all
        doable, value = self._doable(able)
        found = await self.unit.rows(query(f"{sql} AND {doable}", value))
        return _first(found)

    def _total(self, where: ExecutionFilter) -> tuple[str, Sequence[Any]] | None:
        """
        An expression for the number of all rows of a list, with its values; None: the rows are
        counted.
        """
        return None

    @abstractmethod
    def _doable(self, able: Collection[str]) -> tuple[str, Any]:
        """
        The condition that a worker with the capabilities *able* can run an execution, and its
        value.
        """

    async def ended_before(self, at: EpochMs, limit: int) -> Sequence[str]:
        sql = "SELECT id FROM executions WHERE completed_at < ? ORDER BY completed_at, id LIMIT ?"
        found = await self.unit.rows(query(sql, at, limit))
        return [row[0] for row in found]

    async def redriven_as(self, id: str) -> str | None:
        sql = """SELECT id FROM executions
            WHERE redrive_of = ? ORDER BY accepted_at DESC, id DESC LIMIT 1"""
        found = await self.unit.few_rows(query(sql, id))
        return found[0][0] if found else None

    async def _some(self, where: str, limit: int, *values: Any) -> Sequence[Execution]:
        found = query(SELECT_HEAD + where, *values)
        return await self.unit.some("executions", decode, found, limit)


async def _instant(unit: SqlUnitOfWork, sql: str) -> EpochMs | None:
    """The only value that *sql* selects: an instant or None."""
    return _first(await unit.few_rows(query(sql)))


def _first(found: Sequence[Row]) -> EpochMs | None:
    return None if found[0][0] is None else EpochMs(found[0][0])


def approval_page(where: ApprovalFilter, page: PageRequest) -> Query:
    """The query for one page of approvals."""
    wanted = _approvals_wanted(where)
    pages = evolve(APPROVAL_PAGES, descending=not where.oldest_first)
    if where.soonest:
        pages = evolve(APPROVAL_PAGES, order=("expires_at", "id"), descending=False)
    return pages.page(wanted.text, tuple(wanted.values), page)


def approval_count(where: ApprovalFilter, most: int) -> Query:
    """The query for the number of approvals up to *most*."""
    wanted = _approvals_wanted(where)
    covered = where.waiting and where.workflow_id is None and where.execution_id is None
    index = " INDEXED BY approvals_open" if covered else ""  # it holds all columns that are read
    rows = f"SELECT 1 FROM approvals r{index} WHERE {wanted.text} LIMIT ?"
    return query(f"SELECT count(*) FROM ({rows}) found", *wanted.values, most)


def _approvals_wanted(where: ApprovalFilter) -> Where:
    wanted = Where()
    wanted.equal("r.execution_id", where.execution_id)
    wanted.equal("r.workflow_id", where.workflow_id)
    wanted.among("r.status", where.statuses)
    if _is_decided(where.statuses):
        wanted.add("r.status <> 'PENDING'")  # in the words of the index approvals_decided
    wanted.within("r.created_at", where.since, where.until)
    if where.waiting or _is_open_by_expiry(where):
        wanted.add("r.status = 'PENDING'")  # in the words of the index approvals_open
    if where.agreed:
        wanted.add(AGREED, *where.identities)
    if where.account_id is not None:
        _seen_by(wanted, where.account_id, (where.email or "").lower(), where)
    return wanted


def _is_decided(statuses: Sequence[ApprovalStatus]) -> bool:
    return bool(statuses) and ApprovalStatus.PENDING not in statuses


def _seen_by(wanted: Where, me: str, email: str, where: ApprovalFilter) -> None:
    """
    Restrict *wanted* to the approvals that the account sees, or to the waiting approvals that it
    may decide. If an index leaves few rows, or gives them in the order of the pages, each row is
    checked; otherwise the account's approvals are looked up.
    """
    deciding = (me.lower(), email, me, me)
    if where.waiting:
        wanted.add(f"({MAY_DECIDE})", *deciding)
        wanted.add(UNDECIDED, me, *where.identities, me.lower(), email)
    elif _is_checked_by_row(where):
        owners = "? IN (r.owner_id, r.workflow_owner_id)"
        wanted.add(f"({owners} OR {MAY_DECIDE})", me, *deciding)
    else:
        among = Where()
        among.among(" AND status", where.statuses)
        picked = "".join(among.conditions)
        wanted.add(
            MAY_SEE.format(among=picked),
            *(me, *among.values, me, *among.values, me.lower(), email, me),
        )


def _is_checked_by_row(where: ApprovalFilter) -> bool:
    """Whether an index leaves few rows, or gives them in the order of the pages."""
    few = where.execution_id or where.workflow_id
    in_order = where.agreed or _is_open_by_expiry(where) or _is_decided(where.statuses)
    return bool(few or in_order)


def _is_open_by_expiry(where: ApprovalFilter) -> bool:
    return where.soonest and where.statuses == (ApprovalStatus.PENDING,)


OPEN = """SELECT count(*), min(created_at) FROM (
    SELECT created_at FROM approvals INDEXED BY approvals_waiting
    WHERE status = 'PENDING' ORDER BY created_at, id LIMIT ?) o"""
"""
The query for the number of pending approvals and for the oldest instant. Without the hint the
planner reads the index of all approvals, because that index covers the query.
"""


@define(eq=False)
class Approvals:
    unit: SqlUnitOfWork

    async def list(self, where: ApprovalFilter, page: PageRequest) -> Page[ApprovalHead]:
        found = approval_page(where, page)
        return await self.unit.page(APPROVALS.table, APPROVALS.decode_head, found, page)

    async def count(self, where: ApprovalFilter, most: int) -> int:
        ((found,),) = await self.unit.rows(approval_count(where, most))
        return int(found)

    async def of_execution(self, execution_id: str) -> Sequence[Approval]:
        sql = f"""SELECT version, {APPROVALS.whole}, id FROM approvals WHERE execution_id = ?
            ORDER BY created_at DESC, id DESC"""
        return await self.unit.records(APPROVALS, query(sql, execution_id))

    async def due(self, now: EpochMs, limit: int) -> Sequence[ApprovalHead]:
        sql = """SELECT version, body, id FROM approvals
            WHERE status = 'PENDING' AND expires_at <= ? ORDER BY expires_at, id"""
        found = query(sql, now)
        return await self.unit.some(APPROVALS.table, APPROVALS.decode_head, found, limit)

    async def reminders_due(self, now: EpochMs, limit: int) -> Sequence[ApprovalHead]:
        sql = """SELECT version, body, id FROM approvals
            WHERE remind_at <= ? ORDER BY remind_at, id"""
        found = query(sql, now)
        return await self.unit.some(APPROVALS.table, APPROVALS.decode_head, found, limit)

    async def open(self, most: int) -> tuple[int, EpochMs | None]:
        ((count, oldest),) = await self.unit.rows(query(OPEN, most))
        return count, oldest

    async def next_deadline(self) -> EpochMs | None:
        sql = """SELECT min(at) FROM (
            SELECT min(expires_at) AS at FROM approvals WHERE status = 'PENDING'
            UNION ALL SELECT min(remind_at) FROM approvals WHERE remind_at IS NOT NULL) d"""
        return await _instant(self.unit, sql)


@define(eq=False)
class Artifacts:
    unit: SqlUnitOfWork

    async def of_execution(self, execution_id: str) -> Sequence[Artifact]:
        sql = """SELECT version, body, id FROM artifacts WHERE execution_id = ?
            ORDER BY created_at DESC, id DESC"""
        return await self.unit.records(ARTIFACTS, query(sql, execution_id))


D = TypeVar("D", Callback, Notice)


async def _due(unit: SqlUnitOfWork, kind: Kind[D], limit: int) -> Sequence[D]:
    sql = f"SELECT version, body, id FROM {kind.table} WHERE due_at <= ? ORDER BY due_at, id"
    found = query(sql, unit.now())
    return await unit.some(kind.table, kind.decode, found, limit)


async def _next_due(unit: SqlUnitOfWork, table: str) -> EpochMs | None:
    sql = f"SELECT min(due_at) FROM {table} WHERE due_at IS NOT NULL"
    return await _instant(unit, sql)


@define(eq=False)
class Callbacks:
    unit: SqlUnitOfWork

    async def due(self, limit: int) -> Sequence[Callback]:
        return await _due(self.unit, CALLBACKS, limit)

    async def next_due(self) -> EpochMs | None:
        return await _next_due(self.unit, CALLBACKS.table)


@define(eq=False)
class Notices:
    unit: SqlUnitOfWork

    async def due(self, limit: int) -> Sequence[Notice]:
        return await _due(self.unit, NOTICES, limit)

    async def next_due(self) -> EpochMs | None:
        return await _next_due(self.unit, NOTICES.table)

    async def at_address(
        self, channel: str, to: str, since: EpochMs, limit: int
    ) -> Sequence[Notice]:
        found = query(AT_ADDRESS, channel, to, channel, to, since)
        return await self.unit.some("notices", NOTICES.decode, found, limit)

    async def list(self, statuses: tuple[NoticeStatus, ...], page: PageRequest) -> Page[Notice]:
        wanted = Where()
        wanted.among("r.status", statuses)
        found = NOTICE_PAGES.page(wanted.text, tuple(wanted.values), page)
        return await self.unit.page(NOTICES.table, NOTICES.decode, found, page)
