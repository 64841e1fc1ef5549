"""
Break the code in every small way that `mutmut` knows, one at a time, and run the tests on each.

    python -m mutation.run [--left] [--most=N] [module or package ...] [tests/... ...]

`groups.toml` says which modules are mutated, how many mutants of a module are drawn (with a fixed
seed; `--most` draws fewer), and which tests must notice them. Packages named here are tried alone,
tests named here take part alone. What came of a module is kept in `mutants/` until the module
changes: a run that was broken off goes on where it stopped, and `--left` tries again what is left,
with three times as much time. Then the page is written.
"""

import os
import random
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from mutation.mutants import FOLDER, SAME, SURVIVED, UNREACHED, Change, is_same, keep, known, make
from mutation.page import explained, write_page

GROUPS = Path("tests/mutation/groups.toml")
COPIED = (
    "src",
    "tests",
    "docs",
    "examples",
    "Makefile",
    "README.md",
    "CHANGELOG.md",
    "pyproject.toml",
)
IMPORTED = ("--override-ini=addopts=--import-mode=importlib", "-p", "no:cacheprovider")
LEFT = "--left" in sys.argv
MOST = "--most="


class Group(NamedTuple):
    """Modules whose mutants the same tests must notice."""

    modules: Sequence[str]
    tests: Sequence[str]
    most: int
    seconds: float
    seed: int


def groups() -> Iterator[Group]:
    """Those of the table, each module in the first that names it or its package."""
    table = tomllib.loads(GROUPS.read_text())
    taken: set[str] = set()
    for group in table["group"]:
        without = set(chain.from_iterable(map(modules_of, group.get("without", ()))))
        found = dict.fromkeys(chain.from_iterable(map(modules_of, group["modules"])))
        chosen = [one for one in found if one not in taken | without]
        taken.update(chosen)
        yield Group(
            chosen,
            group["tests"],
            group.get("most", table["most"]),
            group.get("seconds", table["seconds"]),
            table["seed"],
        )


def modules_of(name: str) -> Iterator[str]:
    """The modules of a package, or the module itself."""
    path = Path("src", *name.split("."))
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]:
        if file.name != "__init__.py":
            yield ".".join(file.relative_to("src").with_suffix("").parts)


def main() -> int:
    """Try the modules of the table, or those that are named; write the page."""
    tests = [one for one in sys.argv[1:] if one.startswith("tests/")]
    named = [one for one in sys.argv[1:] if not one.startswith(("tests/", "--"))]
    fewer = [int(one.removeprefix(MOST)) for one in sys.argv if one.startswith(MOST)]
    chosen = set(chain.from_iterable(map(modules_of, named)))
    FOLDER.mkdir(exist_ok=True)
    for group in groups():
        _copy()
        most = min([group.most, *fewer])
        some = [one for one in group.modules if one in chosen or not named]
        if some := [one for one in some if _draw(one, most, group.seed)]:
            began = time.monotonic()
            _session(some, tests or group.tests, group.seconds * (3 if LEFT else 1))
            print(*map(_told, some), f"{time.monotonic() - began:.0f} s", sep="\n", flush=True)
    write_page([one for group in groups() for one in group.modules])
    return 0


def _copy() -> None:
    for name in COPIED:
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        copy: Callable[..., Any] = shutil.copytree if Path(name).is_dir() else shutil.copy
        copy(name, FOLDER / name)


def _draw(module: str, most: int, seed: int) -> bool:
    """Write the module with its mutants, and which of them to try; whether there are any."""
    came, made = known(module), make(module)
    drawn = random.Random(seed).sample(made, len(made))[:most]  # fewer are some of the same
    new = [one for one in sorted(drawn) if one not in came["status"]]
    came["status"] |= {one: SAME for one in new if is_same(one)}
    left = [one for one, status in came["status"].items() if _is_left(came, one, status)]
    wanted = left if LEFT else [one for one in new if one not in came["status"]]
    if new or wanted:
        keep(module, {**came, "made": len(made), "drawn": wanted})
    return bool(wanted)


def _is_left(came: dict[str, Any], mutant: str, status: str) -> bool:
    if status == SURVIVED:
        return Change(*came["changes"][mutant]) not in explained()
    return status == UNREACHED


def _session(modules: Sequence[str], tests: Sequence[str], seconds: float) -> None:
    options = ("-q", "--no-header", "--tb=no", "--assert=plain", *IMPORTED)
    command = (sys.executable, "-m", "pytest", *options, "-p", "mutation.forks", *tests)
    more = {
        "PYTHONPATH": os.pathsep.join(str(FOLDER / name) for name in ("src", "tests")),
        "MUTANTS": str(FOLDER),
        "MUTATED": " ".join(modules),
        "MUTANT_UNDER_TEST": "",
        "LONGEST_S": str(seconds),
    }
    subprocess.run(command, cwd=FOLDER, env={**os.environ, **more}, check=False)


def _told(module: str) -> str:
    came = known(module)
    return f"{module}: {came['made']} made, {dict(Counter(came['status'].values()))}"


if __name__ == "__main__":
    sys.exit(main())
