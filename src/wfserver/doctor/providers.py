"""Providers of models as the command line speaks of them: which there are, which are missing."""

import asyncio
from collections.abc import Mapping, Sequence

from adapters_runtime.ai.models import WireModels
from adapters_runtime.ai.providers import Provider, setting_of
from wfcore.model.page import PageRequest
from wfcore.model.workflow import AiStep, Definition
from wfcore.ports.models import ModelFailed
from wfcore.usecases.workflows.workflows import list_workflows
from wfserver.compose import System

_PAGE = 200
_PATIENCE_S = 15.0


def used_by(definition: Definition) -> Sequence[str]:
    """The names of the providers that its AI steps ask."""
    names = (step.provider for step in definition.walk() if isinstance(step, AiStep))
    return list(dict.fromkeys(names))


def missing_from(definition: Definition, providers: Mapping[str, Provider]) -> Sequence[str]:
    """A warning for each provider that *definition* uses and that is not configured here. AI-8."""
    return [
        f"provider {name} is not configured here: set {setting_of(name)} where the server runs"
        for name in used_by(definition)
        if name not in providers
    ]


async def wanted(system: System) -> Mapping[str, Sequence[str]]:
    """The workflows that use each provider, by name."""
    found: dict[str, list[str]] = {}
    page: PageRequest | None = PageRequest(size=_PAGE)
    while page is not None:
        listed = await list_workflows(system.services, None, page)
        for row in listed.rows:
            for name in used_by(row.definition):
                found.setdefault(name, []).append(row.workflow.name)
        page = listed.rest
    return found


def described(provider: Provider) -> str:
    """A provider in words; its key is never shown, only whether there is one."""
    key = "with a key" if provider.api_key else "without a key"
    clear = ", which crosses the network unencrypted" if provider.in_the_clear else ""
    return f"{provider.name} ({provider.kind}) at {provider.base_url} {key}{clear}"


def asked(provider: Provider) -> tuple[bool, str]:
    """Whether the provider answers now, and what it says."""

    async def look() -> str:
        async with asyncio.timeout(_PATIENCE_S):
            return await WireModels({}).look(provider)

    try:
        return True, asyncio.run(look())
    except ModelFailed as failure:
        return False, str(failure)
    except TimeoutError:
        return False, f"says nothing for {_PATIENCE_S:g} s"
