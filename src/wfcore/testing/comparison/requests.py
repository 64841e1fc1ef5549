"""The queries that `StoreComparison` sends to the store and to the model."""

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import field, frozen
from hypothesis import strategies as st

from wfcore.model.access import Account, ApiKey, Session, Share
from wfcore.model.approval import Approval
from wfcore.model.execution import (
    Artifact,
    Callback,
    Execution,
    Replay,
)
from wfcore.model.notice import Notice, NoticeStatus
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.ports.records import RECORDS
from wfcore.testing.comparison.answers import (
    abandoned,
    activity,
    at_address,
    by_status,
    counted,
    due,
    due_approvals,
    due_runs,
    ended,
    entries,
    first,
    in_group,
    in_use,
    listed,
    log,
    next_due,
    nodes,
    oldest,
    open_approvals,
    opened_first,
    seen_by,
    shown,
    triggers_of,
)
from wfcore.testing.comparison.model import State, by_name, cut, newest, only
from wfcore.testing.comparison.records import (
    approval_filters,
    flows,
    ids,
    limits,
    moments,
    names,
    owners,
    pages,
    pages_by_name,
    run_filters,
    runs,
    words,
)


@frozen(eq=False)
class Ask:
    """One query: its description, how the store is asked, and what the model answers."""

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
    """Queries with the same arguments for store and model; the description contains the values."""
    drawn = tuple(draw(one) for one in arguments)
    said = f"{words}({', '.join(map(repr, drawn))})"
    return Ask(said, lambda view: ask(view, *drawn), lambda state: answer(state, *drawn))


def _gets() -> st.SearchStrategy[Ask]:
    def get(kind: type, *keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Ask]:
        return _asks(
            f"get {kind.__name__}",
            lambda view, *key: view.get(kind, *key),
            lambda state, *key: state.get(kind, *key),
            *keys,
        )

    keys = {
        Share: (ids, owners),
        Replay: (st.just("key_1:wf_1"), ids),
        DefinitionSnapshot: (flows, st.integers(1, 2)),
        Callback: (runs,),
    }
    return st.one_of(*(get(kind.type, *keys.get(kind.type, (ids,))) for kind in RECORDS))


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
        run_filters,
        pages,
    ),
    _asks(
        "executions.by_status",
        lambda view, where, most: view.executions.by_status(where, most),
        by_status,
        run_filters,
        limits,
    ),
    _asks(
        "executions.grace_over",
        lambda view, limit: view.executions.grace_over(limit),
        due_runs,
        limits,
    ),
    _asks(
        "executions.abandoned",
        lambda view, limit: view.executions.abandoned(limit),
        abandoned,
        limits,
    ),
    _asks(
        "executions.next_due",
        lambda view, able: view.executions.next_due(able),
        next_due,
        st.none() | st.sets(words),
    ),
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
        lambda state, where, page: cut(
            shown(state, where),
            page,
            "expires_at" if where.soonest else "created_at",
            where.soonest or where.oldest_first,
        ),
        approval_filters,
        pages,
    ),
    _asks(
        "approvals.count",
        lambda view, where, most: view.approvals.count(where, most),
        lambda state, where, most: min(len(shown(state, where)), most),
        approval_filters,
        limits,
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
        "approvals.open",
        lambda view, most: view.approvals.open(most),
        opened_first,
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
    _asks(
        "webhooks.all_of_owner",
        lambda view, owner: view.webhooks.all_of_owner(owner),
        lambda state, owner: newest([w for w in state.all(Webhook) if w.owner_id == owner]),
        owners,
    ),
    _asks(
        "definitions.in_use",
        lambda view: view.definitions.in_use(),
        in_use,
    ),
    _asks(
        "callbacks.due",
        lambda view, limit: view.callbacks.due(limit),
        lambda state, limit: due(state, Callback, state.now())[:limit],
        limits,
    ),
    _asks(
        "callbacks.next_due", lambda view: view.callbacks.next_due(), lambda s: first(s, Callback)
    ),
    _asks(
        "notices.due",
        lambda view, limit: view.notices.due(limit),
        lambda state, limit: due(state, Notice, state.now())[:limit],
        limits,
    ),
    _asks("notices.next_due", lambda view: view.notices.next_due(), lambda s: first(s, Notice)),
    _asks(
        "notices.at_address",
        lambda view, to, since, limit: view.notices.at_address("mail", to, since, limit),
        at_address,
        st.sampled_from(("ann@example.org", "")),
        moments,
        limits,
    ),
    _asks(
        "notices.list",
        lambda view, statuses, page: view.notices.list(statuses, page),
        lambda state, statuses, page: cut(
            newest([one for one in state.all(Notice) if not statuses or one.status in statuses]),
            page,
        ),
        st.sampled_from(((), (NoticeStatus.FAILED,), (NoticeStatus.DUE, NoticeStatus.SENT))),
        pages,
    ),
    _asks(
        "workflows.activity",
        lambda view, ids, me, since: view.workflows.activity(ids, me, since),
        activity,
        st.lists(ids, max_size=2, unique=True),
        st.none() | owners,
        moments,
    ),
    _asks(
        "triggers.of_owner",
        lambda view, id, page: view.triggers.of_owner(id, page),
        lambda state, id, page: cut(newest(triggers_of(state, id)), page),
        owners,
        pages,
    ),
    _asks(
        "triggers.list",
        lambda view, page: view.triggers.list(page),
        lambda state, page: cut(newest(state.all(Trigger)), page),
        pages,
    ),
    _asks(
        "triggers.of_workflow",
        lambda view, id: view.triggers.of_workflow(id),
        lambda state, id: oldest([one for one in state.all(Trigger) if one.workflow_id == id]),
        flows,
    ),
    _asks(
        "triggers.watching",
        lambda view, keys: view.triggers.watching(keys),
        lambda state, keys: oldest([one for one in state.all(Trigger) if one.watches in keys]),
        st.lists(names, max_size=2, unique=True),
    ),
    _asks(
        "timers.due",
        lambda view, now, limit: view.timers.due(now, limit),
        lambda state, now, limit: due(state, Timer, now)[:limit],
        moments,
        limits,
    ),
    _asks("nodes.list", lambda view: view.nodes.list(), nodes),
    _asks("timers.next_due", lambda view: view.timers.next_due(), lambda s: first(s, Timer)),
    _asks(
        "timers.next_of",
        lambda view, id: view.timers.next_of(id),
        lambda state, id: min(
            (one.due_at for one in state.all(Timer) if one.trigger_id == id), default=None
        ),
        ids,
    ),
    _asks(
        "groups.unfinished",
        lambda view, group: view.groups.unfinished(group),
        lambda state, group: len(in_group(state, group)),
        names,
    ),
    _asks(
        "groups.held",
        lambda view, group: view.groups.held(group),
        lambda state, group: sum(run.fence > 0 for run in in_group(state, group)),
        names,
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
