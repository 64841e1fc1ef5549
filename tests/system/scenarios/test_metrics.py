"""Metrics of a real server, its alert rules and its dashboard, as Prometheus itself reads them."""

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.support.distribution import program
from tests.support.model_server import KEY, ModelServer, a_model_server, says
from wfcore.model.access import OPERATOR
from wfcore.model.page import PageRequest
from wfcore.time import HOUR, EpochMs
from wfcore.usecases.workflows.backfilling import backfill
from wfcore.usecases.workflows.triggers import list_triggers
from wfserver.serving.metrics import GAUGES, ServerMetrics

from .process import hourly, until
from .site import ApiCaller, Site

ROOT = Path(__file__).parents[3]
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
CASES = ROOT / "deploy" / "prometheus" / "alerts.test.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "dashboard.json"
PAGE = ROOT / "docs" / "metrics.md"

ECHO = "steps: [{name: say, kind: code, language: bash, source: echo done}]"
FAILS = "steps: [{name: say, kind: code, language: bash, source: exit 3}]"
ASKS = "steps: [{name: ask, kind: manual_approval, message: Really}]"
AI = "steps: [{name: ask, kind: ai, model: 'local:some-model', prompt: Sort}]"


def promtool(*arguments: str, text: str | None = None) -> None:
    """promtool has nothing to complain of."""
    ran = subprocess.run(
        (program("promtool", "prometheus"), *arguments),
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not ran.stderr or text is None, ran.stderr


@pytest.fixture(scope="module")
def provider() -> Iterator[ModelServer]:
    with a_model_server() as made:
        yield made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, provider: ModelServer) -> Iterator[Site]:
    """A server that has done a little of everything."""
    folder = tmp_path_factory.mktemp("site")
    prices = folder / "prices.json"
    prices.write_text(json.dumps({"local:*": {"input": "1000", "output": "2000"}}))
    settings = {
        "WFCORE_AI_LOCAL_BASE_URL": provider.openai,
        "WFCORE_AI_LOCAL_API_KEY": KEY,
        "WFCORE_AI_PRICES": str(prices),
    }
    with closing(Site(folder / "data", settings)) as made:
        ann = made.caller()
        provider.turns.append(says("high"))
        for text in (ECHO, FAILS, AI):
            ann.result(ann.start(ann.workflow(text)))
        for verdict in ("approve", None):
            _, approval = ann.paused(ann.workflow(ASKS))
            if verdict:
                assert ann.post(f"/api/v1/approvals/{approval}/{verdict}", {}).status_code == 200
        _trigger(ann)
        yield made


def _trigger(ann: ApiCaller) -> None:
    hook = ann.webhook(ann.workflow(ECHO), makes_secret=True)
    path = f"/api/webhooks/{hook.id}/trigger"
    assert ann.site.http.post(path, json={}).status_code == 401


@pytest.fixture(scope="module")
def text(site: Site) -> str:
    """A scrape."""
    return site.http.get("/metrics").text


