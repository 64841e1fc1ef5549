"""The groups of modules in `groups.toml`, and the tests that must notice their mutants."""

import tomllib
from collections.abc import Collection, Iterable, Iterator, Sequence
from glob import glob
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import NamedTuple

TABLE = Path("tests/proofs/mutation/groups.toml")
CAREFULLY = 2.5


class Group(NamedTuple):
    """
    Modules whose mutants the same tests must notice; of each at most so many are drawn, and
    `CAREFULLY` as many as `sample` of those that are tried `carefully`.
    """

    modules: Sequence[str]
    tests: Sequence[str]
    most: int
    sample: int
    carefully: Collection[str]
    seconds: float
    together: int
    in_memory: bool
    seed: int

    def draws(self, module: str) -> int:
        """How many mutants of *module* are tried."""
        return int(self.sample * CAREFULLY) if module in self.carefully else self.most


def groups() -> Iterator[Group]:
    """Those of the table, each module in the first that names it or its package."""
    table = tomllib.loads(TABLE.read_text())
    taken: set[str] = set()
    carefully = set(chain.from_iterable(map(modules_of, table["carefully"])))
    for group in table["group"]:
        without = set(chain.from_iterable(map(modules_of, group.get("without", ()))))
        found = dict.fromkeys(chain.from_iterable(map(modules_of, group["modules"])))
        chosen = [one for one in found if one not in taken | without]
        taken.update(chosen)
        yield Group(
            chosen,
            [path for one in group["tests"] for path in sorted(glob(one)) or [one]],
            group.get("most", table["sample"]),
            table["sample"],
            carefully,
            group.get("seconds", table["seconds"]),
            group.get("together", 1),
            group.get("in_memory", True),
            table["seed"],
        )


def modules_of(name: str) -> Iterator[str]:
    """The modules of a package, or the module itself."""
    path = path_of(name).with_suffix("")
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path_of(name)]:
        if file.name != "__init__.py":
            yield ".".join(file.relative_to("src").with_suffix("").parts)


def path_of(module: str) -> Path:
    """Its source."""
    return Path("src", *module.split(".")).with_suffix(".py")


def digest(files: Iterable[Path]) -> str:
    """Of the contents of *files*, which need not exist."""
    known = sha256()
    for file in files:
        known.update(file.read_bytes() if file.exists() else b"")
    return known.hexdigest()
