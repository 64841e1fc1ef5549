"""
A search over everything that a person sees: workflows, executions, approvals, and people. PG-9.

Each part reads a number of records that does not grow with the store. Only what lists and pages
show to the same person is found.
"""

from collections.abc import Sequence

from attrs import evolve, frozen

from wfcore.errors import NotFound
from wfcore.model.access import Account, Principal, Scope
from wfcore.model.approval import ApprovalHead, ApprovalStatus
from wfcore.model.execution import Execution
from wfcore.model.page import NEWEST, PageCursor, PageRequest
from wfcore.model.workflow import Workflow
from wfcore.ports.records import ApprovalFilter, ExecutionFilter
from wfcore.rules.approval.question import title
from wfcore.rules.searching import fits, has_input
from wfcore.usecases.accounts.accounts import find_account, list_accounts
from wfcore.usecases.approvals.approvals import list_approvals
from wfcore.usecases.executions.browsing import SHORTEST_END, find_execution, workflow_names
from wfcore.usecases.executions.executions import list_executions
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services

MOST = 8
"""The most results of a kind."""
WORKFLOWS, APPROVALS, PEOPLE, INPUTS = 500, 50, 200, 30
"""
The records that are compared with the text: workflows by name, open approvals by expiry, the newest
accounts, and the newest executions by their inputs.
"""
LONGEST = 200


@frozen
class SearchResults:
    """The records that fit a text, each kind at most `MOST`."""

    workflows: Sequence[Workflow] = ()
    executions: Sequence[Execution] = ()
    approvals: Sequence[ApprovalHead] = ()
    people: Sequence[Account] = ()


async def search(services: Services, who: Principal, text: str) -> SearchResults:
    """
    What *who* sees that fits *text*: workflows by name, executions by id, end of the id,
    idempotency key, reference or input, open approvals by title, and for operators people by
    e-mail.
    """
    text = text.strip()[:LONGEST]
    if not text:
        return SearchResults()
    found = SearchResults()
    if _may(who, Scope.WORKFLOW_READ):
        seen = await workflow_names(services, who, WORKFLOWS)
        found = evolve(found, workflows=[one for one in seen if fits(text, one.name)][:MOST])
    if _may(who, Scope.EXECUTION_READ):
        found = evolve(found, executions=await _executions(services, who, text))
    if _may(who, Scope.APPROVAL_RESPOND):
        found = evolve(found, approvals=await _approvals(services, who, text))
    if who.operator:
        found = evolve(found, people=await _people(services, text))
    return found


def _may(who: Principal, scope: Scope) -> bool:
    return not who.scopes or scope in who.scopes


async def _executions(services: Services, who: Principal, text: str) -> Sequence[Execution]:
    first = PageRequest(size=MOST, after=NEWEST)
    found: dict[str, Execution] = {}
    if (id := await find_execution(services, who, text)) is not None:
        async with services.store.view() as view:
            run = await execution_of(view, id)
        return [run] if run else []
    wheres = [ExecutionFilter(reference=text)]
    if len(end := text.removeprefix("…")) >= SHORTEST_END:
        wheres.append(ExecutionFilter(id_end=end))
    for where in wheres:
        for run in (await list_executions(services, who, first, where)).rows:
            found.setdefault(run.id, run)
    if not found:
        return await _by_input(services, who, text)
    return [*found.values()][:MOST]


async def _by_input(services: Services, who: Principal, text: str) -> Sequence[Execution]:
    """The executions among the newest of *who* whose inputs contain *text*."""
    newest = PageRequest(size=INPUTS, after=NEWEST)
    rows = (await list_executions(services, who, newest)).rows
    found = []
    async with services.store.view() as view:
        for row in rows:
            run = await execution_of(view, row.id)
            if run is not None and has_input(run, text):
                found.append(run)
                if len(found) == MOST:
                    break
    return found


async def _approvals(services: Services, who: Principal, text: str) -> Sequence[ApprovalHead]:
    where = ApprovalFilter(statuses=(ApprovalStatus.PENDING,), soonest=True)
    page = PageRequest(size=APPROVALS, after=PageCursor(-1, ""))
    rows = (await list_approvals(services, who, page, where)).rows
    fitting = (one for one in rows if text == one.id or fits(text, title(one), one.reference or ""))
    return [*fitting][:MOST]


async def _people(services: Services, text: str) -> Sequence[Account]:
    rows = (await list_accounts(services, PageRequest(size=PEOPLE, after=NEWEST))).rows
    found = [one for one in rows if fits(text, one.email)][:MOST]
    if found:
        return found
    try:
        return [await find_account(services, text)]
    except NotFound:
        return []
