"""Chains and schedules on real servers: over kill -9, and with several of them on one folder."""

import random
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from wfcore.model.access import OPERATOR, Tier
from wfcore.model.page import PageRequest
from wfcore.model.trigger import Timer
from wfcore.ports.records import ExecutionFilter
from wfcore.time import EpochMs
from wfcore.usecases.executions.executions import list_executions
from wfcore.usecases.services import Services
from wfcore.usecases.workflows.triggers import list_triggers

from .process import Server, until
from .site import ApiCaller, Site

ECHO = "steps: [{name: say, kind: code, language: bash, source: echo done}]"
ALL = PageRequest(1, 200)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site of its own for each test; interrupted executions are given up soon."""
    with closing(Site(tmp_path / "data", {"WFCORE_INTERRUPTED_GRACE": "100ms"})) as made:
        yield made


def chained(ann: ApiCaller, delay: int, **more: Any) -> tuple[str, str]:
    """Ids of a workflow, and of one that starts after it."""
    first = ann.workflow(ECHO)
    rest = "".join(f", {name}: {value}" for name, value in more.items())
    chain = f"{{kind: DELAYED_COMPLETION, workflow: {first}, delaySeconds: {delay}{rest}}}"
    return first, ann.workflow(f"{ECHO}\ntriggers: [{chain}]")


def executions(ann: ApiCaller, workflow_id: str, status: str = "") -> list[dict[str, Any]]:
    query = f"workflowId={workflow_id}&size=200&status={status}"
    answer = ann.get(f"/api/v1/executions?{query}")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def causes(ann: ApiCaller, runs: list[dict[str, Any]]) -> list[str]:
    """The completions that executions say they were started for."""
    first = [ann.events(run["executionId"])[0] for run in runs]
    return sorted(event["data"]["data"]["completedExecutionId"] for event in first)


def test_a_chain_outlives_its_server(site: Site, ann: ApiCaller) -> None:
    """Killed between completion and start, the next server starts it after its delay. CH-1."""
    first, then = chained(ann, 4)
    cause = ann.start(first)
    assert ann.result(cause)["status"] == "COMPLETED"
    site.kill()
    assert not executions_in_store(site, then)
    site.serve()
    until(lambda: executions(ann, then, "COMPLETED"))
    (run,) = executions(ann, then)
    assert run["triggerSource"] == "delayed_completion"
    assert run["startedAt"] >= ann.view(cause)["completedAt"] + 4_000
    assert causes(ann, [run]) == [cause]


def executions_in_store(site: Site, workflow_id: str) -> int:
    async def count(services: Services) -> int:
        return (
            await list_executions(services, OPERATOR, ALL, ExecutionFilter(workflow_id=workflow_id))
        ).total

    return site.do(count)


def test_every_completion_starts_once_over_many_kills(site: Site, ann: ApiCaller) -> None:
    """
    However often the server is killed, in the middle of completing and of firing: as many
    chained executions as completions, one for each. CH-1.
    """
    first, then = chained(ann, 0)
    chance = random.Random(7)
    for kills in range(1, 20):
        for _ in range(8):
            ann.start(first)
        time.sleep(chance.uniform(0, 0.3))  # when the kill comes: any moment is good
        site.kill()
        site.serve()
        if kills >= 5 and len(executions(ann, first, "COMPLETED")) > 10:
            break
    until(lambda: _at_rest(ann, first) and _at_rest(ann, then))
    completed = sorted(run["executionId"] for run in executions(ann, first, "COMPLETED"))
    assert len(completed) > 10, "too few completions to prove anything"
    until(lambda: len(executions(ann, then)) >= len(completed))
    assert causes(ann, executions(ann, then)) == completed


def _at_rest(ann: ApiCaller, workflow_id: str) -> bool:
    ended = {"COMPLETED", "FAILED", "CANCELLED"}
    return all(run["status"] in ended for run in executions(ann, workflow_id))


def test_two_servers_start_one_execution_for_each_instant(site: Site) -> None:
    """Timers that fall due under the eyes of two servers fire once each. SH-1."""
    ann = site.caller(Tier.ENTERPRISE)  # polls until it shows
    flow = ann.workflow(f"{ECHO}\ntriggers: [{{kind: SCHEDULE, cron: '0 0 1 1 *'}}]")
    second = Server(site.data, site.settings)
    try:
        for number in range(5):
            due_at = site.do(_plant)
            until(lambda n=number: len(executions(ann, flow)) > n)
            runs = executions(ann, flow)
            assert len(runs) == number + 1
            first = ann.events(runs[0]["executionId"])[0]["data"]["data"]
            assert first["scheduledFor"] == due_at
    finally:
        second.kill()
    assert {run["triggerSource"] for run in executions(ann, flow)} == {"schedule"}
    (one,) = ann.get(f"/api/v1/workflows/{flow}").json()["triggers"]
    assert (one["kind"], one["state"], one["runs"]) == ("SCHEDULE", "ACTIVE", 5)
    assert one["nextRunAt"] > time.time() * 1_000


async def _plant(services: Services) -> int:
    """Let the only schedule fall due in a moment, as if its next instant were then."""
    (shown,) = (await list_triggers(services, OPERATOR, ALL)).rows
    due_at = EpochMs(services.clock.now() + 300)
    async with services.store.unit() as unit:
        (timer,) = await unit.timers.due(EpochMs(10**14), 9)
        unit.delete(timer)
        unit.put(Timer(f"{shown.trigger.id}@{due_at}", shown.trigger.id, due_at))
        await unit.commit()
    return due_at


def test_a_chain_shows_in_the_api(site: Site, ann: ApiCaller) -> None:
    """The workflow says what starts it, when next, how often it did, and when it is done. CH-3."""
    first, then = chained(ann, 3_600, maxRuns=1)
    ann.result(ann.start(first))
    (one,) = ann.get(f"/api/v1/workflows/{then}").json()["triggers"]
    assert one["definition"] == {
        "kind": "DELAYED_COMPLETION",
        "workflow": first,
        "delaySeconds": 3_600,
        "maxRuns": 1,
    }
    assert (one["state"], one["runs"]) == ("ACTIVE", 0)
    assert one["nextRunAt"] > time.time() * 1_000 + 3_000_000
    listed = ann.get("/api/v1/workflows").json()["items"]
    assert [len(item["triggers"]) for item in listed if item["id"] == then] == [1]
