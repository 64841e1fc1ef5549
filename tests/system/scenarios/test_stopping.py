"""How a server stops: what goes on meanwhile, how long it takes, and that nothing holds it up."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from wfcore.model.webhook import Webhook
from wfcore.testing.contracts.steps import alive

from . import process as processes
from .flows import REVIEW, SLOW
from .process import until
from .site import ApiCaller, Site, told

A_STOP_S = 60
"""How long a stop may take beyond the drain."""

Begin = Callable[[Mapping[str, str]], Site]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """A site with such settings."""
    with ExitStack() as stack:
        yield lambda settings: stack.enter_context(closing(Site(tmp_path / "data", settings)))


def running(ann: ApiCaller) -> str:
    """An execution whose step runs, for ten minutes if nobody ends it."""
    execution_id = ann.start(ann.workflow(SLOW))
    until(lambda: alive(f"WF_EXECUTION_ID={execution_id}"))
    return execution_id


def ended_within(site: Site, seconds: float) -> int:
    """The exit status, waited for; nobody calls any more."""
    status = site.server.ended(seconds)
    site.http.close()
    return status


@pytest.mark.parametrize("drain", ["0s", "1s"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_step_that_outlasts_the_drain(begin: Begin, drain: str, number: signal.Signals) -> None:
    """It is ended, its execution INTERRUPTED, and the server ends in time with status 0. EX-15."""
    site = begin({"WFCORE_DRAIN": drain, "WFCORE_INTERRUPTED_GRACE": "5m"})
    ann = site.caller()
    execution_id = running(ann)
    site.server.process.send_signal(number)
    assert ended_within(site, int(drain[0]) + A_STOP_S) == 0
    until(lambda: not alive(f"WF_EXECUTION_ID={execution_id}"))
    assert "Traceback" not in site.server.log.read_text()
    site.serve()
    assert ann.view(execution_id)["status"] == "INTERRUPTED"


def test_a_second_signal_ends_it_at_once(begin: Begin) -> None:
    """However long the drain is, a second signal is the end: 128 and the signal's number."""
    site = begin({"WFCORE_DRAIN": "10m"})
    execution_id = running(site.caller())
    site.server.process.send_signal(signal.SIGTERM)
    until(lambda: readiness(site) == 503)
    site.server.process.send_signal(signal.SIGINT)
    assert ended_within(site, A_STOP_S) == 128 + signal.SIGINT
    until(lambda: not alive(f"WF_EXECUTION_ID={execution_id}"))


def readiness(site: Site) -> int:
    return httpx.get(f"{site.server.url}/readyz").status_code


def test_what_goes_on_while_it_drains(begin: Begin) -> None:
    """Polls, cancels and streams do; nothing is started; who waits gets the view in the end."""
    site = begin({"WFCORE_DRAIN": "10m"})
    ann = site.caller()
    flow, waits = ann.workflow(SLOW), ann.workflow(REVIEW)
    hook: Webhook = ann.webhook(flow, api_key_id=ann.key.key.id)
    review, approval = ann.paused(waits)
    execution_id, other = running(ann), running(ann)
    with ThreadPoolExecutor(2) as threads:
        stream = threads.submit(ann.get, f"/api/v1/executions/{execution_id}/events")
        watched = threads.submit(ann.get, f"/api/v1/executions/{review}/events")
        site.server.process.send_signal(signal.SIGTERM)
        until(lambda: readiness(site) == 503)

        for path in (
            f"/api/v1/workflows/{flow}/executions",
            f"/api/v1/executions/{execution_id}/redrive",
            f"/api/webhooks/{hook.id}/trigger",
        ):
            refused = ann.post(path, {})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "2"), path
            assert set(refused.json()) == {"error"}
        assert ann.view(execution_id)["status"] == "RUNNING"
        assert ann.get("/api/v1/executions").json()["total"] == 3
        assert ann.post(f"/api/v1/approvals/{approval}/approve").status_code == 200
        assert ann.post(f"/api/v1/executions/{execution_id}/cancel").status_code == 200
        assert told(stream.result().text)[-1]["event"] == "execution.cancelled"

        waiting = threads.submit(ann.get, f"/api/v1/executions/{review}?wait=60")
        assert ann.post(f"/api/v1/executions/{other}/cancel").status_code == 200
        answer = waiting.result()
        assert (answer.status_code, answer.json()["status"]) == (200, "RUNNING")
        assert watched.result().text.endswith("\n\n")
        assert ended_within(site, A_STOP_S) == 0
    assert "Traceback" not in site.server.log.read_text()
    site.serve()
    assert ann.result(review)["status"] == "COMPLETED"


