"""
How many mutants of the rules the tests noticed: run after `mutmut run`, in the project's folder.

Writes the table of docs/mutation.md and the explanations of mutants that survive. One that nobody
has explained (`explained.toml`), or an explanation of none, is printed and ends this with status 1.

    python -m mutation.page
"""

import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from mutmut.__main__ import get_diff_for_mutant

RESULTS = Path("mutants/src/wfcore/rules")
EXPLAINED = Path("tests/mutation/explained.toml")
PAGE = Path("docs/mutation.md")
HERE = "<!-- what follows is written by `make mutation` -->\n"
EDGES = ("adapters_", "wfcore.")
"""What `mutation.adapters` tries, and not this."""
NOTICED = {1, 3, 24, 36, -24}
"""Statuses of pytest where a test fails or breaks, and of a mutant that never ends."""


class Change(NamedTuple):
    """What a mutant changes: the rule (`module.function`) and the line as it becomes, stripped."""

    rule: str
    line: str


def results() -> Iterator[tuple[str, str, int]]:
    """Module, mutant and status of each that was tried."""
    for file in sorted(RESULTS.glob("*.meta")):
        for mutant, status in json.loads(file.read_text())["exit_code_by_key"].items():
            if status is not None:
                yield file.name.removesuffix(".py.meta"), mutant, status


def change_of(mutant: str) -> Change:
    """What *mutant* changes; of several lines the first."""
    module, _, function = mutant.removeprefix("wfcore.rules.").partition(".x")
    added = (
        line[1:].strip()
        for line in get_diff_for_mutant(mutant).splitlines()
        if line.startswith("+") and not line.startswith("+++")
    )
    rule = function.rpartition("__mutmut_")[0].strip("_").replace("ǁ", ".").strip(".")
    return Change(f"{module}.{rule}", next(added, ""))


def explained() -> Mapping[Change, str]:
    """Why each of these may survive."""
    entries = tomllib.loads(EXPLAINED.read_text()).get("mutant", [])
    return {Change(one["rule"], one["line"]): one["why"] for one in entries}


def main() -> int:
    """Write the page; say what is left to do."""
    made: Counter[str] = Counter()
    noticed: Counter[str] = Counter()
    survivors: set[Change] = set()
    for module, mutant, status in results():
        made[module] += 1
        if status in NOTICED:
            noticed[module] += 1
        else:
            survivors.add(change_of(mutant))
    known = {one: why for one, why in explained().items() if not one.rule.startswith(EDGES)}
    head = PAGE.read_text().partition(HERE)[0]
    told = sorted(survivors & known.keys())
    PAGE.write_text(head + HERE + table(made, noticed) + "\n" + reasons(told, known))
    for what, changes in (
        ("not explained", survivors - known.keys()),
        ("explained, but noticed", known.keys() - survivors),
    ):
        for one in sorted(changes):
            print(f"{what}: {one.rule}: {one.line}")
    return 1 if survivors ^ known.keys() else 0


def table(made: Counter[str], noticed: Counter[str]) -> str:
    """A row for each module of the rules, and their sum."""
    rows = ["", "| Rules | Mutants | Noticed | |", "|---|---:|---:|---:|"]
    for module, count in sorted(made.items()):
        rows.append(f"| {module} | {count} | {noticed[module]} | {noticed[module] / count:.0%} |")
    share = noticed.total() / max(made.total(), 1)
    rows.append(f"| **all** | **{made.total()}** | **{noticed.total()}** | **{share:.1%}** |")
    return "\n".join(rows) + "\n"


def reasons(told: list[Change], known: Mapping[Change, str]) -> str:
    """Those that survive, by what they have in common."""
    by_reason: dict[str, list[Change]] = {}
    for one in told:
        by_reason.setdefault(known[one], []).append(one)
    text = ["## What survives, and why it may\n"]
    for why, changes in sorted(by_reason.items()):
        text.append(f"{why}\n")
        text += [f"- `{one.rule}`: `` {one.line} ``" for one in changes]
        text.append("")
    return "\n".join(text)


if __name__ == "__main__":
    sys.exit(main())
