"""
`python -m bench.profile [--seconds S]`: where the CPU time of an execution goes, by phase.

py-spy samples the bundled server from outside. A sample belongs to the innermost of its frames that
some phase names; the share of a phase, of the CPU time that the kernel counts in a run without
py-spy, is printed as a table in Markdown: µs for each execution.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bench import http

RATE = 500
CLIENTS = 16
OTHER = "event loop, interpreter and the rest"
PHASES: Mapping[str, str] = {
    "wfcore/wire/records": "records: encode and decode",
    "adapters_store/sql/execution_rows": "records: encode and decode",
    "adapters_store/sql/kinds": "records: encode and decode",
    "adapters_store/sql/execution_queries": "records: encode and decode",
    "adapters_store/sqlite/claims": "claims",
    "adapters_store/sqlite/counters": "authentication and quota",
    "adapters_store/": "store: statements, commit, reads",
    "adapters_runtime/expressions": "templates",
    "adapters_runtime/sandbox": "steps: folder, spawner, channel",
    "adapters_runtime/code": "steps: folder, spawner, channel",
    "adapters_runtime/": "worker and scheduler",
    "adapters_http/": "HTTP",
    "wfcore/wire/": "HTTP",
    "uvicorn/": "HTTP",
    "wfcore/rules/auth": "authentication and quota",
    "wfcore/usecases/accounts": "authentication and quota",
    "wfcore/rules/": "rules",
    "wfcore/model/": "rules",
    "wfcore/usecases/": "use cases",
}
"""By the beginning of a file's path: the first entry that fits counts."""


WAITS = ("_worker (concurrent/", "_connection_worker_thread (aiosqlite/", "._next_batch (")
"""Where a thread waits for work, which py-spy takes for work."""


def phase_of(stack: str) -> str:
    """The phase of frames as py-spy writes them, `function (path:line);…`, the innermost last."""
    for frame in reversed(stack.split(";")):
        for path, phase in PHASES.items():
            if path in frame:
                return phase
    return OTHER


def measured(name: str, seconds: float, folder: Path) -> tuple[float, Mapping[str, float]]:
    """CPU µs of an execution of that workflow, and the share of each phase."""
    seeded, out = http.seed(folder), folder / "stacks"
    with http.whole(folder) as server:
        http.executions(server, seeded, name, CLIENTS, 1)
        alone = http.executions(server, seeded, name, CLIENTS, seconds)
        spy = ["py-spy", "record", "--pid", str(server.process.pid), "--rate", str(RATE)]
        spy += ["--duration", str(int(seconds)), "--format", "raw", "--output", str(out)]
        with subprocess.Popen(spy, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as sampler:
            http.executions(server, seeded, name, CLIENTS, seconds)
            _, said = sampler.communicate(timeout=seconds + 60)
        if sampler.returncode:
            raise SystemExit(said.decode())
    found = Counter[str]()
    for line in out.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        if not any(wait in stack.rpartition(";")[2] for wait in WAITS):
            found[phase_of(stack)] += int(count)
    return alone.cpu_ms * 1_000, {one: found[one] / found.total() for one in found}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="for each workflow")
    asked = parser.parse_args()
    found: dict[str, tuple[float, Mapping[str, float]]] = {}
    for name in ("light-1", "delay-1", "bash-1"):
        with tempfile.TemporaryDirectory() as folder:
            found[name] = measured(name, asked.seconds, Path(folder))
    print("| CPU µs for each execution |", " | ".join(found), "|")
    print("|---|" + "---:|" * len(found))
    for phase in (*dict.fromkeys(PHASES.values()), OTHER):
        cells = [f"{cpu * shares.get(phase, 0):,.0f}" for cpu, shares in found.values()]
        print(f"| {phase} |", " | ".join(cells), "|")
    print("| all |", " | ".join(f"{cpu:,.0f}" for cpu, _ in found.values()), "|")
    return 0


if __name__ == "__main__":
    sys.exit(main())
