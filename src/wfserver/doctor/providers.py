"""
The providers of models that are configured, and those that workflows name but that are not
configured.
"""

import asyncio
from collections.abc import Mapping, Sequence

from adapters_runtime.ai.models import WireModels
from adapters_runtime.ai.providers import Provider, setting_of
from wfcore.model.access import OPERATOR
from wfcore.model.page import PageRequest
from wfcore.model.workflow import AiStep, Definition
from wfcore.ports.models import ModelFailed
from wfcore.usecases.workflows.workflows import list_workflows
from wfserver.compose import System

_PAGE = 200
_PATIENCE_S = 15.0


def used_by(definition: Definition) -> Sequence[str]:
    """The names of the providers that AI steps of *definition* call."""
    steps = (step for step in definition.walk() if isinstance(step, AiStep))
    return list(dict.fromkeys(name for step in steps for name in step.providers))


def missing_from(definition: Definition, providers: Mapping[str, Provider]) -> Sequence[str]:
    """A warning for each provider that *definition* uses but that is not configured here. AI-8."""
    return [
        f"provider {name} is not configured here: set {setting_of(name)} where the server runs"
        for name in used_by(definition)
        if name not in providers
    ]


async def wanted(system: System) -> Mapping[str, Sequence[str]]:
    """The names of the workflows that use each provider, by provider."""
    found: dict[str, list[str]] = {}
    page: PageRequest | None = PageRequest(size=_PAGE)
    while page is not None:
        listed = await list_workflows(system.services, OPERATOR, page)
        for row in listed.rows:
            for name in used_by(row.definition):
                found.setdefault(name, []).append(row.workflow.name)
        page = listed.rest
    return found


def described(provider: Provider) -> str:
    """A provider in words: whether it has a key, but never the key."""
    key = "with a key" if provider.api_key else "without a key"
    clear = ", which crosses the network unencrypted" if provider.in_the_clear else ""
    return f"{provider.name} ({provider.kind}) at {provider.base_url} {key}{clear}"


def probe(provider: Provider) -> tuple[bool, str]:
    """Whether *provider* answers now, and its answer or its error in words."""

    async def answer() -> str:
        async with asyncio.timeout(_PATIENCE_S):
            return await WireModels({}).probe(provider)

    try:
        return True, asyncio.run(answer())
    except ModelFailed as failure:
        return False, str(failure)
    except TimeoutError:
        return False, f"no answer for {_PATIENCE_S:g} s"
