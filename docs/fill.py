"""
`python docs/fill.py [--check]`: whatever the documentation shows of the tables, written afresh.

The pictures are written to `pictures/`, among them the flow of each example. On a page, a pair of
marks holds a table of states, the fields of definitions (all, or those of one place), or what
`TABLES` has by that name:

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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tools"), str(HERE.parent)]

from bench import cells  # noqa: E402
from wfcore.rules.states import MACHINES  # noqa: E402
from wfcore.wire import drawing  # noqa: E402
from wfdocs import installed, metrics, peers, pictures, states  # noqa: E402
from wfdocs.commands import settings  # noqa: E402
from wfdocs.fields import fields  # noqa: E402
from wfserver.definitions.read import read_text  # noqa: E402

DEPLOY = HERE.parent / "deploy"
EXAMPLES = HERE.parent / "examples" / "workflows"
MARKED = re.compile(r"(<!-- states of (\w+) -->\n).*?(<!-- end -->)", re.S)
FIELDS = re.compile(r"(<!-- fields(?: of (\S+))? -->\n).*?(<!-- end -->)", re.S)
TABLES: Mapping[str, Callable[[], str]] = {
    "caddy": lambda: f"```\n{(DEPLOY / 'caddy/Caddyfile').read_text()}```\n",
    "cells": cells.table,
    "installed": installed.measured,
    "metrics": metrics.table,
    "nginx": lambda: f"```nginx\n{(DEPLOY / 'nginx/wfcore.conf').read_text()}```\n",
    "peers": peers.measured,
    "settings": settings,
    "work": peers.work,
}
WHOLE = re.compile(rf"(<!-- ({'|'.join(TABLES)}) -->\n).*?(<!-- end -->)", re.S)


def filled(text: str) -> str:
    """*text* with today's table between each pair of marks."""
    text = MARKED.sub(lambda m: f"{m[1]}{states.tables(MACHINES[m[2]])}{m[3]}", text)
    text = FIELDS.sub(lambda m: f"{m[1]}{fields(m[2] or '')}{m[3]}", text)
    return WHOLE.sub(lambda m: f"{m[1]}{TABLES[m[2]]()}{m[3]}", text)


def files() -> Iterator[tuple[Path, str]]:
    """Every file that is written from tables, with what it should say."""
    for page in sorted([*HERE.glob("*.md"), *HERE.glob("explanation/*.md")]):
        yield page, filled(page.read_text())
    for name in pictures.PICTURES:
        yield HERE / "pictures" / f"{name}.svg", pictures.svg_of(name)
    for path in sorted(EXAMPLES.glob("*.yaml")):
        if not path.name.endswith(".test.yaml"):
            definition = read_text(str(path)).definition(runs_here=False)
            yield HERE / "pictures" / f"flow-{path.stem}.svg", drawing.svg(definition)


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
