"""
`python -m bench.peers [NAME …]`: measure all peers, or some, and write `results.json`.

Each is installed, at the version that is current in the package index, into an environment of its
own, `bench/peers/.venv/NAME`. Nothing here is run by the tests. NAME `work`: what servers do side
by side.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench.peers import HERE, PEERS, PROGRAMS, RESULTS, Peer, work
from bench.peers.install import python_with, run, wheel
from bench.peers.program import code_lines, cpu_ms_of_children, foreign_imports, import_cost

WORK = "work"
PATIENCE_S = 180
RUNS = 5


def main(names: list[str]) -> int:
    kept = json.loads(RESULTS.read_text()) if names else {"peers": {}}
    peers = kept["peers"]
    wanted = names or [*PEERS, WORK]
    for name in wanted:
        print(f"{name} …", file=sys.stderr, flush=True)
        if name == WORK:
            kept["work"] = work.measured()
        else:
            peers[name] = measured(name, PEERS[name])
    if set(wanted) & set(PEERS):
        kept |= {
            "date": datetime.now(UTC).date().isoformat(),
            "python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}",
        }
    RESULTS.write_text(json.dumps(kept, indent=2) + "\n")
    return 0 if all(one["continued"] is not False for one in peers.values()) else 1


def measured(name: str, peer: Peer) -> dict[str, Any]:
    """Everything that is known of a peer."""
    python = installed(name, peer)
    source = (PROGRAMS / peer.program).read_text()
    inside = run(python, HERE / "inside.py", peer.distribution).stdout
    cpu_ms, modules = import_cost(python, source)
    return {
        "title": peer.title,
        **json.loads(inside),
        "lines": code_lines(source),
        "import_ms": cpu_ms,
        "import_modules": modules,
        "run_ms": None if peer.needs else run_ms(python, peer),
        "continued": None if peer.needs else continued(python, peer),
        "needs": peer.needs,
        "strict_errors": (errors := strict_errors(python, source)),
        "misspelt_is_found": strict_errors(python, misspelt(source)) > errors,
    }


def installed(name: str, peer: Peer) -> Path:
    """The Python of an environment that holds the peer alone."""
    with tempfile.TemporaryDirectory() as dist:
        return python_with(name, peer.requirement or f"{wheel(Path(dist))}[server]")


def continued(python: Path, peer: Peer) -> bool:
    """Whether a program that was killed in the middle does the rest, once, when it is run again."""
    with tempfile.TemporaryDirectory() as folder:
        killed = program(python, peer, Path(folder), KILLED_BEFORE="world")
        again = program(python, peer, Path(folder))
        said = Path(folder, "said.txt").read_text().split()
    fine = (killed.returncode, again.returncode, said) == (-9, 0, ["hello", "world"])
    if not fine:
        print(f"{peer.title}: {killed}\n{again}\n{said}", file=sys.stderr)
    return fine


def run_ms(python: Path, peer: Peer) -> float:
    """CPU milliseconds of the whole program, from its start to its end, the median of some runs."""
    used = []
    for _ in range(RUNS):
        before = cpu_ms_of_children()
        with tempfile.TemporaryDirectory() as folder:
            program(python, peer, Path(folder)).check_returncode()
        used.append(cpu_ms_of_children() - before)
    return round(median(used), 1)


def program(
    python: Path, peer: Peer, folder: Path, **environment: str
) -> "subprocess.CompletedProcess[str]":
    path = f"{PROGRAMS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    return subprocess.run(
        [python, PROGRAMS / peer.program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def strict_errors(python: Path, source: str) -> int:
    """How many errors `mypy --strict` finds in *source*, in the environment of *python*."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(PROGRAMS / "stage.py", folder)
        Path(folder, "hello.py").write_text(source)
        found = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "hello.py"],
            cwd=folder,
            capture_output=True,
            text=True,
        )
    return sum(": error:" in line for line in found.stdout.splitlines())


def misspelt(source: str) -> str:
    """*source* with one more import, of a name that its library does not have."""
    module = foreign_imports(source)[0].split()[1]
    return f"{source}\nfrom {module} import Misspelt as _\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
