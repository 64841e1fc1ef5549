"""The scripts of the console import each other in one direction."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

STATIC = Path(__file__).parents[2] / "src" / "adapters_http" / "console" / "static"
_IMPORT = re.compile(r"""(?:from|import\(?)\s*["']\./([\w-]+\.js)["']""")


def test_no_circle_among_the_scripts() -> None:
    """Whether loaded at once or when first needed: `graphlib` names a circle that it finds."""
    imports = {one.name: set(_IMPORT.findall(one.read_text())) for one in STATIC.glob("*.js")}
    assert sum(map(len, imports.values())) > 20
    TopologicalSorter(imports).prepare()
