"""
Explores the scopes of the simulator, with and without the reduction, and writes the table.

This takes long, so `make tables` does not do it: `make scopes`, or `python -m wfdocs.scopes NAME …`
for some scopes alone.
"""

import sys
from pathlib import Path

from wfcore.testing.simulator.exploration import SCOPES, Exploration, explore
from wfdocs.markdown import code, table

PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"
BEGIN, END = "<!-- scopes -->\n", "<!-- end of scopes -->\n"
MOST = 15_000
"""The number of states at which a measurement without the reduction stops."""


def _counts(found: Exploration) -> tuple[str, str]:
    if found.broken is not None:
        raise SystemExit(f"{found.scope.name}: {found.broken}")
    more = "" if found.complete else "over "
    return f"{more}{found.states:,}", f"{more}{found.moves:,}"


def main() -> None:
    """Write the table into the page."""
    rows = []
    for scope in [SCOPES[name] for name in sys.argv[1:] or SCOPES]:
        reduced, whole = explore(scope), explore(scope, reduced=False, most=MOST)
        if not reduced.complete:
            raise SystemExit(f"{scope.name}: {reduced.broken}")
        counts = *_counts(reduced), str(reduced.depth), *_counts(whole)
        rows.append((code(scope.name), scope.about, *counts))
    heads = ("Scope", "What it holds", "States", "Moves", "Depth", "States, unreduced", "Moves")
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table(heads, rows)}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
