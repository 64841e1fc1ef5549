"""
The record of long runs: what was tried, when, with which seed, and what was found.

With `RECORD=1` a proof appends a line of JSON to `record.jsonl` beside this file, whatever it
found; `tests.proofs.pages` makes pages of these lines.
"""

import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from attrs import asdict, field, frozen

FILE = Path(__file__).with_name("record.jsonl")
HERE = Path(__file__).parents[2]
WANTED = bool(os.environ.get("RECORD"))


@frozen
class Run:
    """
    One run of a proof. `proof`: its name in the pages. `figures`: how much was tried, by name.
    `broken`: the violations. `series`: what was measured over time, evenly.
    """

    proof: str
    seed: int
    date: str
    commit: str
    python: str
    seconds: float
    figures: Mapping[str, float]
    broken: Sequence[str] = ()
    series: Sequence[float] = field(factory=list)


def note(
    proof: str,
    seed: int,
    since: float,
    figures: Mapping[str, float],
    broken: Sequence[str] = (),
    series: Sequence[float] = (),
) -> None:
    """Append a run that began at *since* (`time.monotonic`), if runs are recorded."""
    if not WANTED:
        return
    run = Run(
        proof,
        seed,
        datetime.now(UTC).date().isoformat(),
        _commit(),
        platform.python_version(),
        round(monotonic() - since, 1),
        dict(sorted(figures.items())),
        list(broken),
        list(series),
    )
    with FILE.open("a") as file:
        file.write(json.dumps(asdict(run)) + "\n")


def _commit() -> str:
    """The commit that runs, with a mark where files differ from it, the record itself excepted."""

    def said(*words: str) -> str:
        ran = subprocess.run(("git", *words), cwd=HERE, check=True, capture_output=True, text=True)
        return ran.stdout.strip()

    changed = said("status", "--porcelain", "--untracked-files=no", "--", ".", f":!{FILE}")
    return said("rev-parse", "--short=8", "HEAD") + ("-dirty" if changed else "")


def runs(file: Path = FILE) -> Iterator[Run]:
    """All runs of the record, the oldest first."""
    if file.exists():
        yield from (Run(**json.loads(line)) for line in file.read_text().splitlines())
