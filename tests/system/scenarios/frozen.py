"""A server that is frozen in the middle of a step, loses its lease, and wakes up with a result."""

import signal
from pathlib import Path
from re import search
from typing import Any

import httpx

from tests.system.scenarios.process import Server, until
from tests.system.scenarios.site import Site
from wfcore.model.access import Principal
from wfcore.model.execution import TriggerSource
from wfcore.usecases.executions.starting import start_execution

LEASE = {"WFCORE_LEASE": "4s"}
GATED = """
steps:
  - name: one
    kind: code
    language: bash
    source: |
      touch "{folder}/begun-$WF_ATTEMPT"
      until [ -e "{folder}/go-$WF_ATTEMPT" ]; do sleep 0.01; done
      touch "{folder}/ended-$WF_ATTEMPT"
      echo "$WF_ATTEMPT"
"""


def attempt_that_counts(site: Site, folder: Path) -> Any:
    """
    Which attempt's output became the step's: 1 is the frozen server's, 2 the one of the server
    that took over. The frozen one hands in its result first.
    """
    ann = site.caller()
    flow = ann.workflow(GATED.format(folder=folder))
    id = site.do(
        lambda services: start_execution(
            services, Principal(ann.account), flow, {}, source=TriggerSource.MANUAL
        )
    ).execution_id
    until((folder / "begun-1").exists)
    frozen = site.server
    frozen.process.send_signal(signal.SIGSTOP)
    site.http.close()
    site.settings = LEASE
    site.serve()
    try:
        until((folder / "begun-2").exists)
        (folder / "go-1").touch()
        until((folder / "ended-1").exists)
        frozen.process.send_signal(signal.SIGCONT)
        until(lambda: _idle(frozen))
        (folder / "go-2").touch()
        return ann.result(id)["output"]
    finally:
        frozen.kill()


def _idle(server: Server) -> bool:
    """Whether the server works on nothing, by its own account."""
    page = httpx.get(f"{server.url}/metrics", timeout=60).text
    return search(r"(?m)^wfcore_executions_running 0(\.0)?$", page) is not None
