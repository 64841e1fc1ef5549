"""One server for each module of scenarios."""

from collections.abc import Iterator

import pytest

from scenarios.site import CallbackLoop, Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site") / "data")
    yield made
    made.close()


@pytest.fixture
def ann(site: Site) -> CallbackLoop:
    """Somebody with a key for everything, and nothing else yet."""
    return site.caller()


@pytest.fixture
def bob(site: Site) -> CallbackLoop:
    """Somebody else."""
    return site.caller()
