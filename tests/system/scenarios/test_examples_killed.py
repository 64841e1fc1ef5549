"""Examples of a company's first month on a real server that dies in the middle, by kill -9."""

import json
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.adapters_runtime.notices.mail_server import MailServer, a_mail_server
from tests.support.model_server import KEY, ModelServer, a_model_server, refuses, says
from wfcore.model.access import OPERATOR
from wfcore.usecases.accounts.groups import create_group

from .process import until
from .site import ApiCaller, Site, signed
from .test_examples import (
    OPENED,
    PROPOSED,
    SECRET,
    applied,
    artifacts,
    completed,
    delivered,
    github_hook,
    make_due,
    only_run,
    runs,
)


class Source(ThreadingHTTPServer):
    """A service with orders and items. Once `asked`, what *held* answers waits for `go`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked, self.go = Event(), Event()
        Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: Source

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        after = int(query.get("after", ["0"])[0])
        if "after" not in query or after == HELD_AFTER:
            self.server.asked.set()
            self.server.go.wait(60)
        items = [{"id": id} for id in range(after + 1, min(after + 100, 500) + 1)]
        text = json.dumps(items) if "after" in query else "product,pieces,price\ntea,2,4.50\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


HELD_AFTER = 200
"""The page of items behind which the server dies."""


@pytest.fixture
def source() -> Iterator[Source]:
    made = Source()
    yield made
    made.go.set()
    made.shutdown()
    made.server_close()


@pytest.fixture
def provider() -> Iterator[ModelServer]:
    with a_model_server() as made:
        yield made


@pytest.fixture
def post() -> Iterator[MailServer]:
    with a_mail_server() as made:
        yield made


@pytest.fixture
def site(tmp_path: Path, provider: ModelServer, post: MailServer) -> Iterator[Site]:
    settings = {"OPENAI_BASE_URL": provider.openai, "OPENAI_API_KEY": KEY}
    settings |= {"WFCORE_SMTP_URL": post.url, "WFCORE_MAIL_FROM": "flows@example.org"}
    with closing(Site(tmp_path / "data", settings)) as made:
        yield made


def killed(site: Site) -> None:
    """The server dies, and another one takes its place."""
    site.kill()
    site.serve()


def test_a_nightly_report_goes_on(
    site: Site, ann: ApiCaller, source: Source, post: MailServer
) -> None:
    """The night that a dead server had begun is finished, and its report is one mail. ML-1."""
    to = {"default: []": f"default: [{ann.account.email}]"}
    report = applied(ann, "nightly-report.yaml", **to, **{DATA: source.url})
    make_due(ann, report)
    assert source.asked.wait(30)
    killed(site)
    source.go.set()
    assert completed(ann, only_run(ann, report))["output"] == {"orders": 1, "total": "9.00"}
    mails = [one for one in post.mails if one["Subject"] == "Orders: 9.00"]
    assert len({one["Message-ID"] for one in mails}) == 1
    (file,) = mails[0].iter_attachments()
    assert file.get_content() == "product,turnover\ntea,9.00\n"


DATA = "data:text/csv,product,pieces,price%0Atea,3,4.50%0Acoffee,1,12.00%0Atea,2,4.50%0A"


def test_a_release_by_two_stands(site: Site, ann: ApiCaller, bob: ApiCaller) -> None:
    """The first yes is not lost with the server; the second one releases all 300 rows. AP-16."""
    cyd = site.caller()
    members = [one.account.email for one in (ann, bob, cyd)]
    site.do(lambda services: create_group(services, OPERATOR, "refunds", members))
    id, approval = ann.paused(applied(ann, "refunds-by-two.yaml"))
    path = f"/api/v1/approvals/{approval}/approve"
    assert bob.post(path).status_code == 200
    killed(site)
    assert ann.post(path).status_code == 403  # who started it
    assert ann.view(id)["status"] == "AWAITING_APPROVAL"
    assert cyd.post(path).status_code == 200
    assert completed(ann, id)["output"]["paid"] == 300
    assert len(artifacts(ann, id)["paid.csv"].splitlines()) == 301
    assert [one["executionId"] for one in ann.get(f"{LIST}?reference=2025-03-14").json()["items"]]


LIST = "/api/v1/executions"


def test_an_alert_waits_for_people(site: Site, ann: ApiCaller) -> None:
    """What a webhook started waits on; the same delivery, sent again, starts nothing. IK-1."""
    flow = applied(ann, "incident-gate.yaml")
    hook = ann.webhook(flow, secret=SECRET, when="{{ payload.state == 'firing' }}")
    body = json.dumps({"state": "firing", "service": "billing"}).encode()

    def alert() -> str:
        headers = {**signed(SECRET, body), "Idempotency-Key": "d-1"}
        path = f"/api/webhooks/{hook.id}/trigger"
        answer = site.http.post(path, content=body, headers=headers)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["executionId"])

    id = alert()
    assert ann.rested(id)["status"] == "AWAITING_APPROVAL"
    killed(site)
    assert alert() == id
    ann.post(f"/api/v1/approvals/{ann.open_approval(id)}/approve")
    assert completed(ann, id)["output"] == {"restarted": "billing"}


def test_a_proposal_of_the_second_model_is_kept(
    site: Site, ann: ApiCaller, provider: ModelServer
) -> None:
    """The first model fails, the next one proposes; no model is asked again. AI-11."""
    hook = github_hook(ann, applied(ann, "issue-triage.yaml"))
    provider.will(refuses(400), says(PROPOSED))
    id = delivered(ann, hook.id, OPENED).json()["executionId"]
    assert ann.rested(id)["status"] == "AWAITING_APPROVAL", ann.view(id)["error"]
    assert [one.body["model"] for one in provider.asked] == ["gpt-5-mini", "gpt-5"]
    killed(site)
    ann.post(f"/api/v1/approvals/{ann.open_approval(id)}/approve")
    (call,) = completed(ann, id)["output"]
    assert call["body"] == {"labels": ["bug", "severity: high"]}
    assert len(provider.asked) == 2


def test_a_sync_is_repaired(site: Site, ann: ApiCaller, source: Source) -> None:
    """A redrive goes on with the page that was being read; each item is kept once. EX-35, SV-3."""
    keep, flow = applied(ann, "keep-items.yaml"), applied(ann, "sync-items.yaml")
    id = ann.start(flow, source=source.url)
    assert source.asked.wait(60)
    killed(site)
    source.go.set()
    until(lambda: ann.view(id)["status"] == "INTERRUPTED")
    plan = ann.post(f"{LIST}/{id}/redrive", {"dryRun": True}).json()
    fates = {one["step"]: (one["plan"], one["begun"]) for one in plan["steps"]}
    assert fates["pages.1.advance"] == ("kept", 1)
    assert fates["pages.2.read"] == ("again", 1)
    answer = ann.post(f"{LIST}/{id}/redrive", {"digest": plan["digest"]})
    assert answer.status_code == 202, answer.text
    assert completed(ann, answer.json()["executionId"])["output"] == {"cursor": 500, "kept": 500}
    kept = [text for run in runs(ann, keep) for text in artifacts(ann, run["executionId"]).values()]
    ids = [json.loads(line)["id"] for text in kept for line in text.splitlines()]
    assert sorted(ids) == [*range(1, 501)]
