"""A served application for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters_http.app import HttpConfig
from tests.support.http_world import World, a_world


@pytest.fixture
def config() -> HttpConfig:
    """What the application is configured with; a module may override it."""
    return HttpConfig()


@pytest.fixture
async def world(tmp_path: Path, config: HttpConfig) -> AsyncIterator[World]:
    async with a_world(tmp_path, config) as made:
        yield made
