"""A provider to ask, and the models that reach it."""

from collections.abc import Iterator

import pytest

from adapters_runtime.ai.models import WireModels
from adapters_runtime.ai.providers import providers_from
from tests.support.model_server import KEY, ModelServer, a_model_server

BOTH = ("local:some-model", "anthropic:some-model")
"""A model by each protocol."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with a_model_server() as made:
        yield made


@pytest.fixture
def models(server: ModelServer) -> WireModels:
    return WireModels(
        providers_from(
            {
                "WFCORE_AI_LOCAL_BASE_URL": server.openai,
                "WFCORE_AI_LOCAL_API_KEY": KEY,
                "ANTHROPIC_BASE_URL": server.url,
                "ANTHROPIC_API_KEY": KEY,
            }
        )
    )
