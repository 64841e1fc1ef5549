"""
`python -m escapes.page`: what each level holds, written into docs/isolation.md from the probes.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from escapes.probes import GROUPS, SHORT, Probe

PAGE = Path(__file__).parents[2] / "docs" / "isolation.md"
MARKED = re.compile(r"(<!-- probes -->\n).*(<!-- end -->)", re.S)


def written(text: str) -> str:
    """*text* with the tables as the probes are today."""
    return MARKED.sub(lambda found: f"{found[1]}{tables()}{found[2]}", text)


def tables() -> str:
    """One table for each group of probes."""
    return "\n".join("\n".join(_table(title, probes)) for title, probes in GROUPS.items()) + "\n"


def _table(title: str, probes: tuple[Probe, ...]) -> Iterator[str]:
    levels = list(SHORT.values())
    yield f"## {title}\n"
    yield f"| A step tries to | {' | '.join(levels)} |"
    yield "|---|" + "---|" * len(levels)
    for probe in probes:
        yield f"| {probe.says} | {' | '.join(_verdict(probe, letter) for letter in SHORT)} |"
    yield ""


def _verdict(probe: Probe, letter: str) -> str:
    if probe.granted:
        return "refused" if letter in probe.held else "it may"
    if letter in probe.counted:
        return "held ²"
    if letter not in probe.held:
        return "–"
    return "held ¹" if letter == "l" and probe.since > 1 else "held"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
