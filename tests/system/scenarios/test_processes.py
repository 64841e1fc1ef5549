"""Several processes of one command: `wfcore serve --processes N`."""

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

from .process import Server, until
from .site import Site

BASH = "steps:\n  - name: greet\n    kind: code\n    language: bash\n    source: echo hello\n"
HOLD = """
steps:
  - name: hold
    kind: code
    language: bash
    source: |
      touch "{shared}/begun"
      until [ -e "{shared}/go" ]; do sleep 0.05; done
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with closing(Site(tmp_path / "data", {"WFCORE_PROCESSES": "2"})) as made:
        yield made


def children(site: Site) -> set[int]:
    """The processes that the command has forked."""
    pid = site.server.process.pid
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def counted(site: Site) -> set[str]:
    """Whose metrics are shown, to whoever asks anew."""
    text = httpx.get(f"{site.server.url}/metrics").text
    return set(re.findall(r'^wfcore_places{process="(\d)"} 4\.0$', text, re.MULTILINE))


def test_both_answer_and_work(site: Site) -> None:
    """Executions begin and end, whichever process accepts, works, or is asked; a start is told of
    once, and any process shows what all have counted."""
    caller = site.caller()
    flow = caller.workflow(BASH)
    ended = []
    for _ in range(20):
        site.http.close()
        site.http = httpx.Client(base_url=site.server.url, timeout=90)
        ended.append(caller.rested(caller.start(flow))["status"])
    assert ended == ["COMPLETED"] * 20
    assert all(until(lambda: counted(site) == {"0", "1"}) for _ in range(10))
    assert len(children(site)) == 2
    note = json.loads((site.data / "server.json").read_text())
    assert note == {"url": site.server.url, "pid": site.server.process.pid}
    assert site.stop() == 0
    assert not (site.data / "server.json").exists()
    assert site.server.log.read_text().count('"stopping"') == 2


def test_one_that_dies_is_begun_anew(site: Site) -> None:
    """After kill -9 of one process the others go on, and another takes its place."""
    caller = site.caller()
    flow = caller.workflow(BASH)
    for killed in (1, 0):
        before = children(site)
        gone = sorted(before)[killed]
        os.kill(gone, signal.SIGKILL)
        new = until(lambda: children(site) - before)  # noqa: B023
        assert gone not in children(site)
        assert len(new) == 1
        until(lambda: counted(site) == {"0", "1"})
        assert caller.rested(caller.start(flow))["status"] == "COMPLETED"
    assert site.server.log.read_text().count("is begun anew") == 2


def test_a_stop_lets_steps_end(site: Site) -> None:
    """At SIGTERM every process drains: a step that runs may end, wherever it runs."""
    caller = site.caller()
    one, other = (caller.start(caller.workflow(HOLD.format(shared=site.shared))) for _ in range(2))
    until((site.shared / "begun").exists)
    site.http.close()
    for pid in (*children(site), site.server.process.pid):  # as systemd does
        os.kill(pid, signal.SIGTERM)
    until(lambda: site.server.log.read_text().count('"stopping"') == 2)
    (site.shared / "go").touch()
    assert site.server.ended() == 0
    site.serve()
    assert [caller.rested(id)["status"] for id in (one, other)] == ["COMPLETED"] * 2


def test_a_second_signal_ends_them_at_once(site: Site) -> None:
    """Whoever asks again does not wait for steps: it is as after kill -9."""
    caller = site.caller()
    id = caller.start(caller.workflow(HOLD.format(shared=site.shared)))
    until((site.shared / "begun").exists)
    site.http.close()
    site.server.process.send_signal(signal.SIGTERM)
    until(lambda: site.server.log.read_text().count('"stopping"') == 2)
    site.server.process.send_signal(signal.SIGINT)
    assert site.server.ended() == 128 + signal.SIGINT
    (site.shared / "go").touch()
    site.serve()
    assert caller.rested(id)["status"] == "INTERRUPTED"


def test_none_outlives_the_command(site: Site) -> None:
    """After kill -9 of the command no process of it is left, and its port is free."""
    before = children(site)
    site.kill()
    for pid in before:
        until(lambda pid=pid: not alive(pid))  # type: ignore[misc]
    site.serve()
    assert len(until(lambda: children(site))) == 2


def alive(pid: int) -> bool:
    """Whether it runs; what nobody has waited for is over."""
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"WFCORE_PROCESSES": "9"}, "WFCORE_PROCESSES: must not be over WFCORE_CONCURRENCY (8)"),
        ({"WFCORE_PROCESSES": "0"}, "WFCORE_PROCESSES: must be a whole number from 1 to 99"),
        ({"WFCORE_STORE": "memory:"}, "must be 1 for a store in memory"),
        ({"WFCORE_AI_PRICES": "nowhere.toml"}, "WFCORE_AI_PRICES"),
    ],
)
def test_what_is_wrong_is_said_once(tmp_path: Path, settings: dict[str, str], says: str) -> None:
    """Settings that cannot be used end the command, with one line that names them."""
    with pytest.raises(RuntimeError, match=re.escape(says)) as refused:
        Server(tmp_path / "data", {"WFCORE_PROCESSES": "2", **settings})
    assert str(refused.value).count(says) == 1
