"""
Run by the Python of a peer's own environment: what is installed there, as one line of JSON.

    python inside.py DISTRIBUTION

`installed_mb`: all files of all distributions, compiled modules included, in 10^6 bytes.
`for_tests`: public packages or modules named for tests, with the number of names that they list
(`__all__`, or `import name as name`, also in a stub), or else of their public classes and
functions.
"""

import ast
import json
import sys
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import Distribution, PackagePath, distribution, distributions
from pathlib import Path

NAMED_FOR_TESTS = {"testing", "tests"}
INTERNAL = "bridge"
"""Of Temporal's SDK: how its Python half speaks to the other."""


def main(name: str) -> None:
    found = distribution(name)
    every = list(distributions())
    print(
        json.dumps(
            {
                "version": found.version,
                "python": ".".join(map(str, sys.version_info[:3])),
                "distributions": len(every),
                "installed_mb": round(sum(map(size, every)) / 1e6, 1),
                "py_typed": any(path.name == "py.typed" for path in found.files or ()),
                "for_tests": for_tests(found.files or ()),
                "pytest_plugins": [
                    one.name for one in found.entry_points if one.group == "pytest11"
                ],
            }
        )
    )


def size(one: Distribution) -> int:
    paths = (Path(str(one.locate_file(path))) for path in one.files or ())
    return sum(path.stat().st_size for path in paths if path.is_file())


def for_tests(files: Iterable[PackagePath]) -> dict[str, int]:
    exported: dict[str, int] = {}
    defined: Counter[str] = Counter()
    for path in files:
        parts = path.with_suffix("").parts
        at = next((n for n, part in enumerate(parts) if part in NAMED_FOR_TESTS), None)
        if path.suffix not in (".py", ".pyi") or at is None or INTERNAL in parts:
            continue
        name, tree = ".".join(parts[: at + 1]), ast.parse(Path(str(path.locate())).read_text())
        if path.suffix == ".py":
            defined[name] += sum(is_public(node) for node in tree.body)
        if parts[at + 1 :] in ((), ("__init__",)):
            exported[name] = max(exported.get(name, 0), sum(map(listed, tree.body)))
    counted = {name: exported.get(name) or count for name, count in defined.items()}
    return {name: count for name, count in counted.items() if count}


def is_public(node: ast.stmt) -> bool:
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return isinstance(node, kinds) and not node.name.startswith("_")


def listed(node: ast.stmt) -> int:
    """How many names `__all__ = [...]` has, or an import exports; 0 for anything else."""
    if isinstance(node, ast.ImportFrom):
        return sum(one.asname == one.name for one in node.names)
    is_list = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    return len(getattr(node.value, "elts", ())) if is_list else 0


if __name__ == "__main__":
    main(sys.argv[1])
