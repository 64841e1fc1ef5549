"""The rules, and the places in code and tests that cite them."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parents[2]
LISTED = re.compile(r"^\| ([A-Z]{2}-\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
CITED = re.compile(r"\b([A-Z]{2})-(\d+)(?: to (?:\1-)?(\d+))?\b")
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


@frozen
class Rule:
    """One promise of the service. `where`: the document with the promise."""

    id: str
    sentence: str
    where: str
    group: str


@frozen
class Place:
    """A citation of a rule: a file, a line, and the function or class around it."""

    path: str
    line: int
    symbol: str

    def __str__(self) -> str:
        name = f" {self.symbol}" if self.symbol else ""
        return f"{self.path}:{self.line}{name}"


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule of docs/rules.md, in its order."""
    text = (ROOT / "docs/rules.md").read_text()
    heads = [(found.start(), found.group(1)) for found in _HEADING.finditer(text)]
    return tuple(
        Rule(found[1], found[2], found[3], [head for at, head in heads if at < found.start()][-1])
        for found in LISTED.finditer(text)
    )


@cache
def places(folder: str) -> dict[str, list[Place]]:
    """The citations below *folder* by rule, ranges spelled out, in the order of the files."""
    found: dict[str, list[Place]] = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        text = path.read_text()
        if not CITED.search(text):
            continue
        name, symbols = str(path.relative_to(ROOT)), _symbols(ast.parse(text))
        for number, line in enumerate(text.splitlines(), 1):
            for id in ids(line):
                found.setdefault(id, []).append(Place(name, number, _around(symbols, number)))
    return found


def ids(text: str) -> Iterator[str]:
    """The rules that *text* cites: `EX-2`, `EX-2 to EX-4`."""
    for kind, first, last in CITED.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield f"{kind}-{number}"


_Span = tuple[int, int, str]


def _symbols(tree: ast.Module) -> list[_Span]:
    """First line, last line and name of every function, class and top-level assignment."""
    spans: list[_Span] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            spans.append((first, node.end_lineno or first, node.name))
    for one in tree.body:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                spans.append((one.lineno, one.end_lineno or one.lineno, name))
    return spans


def _around(symbols: list[_Span], line: int) -> str:
    """The innermost of *symbols* around a line."""
    inside = [one for one in symbols if one[0] <= line <= one[1]]
    return min(inside, key=lambda one: one[1] - one[0])[2] if inside else ""
