"""The starters of executions, in words."""

from collections.abc import Iterable, Mapping

from wfcore.model.access import Account, ApiKey
from wfcore.model.execution import Execution
from wfcore.usecases.services import Services


async def starter_names(services: Services, runs: Iterable[Execution]) -> Mapping[str, str]:
    """
    The emails of the accounts, and the names of the keys, that started *runs*, by id. Takes two
    queries, however many executions there are.
    """
    chosen = list(runs)
    async with services.store.view() as view:
        accounts = await view.some(Account, {run.owner_id for run in chosen})
        keys = await view.some(ApiKey, {run.key_id for run in chosen if run.key_id})
    return {one.id: one.email for one in accounts} | {one.id: one.name for one in keys}
