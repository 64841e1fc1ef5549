"""What `StoreComparison` asks a store and the plain dicts alike."""

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import evolve, field, frozen
from hypothesis import strategies as st

from wfcore.model.access import Account, ApiKey, Login, Permission, Session, Share
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.artifact import Artifact
from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.replay import Replay
from wfcore.model.webhook import Tally, Webhook
from wfcore.model.workflow import Workflow
from wfcore.ports.records import ApprovalFilter, ExecutionFilter
from wfcore.testing.comparison.model import DUE, OVER, State, by_name, cut, newest, only
from wfcore.testing.comparison.records import (
    flows,
    ids,
    limits,
    moments,
    names,
    owners,
    pages,
    pages_by_name,
    runs,
)
from wfcore.time import EpochMs


@frozen(eq=False)
class Ask:
    """A question: its words, how a store is asked, and what the plain dicts say."""

    words: str
    ask: Callable[[Any], Awaitable[Any]] = field(repr=False)
    answer: Callable[[State], Any] = field(repr=False)

    def __repr__(self) -> str:
        return self.words

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.words)


@st.composite
def _asks(
    draw: st.DrawFn,
    words: str,
    ask: Callable[..., Any],
    answer: Callable[..., Any],
    *arguments: st.SearchStrategy[Any],
) -> Ask:
    """Asks with the same arguments on both sides; their values are in the words."""
    drawn = tuple(draw(one) for one in arguments)
    said = f"{words}({', '.join(map(repr, drawn))})"
    return Ask(said, lambda view: ask(view, *drawn), lambda state: answer(state, *drawn))


def _gets() -> st.SearchStrategy[Ask]:
    def get(kind: type, *keys: st.SearchStrategy[str]) -> st.SearchStrategy[Ask]:
        return _asks(
            f"get {kind.__name__}",
            lambda view, *key: view.get(kind, *key),
            lambda state, *key: state.get(kind, *key),
            *keys,
        )

    plain = (Account, Workflow, Execution, Approval, Webhook, Artifact, ApiKey, Session, Login)
    scopes = st.just("key_1:wf_1")
    return st.one_of(
        *(get(kind, ids) for kind in plain), get(Share, ids, owners), get(Replay, scopes, ids)
    )


def seen_by(state: State, account: str) -> list[Workflow]:
    shared = {share.workflow_id for share in state.all(Share) if share.account_id == account}
    return [w for w in state.all(Workflow) if w.owner_id == account or w.id in shared]


def listed(state: State, where: ExecutionFilter) -> list[Execution]:
    runs = [
        run
        for run in state.all(Execution)
        if where.owner_id in (None, run.owner_id)
        and where.workflow_id in (None, run.workflow_id)
        and (not where.statuses or run.status in where.statuses)
        and (not where.sources or run.trigger_source in where.sources)
        and _within(where, run.accepted_at)
    ]
    found = newest(runs, "accepted_at")[:: -1 if where.oldest_first else 1]
    return [evolve(run, output=None, step_results=_bare(run)) for run in found]


def _within(where: ExecutionFilter | ApprovalFilter, at: EpochMs) -> bool:
    return (where.since or 0) <= at and (where.until is None or at < where.until)


def _bare(run: Execution) -> Any:
    return {name: evolve(result, output=None) for name, result in run.step_results.items()}


def shown(state: State, where: ApprovalFilter) -> list[Approval]:
    me, email = where.account_id, (where.email or "").lower()
    editable = {
        share.workflow_id
        for share in state.all(Share)
        if share.account_id == me and share.permission is Permission.EDIT
    }

    def decides(one: Approval) -> bool:
        names = {name.strip().lower() for name in one.approvers}
        owners = (one.owner_id, one.workflow_owner_id)
        return bool(names & {me, email}) if names else one.workflow_id in editable or me in owners

    def sees(one: Approval) -> bool:
        return me is None or me in (one.owner_id, one.workflow_owner_id) or decides(one)

    def waits(one: Approval) -> bool:
        barred = me == one.owner_id and not one.allow_self_approval
        done = barred or me in [assent.account for assent in one.assents]
        mine = me is None or (decides(one) and not done)
        return not where.waiting or (mine and one.status is ApprovalStatus.PENDING)

    approvals = [
        one
        for one in state.all(Approval)
        if (not where.statuses or one.status in where.statuses)
        and where.workflow_id in (None, one.workflow_id)
        and where.execution_id in (None, one.execution_id)
        and _within(where, one.created_at)
    ]
    found = newest([one for one in approvals if sees(one) and waits(one)])
    return found[:: -1 if where.oldest_first else 1]


