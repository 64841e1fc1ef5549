"""
All probes at one level, as real steps of a workflow that a real server runs; and with no
containment at all, as an ordinary program, which shows that each can bite.
"""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.proofs.escapes.probes import PROBES
from tests.proofs.escapes.targets import DISK, FILES, MEMORY, PROCESSES, RELAY, renew, targets
from tests.system.scenarios.process import until
from tests.system.scenarios.site import ApiCaller, Site
from wfcore.testing.contracts.steps import alive


def _together(names: Sequence[str]) -> str:
    """One program of the files of `inside`, which import from one another only to be read."""
    folder = Path(__file__).with_name("inside")
    lines = "".join((folder / f"{name}.py").read_text() for name in names).splitlines()
    return "\n".join(line for line in lines if not line.startswith("from tests.")) + "\n"


INSIDE = _together(("calls", "files", "given", "processes", "kernel", "network", "amounts"))
NEIGHBOUR = 'printf %s "$WF_VAR_secret" > "$TMPDIR/secret"; exec sleep 60'
LONG_S = 600
PATIENCE_S = 300
SETTINGS = {
    "WFCORE_STEP_DISK": str(DISK),
    "WFCORE_STEP_FILES": str(FILES),
    "WFCORE_STEP_PROCESSES": str(PROCESSES),
    "WFCORE_STEP_MEMORY": str(MEMORY),
    "WFCORE_MIN_ISOLATION": "process",
    "WFCORE_HOST": "0.0.0.0",
    "WFCORE_SMTP_URL": f"smtp://user:password@127.0.0.1:{RELAY}?tls=none",
    "WFCORE_MAIL_FROM": "wf@example.org",
    "SERVER_SECRET": "hunter2hunter2",
}
TIMED = ("outlive_timeout", "fork_for_ever")
NOTICED = (
    "flood",
    "fill_memory_together",
    "fill_memory_unread",
    "fill_memory_headless",
    "fill_shared_memory",
    "drop_shared_memory",
    "drop_shared_zeros",
    "fill_page_tables",
    "fill_sockets",
)
"""What ends the step, with an error that says so."""
STATES = ("state_by_link", "state_by_name", "state_by_pipe", "state_by_size")
"""What fails the step, with an error that names the state."""
LEFT = ("leave_orphan", *TIMED)
"""What shows in what is left of it."""

Verdicts = Mapping[str, bool]
"""By `network.name`: whether the probe reached what it tried to."""


ALONE = [probe.name for probe in PROBES.values() if probe.alone]
APART = [probe for probe in PROBES.values() if probe.alone or probe.network or probe.given]
TOGETHER = [probe.name for probe in PROBES.values() if probe not in APART]
GIVEN = [probe.name for probe in PROBES.values() if probe.given]
LISTENING = [probe.name for probe in PROBES.values() if probe.listen]
NETWORKED = [probe.name for probe in PROBES.values() if probe.network and not probe.listen]


def contained(level: str, warm: bool, folder: Path) -> Verdicts:
    """What the probes reach at *level*, in interpreters started before the job or with it."""
    settings = {**SETTINGS, "WFCORE_ISOLATION": level, "WFCORE_WARM": "1" if warm else "0"}
    with ExitStack() as stack:
        aims = stack.enter_context(targets())
        settings["WFCORE_STEP_READS"] = os.path.dirname(aims["shared"])
        site = stack.enter_context(closing(Site(folder / "data", settings)))
        ann = site.caller()
        with _neighbour(site, ann, aims) as known:
            flows = {name: ann.workflow(f"{_DECLARED}\nsteps: {text}") for name, text in _steps()}
            begun = {name: ann.start(flow, targets=known) for name, flow in flows.items()}
            ended = {name: (id, _result(ann, id, name)) for name, id in begun.items()}
    return {name: _reached(ended, name) for name in PROBES}


