"""Peers as their users install them: each into an environment of its own, from the registries."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from bench.peers import HERE

ROOT = HERE.parents[1]
ENVIRONMENTS = HERE / ".venv"


def python_with(name: str, *requirements: str | Path) -> Path:
    """The Python of a fresh environment that holds what was asked for and needed, nothing else."""
    folder = ENVIRONMENTS / name
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *requirements)
    return python


def version_of(python: Path, distribution: str) -> str:
    code = f"from importlib.metadata import version; print(version({distribution!r}))"
    return run(python, "-c", code).stdout.strip()


def npm_package(name: str, package: str) -> tuple[Path, str]:
    """The folder of a package's scope in a fresh `node_modules`, and the package's version."""
    folder = ENVIRONMENTS / name
    shutil.rmtree(folder, ignore_errors=True)
    run(
        "npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", package
    )
    found = folder / "node_modules" / package
    return found.parent, json.loads((found / "package.json").read_text())["version"]


def wheel(folder: Path, tree: Path = ROOT) -> Path:
    """The source *tree* as it would be released."""
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder, tree)
    return next(folder.glob("*.whl"))


def run(*command: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