def due_runs(state: State, now: EpochMs, limit: int) -> list[Execution]:
    over = [
        run
        for run in state.all(Execution)
        if run.status is ExecutionStatus.INTERRUPTED and run.due_at is not None
    ]
    found = [run for run in over if (run.due_at or 0) <= now]
    return sorted(found, key=lambda run: (run.due_at, run.id))[:limit]


def abandoned(state: State, now: EpochMs, limit: int) -> list[Execution]:
    held = [run for run in state.all(Execution) if run.worker and run.status not in OVER]
    lost = [run for run in held if state.leases.get(run.id, 0) < now]
    return sorted(lost, key=lambda run: run.id)[:limit]


def next_due(state: State) -> EpochMs | None:
    times = [
        run.due_at
        for run in state.all(Execution)
        if run.status in DUE and run.worker is None and run.due_at is not None
    ]
    return min(times, default=None)


def ended(state: State, before: EpochMs, limit: int) -> list[str]:
    over = [
        run
        for run in state.all(Execution)
        if run.completed_at is not None and run.completed_at < before
    ]
    return [run.id for run in sorted(over, key=lambda run: (run.completed_at, run.id))][:limit]


def due_approvals(state: State, now: EpochMs, limit: int) -> list[Approval]:
    due = [one for one in open_approvals(state) if one.expires_at <= now]
    return sorted(due, key=lambda one: (one.expires_at, one.id))[:limit]


def open_approvals(state: State) -> list[Approval]:
    return [one for one in state.all(Approval) if one.status is ApprovalStatus.PENDING]


def log(state: State, id: str, above: int, limit: int) -> list[Event]:
    found = [e for e in state.all(Event) if e.execution_id == id and e.number > above]
    return sorted(found, key=lambda event: event.number)[:limit]


def entries(state: State, since: EpochMs, above: str | None, limit: int) -> list[AuditEntry]:
    found = [e for e in state.all(AuditEntry) if e.at >= since and e.id > (above or "")]
    return sorted(found, key=lambda entry: entry.id)[:limit]


def counted(state: State, webhook: str) -> list[Tally]:
    found = [tally for tally in state.all(Tally) if tally.webhook_id == webhook]
    return sorted(found, key=lambda tally: (tally.date, tally.status))


_run_filters = st.builds(
    ExecutionFilter,
    st.none() | owners,
    st.none() | flows,
    st.sampled_from(((), (ExecutionStatus.COMPLETED,), tuple(ExecutionStatus)[:3])),
    st.sampled_from(((), tuple(TriggerSource)[:1], tuple(TriggerSource)[1:3])),
    st.none() | moments,
    st.none() | moments,
    st.booleans(),
)
_approval_filters = st.builds(
    ApprovalFilter,
    st.none() | owners,
    st.sampled_from((None, "acc_1@example.org")),
    st.sampled_from(((), *((status,) for status in ApprovalStatus))),
    st.none() | flows,
    st.none() | runs,
    st.none() | moments,
    st.none() | moments,
    st.booleans(),
    st.booleans(),
)


