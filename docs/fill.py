"""
`python docs/fill.py [--check]`: whatever the documentation shows of the tables, written afresh.

The pictures are written to `pictures/`. On a page, a pair of marks holds a table of states, the
fields of definitions (all, or those of one place), or what `python -m bench.peers` measured:

    <!-- states of approval -->
    …
    <!-- end -->

    <!-- fields -->
    …
    <!-- end -->

    <!-- peers -->
    …
    <!-- end -->

With --check nothing is written, and the exit status is 1 if a file is stale.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from wfcore.rules.states import MACHINES  # noqa: E402
from wfdocs import peers, pictures, states  # noqa: E402
from wfdocs.fields import fields  # noqa: E402

MARKED = re.compile(r"(<!-- states of (\w+) -->\n).*?(<!-- end -->)", re.S)
FIELDS = re.compile(r"(<!-- fields(?: of (\S+))? -->\n).*?(<!-- end -->)", re.S)
MEASURED = re.compile(r"(<!-- peers -->\n).*?(<!-- end -->)", re.S)


def filled(text: str) -> str:
    """*text* with today's table between each pair of marks."""
    text = MARKED.sub(lambda m: f"{m[1]}{states.tables(MACHINES[m[2]])}{m[3]}", text)
    text = FIELDS.sub(lambda m: f"{m[1]}{fields(m[2] or '')}{m[3]}", text)
    return MEASURED.sub(lambda m: f"{m[1]}{peers.measured()}{m[2]}", text)


def files() -> Iterator[tuple[Path, str]]:
    """Every file that is written from tables, with what it should say."""
    for page in sorted(HERE.glob("*.md")):
        yield page, filled(page.read_text())
    for name in pictures.PICTURES:
        yield HERE / "pictures" / f"{name}.svg", pictures.svg_of(name)


def main(arguments: list[str]) -> int:
    """Write every file, or say which are stale."""
    checking = "--check" in arguments
    stale = [(path, text) for path, text in files() if not _says(path, text)]
    for path, text in stale:
        print(f"{'stale' if checking else 'written'}: {path.relative_to(HERE)}")
        if not checking:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return 1 if stale and checking else 0


def _says(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
