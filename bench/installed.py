"""
`python -m bench.installed [COMMIT]`: what an installation weighs, and what its imports cost.

The wheels of this tree, and of *COMMIT* before it, are installed from the package index into
environments of their own, all in one run: base, `[sqlite]` and `[server]`. Writes
`installed.json`; `make tables` puts it on the page about embedding.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench.peers import HERE as PEERS
from bench.peers.install import ROOT, python_with, run, wheel
from bench.peers.program import cpu_ms_of_children

RESULTS = Path(__file__).with_name("installed.json")
EXTRAS = ("", "sqlite", "server")
ENGINE = "from wfcore import Engine, FunctionRunner, in_memory"
PROGRAMS = {
    "a bare interpreter": "pass",
    "attrs": "import attrs",
    "asyncio and attrs": "import asyncio, attrs",
    "`import wfcore`": "import wfcore",
    "one rule, `windows`": "from wfcore import windows",
    "`Engine, in_memory, FunctionRunner`": ENGINE,
    "an engine in memory, from start to end": f"""
import asyncio
{ENGINE}
async def work():
    async with Engine(in_memory(), FunctionRunner()): pass
asyncio.run(work())""",
}
"""Programs by what a reader calls them, each in a process of its own."""
TURNS = 9


def main(commits: list[str]) -> int:
    busy = os.getloadavg()[1]
    with tempfile.TemporaryDirectory() as folder:
        trees = {one: checkout(one, Path(folder)) for one in commits} | {"now": ROOT}
        environments = {name: installed(name, tree) for name, tree in trees.items()}
        found = {
            "date": datetime.now(UTC).date().isoformat(),
            "python": platform.python_version(),
            "machine": f"{platform.system()} {platform.machine()}",
            "busy": round(busy, 1),
            "installations": {name: sizes(of) for name, of in environments.items()},
            "programs": programs({name: of[""] for name, of in environments.items()}),
        }
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    print(RESULTS.read_text())
    return 0


def checkout(commit: str, folder: Path) -> Path:
    """The files of *commit*, below *folder*."""
    tree = folder / "before"
    tree.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", tree], input=archive.stdout, check=True)
    return tree


def installed(name: str, tree: Path) -> dict[str, Path]:
    """The Python of an environment for each extra that the wheel of *tree* has."""
    with tempfile.TemporaryDirectory() as dist:
        built = wheel(Path(dist), tree)
        has = (tree / "pyproject.toml").read_text()
        return {
            extra: python_with(f"{name}-{extra or 'base'}", f"{built}[{extra}]" if extra else built)
            for extra in EXTRAS
            if not extra or f"\n{extra} = [" in has
        }


def sizes(environments: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """The packages and the 10^6 bytes of each environment, compiled modules included."""
    return {
        extra: json.loads(run(python, PEERS / "inside.py", "wfcore").stdout)
        for extra, python in environments.items()
    }


def programs(pythons: dict[str, Path]) -> dict[str, dict[str, dict[str, float]]]:
    """The CPU time and the modules of each program on each of *pythons*, measured in turns."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    bare = {name: modules(python, "pass") for name, python in pythons.items()}
    for what, code in PROGRAMS.items():
        turns = [
            {name: cpu_ms(python, code) for name, python in pythons.items()} for _ in "·" * TURNS
        ]
        found[what] = {
            name: {
                "cpu_ms": round(median(turn[name] for turn in turns), 1),
                "modules": modules(python, code) - bare[name],
            }
            for name, python in pythons.items()
        }
    return found


def cpu_ms(python: Path, code: str) -> float:
    """The CPU time of a process that runs *code*, with the start of the interpreter, in ms."""
    before = cpu_ms_of_children()
    subprocess.run([python, "-I", "-c", code], check=True)
    return cpu_ms_of_children() - before


def modules(python: Path, code: str) -> int:
    """The number of modules that a process has loaded after *code*."""
    return int(run(python, "-I", "-c", f"{code}\nimport sys; print(len(sys.modules))").stdout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
