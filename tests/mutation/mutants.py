"""Mutants of a module: how they are made, what each changes, and what came of them."""

import ast
import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from difflib import unified_diff
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from mutmut.mutation.file_mutation import mutate_file_contents

FOLDER = Path(os.environ.get("MUTANTS", "mutants")).absolute()
"""A copy of the project with mutated modules, and what came of each."""
KILLED, SURVIVED, UNREACHED, SAME = "killed", "survived", "unreached", "same"
SQL = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|PRAGMA|BEGIN|COMMIT|ROLLBACK|RELEASE|SAVEPOINT)\b"
)
WRAPPED = re.compile(
    r"^(@(?:retried|contextmanager|asynccontextmanager))\n((?:async )?def \w+\()", re.MULTILINE
)


class Change(NamedTuple):
    """What a mutant changes: the function (below `wfcore.rules`, or in full) and the new line."""

    rule: str
    line: str


def make(module: str) -> list[str]:
    """Write *module* with all its mutants into `FOLDER`; their names."""
    text = _path(module).read_text()
    mutated = mutate_file_contents(str(_path(module)), WRAPPED.sub(r"\2", text))
    code = mutated.code
    for wrapper, head in WRAPPED.findall(text):  # `mutmut` leaves out what is decorated
        inner = rf"^((?:@_mutmut_mutated.*\n)?{re.escape(head)})"
        code = re.sub(inner, rf"{wrapper}\n\1", code, count=1, flags=re.MULTILINE)
    (FOLDER / _path(module)).write_text(code)
    return sorted(f"{module}.{name}" for name in mutated.mutant_names)


def diff(mutant: str) -> str:
    """What *mutant* changes in its function, line by line."""
    module, _, name = mutant.rpartition(".")
    functions = _functions(FOLDER / _path(module))
    before = functions[name.rpartition("_mutmut_")[0] + "_mutmut_orig"]
    return "\n".join(list(unified_diff(before, functions[name], "", "", lineterm=""))[2:])


def change(mutant: str) -> Change:
    """What *mutant* changes; of several lines the first."""
    module, _, function = mutant.removeprefix("wfcore.rules.").rpartition(".")
    lines = (line[1:].strip() for line in diff(mutant).splitlines() if line.startswith("+"))
    name = function.removeprefix("x").rpartition("__mutmut_")[0].strip("_")
    return Change(f"{module}.{name.replace('ǁ', '.').strip('.')}", next(lines, ""))


def is_same(mutant: str) -> bool:
    """Whether only the case of a text of SQL is another, which is the same statement."""
    lines = [line for line in diff(mutant).splitlines() if line.startswith(("+", "-"))]
    cased = {line[1:].casefold() for line in lines}
    return len(lines) == 2 and len(cased) == 1 and SQL.search(lines[0]) is not None


def known(module: str) -> dict[str, Any]:
    """
    What came of its mutants as the module is now: `made` (how many there are), `day` of the last
    run, `status` and, of survivors, `changes` by mutant, `drawn` for the next run.
    """
    text = sha256(_path(module).read_bytes()).hexdigest()
    came = kept(module) if (FOLDER / f"{module}.json").exists() else {}
    fresh = {"text": text, "made": 0, "day": "", "status": {}, "changes": {}, "drawn": []}
    return came if came.get("text") == text else fresh


def kept(module: str) -> dict[str, Any]:
    """The same as it was when its mutants were drawn."""
    came: dict[str, Any] = json.loads((FOLDER / f"{module}.json").read_text())
    return came


def keep(module: str, came: Mapping[str, Any]) -> None:
    """Keep what is known of its mutants."""
    day = datetime.now(UTC).date().isoformat()
    (FOLDER / f"{module}.json").write_text(json.dumps({**came, "day": day}, indent=1))


def _path(module: str) -> Path:
    return Path("src", *module.split(".")).with_suffix(".py")


@cache
def _functions(path: Path) -> Mapping[str, Sequence[str]]:
    """The lines of each function in a mutated module, under the name that it had."""
    text = path.read_text()
    lines = text.splitlines()
    found: dict[str, Sequence[str]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "__mutmut_" in node.name:
            name = node.name.rpartition("__mutmut_")[0].rpartition("ǁ")[2].removeprefix("x_")
            first = lines[node.lineno - 1].replace(node.name, name)
            found[node.name] = [first, *lines[node.lineno : node.end_lineno]]
    return found
