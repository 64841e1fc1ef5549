"""Limits on concurrency on real servers, over kill -9, and with several of them on one folder."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from .process import Server, until
from .site import ApiCaller, Site

LEDGER = """
concurrency: {{limit: {limit}}}
steps:
  - name: one
    kind: code
    language: bash
    source: |
      echo "begun $WF_EXECUTION_ID" >> {folder}/ledger
      sleep {nap}
      echo "ended $WF_EXECUTION_ID" >> {folder}/ledger
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site of its own for each test; interrupted executions are given up soon."""
    with closing(Site(tmp_path / "data", {"WFCORE_INTERRUPTED_GRACE": "100ms"})) as made:
        yield made


def lines(folder: Path) -> list[list[str]]:
    ledger = folder / "ledger"
    return [line.split() for line in ledger.read_text().splitlines()] if ledger.exists() else []


def most_at_once(folder: Path, dead: frozenset[str] = frozenset()) -> int:
    """How many steps ran at once, by what they wrote; *dead* ones never wrote their end."""
    now, most = set[str](), 0
    for moment, id in lines(folder):
        now = now | {id} if moment == "begun" else now - {id}
        most = max(most, len(now - dead))
    return most


def test_ten_starts_run_one_after_another(site: Site, ann: ApiCaller) -> None:
    """With limit 1 no two run at once, in the order in which they were accepted. CC-1."""
    flow = ann.workflow(LEDGER.format(limit=1, folder=site.shared, nap=0.05))
    ids = [ann.start(flow) for _ in range(10)]
    assert [ann.result(id)["status"] for id in ids] == ["COMPLETED"] * 10
    moments = [moment for moment, _ in lines(site.shared)]
    assert moments == ["begun", "ended"] * 10
    assert [id for moment, id in lines(site.shared) if moment == "begun"] == ids


def test_the_limit_holds_over_kills_and_servers(site: Site, ann: ApiCaller) -> None:
    """
    Two servers, one of which is killed again and again: never more than two at once, and all
    come to an end, those that were killed as FAILED. CC-1, CC-2.
    """
    flow = ann.workflow(LEDGER.format(limit=2, folder=site.shared, nap=0.1))
    ids = [ann.start(flow) for _ in range(16)]
    second = Server(site.data, site.settings)
    try:
        for number in range(3):
            until(lambda n=number: len(lines(site.shared)) >= 4 * (n + 1))
            second.kill()
            second = Server(site.data, site.settings)
        ends = {id: ann.result(id)["status"] for id in ids}
    finally:
        second.kill()
    assert set(ends.values()) <= {"COMPLETED", "FAILED"}
    failed = frozenset(id for id, status in ends.items() if status == "FAILED")
    assert len(failed) <= 6
    assert most_at_once(site.shared, failed) <= 2
    assert ann.result(ann.start(flow))["status"] == "COMPLETED"


def test_a_full_workflow_says_why(site: Site, ann: ApiCaller) -> None:
    """Who waits for the limit can ask, and others are not in its way. CC-2, XP-1."""
    flow = ann.workflow(LEDGER.format(limit=1, folder=site.shared, nap=30))
    first, late = ann.start(flow), ann.start(flow)
    until(lambda: lines(site.shared))
    said = ann.get(f"/api/v1/executions/{late}/explain").json()
    assert said["lines"][0]["code"] == "LIMIT_REACHED"
    echo = "steps: [{name: say, kind: code, language: bash, source: echo done}]"
    assert ann.result(ann.start(ann.workflow(echo)))["status"] == "COMPLETED"
    assert ann.post(f"/api/v1/executions/{first}/cancel").status_code == 200
    until(lambda: ann.view(late)["status"] == "RUNNING")
    ann.post(f"/api/v1/executions/{late}/cancel")
