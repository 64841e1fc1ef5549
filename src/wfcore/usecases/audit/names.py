"""The names of what entries of the audit log are about, for people who read the log."""

from collections.abc import Iterable, Mapping

from wfcore.model.access import Account, ApiKey
from wfcore.model.event import AuditEntry
from wfcore.model.webhook import Webhook
from wfcore.model.workflow import Workflow
from wfcore.usecases.services import Services


async def names_in(services: Services, entries: Iterable[AuditEntry]) -> Mapping[str, str]:
    """
    The names of accounts, keys, workflows and webhooks in *entries*, by id. A record that was
    deleted has no name. Callers may show a name to whoever may read the entry.
    """
    ids = {id for one in entries for id in (one.account_id, one.key_id, one.target) if id}
    async with services.store.view() as view:
        accounts = await view.some(Account, ids)
        keys = await view.some(ApiKey, ids)
        flows = await view.some(Workflow, ids)
        hooks = await view.some(Webhook, ids)
    named = {one.id: one.name for group in (keys, flows, hooks) for one in group}
    return {**named, **{one.id: one.email for one in accounts}}
