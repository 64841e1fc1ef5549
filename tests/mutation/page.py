"""What came of the mutants, as tables and explanations in docs/mutation.md."""

import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from mutation.mutants import KILLED, SAME, SURVIVED, UNREACHED, Change, known

EXPLAINED = Path("tests/mutation/explained.toml")
PAGE = Path("docs/mutation.md")
HERE = "<!-- what follows is written by `make mutation` and `make mutation-adapters` -->\n"
HEAD = """
| {} | Mutants | Tried | Killed | Explained | Left | Reached by no test | Killed of tried | Run |
|---|---:|---:|---:|---:|---:|---:|---:|---|"""


def write_page(modules: Sequence[str]) -> None:
    """Write the tables of *modules*, and why survivors may; print those without a reason."""
    tried = [module for module in modules if known(module)["status"]]
    rules = [module for module in tried if module.startswith("wfcore.rules")]
    edges = [module for module in tried if module not in rules]
    missing = Counter(module.rpartition(".")[0] for module in {*modules} - {*tried})
    sections = (("The rules", "Rules", rules), ("The adapters and use cases", "Package", edges))
    parts = [
        *(f"## {title}\n{_table(head, some)}" for title, head, some in sections if some),
        "Modules that were not tried, by package: "
        + (", ".join(f"`{name}` {count}" for name, count in sorted(missing.items())) or "none")
        + ".",
        "## What survives, and why it may\n",
        _reasons({change for module in tried for change in _survivors(module)}),
    ]
    text = "\n\n".join(parts).rstrip()
    PAGE.write_text(f"{PAGE.read_text().partition(HERE)[0]}{HERE}\n{text}\n")
    for module in tried:
        for change in sorted({*_survivors(module)} - explained().keys()):
            print(f"not explained: {change.rule}: {change.line}")


@cache
def explained() -> Mapping[Change, str]:
    """Why each of these may survive."""
    entries = tomllib.loads(EXPLAINED.read_text())["mutant"]
    return {Change(one["rule"], one["line"]): one["why"] for one in entries}


def _survivors(module: str) -> list[Change]:
    return [Change(*one) for one in known(module)["changes"].values()]


def _table(title: str, modules: Iterable[str]) -> str:
    by_package: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        by_package[module.rpartition(".")[0]].append(module)
    total: Counter[str] = Counter()
    rows = [HEAD.format(title)]
    for package, some in sorted(by_package.items()):
        counts = sum(map(_counts, some), Counter())
        days = sorted({known(module)["day"] for module in some})
        rows.append(_row(f"`{package}`", counts, " to ".join(dict.fromkeys((days[0], days[-1])))))
        total += counts
    return "\n".join((*rows, _row("**all**", total, "")))


def _counts(module: str) -> Counter[str]:
    came, survivors = known(module), _survivors(module)
    status = Counter(came["status"].values())
    left = sum(one not in explained() for one in survivors)
    why = status[SURVIVED] - left + status[SAME]
    return Counter(made=came["made"], tried=status.total(), explained=why, left=left) + status


def _row(name: str, counts: Counter[str], days: str) -> str:
    keys = ("made", "tried", KILLED, "explained", "left", UNREACHED)
    share = counts[KILLED] / max(counts["tried"], 1)
    return f"| {name} | {' | '.join(str(counts[key]) for key in keys)} | {share:.1%} | {days} |"


def _reasons(survivors: set[Change]) -> str:
    """Those that survive, by what they have in common."""
    by_reason: dict[str, list[Change]] = defaultdict(list)
    for one in sorted(survivors & explained().keys()):
        by_reason[explained()[one]].append(one)
    text: list[str] = []
    for why, changes in sorted(by_reason.items()):
        text += [f"{why}\n", *(f"- `{one.rule}`: `` {one.line} ``" for one in changes), ""]
    return "\n".join(text)
