"""
How long the ways to planted bugs are: paths of scopes beside the traces of shrunk worlds.

`python -m tests.proofs.simulator.lengths` writes the table into docs/simulator.md (long).
"""

from pathlib import Path

import pytest

from tests.proofs.simulator.test_exploration import PLANTS, Plant
from wfcore.testing.simulator import play, shrink_scenario, simulate, violation_kind
from wfcore.testing.simulator.exploration import SCOPES, explore

PAGE = Path(__file__).parents[3] / "docs" / "simulator.md"
BEGIN, END = "<!-- paths -->\n", "<!-- end of paths -->\n"
HEADS = "| Planted bug | Scope | Broken promise | Moves of the path | Lines of the shrunk world |\n"
WORLDS = 2_000


def row(plant: Plant, scope: str) -> str:
    """The row of one bug. Raises `SystemExit` if scope or worlds do not find it."""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        found = explore(SCOPES[scope])
        failures = simulate(range(1, 1 + WORLDS)).failures
        if found.broken is None or not failures:
            raise SystemExit(f"{plant.__name__} is not found")
        small = shrink_scenario(failures[0].scenario, failures[0].broken)
        lines = len(play(small, traced=True).trace)
    kind = violation_kind(found.broken)
    return f"| `{plant.__name__}` | `{scope}` | {kind} | {len(found.path)} | {lines} |\n"


def main() -> None:
    """Write the table into the page."""
    rows = "".join(row(plant, scope) for plant, scope, _ in PLANTS)
    before, _, rest = PAGE.read_text().partition(BEGIN)
    table = f"{HEADS}| --- | --- | --- | --- | --- |\n{rows}"
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