ASKS: st.SearchStrategy[Ask] = st.one_of(
    _gets(),
    _asks(
        "accounts.by_email",
        lambda view, email: view.accounts.by_email(email),
        lambda state, email: only([a for a in state.all(Account) if a.email == email.lower()]),
        st.sampled_from(("x@e.org", "X@e.org", "y@e.org")),
    ),
    _asks(
        "accounts.list",
        lambda view, page: view.accounts.list(page),
        lambda state, page: cut(newest(state.all(Account)), page),
        pages,
    ),
    _asks(
        "workflows.by_name",
        lambda view, owner, name: view.workflows.by_name(owner, name),
        lambda state, owner, name: only(
            [w for w in state.all(Workflow) if (w.owner_id, w.name) == (owner, name)]
        ),
        owners,
        names,
    ),
    _asks(
        "workflows.visible_to",
        lambda view, account, page: view.workflows.visible_to(account, page),
        lambda state, account, page: cut(by_name(seen_by(state, account)), page, "name", True),
        owners,
        pages_by_name,
    ),
    _asks(
        "workflows.list",
        lambda view, page: view.workflows.list(page),
        lambda state, page: cut(by_name(state.all(Workflow)), page, "name", True),
        pages_by_name,
    ),
    _asks(
        "shares.of_workflow",
        lambda view, id: view.shares.of_workflow(id),
        lambda state, id: sorted(
            (share for share in state.all(Share) if share.workflow_id == id),
            key=lambda share: share.account_id,
        ),
        ids,
    ),
    _asks(
        "keys.of_account",
        lambda view, id: view.keys.of_account(id),
        lambda state, id: newest([key for key in state.all(ApiKey) if key.account_id == id]),
        owners,
    ),
    _asks(
        "sessions.of_account",
        lambda view, id: view.sessions.of_account(id),
        lambda state, id: newest([one for one in state.all(Session) if one.account_id == id]),
        owners,
    ),
    _asks(
        "executions.list",
        lambda view, where, page: view.executions.list(where, page),
        lambda state, where, page: cut(
            listed(state, where), page, "accepted_at", where.oldest_first
        ),
        _run_filters,
        pages,
    ),
    _asks(
        "executions.grace_over",
        lambda view, now, limit: view.executions.grace_over(now, limit),
        due_runs,
        moments,
        limits,
    ),
    _asks(
        "executions.abandoned",
        lambda view, now, limit: view.executions.abandoned(now, limit),
        abandoned,
        moments,
        limits,
    ),
    _asks("executions.next_due", lambda view: view.executions.next_due(), next_due),
    _asks(
        "executions.ended_before",
        lambda view, at, limit: view.executions.ended_before(at, limit),
        ended,
        moments,
        limits,
    ),
    _asks(
        "executions.redriven_as",
        lambda view, id: view.executions.redriven_as(id),
        lambda state, id: only(
            [run.id for run in newest(state.all(Execution), "accepted_at") if run.redrive_of == id]
        ),
        ids,
    ),
    _asks(
        "approvals.list",
        lambda view, where, page: view.approvals.list(where, page),
        lambda state, where, page: cut(shown(state, where), page, ascending=where.oldest_first),
        _approval_filters,
        pages,
    ),
    _asks(
        "approvals.of_execution",
        lambda view, id: view.approvals.of_execution(id),
        lambda state, id: newest([a for a in state.all(Approval) if a.execution_id == id]),
        runs,
    ),
    _asks(
        "approvals.due",
        lambda view, now, limit: view.approvals.due(now, limit),
        due_approvals,
        moments,
        limits,
    ),
    _asks(
        "approvals.next_deadline",
        lambda view: view.approvals.next_deadline(),
        lambda state: min((one.expires_at for one in open_approvals(state)), default=None),
    ),
    _asks(
        "artifacts.of_execution",
        lambda view, id: view.artifacts.of_execution(id),
        lambda state, id: newest([a for a in state.all(Artifact) if a.execution_id == id]),
        runs,
    ),
    _asks(
        "webhooks.of_owner",
        lambda view, owner, page: view.webhooks.of_owner(owner, page),
        lambda state, owner, page: cut(
            newest([one for one in state.all(Webhook) if owner in (None, one.owner_id)]), page
        ),
        st.none() | owners,
        pages,
    ),
    _asks(
        "webhooks.of_workflow",
        lambda view, id: view.webhooks.of_workflow(id),
        lambda state, id: newest([one for one in state.all(Webhook) if one.workflow_id == id]),
        flows,
    ),
    _asks("webhooks.tallies", lambda view, id: view.webhooks.tallies(id), counted, ids),
    _asks(
        "events.of_execution",
        lambda view, id, above, limit: view.events.of_execution(id, above, limit),
        log,
        runs,
        st.integers(0, 2),
        limits,
    ),
    _asks(
        "audit.list",
        lambda view, since, above, limit: view.audit.list(since, above, limit),
        entries,
        moments,
        st.none() | ids,
        limits,
    ),
)
"""Everything that is asked of a view or a unit."""
