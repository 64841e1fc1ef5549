"""
What happened lately, for the page that owners and operators see first.

Everything is read from indexes, up to a number of rows that does not grow with the store: the
activity of workflows by the hour, and the newest executions that failed or completed.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from attrs import frozen

from wfcore.model.access import Principal
from wfcore.model.approval import ApprovalHead, ApprovalStatus
from wfcore.model.execution import ExecutionStatus
from wfcore.model.page import NEWEST, PageCursor, PageRequest
from wfcore.model.workflow import Workflow
from wfcore.ports.records import HOURS, Activity, ApprovalFilter, ExecutionFilter
from wfcore.rules.overview import FailureCause, failures, percentile
from wfcore.time import DAY, DurationMs, EpochMs
from wfcore.usecases.approvals.approvals import list_approvals
from wfcore.usecases.executions.executions import list_executions
from wfcore.usecases.services import Services
from wfcore.usecases.workflows.browsing import day_of

MOST_WORKFLOWS, MOST_FAILURES, MOST_DURATIONS = 100, 100, 100
"""
The most workflows whose activity is added up, the most failed executions of a week that are
grouped, and the most completed executions of a day whose durations are compared.
"""
_AWAITED = PageRequest(size=5, after=PageCursor(-1, ""))


@frozen
class Overview:
    """
    The last `HOURS` hours of what an account sees. `hours`: from `since` on, the executions of each
    hour that ended, and that failed. `waiting`: the number of open approvals, of which `awaited`
    are the first to expire. `p50`, `p95`: of the durations of completed executions; None without
    any. `costs`: by workflow, of a week, the highest first. `fires`: workflows with the instants of
    their next timers, the soonest first. `cut`: whether there are more workflows.
    """

    since: EpochMs
    hours: Sequence[tuple[int, int]]
    p50: DurationMs | None
    p95: DurationMs | None
    failures: Sequence[FailureCause]
    waiting: int
    awaited: Sequence[ApprovalHead]
    names: Mapping[str, str]
    costs: Sequence[tuple[Workflow, Decimal]]
    fires: Sequence[tuple[Workflow, EpochMs]]
    cut: bool

    @property
    def ended(self) -> int:
        """The executions of these hours that ended without a failure."""
        return sum(ended for ended, _ in self.hours)

    @property
    def failed(self) -> int:
        """The executions of these hours that failed."""
        return sum(failed for _, failed in self.hours)


async def read_overview(services: Services, who: Principal) -> Overview:
    """What *who* sees of the last hours. AC-4."""
    now = services.store.now()
    since = day_of(now)
    first = PageRequest(size=MOST_WORKFLOWS + 1, after=PageCursor("", ""))
    async with services.store.view() as view:
        flows = (await view.workflows.visible_to(who.account.id, first)).rows
        shown = flows[:MOST_WORKFLOWS]
        did = await view.workflows.activity([one.id for one in shown], who.account.id, since)
    active = [(one, did.get(one.id, Activity())) for one in shown]
    lengths = await _lengths(services, who, since)
    failed = _newest(MOST_FAILURES)
    week = ExecutionFilter(statuses=(ExecutionStatus.FAILED,), since=EpochMs(now - 7 * DAY))
    open_ones = ApprovalFilter(statuses=(ApprovalStatus.PENDING,), soonest=True)
    awaited = await list_approvals(services, who, _AWAITED, open_ones)
    costs = [(one, Decimal(activity.cost_usd)) for one, activity in active]
    fires = [(one, activity.next_at) for one, activity in active if activity.next_at is not None]
    return Overview(
        since,
        _added(activity for _, activity in active),
        percentile(lengths, 0.5),
        percentile(lengths, 0.95),
        failures((await list_executions(services, who, failed, week)).rows),
        sum(activity.waiting for _, activity in active),
        awaited.rows,
        {one.id: one.name for one in flows},
        sorted((one for one in costs if one[1]), key=lambda one: -one[1]),
        sorted(fires, key=lambda one: one[1]),
        len(flows) > len(shown),
    )


async def _lengths(services: Services, who: Principal, since: EpochMs) -> Sequence[DurationMs]:
    where = ExecutionFilter(statuses=(ExecutionStatus.COMPLETED,), since=since)
    found = await list_executions(services, who, _newest(MOST_DURATIONS), where)
    return [
        DurationMs(one.completed_at - one.accepted_at)
        for one in found.rows
        if one.completed_at is not None
    ]


def _newest(size: int) -> PageRequest:
    return PageRequest(size=size, after=NEWEST)


def _added(activities: Iterable[Activity]) -> Sequence[tuple[int, int]]:
    """The hours of all *activities* together."""
    total = [(0, 0)] * HOURS
    for activity in activities:
        for place, (ended, failed) in enumerate(activity.hours):
            total[place] = (total[place][0] + ended, total[place][1] + failed)
    return total
