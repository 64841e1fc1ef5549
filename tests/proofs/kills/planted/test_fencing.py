"""The fencing number alone keeps a server that lost its lease from writing, and this shows it."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.system.scenarios.frozen import LEASE, attempt_that_counts
from tests.system.scenarios.site import Site

HERE = Path(__file__).parent


@pytest.mark.parametrize(("planted", "counts"), [("heartless", 2)])
def test_fencing(tmp_path: Path, planted: str, counts: int) -> None:
    """Without heartbeats the fence still holds. EX-16."""
    paths = f"{HERE / 'at_start'}:{HERE.parents[3]}"
    settings = {**LEASE, "PYTHONPATH": paths, "PLANTED": planted}
    with closing(Site(tmp_path / "data", settings)) as site:
        assert attempt_that_counts(site, site.shared) == counts
