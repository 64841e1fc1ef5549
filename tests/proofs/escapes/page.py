"""
`python -m escapes.page`: what each level holds, written into docs from the probes: all of it into
isolation.md, what it lets through into security.md.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.proofs.escapes.probes import GROUPS, PROBES, SHORT, Probe

DOCS = Path(__file__).parents[3] / "docs"
MARKED = re.compile(r"(<!-- probes -->\n).*(<!-- end -->)", re.S)
FEW = 12
"""Where a level lets more through, isolation.md says what."""


def pages() -> dict[Path, str]:
    """The pages as they are to be, with the tables as the probes are today."""
    made = {DOCS / "isolation.md": tables(), DOCS / "security.md": summary()}
    return {page: _filled(page.read_text(), text) for page, text in made.items()}


def _filled(page: str, text: str) -> str:
    return MARKED.sub(lambda found: f"{found[1]}{text}{found[2]}", page)


def summary() -> str:
    """One row for each level: how many attempts it holds, and which it does not."""
    tried = [probe for probe in PROBES.values() if not probe.granted]
    lines = ["| Level | Attempts held | Not held |", "|---|---|---|"]
    for letter, level in SHORT.items():
        missed = [one for one in tried if letter not in one.held]
        said = [f"{one.says}{' ²' * (letter in one.counted)}" for one in missed]
        said += [f"{one.says} ¹" for one in tried if letter == "l" and one.since > 1]
        words = "; ".join(said) if len(said) <= FEW else "the others"
        lines.append(f"| `{level}` | {len(tried) - len(missed)} of {len(tried)} | {words} |")
    return "\n".join(lines) + "\n"


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
    for page, text in pages().items():
        page.write_text(text)
