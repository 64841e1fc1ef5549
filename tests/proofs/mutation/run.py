"""
Break the code in every small way that `mutmut` knows, one at a time, and run the tests on each.

    python -m tests.proofs.mutation.run [--left] [--known] [--sample=N] [module or package ...]
        [tests/... ...]

`groups.toml` says which modules are mutated, how many mutants of a module are drawn (with a fixed
seed; `--sample` is another number), and which tests must notice them. Packages named here are tried
alone and in this order, tests named here take part alone. What came of a module is kept in
`mutants/` until the module changes: a run that was broken off goes on where it stopped, and
`--left` tries again what is left, with three times as much time. Then the page is written;
`--known` does only this, beside a run.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from tests.proofs.mutation.groups import Group, digest, groups, modules_of
from tests.proofs.mutation.mutants import (
    FOLDER,
    KILLED,
    LATE,
    SAME,
    SURVIVED,
    UNREACHED,
    is_same,
    keep,
    kept,
    known,
    make,
)
from tests.proofs.mutation.page import Change, record, why, write_page

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
IN_MEMORY = "/dev/shm"
"""Where tests have their files, if there is such a folder: they flush much and keep nothing."""
IMPORTED = ("--override-ini=addopts=--import-mode=importlib", "-p", "no:cacheprovider")
LEFT, KNOWN = "--left" in sys.argv, "--known" in sys.argv
SAMPLE = "--sample="


def main() -> int:
    """Try the modules of the table, or those that are named; write the page."""
    tests = [one for one in sys.argv[1:] if one.startswith("tests/")]
    named = [one for one in sys.argv[1:] if not one.startswith(("tests/", "--"))]
    sample = [int(one.removeprefix(SAMPLE)) for one in sys.argv if one.startswith(SAMPLE)]
    chosen = dict.fromkeys(chain.from_iterable(map(modules_of, named)))
    FOLDER.mkdir(exist_ok=True)
    for group in groups():
        if KNOWN:
            record({one: _came(one) for one in group.modules if (FOLDER / f"{one}.json").exists()})
            continue
        group = group._replace(
            modules=[one for one in chosen or group.modules if one in group.modules],
            tests=tests or group.tests,
            most=[group.most, *sample][-1],
            sample=[group.sample, *sample][-1],
        )
        if group.modules:
            _copy()
        if some := [one for one in group.modules if _draw(one, group)]:
            began = time.monotonic()
            _session(some, group)
            print(*map(_told, some), f"{time.monotonic() - began:.0f} s", sep="\n", flush=True)
        record({module: _came(module) for module in group.modules})
    write_page()
    return 0


def _copy() -> None:
    for name in COPIED:
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        copy: Callable[..., Any] = shutil.copytree if Path(name).is_dir() else shutil.copy
        copy(name, FOLDER / name)


def _draw(module: str, group: Group) -> bool:
    """Write the module with its mutants, and which of them to try; whether there are any."""
    came, made = known(module), make(module)
    _forget(came, group)
    drawn = random.Random(group.seed).sample(made, len(made))
    drawn = drawn[: group.draws(module)]  # fewer are some of the same
    new = [one for one in sorted(drawn) if one not in came["status"]]
    came["status"] |= {one: SAME for one in new if is_same(one)}
    left = [one for one, status in came["status"].items() if _is_left(came, one, status)]
    wanted = left if LEFT else [one for one in new if one not in came["status"]]
    keep(module, {**came, "made": len(made), "drawn": wanted})
    return bool(wanted)


def _forget(came: dict[str, Any], group: Group) -> None:
    """What tests that have changed since had to say; which of them killed what is kept."""
    killers = {_file(one) for one in came["killers"].values()}
    taking_part = set(chain.from_iterable(map(_files, group.tests)))
    now = {name: digest([Path(name)]) for name in killers | taking_part}
    changed = {name for name, text in now.items() if came["files"].get(name) != text}
    for mutant, status in [*came["status"].items()]:
        file = _file(came["killers"].get(mutant, ""))
        killed = status in (KILLED, LATE) and file in changed
        left = status in (SURVIVED, UNREACHED) and changed & taking_part and not LEFT
        if killed or left or status == SAME:
            del came["status"][mutant]
    came["files"] |= now


def _file(test: str) -> str:
    return test.partition("::")[0]


def _files(name: str) -> Sequence[str]:
    path = Path(name)
    return [str(one) for one in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]


def _is_left(came: dict[str, Any], mutant: str, status: str) -> bool:
    if status == SURVIVED:
        return not why(Change(*came["changes"][mutant]))
    return status in (UNREACHED, LATE)


def _session(modules: Sequence[str], group: Group) -> None:
    options = ("-q", "--no-header", "--tb=no", "--assert=plain", "--capture=no", *IMPORTED)
    forks = ("-p", "tests.proofs.mutation.forks")
    command = (sys.executable, "-m", "pytest", *options, *forks, *group.tests)
    in_memory = group.in_memory and Path(IN_MEMORY).is_dir()
    folders = IN_MEMORY if in_memory else tempfile.gettempdir()
    more = {
        "TMPDIR": folders,
        "FOLDERS": folders,
        "PYTHONPATH": os.pathsep.join((str(FOLDER / "src"), str(FOLDER))),
        "MUTANTS": str(FOLDER),
        "MUTATED": " ".join(modules),
        "MUTANT_UNDER_TEST": "",
        "REACHED": str(FOLDER / f"{group.modules[0]}.{len(group.modules)}.reached"),
        "LONGEST_S": str(group.seconds * (3 if LEFT else 1)),
        "LATE_S": str(10 if LEFT else 2),
        "TOGETHER": str(1 if LEFT else group.together),
    }
    for server in _server(modules):
        env = {**os.environ, **more, **server}
        subprocess.run(command, cwd=FOLDER, env=env, check=False)


def _server(modules: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """Where a PostgreSQL server runs, if modules are about it: each fork would start its own."""
    if not any(".postgres." in one for one in modules):
        yield {}
        return
    from tests.support.postgres_server import RUNNING, cluster

    for made in cluster():
        yield {RUNNING: str(made.folder)}


def _came(module: str) -> dict[str, Any]:
    came = kept(module)
    status = Counter(came["status"].values())
    left = (one for one, status in came["status"].items() if status == SURVIVED)
    changes = sorted(came["changes"][one] for one in left)
    return {"text": came["text"], "made": came["made"], "status": status, "survived": changes}


def _told(module: str) -> str:
    came = known(module)
    return f"{module}: {came['made']} made, {dict(Counter(came['status'].values()))}"


if __name__ == "__main__":
    sys.exit(main())
