"""Servers and a NATS server, as processes: plugged in, unplugged, emptied, plugged in again."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.nats_server import Broker, broker
from tests.support.postgres_server import Cluster, prepared
from tests.system.scenarios.process import Server, until
from tests.system.scenarios.site import Site

LONG_S = 60
FLOW = """
steps:
  - {name: greet, kind: code, language: bash, source: "echo hello"}
"""


@pytest.fixture
def own_nats() -> Iterator[Broker]:
    """A server that this test may kill."""
    yield from broker()


def gauge(server: Server, name: str) -> float:
    """The sum of a gauge over its labels."""
    text = httpx.get(f"{server.url}/metrics", timeout=30).text
    return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M)))


def is_ready(server: Server) -> bool:
    return httpx.get(f"{server.url}/readyz", timeout=30).status_code == 200


def test_nats_may_come_and_go(tmp_path: Path, server: Cluster, own_nats: Broker) -> None:
    """
    One server accepts and one works. What is accepted ends, whether NATS delivers it, or is gone,
    or is back with nothing of what it had; both servers stay ready all the time.
    """
    store = prepared(server, "nats_processes")
    common = {
        "WFCORE_STORE": store,
        "WFCORE_ENGINE": own_nats.url,
        "WFCORE_SEAL_KEY_FILE": str(tmp_path / "api" / "seal.key"),
        "WFCORE_WARM": "0",
    }
    site = Site(tmp_path / "api", {**common, "WFCORE_ROLE": "api"}, store)
    works = Server(tmp_path / "worker", {**common, "WFCORE_ROLE": "worker"})
    both = site.server, works
    try:
        caller = site.caller()
        flow = caller.workflow(FLOW)

        def runs() -> None:
            started = [caller.start(flow) for _ in range(3)]
            assert [caller.rested(one)["status"] for one in started] == ["COMPLETED"] * 3
            assert all(map(is_ready, both))

        def connected(up: bool) -> None:
            for one in both:
                until(lambda: gauge(one, "wfcore_dispatch_up") == up, LONG_S)  # noqa: B023

        connected(True)
        runs()
        until(lambda: not gauge(works, "wfcore_dispatch_unsettled"), LONG_S)
        assert gauge(works, "wfcore_dispatch_backlog") == 0
        own_nats.kill()
        connected(False)
        runs()
        own_nats.wipe()
        own_nats.start()
        connected(True)
        runs()
        until(lambda: not gauge(works, "wfcore_dispatch_unsettled"), LONG_S)
    finally:
        works.kill()
        site.close()
