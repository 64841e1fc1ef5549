"""
The records that `StoreComparison` puts: records of every kind, few enough for units to collide.
"""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from wfcore.model.access import Permission
from wfcore.model.approval import Approval, ApprovalStatus, Assent
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.notice import NoticeStatus
from wfcore.model.page import PageCursor, PageRequest
from wfcore.ports.records import ApprovalFilter, ExecutionFilter
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.time import DAY, EpochMs

TWO = ("acc_1", "acc_2")
moments = st.integers(-2, 3).map(lambda by: EpochMs(NOW + by))
workers = st.sampled_from(("w1", "w2"))
ids = st.sampled_from(("a", "b", "c"))
_emails = st.sampled_from(("x@e.org", "y@e.org"))
owners = st.sampled_from(TWO)
flows = st.sampled_from(("wf_1", "wf_2"))
runs = st.sampled_from(("exec_1", "exec_2"))
names = st.sampled_from(("X", "Y"))
limits = st.integers(1, 3)
words = st.sampled_from(("language:ruby", "network"))


def _pages(keys: st.SearchStrategy[Any]) -> st.SearchStrategy[PageRequest]:
    behind = st.builds(PageRequest, size=limits, after=st.builds(PageCursor, keys, ids))
    return st.builds(PageRequest, st.integers(1, 2), limits) | behind


pages, pages_by_name = _pages(moments), _pages(names)


BORN: Mapping[str, Mapping[str, Any]] = {
    "a": {
        "trigger_source": TriggerSource.MANUAL,
        "concurrency_group": "X",
        "reference": "R",
        "trigger": {"scheduledFor": 7},
    },
    "b": {
        "trigger_source": TriggerSource.OPEN_API,
        "concurrency_group": "X",
        "redrive_of": "a",
        "capabilities": ("network",),
    },
    "c": {
        "trigger_source": TriggerSource.WEBHOOK,
        "reference": "R",
        "redrive_of": "a",
        "capabilities": ("language:ruby", "network"),
    },
}
"""The fields of an execution that never change, by its id. A store may read them only once."""


def _execution(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Execution]:
    one_of_them = (
        st.builds(make.execution, st.just(id), **{n: st.just(v) for n, v in born.items()}, **fields)
        for id, born in BORN.items()
    )
    return st.one_of(*one_of_them)


def _executions() -> st.SearchStrategy[Execution]:
    return _execution(
        owner_id=owners,
        workflow_id=flows,
        accepted_at=moments,
        status=st.sampled_from(ExecutionStatus),
        due_at=st.none() | moments,
        worker=st.none() | workers,
        completed_at=st.none() | moments,
        step_results=st.dictionaries(
            st.sampled_from(("one", "two")), st.builds(make.step_result, output=st.integers(0, 2))
        ),
    )


_VOICES = ("acc_1", "mailto:acc_1@example.org")


def _approvals() -> st.SearchStrategy[Approval]:
    return st.builds(
        make.approval,
        ids,
        execution_id=runs,
        workflow_id=flows,
        owner_id=owners,
        workflow_owner_id=owners,
        status=st.sampled_from(ApprovalStatus),
        created_at=moments,
        expires_at=moments,
        approvers=st.sampled_from(((), ("acc_2",), (" Acc_1@example.org",))),
        allow_self_approval=st.booleans(),
        assents=st.sampled_from(((), *((Assent("x", one, NOW),) for one in _VOICES))),
    )


_workflows = st.builds(make.workflow, ids, name=names, owner_id=owners)
_shares = st.builds(make.share, ids, owners, permission=st.sampled_from(Permission))
_states = st.builds(
    make.workflow_state, ids, values=st.sampled_from(({}, {"cursor": "c"}, {"n": 1}))
)
_webhooks = st.builds(make.webhook, ids, owner_id=owners, workflow_id=flows, created_at=moments)
_sessions = st.builds(make.session, ids, created_at=moments)
_logins = st.builds(make.login, ids, last_failure_at=moments)
_login_links = st.builds(make.login_link, ids, created_at=moments)
_triggers = st.builds(
    make.trigger, ids, workflow_id=flows, watches=st.none() | names, created_at=moments
)
_timers = st.builds(make.timer, ids, trigger_id=ids, due_at=moments)
_signing_keys = st.builds(make.signing_keys, id=ids, retired=st.sampled_from(((), ("0a1b2c3d",))))
_people_groups = st.builds(make.people_groups, id=ids)
_nodes = st.builds(make.node, ids, draining=st.booleans())
RECORDS: st.SearchStrategy[Any] = st.one_of(
    _executions(),
    st.builds(make.account, ids, email=_emails, created_at=moments),
    _workflows,
    _executions(),
    _approvals(),
    _executions(),
    st.builds(make.event, st.integers(1, 3), runs),
    _shares,
    _states,
    _webhooks,
    st.builds(make.replay, ids, created_at=st.sampled_from((NOW, NOW + DAY - 1, NOW + DAY))),
    st.builds(make.artifact, ids, execution_id=runs, created_at=moments),
    st.builds(make.key, ids, account_id=owners, created_at=moments),
    _sessions,
    _logins,
    _login_links,
    st.builds(make.snapshot, flows, st.integers(1, 2)),
    st.builds(make.callback, runs, due_at=st.none() | moments),
    st.builds(
        make.notice,
        ids,
        to=st.sampled_from(("ann@example.org", "")),
        status=st.sampled_from(NoticeStatus),
        execution_id=st.none() | runs,
        created_at=moments,
        due_at=st.none() | moments,
        attempted_at=st.none() | moments,
    ),
    _triggers,
    _timers,
    _nodes,
    _signing_keys,
    _people_groups,
    st.builds(make.audit_entry, ids, at=moments),
)
"""Records of every kind that may be put, few enough for units to collide."""
GOING: st.SearchStrategy[Any] = st.one_of(
    _execution(),
    *(_workflows, _shares, _states, _webhooks, _sessions, _logins, _login_links),
    *(_triggers, _timers, _nodes),
)
"""Records of the kinds that may be deleted or purged."""
RUNNABLE = _execution(
    owner_id=owners,
    workflow_id=flows,
    accepted_at=st.just(NOW),
    status=st.sampled_from((ExecutionStatus.PENDING, ExecutionStatus.RUNNING)),
    due_at=st.just(NOW),
)
"""Executions that a worker would claim now."""


run_filters = st.builds(
    ExecutionFilter,
    st.none() | owners,
    st.none() | flows,
    st.sampled_from(((), (ExecutionStatus.COMPLETED,), tuple(ExecutionStatus)[:3])),
    st.sampled_from(((), tuple(TriggerSource)[:1], tuple(TriggerSource)[1:3])),
    st.none() | moments,
    st.none() | moments,
    st.booleans(),
    st.none() | runs.map(lambda id: id[-1:]),
    st.sampled_from((None, None, "R", "other")),
)
approval_filters = st.builds(
    ApprovalFilter,
    st.none() | owners,
    st.sampled_from((None, "acc_1@example.org")),
    st.sampled_from(((), *((status,) for status in ApprovalStatus))),
    st.none() | flows,
    st.none() | runs,
    st.none() | moments,
    st.none() | moments,
    *(st.booleans(),) * 4,
)
