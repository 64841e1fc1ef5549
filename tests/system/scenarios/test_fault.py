"""A fault in a scheduled workflow, from the mail that tells of it to the command that mends it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.adapters_runtime.notices.mail_server import MailServer, a_mail_server, text_of
from tests.support.collector import Collector, a_collector
from wfcore.model.trigger import Timer
from wfcore.time import EpochMs
from wfcore.usecases.services import Services

from .process import until
from .site import ApiCaller, Site

FLOW = """
notifyOnFailure: [mail]
triggers: [{{kind: SCHEDULE, cron: "0 0 1 1 *"}}]
steps:
  - {{name: load, kind: code, language: bash, source: echo done}}
  - name: check
    kind: code
    language: bash
    source: test -e {fixed} || {{ echo no file >&2; exit 3; }}
"""


@pytest.fixture
def post() -> Iterator[MailServer]:
    with a_mail_server() as server:
        yield server


@pytest.fixture
def collector() -> Iterator[Collector]:
    with a_collector() as made:
        yield made


async def _fall_due(services: Services) -> None:
    """Let the only schedule fall due now, as if its next instant were this one."""
    now = services.clock.now()
    async with services.store.unit() as unit:
        (timer,) = await unit.timers.due(EpochMs(10**14), 9)
        unit.delete(timer)
        unit.put(Timer(f"{timer.trigger_id}@{now}", timer.trigger_id, now))
        await unit.commit()


def test_a_schedule_that_fails_is_told_of_seen_explained_and_redriven(
    tmp_path: Path, post: MailServer, collector: Collector
) -> None:
    """
    Its owner has a mail, the panel's metric moves, the log has one line, the trace shows the step,
    `explain` says why, and one command redrives it.
    """
    settings = {
        **collector.settings,
        "WFCORE_SMTP_URL": post.url,
        "WFCORE_MAIL_FROM": "flows@example.org",
        "WFCORE_LOG_FORMAT": "json",
    }
    with closing(Site(tmp_path / "data", settings)) as site:
        ann, fixed = site.caller(), site.shared / "fixed"
        flow = ann.workflow(FLOW.format(fixed=fixed))
        site.do(_fall_due)
        until(lambda: post.mails, what="the mail")
        run = _only(ann, flow, "FAILED")
        mail = post.mails[0]
        assert post.recipients[0] == [ann.account.email]
        assert "check" in text_of(mail)
        assert _failed_by_schedule(site) == 1
        spans = collector.wait(lambda found: "check" in [one.step for one in found])
        (step,) = [one for one in spans if one.step == "check"]
        assert (step.failed, step.attributes["wfcore.execution.id"]) == (True, run)
        assert "no file" in step.error
        (line,) = _lines(site, run)
        assert (line["reason"], line["step"]) == ("STEP_FAILED", "check")
        assert line["trace_id"] == step.trace
        assert "check" in command(site, "execution", "explain", run)
        fixed.touch()
        command(site, "execution", "redrive", run, "--wait")
        assert _only(ann, flow, "COMPLETED")


def command(site: Site, *arguments: str) -> str:
    """What `wfcore` prints on this host."""
    env = {**os.environ, "WFCORE_DATA": str(site.data)}
    ran = subprocess.run(
        (sys.executable, "-m", "wfserver", *arguments),
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def _only(ann: ApiCaller, flow: str, status: str) -> str:
    found = ann.get(f"/api/v1/executions?workflowId={flow}&status={status}").json()
    (one,) = found["items"]
    return str(one["executionId"])


def _failed_by_schedule(site: Site) -> float:
    families = text_string_to_metric_families(site.http.get("/metrics").text)
    return next(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == "wfcore_executions_total"
        and sample.labels == {"status": "FAILED", "trigger": "schedule"}
    )


def _lines(site: Site, run: str) -> list[dict[str, Any]]:
    """Lines of the log about the end of an execution."""
    whole = site.server.log.read_text().rpartition("\n")[0]
    lines = map(json.loads, whole.splitlines())
    ends = [one for one in lines if one["event"] == "an execution ended"]
    return [one for one in ends if one["execution_id"] == run]
