"""Two servers on one data folder."""

from contextlib import closing
from pathlib import Path

from .frozen import LEASE, attempt_that_counts
from .site import Site


def test_frozen_server(tmp_path: Path) -> None:
    """A server that lost its lease while it was frozen changes nothing any more. EX-16."""
    with closing(Site(tmp_path / "data", LEASE)) as site:
        assert attempt_that_counts(site, site.shared) == 2