def loose(folder: Path) -> Verdicts:
    """What the probes reach with no containment: the same text, run beside a server."""
    with ExitStack() as stack:
        aims = stack.enter_context(targets())
        site = stack.enter_context(
            closing(Site(folder / "data", {**SETTINGS, "WFCORE_ISOLATION": "process"}))
        )
        known = stack.enter_context(_neighbour(site, site.caller(), aims))

        def begin(*names: str, **more: int) -> _Plain:
            return stack.enter_context(closing(_Plain(folder, names, {**known, **more})))

        noticed = {name: begin(name) for name in NOTICED}
        said = begin(*TOGETHER).verdicts()
        networked = begin(*NETWORKED).verdicts()
        said |= {f"open.{name}": reached for name, reached in networked.items()}
        said |= {f"listening.{name}": networked[name] for name in LISTENING}
        said |= {name: program.comes_through() for name, program in noticed.items()}
        said |= {name: begin(name).comes_through() for name in STATES}
        given = begin(*GIVEN)
        given.comes_through()
        said |= given.changed()
        left = {name: begin(name, long=6) for name in LEFT}
        said |= {name: program.outlives_itself() for name, program in left.items()}
        return said


@contextmanager
def _neighbour(site: Site, ann: ApiCaller, aims: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Another step, at work while the probes look for it, and the server's part of the targets."""
    step = {"name": "wait", "kind": "code", "language": "bash", "source": NEIGHBOUR}
    flow = ann.workflow(f"steps: {json.dumps([{**step, 'timeout': '60s'}])}")
    execution = ann.start(flow, secret=aims["secret"])
    mark = f"WF_EXECUTION_ID={execution}"
    pid, home = until(lambda: _at_work(mark))[0]  # while it becomes `sleep` it has no mark
    renew(aims["public"])
    yield {
        **aims,
        "neighbour": pid,
        "neighbour_file": f"{home}/secret",
        "data": str(site.data),
        "database": str(site.data / "wfcore.db"),
        "signing_key": str(site.data / "signing.key"),
        "server": site.server.process.pid,
        "server_port": int(site.server.url.rpartition(":")[2]),
        "long": LONG_S,
    }
    ann.post(f"/api/v1/executions/{execution}/cancel")


def _at_work(mark: str) -> list[tuple[int, str]]:
    """The process of the step with that mark and its TMPDIR, once it has written its secret."""
    found = []
    for pid in alive(mark):
        with suppress(OSError):
            environment = Path(f"/proc/{pid}/environ").read_text().split("\0")
            homes = [line[7:] for line in environment if line.startswith("TMPDIR=")]
            found += [(pid, home) for home in homes if os.stat(f"/proc/{pid}/root{home}/secret")]
    return found


_DECLARED = "variables: {targets: {type: object}}\nstate: {kept: {type: string}}"


def _steps() -> Iterator[tuple[str, str]]:
    """One step for all that do not disturb each other, one for each that ends its step."""
    yield "together", _step(TOGETHER)
    yield "networked", _step(NETWORKED, network=True)
    yield "listening", _step(LISTENING, network=True, listen=True)
    yield "given", _given()
    for name in ALONE:
        yield name, _step([name])


def _step(names: list[str], network: bool = False, listen: bool = False) -> str:
    source = INSIDE + _call(names)
    step = {"name": "probe", "kind": "code", "language": "python", "source": source}
    timeout = "1s" if names[0] in TIMED else "30s"
    reach = {"network": network, "listen": listen}
    return json.dumps([{**step, **reach, "timeout": timeout, "continueOnError": True}])


def _given() -> str:
    """A step that leaves files, one that attacks them, and one that judges what became of them."""
    sources = {
        "leave": f"leave_files(os.environ['WF_ARTIFACTS'], {GIVEN!r})",
        "probe": _call(GIVEN),
        "after": f"json.dump(changed_files({GIVEN!r}), open(os.environ['WF_OUTPUT'], 'w'))",
    }
    step = {"kind": "code", "language": "python", "timeout": "30s", "continueOnError": True}
    steps = [{**step, "name": one, "source": INSIDE + text} for one, text in sources.items()]
    return json.dumps([steps[0], *({**one, "files": ["leave"]} for one in steps[1:])])


def _call(names: Sequence[str]) -> str:
    return f"\nrun({[*names]!r}, json.loads(os.environ['WF_VAR_targets']))\n"


def _result(ann: ApiCaller, execution: str, name: str) -> dict[str, Any]:
    until(lambda: ann.rested(execution)["status"] not in ("PENDING", "RUNNING"))
    results: dict[str, Any] = ann.result(execution)["stepResults"]
    assert all(one["status"] == "COMPLETED" for one in results.values()) or name != "given", results
    return dict(results["after" if name == "given" else "probe"])


def _reached(ended: dict[str, tuple[str, dict[str, Any]]], name: str) -> bool:
    probe = PROBES[name]
    if not probe.alone:
        kind = "listening" if probe.listen else "networked" if probe.network else "together"
        kind = "given" if probe.given else kind
        _, result = ended[kind]
        if probe.listen and "listen is refused" in (result["error"] or ""):
            return False
        assert result["status"] == "COMPLETED", result["error"]
        return bool(result["output"][probe.name])
    execution, result = ended[name]
    if name in STATES:
        return "WF_STATE" not in (result["error"] or "")
    if name in NOTICED:
        if result["error"]:
            return not any(word in result["error"] for word in ("stdout", "memory"))
        return bool(result["output"][name])
    with suppress(AssertionError):
        until(lambda: not alive(f"WF_EXECUTION_ID={execution}"), 10)
    return bool(alive(f"WF_EXECUTION_ID={execution}"))


class _Plain:
    """Probes as an ordinary program, with an open descriptor and a secret too many."""

    def __init__(self, folder: Path, names: Sequence[str], known: dict[str, Any]) -> None:
        self._work = folder / f"work-{secrets.token_hex(4)}"
        self._work.mkdir()
        script = self._work / "main.py"
        script.write_text(
            f"{INSIDE}\nrun({[*names]!r}, json.loads(os.environ['WF_VAR_targets']))\n"
        )
        self._mark = f"mark_{secrets.token_hex(8)}"
        left = self._work / "files/leave"
        left.mkdir(parents=True)
        for name in GIVEN:
            (left / name).write_text(name)
        env = {
            **os.environ,
            "WF_FILES": str(self._work / "files"),
            "WF_STATE": str(self._work / "state.json"),
            "WF_VAR_targets": json.dumps(known),
            "WF_OUTPUT": str(self._work / "output"),
            "SERVER_SECRET": "hunter2",
            "MARK": self._mark,
        }
        with (folder / "left-open").open("w") as left_open:
            self._program = subprocess.Popen(
                [sys.executable, str(script)],
                env=env,
                cwd=self._work,
                stdout=subprocess.DEVNULL,
                pass_fds=[left_open.fileno()],
            )

    def verdicts(self) -> dict[str, bool]:
        """What it says of its probes."""
        assert self._program.wait(PATIENCE_S) == 0
        return dict(json.loads((self._work / "output").read_text()))

    def changed(self) -> Verdicts:
        """Which of the files of an earlier step it changed."""
        left = self._work / "files/leave"
        found = {name: left / name for name in GIVEN}
        return {n: not file.exists() or file.read_text() != n for n, file in found.items()}

    def close(self) -> None:
        """End it, and all it left."""
        self._program.kill()
        self._program.wait()
        for pid in alive(self._mark):
            with suppress(ProcessLookupError):
                os.kill(pid, 9)

    def comes_through(self) -> bool:
        """Whether nothing stopped it."""
        return self._program.wait(PATIENCE_S) == 0

    def outlives_itself(self) -> bool:
        """Whether what it started is alive when it is dead."""
        with suppress(AssertionError):
            until(lambda: {*alive(self._mark)} - {self._program.pid}, 30)
        self._program.kill()
        self._program.wait()
        return any(alive(self._mark) for _ in range(10))
