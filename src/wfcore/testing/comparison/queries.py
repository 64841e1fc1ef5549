"""The queries that `StoreComparison` sends to both stores."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from attrs import frozen
from hypothesis import strategies as st

from wfcore.model.access import Share
from wfcore.model.execution import Callback, Replay
from wfcore.model.notice import NoticeStatus
from wfcore.model.workflow import DefinitionSnapshot
from wfcore.ports.records import RECORDS
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
from wfcore.time import HOUR, MINUTE


@frozen
class StoreQuery:
    """A query of a view or a unit: its name, such as `executions.list`, and its arguments."""

    name: str
    arguments: tuple[Any, ...]

    def __call__(self, view: Any) -> Any:
        return attrgetter(self.name)(view)(*self.arguments)

    def __repr__(self) -> str:
        values = (one.__name__ if isinstance(one, type) else repr(one) for one in self.arguments)
        return f"{self.name}({', '.join(values)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


KEYS: Mapping[type, tuple[st.SearchStrategy[Any], ...]] = {
    Share: (ids, owners),
    Replay: (st.just("key_1:wf_1"), ids),
    DefinitionSnapshot: (flows, st.integers(1, 2)),
    Callback: (runs,),
}
"""The strategies for the keys of the kinds whose key is not one of `ids`."""
ARGUMENTS: Mapping[str, tuple[st.SearchStrategy[Any], ...]] = {
    "accounts.by_email": (st.sampled_from(("x@e.org", "X@e.org", "y@e.org")),),
    "accounts.list": (pages,),
    "workflows.by_name": (owners, names),
    "workflows.visible_to": (owners, pages_by_name),
    "workflows.list": (pages_by_name,),
    "workflows.activity": (
        st.lists(ids, max_size=2, unique=True),
        st.none() | owners,
        moments,
        st.sampled_from((MINUTE, HOUR)),
        st.integers(1, 3),
    ),
    "workflows.latest": (
        st.lists(ids, max_size=2, unique=True),
        st.none() | owners,
        limits,
    ),
    "shares.of_workflow": (ids,),
    "keys.of_account": (owners,),
    "sessions.of_account": (owners,),
    "executions.list": (run_filters, pages),
    "executions.by_status": (run_filters, limits),
    "executions.durations": (owners, moments, st.just(MINUTE), st.integers(1, 3), limits),
    "executions.grace_over": (limits,),
    "executions.abandoned": (limits,),
    "executions.next_due": (st.none() | st.sets(words),),
    "executions.ended_before": (moments, limits),
    "executions.redriven_as": (ids,),
    "approvals.list": (approval_filters, pages),
    "approvals.count": (approval_filters, limits),
    "approvals.of_execution": (runs,),
    "approvals.due": (moments, limits),
    "approvals.open": (limits,),
    "approvals.next_deadline": (),
    "artifacts.of_execution": (runs,),
    "webhooks.of_owner": (st.none() | owners, pages),
    "webhooks.of_workflow": (flows,),
    "webhooks.all_of_owner": (owners,),
    "webhooks.tallies": (ids,),
    "definitions.in_use": (),
    "callbacks.due": (limits,),
    "callbacks.next_due": (),
    "notices.due": (limits,),
    "notices.next_due": (),
    "notices.at_address": (
        st.just("mail"),
        st.sampled_from(("ann@example.org", "")),
        moments,
        limits,
    ),
    "notices.list": (
        st.sampled_from(((), (NoticeStatus.FAILED,), (NoticeStatus.DUE, NoticeStatus.SENT))),
        pages,
    ),
    "triggers.of_owner": (owners, pages),
    "triggers.list": (pages,),
    "triggers.of_workflow": (flows,),
    "triggers.of_workflows": (st.lists(flows, max_size=2, unique=True),),
    "triggers.watching": (st.lists(names, max_size=2, unique=True),),
    "timers.due": (moments, limits),
    "timers.next_due": (),
    "timers.next_of": (ids,),
    "nodes.list": (),
    "groups.unfinished": (names,),
    "groups.held": (names,),
    "events.of_execution": (runs, st.integers(0, 2), limits),
    "audit.list": (moments, st.none() | ids, limits),
}
"""The strategies for the arguments of each query."""
QUERIES: st.SearchStrategy[StoreQuery] = st.one_of(
    st.one_of(
        *(
            st.builds(StoreQuery, st.just("get"), st.tuples(st.just(kind.type), *keys))
            for kind in RECORDS
            for keys in [KEYS.get(kind.type, (ids,))]
        )
    ),
    *(
        st.builds(StoreQuery, st.just(name), st.tuples(*arguments))
        for name, arguments in ARGUMENTS.items()
    ),
)
"""Every query of the comparison, with drawn arguments."""
