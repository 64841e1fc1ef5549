"""
`python -m wfcore.testing.vectors [--check | FOLDER]`: regenerate the vectors.

Without FOLDER the vectors are written into the package itself. With --check nothing is written, and
the exit status is 1 if a file is out of date.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wfcore.testing.vectors import NAMES, keys, mappings, plans, signatures, windows

Answer = Callable[..., Any]
MAKERS = {
    "signatures": signatures,
    "keys": keys,
    "mappings": mappings,
    "windows": windows,
    "plans": plans,
}
"""
The module of each document: `ABOUT`, and `GROUPS` with description, inputs and function of each
group.
"""


def document(name: str) -> Mapping[str, Any]:
    """Return the whole document, computed from the rules."""
    maker = MAKERS[name]
    return {
        "about": maker.ABOUT,
        "groups": {
            group: {"about": about, "cases": _cases(given, answer)}
            for group, (about, given, answer) in maker.GROUPS.items()
        },
    }


def _cases(given: Mapping[str, Any], answer: Answer) -> Sequence[Mapping[str, Any]]:
    return [{"name": name, "given": one, "expect": answer(one)} for name, one in given.items()]


def text(name: str) -> str:
    """Return the text of the document's file: ASCII, which every tool leaves unchanged."""
    return json.dumps(document(name), indent=1) + "\n"


OWN = Path(__file__).parent / "data"


def main(arguments: list[str]) -> int:
    """Write or check every document; return the exit status."""
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
