"""
One server for each module of scenarios. With `SCENARIOS_STORE=postgres` those that need no file of
the store run on a PostgreSQL database for each module.
"""

import os
from collections.abc import Iterator
from itertools import count

import pytest

from .site import ApiCaller, Site

ON_POSTGRES = os.environ.get("SCENARIOS_STORE") == "postgres"
_NUMBERS = count()


@pytest.fixture(scope="module")
def store(request: pytest.FixtureRequest) -> str | None:
    """The URL of an empty database; None: SQLite in the data folder."""
    if not ON_POSTGRES:
        return None
    name = f"scenarios_{next(_NUMBERS)}"
    made = request.getfixturevalue("server")
    made.execute(f"CREATE DATABASE {name}")
    return str(made.url(name))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, store: str | None) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site") / "data", store=store)
    yield made
    made.close()


@pytest.fixture
def ann(site: Site) -> ApiCaller:
    """Somebody with a key for everything, and nothing else yet."""
    return site.caller()


@pytest.fixture
def bob(site: Site) -> ApiCaller:
    """Somebody else."""
    return site.caller()
