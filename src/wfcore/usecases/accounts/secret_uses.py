"""The workflows that use the secrets of an account. SC-6."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from wfcore.errors import Unreadable
from wfcore.model.access import Principal
from wfcore.model.page import PageCursor, PageRequest
from wfcore.model.workflow import Workflow
from wfcore.rules.named_secrets import secrets_in
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import definition_of

MOST_SEARCHED = 200
"""The most workflows whose definitions are searched, by name."""


async def secret_uses(services: Services, who: Principal) -> Mapping[str, Sequence[Workflow]]:
    """The own workflows of *who* that list a secret, by the name of the secret."""
    found: dict[str, list[Workflow]] = {}
    page = PageRequest(size=MOST_SEARCHED, after=PageCursor("", ""))
    async with services.store.view() as view:
        for flow in (await view.workflows.visible_to(who.account.id, page)).rows:
            if flow.owner_id != who.account.id:
                continue
            with suppress(Unreadable):  # the log names it
                definition = await definition_of(view, flow.id, flow.revision)
                for name in sorted(secrets_in(definition)):
                    found.setdefault(name, []).append(flow)
    return found
