"""How fast `wfcore test` plays: the scenarios of the examples, again and again."""

import time
from pathlib import Path

from wfserver.definitions.read import files_in
from wfserver.definitions.scenarios import load

EXAMPLES = Path(__file__).parents[1] / "examples" / "workflows"


def per_second(seconds: float) -> float:
    """Scenarios a second, of files that are read once. All of them must be as expected."""
    files = [load(file) for file in files_in([str(EXAMPLES)])]
    played = [(loaded, *one) for loaded in files for one in loaded.scenarios()]
    count, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds:
        for loaded, line, scenario in played:
            assert not loaded.run(line, scenario).wrong, scenario.name
        count += len(played)
    return count / spent
