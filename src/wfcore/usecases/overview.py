"""
What happened lately, for the page that owners and operators see first.

Everything is read from indexes, up to a number of rows that does not grow with the store: the
activity of workflows by the hour or the day, the newest executions that failed, and the newest of
each hour or day that completed.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from attrs import evolve, frozen

from wfcore.model.access import Principal
from wfcore.model.approval import ApprovalHead, ApprovalStatus
from wfcore.model.execution import ExecutionStatus
from wfcore.model.page import NEWEST, PageCursor, PageRequest
from wfcore.model.workflow import Workflow
from wfcore.ports.records import HOURS, Activity, ApprovalFilter, ExecutionFilter
from wfcore.rules.overview import FailureCause, failures, percentile
from wfcore.time import DAY, HOUR, DurationMs, EpochMs
from wfcore.usecases.approvals.approvals import list_approvals
from wfcore.usecases.executions.executions import list_executions
from wfcore.usecases.services import Services

MOST_WORKFLOWS, MOST_FAILURES, MOST_DURATIONS, DAYS = 100, 100, 50, 7
"""
The most workflows whose activity is added up, the most failed executions of a week that are
grouped, the most completed executions of an hour or a day whose durations are compared, and the
days of an overview by the day.
"""
_AWAITED = PageRequest(size=5, after=PageCursor(-1, ""))


@frozen
class SpanOfEnds:
    """
    An hour or a day of an overview: how many executions ended, and how many of others failed.
    `p50`, `p95`: of the durations of completed executions; None without any.
    """

    at: EpochMs
    ended: int
    failed: int
    p50: DurationMs | None = None
    p95: DurationMs | None = None


@frozen
class Overview:
    """
    The last hours, or days, of what an account sees. `spans`: each of them, the oldest first.
    `waiting`: the number of open approvals, of which `awaited` are the first to expire; `oldest`:
    when the oldest of them was opened. `p50`, `p95`: of all spans. `costs`: by workflow, of a week,
    the highest first. `fires`: workflows with the instants of their next timers, the soonest first.
    `cut`: whether there are more workflows.
    """

    spans: Sequence[SpanOfEnds]
    p50: DurationMs | None
    p95: DurationMs | None
    failures: Sequence[FailureCause]
    waiting: int
    awaited: Sequence[ApprovalHead]
    oldest: EpochMs | None
    names: Mapping[str, str]
    costs: Sequence[tuple[Workflow, Decimal]]
    fires: Sequence[tuple[Workflow, EpochMs]]
    cut: bool

    @property
    def ended(self) -> int:
        """The executions of these spans that ended without a failure."""
        return sum(one.ended for one in self.spans)

    @property
    def failed(self) -> int:
        """The executions of these spans that failed."""
        return sum(one.failed for one in self.spans)


async def read_overview(services: Services, who: Principal, *, by_day: bool = False) -> Overview:
    """What *who* sees of the last `HOURS` hours, or of the last `DAYS` days in UTC. AC-4."""
    now, me = services.store.now(), who.account.id
    span, count = (DAY, DAYS) if by_day else (HOUR, HOURS)
    since = EpochMs(max(now - now % span - (count - 1) * span, 0))
    first = PageRequest(size=MOST_WORKFLOWS + 1, after=PageCursor("", ""))
    async with services.store.view() as view:
        flows = (await view.workflows.visible_to(me, first)).rows
        shown = flows[:MOST_WORKFLOWS]
        ids = [one.id for one in shown]
        did = await view.workflows.activity(ids, me, since, span, count)
        took = await view.executions.durations(me, since, span, count, MOST_DURATIONS)
    active = [(one, did.get(one.id, Activity())) for one in shown]
    failed = PageRequest(size=MOST_FAILURES, after=NEWEST)
    week = ExecutionFilter(statuses=(ExecutionStatus.FAILED,), since=EpochMs(now - 7 * DAY))
    awaited, oldest = await _awaited(services, who)
    costs = [(one, Decimal(activity.cost_usd)) for one, activity in active]
    fires = [(one, activity.next_at) for one, activity in active if activity.next_at is not None]
    lengths = [length for some in took.values() for length in some]
    return Overview(
        _spans(since, span, count, [activity for _, activity in active], took),
        percentile(lengths, 0.5),
        percentile(lengths, 0.95),
        failures((await list_executions(services, who, failed, week)).rows),
        sum(activity.waiting for _, activity in active),
        awaited,
        oldest,
        {one.id: one.name for one in flows},
        sorted((one for one in costs if one[1]), key=lambda one: -one[1]),
        sorted(fires, key=lambda one: one[1]),
        len(flows) > len(shown),
    )


async def _awaited(
    services: Services, who: Principal
) -> tuple[Sequence[ApprovalHead], EpochMs | None]:
    """The open approvals that expire first, and when the oldest was opened."""
    soonest = ApprovalFilter(statuses=(ApprovalStatus.PENDING,), soonest=True)
    first = ApprovalFilter(statuses=(ApprovalStatus.PENDING,), oldest_first=True)
    awaited = await list_approvals(services, who, _AWAITED, soonest)
    oldest = await list_approvals(services, who, evolve(_AWAITED, size=1), first)
    return awaited.rows, oldest.rows[0].created_at if oldest.rows else None


def _spans(
    since: EpochMs,
    span: DurationMs,
    count: int,
    activities: Sequence[Activity],
    took: Mapping[int, Sequence[DurationMs]],
) -> Sequence[SpanOfEnds]:
    """Each span, with the ends of all *activities* together."""
    return [
        SpanOfEnds(
            EpochMs(since + place * span),
            sum(one.ends[place][0] for one in activities if one.ends),
            sum(one.ends[place][1] for one in activities if one.ends),
            percentile(took.get(place, ()), 0.5),
            percentile(took.get(place, ()), 0.95),
        )
        for place in range(count)
    ]
