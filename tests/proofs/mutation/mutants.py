"""Mutants of a module: how they are made, what each changes, and what came of them."""

import ast
import json
import os
import re
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Any

from mutmut.mutation.file_mutation import mutate_file_contents

from tests.proofs.mutation.groups import digest, path_of
from tests.proofs.mutation.page import Change

FOLDER = Path(os.environ.get("MUTANTS", "mutants")).absolute()
"""A copy of the project with mutated modules, and what came of each."""
KILLED, LATE, SURVIVED, UNREACHED, SAME = "killed", "late", "survived", "unreached", "same"
SQL = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|WHERE|PRAGMA|BEGIN|COMMIT|ROLLBACK|RELEASE|SAVEPOINT)\b"
)
CAST = re.compile(r"\bcast\((?:\"[^\"]*\"|[\w\[\], |]+), ")
LOG = re.compile(r"(\blog\.(?:debug|info|warning|error|exception|critical)\()\"[^\"]*\"")
ENCODING = re.compile(r"\b(?:en|de)code\(\"[\w-]+\"")
WRAPPED = re.compile(
    r"^(@(?:retried|contextmanager|asynccontextmanager))\n((?:async )?def \w+\()", re.MULTILINE
)
TRAMPOLINE = (
    "from mutmut.mutation.trampoline import wrap_in_trampoline as _mutmut_mutated, MutantDict"
)
ELSEWHERE = f"""try:
    {TRAMPOLINE}
except ImportError:  # an interpreter of steps, which has no mutmut: nothing is mutated there
    MutantDict = dict

    def _mutmut_mutated(*_, **__):
        return lambda function: function"""


def make(module: str) -> list[str]:
    """Write *module* with all its mutants into `FOLDER`; their names."""
    text, kept = digest([path_of(module)]), FOLDER / f"{module}.mutated"
    made = json.loads(kept.read_text()) if kept.exists() else {}
    if made.get("text") != text:  # it takes a second
        made = {"text": text, **_mutated(path_of(module))}
        kept.write_text(json.dumps(made))
    (FOLDER / path_of(module)).write_text(made["code"])
    return [f"{module}.{name}" for name in made["names"]]


def _mutated(path: Path) -> Mapping[str, Any]:
    text = path.read_text()
    mutated = mutate_file_contents(str(path), WRAPPED.sub(r"\2", text))
    code = mutated.code.replace(TRAMPOLINE, ELSEWHERE)
    for wrapper, head in WRAPPED.findall(text):  # `mutmut` leaves out what is decorated
        inner = rf"^((?:@_mutmut_mutated.*\n)?{re.escape(head)})"
        code = re.sub(inner, rf"{wrapper}\n\1", code, count=1, flags=re.MULTILINE)
    return {"code": code, "names": sorted(mutated.mutant_names)}


def diff(mutant: str) -> str:
    """What *mutant* changes in its function, line by line."""
    module, _, name = mutant.rpartition(".")
    functions = _functions(FOLDER / path_of(module))
    before = functions[name.rpartition("_mutmut_")[0] + "_mutmut_orig"]
    return "\n".join(list(unified_diff(before, functions[name], "", "", lineterm=""))[2:])


def change(mutant: str) -> Change:
    """What *mutant* changes; of several lines the first, and `- ` before one that is left out."""
    module, _, function = mutant.removeprefix("wfcore.rules.").rpartition(".")
    lines = diff(mutant).splitlines()
    new = (line[1:].strip() for line in lines if line.startswith("+"))
    old = (f"- {line[1:].strip()}" for line in lines if line.startswith("-"))
    name = function.removeprefix("x").rpartition("__mutmut_")[0].strip("_")
    rule = f"{module}.{name.replace('ǁ', '.').strip('.')}"
    return Change(rule, next(new, "") or next(old))


def is_same(mutant: str) -> bool:
    """
    Whether it does the same for sure, or logs the same in other words: SQL or an encoding in other
    letters, another type for a `cast`.
    """
    lines = diff(mutant).splitlines()
    old = [line[1:] for line in lines if line.startswith("-")]
    new = [line[1:] for line in lines if line.startswith("+")]
    if len(old) == len(new) == 1 and SQL.search(old[0]) and "'" not in old[0]:
        return old[0].casefold() == new[0].casefold()
    return _plain(old) == _plain(new)


def _plain(lines: Sequence[str]) -> Sequence[str]:
    """Without types of casts and texts of the log, and with encodings in small letters."""
    some = (LOG.sub(r"\1", CAST.sub("cast(", line)) for line in lines)
    return [ENCODING.sub(lambda found: found[0].lower(), line) for line in some]


def known(module: str) -> dict[str, Any]:
    """
    What came of its mutants as the module is now: `made` (how many there are), `status` and, of
    survivors, `changes` by mutant, `killers` (tests), `drawn` for the next run; and, as they were
    then, `files` of tests that took part, as digests.
    """
    text = digest([path_of(module)])
    came = kept(module) if (FOLDER / f"{module}.json").exists() else {}
    fresh = {"text": text, "made": 0, "drawn": []}
    killers = came.get("killers", {})  # what killed before most likely does so again
    maps: dict[str, Any] = {"status": {}, "changes": {}, "killers": killers, "files": {}}
    return came if came.get("text") == text else fresh | maps


def kept(module: str) -> dict[str, Any]:
    """The same as it was when its mutants were drawn."""
    came: dict[str, Any] = json.loads((FOLDER / f"{module}.json").read_text())
    return came


def keep(module: str, came: Mapping[str, Any]) -> None:
    """Keep what is known of its mutants, even if the run is broken off."""
    file = FOLDER / f"{module}.json"
    new = file.with_suffix(".new")
    new.write_text(json.dumps(came))
    new.replace(file)


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
