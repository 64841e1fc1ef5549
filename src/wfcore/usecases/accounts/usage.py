"""The use of quotas by keys, and the costs of models. RL-1, AI-7."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal

from attrs import frozen

from wfcore.errors import Unreadable
from wfcore.model.access import Account, Principal, Window
from wfcore.model.execution import Usage
from wfcore.model.page import NEWEST, PageRequest
from wfcore.model.workflow import AiStep, Definition, DefinitionSnapshot
from wfcore.ports.records import ExecutionFilter
from wfcore.ports.store import View
from wfcore.rules.auth.rate_limit import days_until, windows
from wfcore.rules.execution.scope import name_of
from wfcore.time import DAY, EpochMs
from wfcore.usecases.services import Services

LOOKED_AT, RESULTS_LOOKED_AT, _AT_ONCE = 500, 50_000, 20
"""
The most executions whose models are added up, the most step results of these executions, and the
executions read at a time.
"""


@frozen
class KeyUsage:
    """
    The use of each open window by a key, or by a webhook without a key. `month`: the admissions of
    the last `MONTH_DAYS` days. RL-7.
    """

    id: str
    name: str
    windows: tuple[tuple[Window, int], ...]
    month: int


@frozen
class ModelUsage:
    """The use of a model by a workflow. `unpriced`: the price of a part is unknown."""

    workflow_id: str
    workflow: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal
    unpriced: bool


@frozen
class AccountUsage:
    """
    The usage of an account. `models`: the usage of the executions from `since` on, among the newest
    `LOOKED_AT` executions; `cut`: whether there were more executions.
    """

    keys: Sequence[KeyUsage]
    models: Sequence[ModelUsage]
    since: EpochMs
    cut: bool


async def read_usage(services: Services, who: Principal) -> AccountUsage:
    """The usage of the account of *who*."""
    since = EpochMs(max(services.store.now() - 30 * DAY, 0))
    where = ExecutionFilter(owner_id=who.account.id, since=since)
    async with services.store.view() as view:
        spent, cut = await _spent(view, where)
        models = await _models(view, spent)
    return AccountUsage(await read_quotas(services, who.account), models, since, cut)


async def read_quotas(services: Services, account: Account) -> Sequence[KeyUsage]:
    """The use of the quotas of *account*: of each key, and of each webhook without a key."""
    now = services.store.now()
    asked = windows(account.plan, now)
    async with services.store.view() as view:
        keys = [one for one in await view.keys.of_account(account.id) if one.revoked_at is None]
        hooks = await view.webhooks.all_of_owner(account.id)
    subjects = [(f"key:{one.id}", one.id, one.name) for one in keys]
    subjects += [(f"webhook:{one.id}", one.id, one.name) for one in hooks if not one.api_key_id]
    used = []
    for subject, id, name in subjects:
        counts = await services.counters.peek_counts(subject, asked)
        month = sum(await services.counters.peek_counts(subject, days_until(now)))
        used.append(KeyUsage(id, name, tuple(zip(asked, counts, strict=True)), month))
    return used


@frozen
class _Spent:
    """The steps of an execution that called a model, with their usage and who answered."""

    workflow_id: str
    workflow: str
    revision: int
    used: Sequence[tuple[str, Usage, str | None]]


async def _spent(view: View, where: ExecutionFilter) -> tuple[Sequence[_Spent], bool]:
    """
    The usage of the newest executions, and whether there were more executions. Reads a few
    executions at a time; their step results are limited as well, because each execution may have
    thousands.
    """
    found: list[_Spent] = []
    after, results = NEWEST, 0
    while len(found) < LOOKED_AT and results < RESULTS_LOOKED_AT:
        runs = await view.executions.list(where, PageRequest(size=_AT_ONCE, after=after))
        for run in runs.rows:
            results_of = run.step_results.items()
            used = [(key, one.usage, one.model) for key, one in results_of if one.usage]
            found.append(_Spent(run.workflow_id, run.workflow_name, run.revision, used))
            results += len(run.step_results)
        if runs.next is None:
            return found, False
        after = runs.next
    return found, True


async def _models(view: View, runs: Sequence[_Spent]) -> Sequence[ModelUsage]:
    known: dict[tuple[str, int], Definition | None] = {}
    names: dict[str, str] = {}
    found: defaultdict[tuple[str, str], list[Usage]] = defaultdict(list)
    for run in runs:
        names.setdefault(run.workflow_id, run.workflow)
        for key, used, model in run.used:
            at = (run.workflow_id, run.revision)
            if at not in known:
                known[at] = await _definition(view, *at)
            named = model or _model(known[at], name_of(key))
            found[run.workflow_id, named].append(used)
    return sorted(
        (_sum(id, names[id], model, used) for (id, model), used in found.items()),
        key=lambda one: (-one.cost_usd, one.workflow, one.model),
    )


async def _definition(view: View, workflow_id: str, revision: int) -> Definition | None:
    try:
        snapshot = await view.get(DefinitionSnapshot, workflow_id, revision)
    except Unreadable:
        return None
    return snapshot.definition if snapshot else None


def _model(definition: Definition | None, name: str) -> str:
    """
    The model of a step. The lookup uses a dictionary, because each round of a loop needs the model.
    """
    with suppress(KeyError):
        step = definition.step(name) if definition else None
        return step.model if isinstance(step, AiStep) else ""
    return ""


def _sum(id: str, name: str, model: str, used: Sequence[Usage]) -> ModelUsage:
    costs = [Decimal(one.cost_usd) for one in used if one.cost_usd is not None]
    return ModelUsage(
        id,
        name,
        model,
        sum(one.input_tokens for one in used),
        sum(one.output_tokens for one in used),
        sum(costs, Decimal(0)),
        len(costs) < len(used),
    )