def samples(text: str) -> Mapping[tuple[str, ...], float]:
    """Samples by name and the values of labels, in the order of their names."""
    return {
        (one.name, *(one.labels[name] for name in sorted(one.labels))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def queries() -> list[str]:
    """What the dashboard asks."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def rules() -> list[dict[str, Any]]:
    """The alerts."""
    return list(yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"])


def test_names_follow_the_conventions(text: str) -> None:
    """`promtool check metrics` finds help, types, units and suffixes as they should be."""
    promtool("check", "metrics", text=text)


def test_what_happened_is_counted(text: str) -> None:
    """Executions by status and trigger, steps by kind and end, tokens, cost, webhooks, gauges."""
    found = samples(text)
    executions = "wfcore_executions_total"
    assert found[executions, "COMPLETED", "open_api"] == 3
    assert found[executions, "FAILED", "open_api"] == 1
    assert found[executions, "PENDING", "open_api"] == 5
    assert found["wfcore_steps_total", "code", "completed"] == 1
    assert found["wfcore_steps_total", "code", "failed"] == 1
    assert found["wfcore_step_duration_seconds_count", "ai"] == 1
    assert found["wfcore_execution_queue_seconds_count",] == 5
    assert found["wfcore_approval_decision_seconds_count", "APPROVED"] == 1
    assert (found["wfcore_approvals_open",], found["wfcore_store_up",]) == (1, 1)
    assert found["wfcore_approvals_oldest_seconds",] > 0
    assert found["wfcore_ai_tokens_total", "input", "local:some-model"] == 12
    assert found["wfcore_ai_cost_usd_total", "local:some-model"] == pytest.approx(0.018)
    assert found["wfcore_webhook_requests_total", "401"] == 1
    assert found["wfcore_store_size_bytes",] > 10_000
    assert found["wfcore_store_commit_seconds_count",] > 10
    assert found["wfcore_loop_up", "worker"] == 1


OF_A_DISPATCH = ("wfcore_dispatch_", "wfcore_redeliveries")
"""Shown where there is one: `nodes/test_nats.py`."""


def test_every_metric_is_on_the_page_and_every_name_in_use_exists(text: str) -> None:
    """docs/metrics.md describes what is shown; dashboard and alerts use nothing else."""
    shown = {one.name for one in text_string_to_metric_families(text)}
    assert not [one for one in shown if one.endswith("_created")]
    ours = {one for one in shown if one.startswith("wfcore_")}
    families = {name.removesuffix("_total") for name in GAUGES}
    ours |= {one for one in families if one.startswith(OF_A_DISPATCH)}
    families |= {one.name for one in ServerMetrics().registry.collect()}
    assert families <= ours
    page = PAGE.read_text()
    told = {one.removesuffix("_total") for one in re.findall(r"^\| `(wfcore_\w+)", page, re.M)}
    assert told == ours
    names = {name for name, *_ in samples(text)}
    for asked in (*queries(), *(one["expr"] for one in rules())):
        used = set(re.findall(r"(?:wfcore|process)_\w+", asked))
        assert used, asked
        assert used <= names, asked


def test_each_alert_fires_on_its_fault_and_not_before() -> None:
    """Rules are well-formed; each has a case in which it fires, one in which not, and advice."""
    promtool("check", "rules", str(ALERTS))
    promtool("test", "rules", str(CASES))
    scenarios = yaml.safe_load(CASES.read_text())["tests"]
    cases = [case for one in scenarios for case in one["alert_rule_test"]]
    names = {one["alert"] for one in rules()}
    assert {one["alertname"] for one in cases if one["exp_alerts"]} == names
    assert {one["alertname"] for one in cases if not one["exp_alerts"]} == names
    assert set(re.findall(r"^\| (Wfcore\w+) \|", PAGE.read_text(), re.M)) == names


def test_prometheus_evaluates_every_query_and_rule_on_a_scrape(site: Site, tmp_path: Path) -> None:
    """
    Each query of the dashboard has an answer, no rule is in error, and none fires. Then a scheduled
    workflow fails: its panel moves, its alert fires, and one call redrives what failed.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    config = {
        "global": {"scrape_interval": "250ms", "evaluation_interval": "250ms"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [
            {
                "job_name": "wfcore",
                "static_configs": [{"targets": [site.server.url.rpartition("/")[2]]}],
            }
        ],
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))
    command = (
        program("prometheus", "prometheus"),
        f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--storage.tsdb.path={tmp_path / 'tsdb'}",
        f"--web.listen-address={address}",
    )
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        with httpx.Client(base_url=f"http://{address}/api/v1", timeout=60) as http:
            _evaluate(http)
            _fail_on_schedule(site, http)
    finally:
        process.kill()
        process.wait()
        log.close()


def _answer(http: httpx.Client, query: str) -> list[Any]:
    found = http.get("/query", params={"query": query}).json()
    assert found["status"] == "success", (query, found)
    return list(found["data"]["result"])


def _fail_on_schedule(site: Site, http: httpx.Client) -> None:
    ann = site.caller()
    fixed = site.shared / "fixed"
    step = f"{{name: say, kind: code, language: bash, source: 'test -e {fixed}'}}"
    flow = ann.workflow(f"steps: [{step}]\ntriggers: [{{kind: SCHEDULE, cron: {hourly()!r}}}]")
    now = int(time.time() * 1_000)
    (shown,) = site.do(lambda services: list_triggers(services, OPERATOR, PageRequest(), flow)).rows
    period = EpochMs(now - HOUR), EpochMs(now)
    (one,) = site.do(lambda services: backfill(services, OPERATOR, shown.trigger.id, *period))
    run_id = one.execution_id
    assert run_id
    assert ann.rested(run_id)["status"] == "FAILED"
    (panel,) = [query for query in queries() if "sum by (trigger)" in query]

    def moved() -> bool:
        return any(
            one["metric"] == {"trigger": "schedule"} and float(one["value"][1]) > 0
            for one in _answer(http, panel)
        )

    until(moved, what="the panel")
    until(lambda: _firing(http) == ["WfcoreScheduledFailure"], what="the alert")
    fixed.touch()
    again = ann.post(f"/api/v1/executions/{run_id}/redrive").json()["executionId"]
    assert ann.rested(again)["status"] == "COMPLETED"


def _firing(http: httpx.Client) -> list[str]:
    return [one["name"] for one in _rules(http) if one["alerts"]]


def _evaluate(http: httpx.Client) -> None:
    def scraped_twice() -> bool:
        try:
            found = _answer(http, "count_over_time(wfcore_store_up[1m])")
        except (httpx.TransportError, json.JSONDecodeError):
            return False
        return bool(found) and float(found[0]["value"][1]) >= 3

    until(scraped_twice, what="scrapes")
    silent = [query for query in queries() if not _answer(http, query)]
    assert silent == []
    groups = http.get("/rules").json()["data"]["groups"]
    found = [one for group in groups for one in group["rules"]]
    assert len(found) == len(rules())
    until(lambda: all(one["health"] == "ok" for one in _rules(http)), what="rules")
    assert _firing(http) == []


def _rules(http: httpx.Client) -> list[dict[str, Any]]:
    groups = http.get("/rules").json()["data"]["groups"]
    return [one for group in groups for one in group["rules"]]