def test_no_moment_is_a_bad_one(begin: Begin) -> None:
    """Asked to stop while executions are started and end all the time, it ends; none is lost."""
    site = begin({"WFCORE_DRAIN": "0s"})
    ann = site.caller()
    flow = ann.workflow("steps: [{name: a, kind: code, language: bash, source: ':'}]")
    path = f"/api/v1/workflows/{flow}/executions"
    with ThreadPoolExecutor(4) as threads:
        for _ in range(3):
            started: list[str] = []

            def start(started: list[str] = started) -> None:
                while True:
                    try:
                        answer = ann.post(path, {})
                    except httpx.TransportError:
                        return
                    if answer.status_code != 202:
                        return
                    started.append(answer.json()["executionId"])

            starters = [threads.submit(start) for _ in range(4)]
            until(lambda started=started: len(started) > 20)  # type: ignore[misc]
            site.server.process.send_signal(signal.SIGTERM)
            assert ended_within(site, A_STOP_S) == 0
            assert [one.result() for one in starters] == [None] * 4
            site.serve()
            assert {ann.view(one)["executionId"] for one in started} == set(started)


HANGING = """
import asyncio, sys
from adapters_store.sqlite.store import SqliteStore
from wfserver.cli import main

async def close(self):
    {how}

SqliteStore.close = close
sys.exit(main(["serve", "--port", "0"]))
"""


@pytest.mark.parametrize(
    "how",
    [
        "await asyncio.Event().wait()",
        "await asyncio.to_thread(__import__('time').sleep, 600)",
        "__import__('time').sleep(600)",
    ],
)
def test_a_close_that_hangs_is_not_waited_for(tmp_path: Path, how: str) -> None:
    """A hung task, thread or loop ends with status 1, and where it hung is on stderr."""
    program = [sys.executable, "-c", HANGING.format(how=how)]
    env = {**os.environ, "WFCORE_DATA": str(tmp_path / "data"), "WFCORE_DRAIN": "0s"}
    with subprocess.Popen(
        program, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert "serves" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        try:
            _, said = process.communicate(timeout=2 * A_STOP_S)
        finally:
            process.kill()
    assert process.returncode == 1
    assert "Timeout (0:00:05)!" in said


def test_a_loop_that_cannot_begin_is_seen(tmp_path: Path) -> None:
    """
    Where the folder of workers' locks cannot be used, readiness and metrics name the worker,
    SIGTERM ends the server, and it begins as soon as the folder can be used.
    """
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "workers").symlink_to(tmp_path / "nowhere")
    with closing(Site(data, {"WFCORE_DRAIN": "0s"})) as site:
        until(lambda: readiness(site) == 503)
        body = httpx.get(f"{site.server.url}/readyz").json()
        assert body == {"error": "the worker is down (StoreUnavailable)"}
        assert 'wfcore_loop_up{loop="worker"} 0.0' in metrics(site)
        assert 'wfcore_loop_up{loop="scheduler"} 1.0' in metrics(site)
        ann = site.caller()
        execution_id = ann.start(ann.workflow("steps: [{name: a, kind: delay, duration: 1ms}]"))
        site.server.process.send_signal(signal.SIGTERM)
        assert ended_within(site, A_STOP_S) == 0
        assert "worker lock" in site.server.log.read_text()
        site.serve()
        (data / "workers").unlink()
        assert ann.result(execution_id)["status"] == "COMPLETED"
        until(lambda: readiness(site) == 200)
        assert 'wfcore_oldest_due_seconds{loop="worker"} 0.0' in metrics(site)


def metrics(site: Site) -> str:
    return httpx.get(f"{site.server.url}/metrics").text


TAKES_NOTHING = """
import sys
from adapters_store.sqlite.store import SqliteStore
from wfserver.cli import main

async def claim(self, *_, **__):
    return []

SqliteStore.claim = claim
sys.exit(main(["serve", "--port", "0"]))
"""


def test_a_dispatcher_that_takes_nothing_is_seen(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where due executions are left although there is room, readiness is 503 and names it."""
    monkeypatch.setattr(processes, "SERVE", (sys.executable, "-c", TAKES_NOTHING))
    site = begin({"WFCORE_STALLED_AFTER": "1s", "WFCORE_DRAIN": "0s"})
    ann = site.caller()
    assert readiness(site) == 200
    ann.start(ann.workflow(SLOW))
    until(lambda: readiness(site) == 503)
    said = httpx.get(f"{site.server.url}/readyz").json()["error"]
    assert said.startswith("the worker leaves executions that were due ")


def test_a_full_server_is_ready(begin: Begin) -> None:
    """However long executions wait for a place, a server whose places are used is well."""
    site = begin({"WFCORE_STALLED_AFTER": "1s", "WFCORE_CONCURRENCY": "1", "WFCORE_DRAIN": "0s"})
    ann = site.caller()
    running(ann)
    ann.start(ann.workflow(SLOW))

    def waited_s() -> float:
        line = 'wfcore_oldest_due_seconds{loop="worker"} '
        found = [row for row in metrics(site).splitlines() if row.startswith(line)]
        return float(found[0].removeprefix(line))

    until(lambda: waited_s() > 2)
    assert readiness(site) == 200
