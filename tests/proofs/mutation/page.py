"""
What came of the mutants, as tables and explanations in docs/mutation.md.

`python -m tests.proofs.mutation.page` makes them of `tried.json`, which runs write, and
`explained.toml`, which people write.
"""

import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.proofs.mutation.groups import CAREFULLY, TABLE, digest, groups, path_of

TRIED = Path("tests/proofs/mutation/tried.json")
EXPLAINED = Path("tests/proofs/mutation/explained.toml")
PAGE = Path("docs/mutation.md")
HERE = "<!-- what follows is written by `python -m tests.proofs.mutation.page` -->\n"
HEAD = """
| {} | Mutants | Tried | Killed | Too late | Explained | Left | Reached by no test | Noticed |
|---|---:|---:|---:|---:|---:|---:|---:|---:|"""
KEYS = ("made", "tried", "killed", "late", "explained", "left", "unreached")


class Change(NamedTuple):
    """What a mutant changes: the function (below `wfcore.rules`, or in full) and the new line."""

    rule: str
    line: str


def write_page() -> None:
    """Write the tables, and why survivors may; print those without a reason."""
    tried = {name: one for name, one in known().items() if sum(one["status"].values())}
    modules = [module for group in groups() for module in group.modules]
    changed = [one for one in tried if tried[one]["text"] != digest([path_of(one)])]
    rules = [module for module in tried if module.startswith("wfcore.rules")]
    edges = [module for module in tried if module not in rules]
    sections = (("The rules", "Rules", rules), ("The adapters and use cases", "Package", edges))
    parts = [
        *(f"## {title}\n{_table(head, some)}" for title, head, some in sections if some),
        _drawn(),
        f"Modules that were not tried: {_listed({*modules} - {*tried})}. "
        f"Tried, and changed since: {_listed(changed)}.",
        "## What survives, and why it may\n",
        _reasons({change for module in tried for change in _survivors(module)}),
    ]
    text = "\n\n".join(parts).rstrip()
    PAGE.write_text(f"{PAGE.read_text().partition(HERE)[0]}{HERE}\n{text}\n")
    for module in tried:
        for change in sorted(one for one in {*_survivors(module)} if not why(one)):
            print(f"not explained: {change.rule}: {change.line}")


def _drawn() -> str:
    """How samples are drawn, as the table of groups has it."""
    table = tomllib.loads(TABLE.read_text())
    some, seed = table["sample"], table["seed"]
    least = min(group.get("most", some) for group in table["group"])
    return (
        f"Samples are drawn with seed {seed}: {int(some * CAREFULLY)} mutants of each module that "
        f"`groups.toml` tries `carefully`, and {least} to {some} of any other, if it has so many."
    )


def record(found: Mapping[str, Any]) -> None:
    """Write down what came of modules, beside what is known of others that there still are."""
    both = {**known(), **found}
    there = {name: one for name, one in sorted(both.items()) if path_of(name).exists()}
    lines = (f"{json.dumps(name)}: {json.dumps(one)}" for name, one in there.items())
    TRIED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    known.cache_clear()


@cache
def known() -> Mapping[str, Any]:
    """By module: `text` (a digest), `made`, `status` (how many of each), `survived` (changes)."""
    tried: Mapping[str, Any] = json.loads(TRIED.read_text()) if TRIED.exists() else {}
    return tried


def why(change: Change) -> str:
    """Why it may survive; empty if nobody has said so."""
    exact, forms = _explained()
    found = (reason for form, reason in forms if form.search(change.line))
    return exact.get(change) or next(found, "")


@cache
def _explained() -> tuple[Mapping[Change, str], Sequence[tuple[re.Pattern[str], str]]]:
    """Reasons for single changes, and for all of a form."""
    reasons = tomllib.loads(EXPLAINED.read_text())["reason"]
    exact = {Change(*one): reason["why"] for reason in reasons for one in reason.get("mutants", ())}
    forms = [
        (re.compile(one), reason["why"]) for reason in reasons for one in reason.get("forms", ())
    ]
    return exact, forms


def _survivors(module: str) -> list[Change]:
    return [Change(*one) for one in known()[module]["survived"]]


def _listed(modules: Iterable[str]) -> str:
    count = Counter(module.rpartition(".")[0] for module in modules)
    return ", ".join(f"`{name}` {number}" for name, number in sorted(count.items())) or "none"


def _table(title: str, modules: Iterable[str]) -> str:
    by_package: dict[str, Counter[str]] = defaultdict(Counter)
    for module in modules:
        by_package[module.rpartition(".")[0]] += _counts(module)
    rows = [_row(f"`{package}`", counts) for package, counts in sorted(by_package.items())]
    total = _row("**all**", sum(by_package.values(), Counter()))
    return "\n".join((HEAD.format(title), *rows, total))


def _counts(module: str) -> Counter[str]:
    came, survivors = known()[module], _survivors(module)
    status = Counter(came["status"])
    left = sum(not why(one) for one in survivors)
    explained = len(survivors) - left + status["same"]
    return Counter(made=came["made"], tried=status.total(), explained=explained, left=left) + status


def _row(name: str, counts: Counter[str]) -> str:
    share = (counts["killed"] + counts["late"]) / max(counts["tried"], 1)
    return f"| {name} | {' | '.join(str(counts[key]) for key in KEYS)} | {share:.1%} |"


def _reasons(survivors: set[Change]) -> str:
    """Those that survive, by what they have in common."""
    by_reason: dict[str, list[Change]] = defaultdict(list)
    for one in sorted(survivors):
        by_reason[why(one)].append(one)
    by_reason.pop("", None)
    text: list[str] = []
    for reason, changes in sorted(by_reason.items()):
        text += [f"{reason}\n", *(f"- `{one.rule}`: `` {one.line} ``" for one in changes), ""]
    return "\n".join(text)


if __name__ == "__main__":
    write_page()
