"""
`python -m wfcore.testing.vectors [--check | FOLDER]`: write the vectors afresh.

Without FOLDER into the package itself; with --check nothing is written, and the exit status
is 1 where a file says something else than the rules.
"""

import sys
from pathlib import Path

from wfcore.testing.vectors import NAMES
from wfcore.testing.vectors.making import text

OWN = Path(__file__).parent / "data"


def main(arguments: list[str]) -> int:
    """Write or check every document."""
    check = arguments == ["--check"]
    folder = OWN if check or not arguments else Path(arguments[0])
    stale = []
    for name in NAMES:
        path, said = folder / f"{name}.json", text(name)
        if not path.exists() or path.read_text("utf-8") != said:
            stale.append(name)
            if not check:
                folder.mkdir(parents=True, exist_ok=True)
                path.write_text(said, "utf-8")
    if stale:
        print(f"{'stale' if check else 'written'}: {', '.join(stale)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
