"""What narrows the list of executions: a text in names and inputs, and the hours of two days."""

from collections.abc import Sequence

from attrs import evolve, frozen

from wfcore.model.access import Principal
from wfcore.model.execution import Execution
from wfcore.model.page import Page, PageRequest
from wfcore.ports.records import HOURS, ExecutionFilter
from wfcore.rules.approval.typed import cell_text
from wfcore.time import HOUR, EpochMs
from wfcore.usecases.executions.browsing import workflow_names
from wfcore.usecases.executions.executions import list_executions
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services

LOOKED_THROUGH = 200
"""The number of executions whose inputs one search reads; the next page continues it."""


async def search_executions(
    services: Services, who: Principal, page: PageRequest, where: ExecutionFilter, text: str
) -> Page[Execution]:
    """
    The executions that contain *text* in the name of their workflow, their reference or an input
    that is no secret, in any case, among the next `LOOKED_THROUGH` executions that fit *where*.
    """
    found = await list_executions(services, who, evolve(page, size=LOOKED_THROUGH), where)
    async with services.store.view() as view:
        whole = [await execution_of(view, one.id) for one in found.rows]
    rows = [
        one
        for one, run in zip(found.rows, whole, strict=True)
        if run is not None and text.lower() in _words(run)
    ]
    return evolve(found, rows=tuple(rows))


def _words(run: Execution) -> str:
    """The searchable text of an execution."""
    inputs = [cell_text(one) for name, one in run.variables.items() if name not in run.secrets]
    return "\n".join([run.workflow_name, run.reference or "", *inputs]).lower()


@frozen
class RecentHours:
    """The executions of each hour from `since` on that ended, and that failed."""

    since: EpochMs
    hours: Sequence[tuple[int, int]]


async def recent_hours(
    services: Services, who: Principal, workflow_id: str | None = None
) -> RecentHours:
    """The last two days, over the first `MOST_ADDED` workflows that *who* sees, or one of them."""
    now = services.store.now()
    last = EpochMs(max(now - now % HOUR - (HOURS - 1) * HOUR, 0))
    since = EpochMs(max(last - HOURS * HOUR, 0))
    named = [one.id for one in await workflow_names(services, who, MOST_ADDED)]
    ids = [workflow_id] if workflow_id else named
    hours = list[tuple[int, int]]()
    async with services.store.view() as view:
        for begin in (since, last):
            did = (await view.workflows.activity(ids, who.account.id, begin)).values()
            for place in range(HOURS):
                counts = [one.ends[place] for one in did]
                hours.append((sum(a for a, _ in counts), sum(b for _, b in counts)))
    return RecentHours(since, hours)


MOST_ADDED = 50
"""The number of workflows whose hours are added."""
