"""
A short trace for people: the lines about the violation, the faults before it, and counts.

The whole trace is in the JSON of a campaign, and is shown when a kept world is replayed.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from wfcore.testing.simulator.catalogue import law_of

_LINE = re.compile(r"(?P<at> *[0-9,]+)  (?P<text>.*)", re.DOTALL)
_ROUTINE = re.compile(r"[^ ]+: (?:claim|extend) \S+")
"""The lines that a process writes all the time, with or without an effect."""
_ALWAYS = re.compile(r" meets: |: down$|: starts$|SIGTERM|^calm$|^broken: |^every promise")
_ID = re.compile(r"\b[a-z]+_[0-9a-f]+\b")
_ACCEPTED = re.compile(r"accepted (?P<id>\S+) for (?P<tag>\S+)")
LONGEST = 160
MOST = 40


def summarize_trace(trace: Sequence[str], broken: str | None) -> Sequence[str]:
    """
    The lines of *trace* that show how *broken* came about: the lines about the ids in *broken*, and
    all faults. Other lines and repeats are counted. The last line is the promise, with its rule.
    """
    lines = list(_folded(trace, _about(trace, broken)))
    if len(lines) > MOST:
        lines = [*lines[:5], f"{'':>9}  ... {len(lines) - MOST} lines", *lines[5 - MOST :]]
    return [*lines, f"{'':>9}  the promise: {law_of(broken)}"] if broken else lines


def _about(trace: Sequence[str], broken: str | None) -> re.Pattern[str] | None:
    """A pattern for the ids in *broken* and the tags of these ids; None if *broken* has no ids."""
    ids = set(_ID.findall(broken or ""))
    for line in trace:
        found = _ACCEPTED.search(line)
        if found and found["id"] in ids:
            ids.add(found["tag"])
    words = "|".join(map(re.escape, sorted(ids)))
    return re.compile(rf"\b(?:{words})\b") if ids else None


def _folded(trace: Sequence[str], about: re.Pattern[str] | None) -> Iterator[str]:
    """The lines about *about* and the faults, with a count of the lines left out between them."""
    routine: Counter[str] = Counter()
    since, others = "", 0
    for line in trace:
        found = _LINE.fullmatch(line)
        at, text = (found["at"], found["text"]) if found else ("", line)
        if _ROUTINE.fullmatch(text):
            since = since or at
            routine[text] += 1
        elif about is None or about.search(text) or _ALWAYS.search(text):
            yield from _counted(since, routine, others)
            since, others = "", 0
            routine.clear()
            yield f"{at}  {_cut(text)}"
        else:
            others += 1
    yield from _counted(since, routine, others)


def _counted(since: str, routine: Counter[str], others: int) -> Iterator[str]:
    """One line that counts the lines left out between two lines."""
    counts = [text + (f" ({count} times)" if count > 1 else "") for text, count in routine.items()]
    if others:
        counts.append(f"({others} line{'s' * (others > 1)} about others)")
    if counts:
        yield f"{since:>9}  {_cut(', '.join(counts))}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
