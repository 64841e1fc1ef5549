"""What holds over the end of a server, a quiet one or kill -9. Each test ends its own."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from wfcore.model.access import Principal, Tier
from wfcore.model.execution import TriggerSource
from wfcore.testing.contracts.steps import alive
from wfcore.usecases.executions.starting import start_execution

from .flows import REVIEW, SLOW
from .process import ledger, until
from .site import ApiCaller, Site

NOTED = """
steps:
  - name: one
    kind: code
    language: bash
    source: |
      echo one >> {folder}/ledger
      until [ -e {folder}/go ]; do sleep 0.01; done
  - {{name: two, kind: code, language: bash, source: 'echo two >> {folder}/ledger'}}
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site of its own for each test; interrupted executions are given up soon."""
    with closing(Site(tmp_path / "data", {"WFCORE_INTERRUPTED_GRACE": "300ms"})) as made:
        yield made


def test_what_was_given_stays_good(site: Site, ann: ApiCaller) -> None:
    """Keys, sessions, links, first answers and open questions outlive the server. IK-1, EX-15."""
    flow, session = ann.workflow(REVIEW), ann.sign_in()
    artifact = ann.workflow(
        """steps: [{name: a, kind: code, language: bash, source: 'echo x > "$WF_ARTIFACTS/x"'}]"""
    )
    done = ann.start(artifact)
    ann.result(done)
    listed = ann.get(f"/api/v1/executions/{done}/artifacts").json()
    execution_id, approval_id = ann.paused(flow)
    once = {"Idempotency-Key": "a key of ours"}
    path = f"/api/v1/workflows/{flow}/executions"
    first = ann.post(path, {"inputs": {}}, headers=once)

    site.kill()
    site.serve()
    again = ann.post(path, {"inputs": {}}, headers=once)
    assert (again.status_code, again.json()) == (202, first.json())
    assert again.headers["idempotent-replayed"] == "true"
    other = ann.post(path, {"inputs": {"more": 1}}, headers=once)
    assert other.status_code == 409
    assert ann.get(f"/api/v1/executions?workflowId={flow}").json()["total"] == 2
    assert site.http.get("/api/session", headers=session).status_code == 200
    assert site.http.get(listed["artifacts"][0]["downloadUrl"]).content == b"x\n"
    assert ann.post(f"/api/v1/approvals/{approval_id}/approve").status_code == 200
    assert ann.result(execution_id)["output"] == "done"


def test_sigterm(site: Site, ann: ApiCaller) -> None:
    """A running step may end after SIGTERM; the next server goes on with the next step. EX-15."""
    noted, names = ledger(site.shared), [f"s{number}" for number in range(30)]
    step = f"echo $WF_STEP_NAME >> {noted}; until [ -e {site.shared}/go ]; do sleep 0.05; done"
    steps = [f'{{name: {one}, kind: code, language: bash, source: "{step}"}}' for one in names]
    execution_id = ann.start(ann.workflow(f"steps: [{', '.join(steps)}]"))
    until(noted.read_text)
    with ThreadPoolExecutor(1) as thread:
        stopped = thread.submit(site.stop)
        until(lambda: _readiness(site) == 503)
        (site.shared / "go").touch()
        assert stopped.result() == 0
    assert noted.read_text().split() == names[: len(noted.read_text().split())]
    assert len(noted.read_text().split()) < len(names)
    site.serve()
    assert ann.result(execution_id)["status"] == "COMPLETED"
    assert noted.read_text().split() == names


def _readiness(site: Site) -> int:
    return httpx.get(f"{site.server.url}/readyz").status_code


def test_interrupted(site: Site, ann: ApiCaller) -> None:
    """What an API caller started is never run again: INTERRUPTED, then FAILED. EX-13, EX-14."""
    execution_id = ann.start(ann.workflow(SLOW))
    until(lambda: alive(f"WF_EXECUTION_ID={execution_id}"))
    site.kill()
    until(lambda: not alive(f"WF_EXECUTION_ID={execution_id}"))
    site.serve()
    until(lambda: ann.view(execution_id)["status"] == "FAILED")
    view = ann.view(execution_id)
    assert view["error"] == "Execution interrupted"
    assert view["stepResults"]["wait"]["status"] == "INTERRUPTED"
    kinds = [event["event"] for event in ann.events(execution_id)]
    assert kinds.index("execution.interrupted") == len(kinds) - 2
    assert kinds.count("step.started") == 1


def test_resumed(site: Site, ann: ApiCaller) -> None:
    """What somebody started by hand is resumed by the service. EX-12."""
    noted = ledger(site.shared)
    flow = ann.workflow(NOTED.format(folder=site.shared))
    started = site.do(
        lambda services: start_execution(
            services, Principal(ann.account), flow, {}, source=TriggerSource.MANUAL
        )
    )
    until(noted.read_text)
    site.kill()
    (site.shared / "go").touch()
    site.serve()
    assert ann.result(started.execution_id)["status"] == "COMPLETED"
    assert noted.read_text() == "one\none\ntwo\n"


def test_quota_over_a_kill(site: Site) -> None:
    """Of 100 requests at most 60 are admitted in a minute, kill -9 in the middle or not. RL-4."""
    while True:
        ann, minute = site.caller(Tier.FREE), time.time() // 60
        answers = _hundred(site, ann)
        refused = ann.get("/api/v1/workflows")
        if time.time() // 60 == minute:
            break
    admitted = answers.count(200)
    assert admitted <= 60 <= admitted + answers.count(None)
    assert answers.count(429) >= 40 - answers.count(None)
    assert refused.status_code == 429
    body = refused.json()
    assert (body["window"], body["limit"]) == ("minute", 60)
    assert refused.headers["retry-after"] == str(body["retryAfterSeconds"])
    assert 0 < body["retryAfterSeconds"] <= 60


def _hundred(site: Site, ann: ApiCaller) -> list[int | None]:
    """The statuses of 100 requests; None where the server was killed before it answered."""

    def ask() -> int | None:
        try:
            return ann.get("/api/v1/workflows").status_code
        except (httpx.TransportError, RuntimeError):
            return None

    with ThreadPoolExecutor(8) as threads:
        before = [threads.submit(ask) for _ in range(50)]
        until(lambda: sum(one.done() for one in before) >= 25)
        site.server.kill()
        answers = [one.result() for one in before]
        site.http.close()
        site.serve()
        answers += [one.result() for one in [threads.submit(ask) for _ in range(50)]]
    lost = answers.count(None)
    return answers + [ask() for _ in range(lost)]
