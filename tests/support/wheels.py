"""The distributions of this tree, built and installed into fresh environments, offline."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from email.message import Message
from email.parser import HeaderParser
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RELEASE = Path(os.environ["RELEASE"]) if "RELEASE" in os.environ else None
"""Where `make release` has put what is to be checked; None: it is built here."""
_IGNORED = shutil.ignore_patterns("__pycache__", "_build", "reference", ".*")
_KEPT = [*PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"], "pyproject.toml"]
_SCRIPT = """#!{python}
import sys
from {module} import {name}
sys.exit({call}())
"""


def build(folder: Path, age_s: int) -> dict[str, Path]:
    """Wheel and sdist, by ending, of a copy in *folder* whose files are *age_s* old."""
    tree = folder / "tree"
    tree.mkdir(parents=True)
    for name in _KEPT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=_IGNORED)
        else:
            shutil.copy(ROOT / name, tree / name)
    for path in tree.rglob("*"):
        os.utime(path, (1_700_000_000 - age_s, 1_700_000_000 - age_s))
        path.chmod(path.stat().st_mode & ~(0o077 if age_s else 0))
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", tree)
    environment = {**os.environ, "TZ": "Asia/Tokyo" if age_s else "UTC"}
    environment.pop("SOURCE_DATE_EPOCH", None)
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return {path.name.rpartition(".")[2]: path for path in (folder / "dist").iterdir()}


def metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (one for one in opened.namelist() if one.endswith(".dist-info/METADATA"))
        return opened.read(name)


def required(wheel: Path, *extras: str) -> set[str]:
    """The distributions of this environment that *wheel* needs with *extras*, canonical names."""
    headers: Message = HeaderParser().parsestr(metadata(wheel).decode())
    return brought(headers.get_all("Requires-Dist") or [], *extras)


def brought(requirements: Iterable[str], *extras: str) -> set[str]:
    """The same for *requirements* as they are written in metadata."""
    found: set[str] = set()
    needed = map(Requirement, requirements)
    waiting = [(one, extra) for one in needed for extra in extras or ("",)]
    while waiting:
        wanted, of = waiting.pop()
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": of}):
            continue
        name = canonicalize_name(wanted.name)
        if name not in found:
            found.add(name)
            further = map(Requirement, distribution(name).requires or ())
            waiting += [(one, e) for one in further for e in wanted.extras or {""}]
    return found


def install(folder: Path, wheels: Iterable[Path], libraries: Iterable[str]) -> Path:
    """
    The Python of a fresh environment in *folder*: *wheels* as pip installs them, and of this
    environment the distributions *libraries* by links, with their commands.
    """
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", folder), check=True)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    offline = ("install", "--quiet", "--no-index", "--no-deps", "--no-compile")
    if given := [*wheels]:
        subprocess.run((*pip, *offline, *given), check=True, capture_output=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in libraries:
        _link(name, site, python)
    return python


def _link(name: str, site: Path, python: Path) -> None:
    found = distribution(name)
    for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(found.locate_file(top))))
    for command in found.entry_points.select(group="console_scripts"):
        script = python.with_name(command.name)
        first, _, _ = command.attr.partition(".")
        text = _SCRIPT.format(python=python, module=command.module, name=first, call=command.attr)
        script.write_text(text)
        script.chmod(0o755)
