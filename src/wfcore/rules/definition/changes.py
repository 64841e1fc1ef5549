"""
What changed between two definitions: the lines of their texts, and the fields of their documents.

The time to compare lines grows with the square of their number. Texts may have tens of thousands of
lines: then the server would be busy for minutes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from wfcore.model.json import Json, JsonObject

CONTEXT = 3
MOST_COMPARED = 4_000
"""The most lines of two texts, common beginnings and ends excluded, that are compared."""
Diff = Sequence[tuple[str, str]]
Change = tuple[str, int, int, int, int]


def diff(old: str, new: str) -> Diff:
    """
    The differences between two texts, line by line: a mark (`+`, `-`, blank, `@`) and the text.
    Longer texts count as replaced, except for the lines that both texts share at the beginning and
    at the end.
    """
    ours, theirs = old.splitlines(), new.splitlines()
    begin = _alike(ours, theirs)
    end = _alike(ours[begin:][::-1], theirs[begin:][::-1])
    head, tail = max(begin - CONTEXT, 0), max(end - CONTEXT, 0)
    return list(_lines(ours[head : len(ours) - tail], theirs[head : len(theirs) - tail], head))


def _alike(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """The number of lines that both texts share at the beginning."""
    pairs = enumerate(zip(ours, theirs, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(ours), len(theirs)))


def _lines(ours: Sequence[str], theirs: Sequence[str], head: int) -> Iterator[tuple[str, str]]:
    """The lines of the difference. *head*: how many lines of each text come before."""
    for group in _groups(ours, theirs):
        (_, i, _, j, _), (_, _, to_i, _, to_j) = group[0], group[-1]
        yield "@", f"@ -{head + i + 1},{to_i - i} +{head + j + 1},{to_j - j} @@"
        for tag, i, to_i, j, to_j in group:
            if tag == "equal":
                yield from ((" ", line) for line in ours[i:to_i])
            else:
                yield from (("-", line) for line in ours[i:to_i])
                yield from (("+", line) for line in theirs[j:to_j])


def _groups(ours: Sequence[str], theirs: Sequence[str]) -> Iterable[Sequence[Change]]:
    """Changes with the lines around them."""
    if len(ours) + len(theirs) > MOST_COMPARED:
        return [[("replace", 0, len(ours), 0, len(theirs))]]
    return SequenceMatcher(None, ours, theirs).get_grouped_opcodes(CONTEXT)


def changed_fields(old: JsonObject, new: JsonObject) -> Iterator[str]:
    """
    The fields in which two definitions differ, as documents: `budget`, `fetch: source, timeout`. A
    step counts if both definitions have the step.
    """
    for field in dict.fromkeys([*old, *new]):
        if field not in ("steps", "onFailure") and old.get(field) != new.get(field):
            yield field
    steps, were = _steps_of(new), _steps_of(old)
    for name, one in steps.items():
        other = were.get(name, one)
        differ = [f for f in dict.fromkeys([*other, *one]) if other.get(f) != one.get(f)]
        if differ:
            yield f"{name}: {', '.join(differ)}"


_LISTS = ("steps", "branches", "cases", "else")


def _steps_of(document: JsonObject) -> dict[str, JsonObject]:
    """The steps of a written definition by name, each without the lists of steps inside of it."""
    found: dict[str, JsonObject] = {}

    def read(value: Json) -> None:
        if isinstance(value, list | tuple):
            for one in value:
                read(one)
        elif isinstance(value, Mapping):
            if isinstance(value.get("kind"), str):
                found[str(value["name"])] = {k: v for k, v in value.items() if k not in _LISTS}
            for name in _LISTS:
                read(value.get(name))

    read(document.get("steps"))
    read(document.get("onFailure"))
    return found
