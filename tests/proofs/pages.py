"""
The pages of long runs: what `record.jsonl` says, written into docs/chaos.md and docs/record.md.

`python -m tests.proofs.pages` writes the marked parts of these pages.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from tests.proofs.chaos import planted
from tests.proofs.chaos.scenarios import SCENARIOS, scenarios_of
from tests.proofs.chaos.site import STACKS
from tests.proofs.chaos.test_planted import PLANTED
from tests.proofs.record import Run, runs

DOCS = Path(__file__).parents[2] / "docs"
CHAOS = "chaos "
PICTURE = DOCS / "pictures" / "soak.svg"
WIDTH, HEIGHT = 720, 160
_MARKED = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end of \2 -->)", re.S)


@frozen
class Kind:
    """A proof of the record. `command`: runs it again; {seed} and {n} stand for the run's."""

    title: str
    unit: str
    command: str
    says: str


KINDS: Mapping[str, Kind] = {
    "kills": Kind(
        "kill -9 of a server on SQLite",
        "kills",
        "KILL_ROUNDS={n} KILL_SEED={seed} pytest tests/proofs/kills/test_kill_loop.py",
        "everything that was acknowledged stands, nothing is begun twice",
    ),
    "shared kills": Kind(
        "kill -9 of two servers on PostgreSQL",
        "kills",
        "PG_KILL_ROUNDS={n} KILL_SEED={seed} pytest tests/proofs/kills/test_shared_kill_loop.py",
        "the same, and the other server takes over",
    ),
    "worlds": Kind(
        "worlds of the simulator",
        "worlds",
        "wfcore simulate --worlds {n} --seed {seed}",
        "no world breaks a promise",
    ),
    "power cuts": Kind(
        "power cuts",
        "cuts",
        "POWER_CUTS={n} POWER_CUTS_SEED={seed} pytest tests/proofs/durability/test_power_cuts.py",
        "the database opens, whole, with all that was acknowledged",
    ),
    "soak": Kind(
        "a server under load without a pause",
        "minutes",
        "python -m bench.soak {n}",
        "memory comes to rest",
    ),
}


def pages() -> dict[Path, str]:
    """The pages as they are to be, with what the record says today."""
    every = list(runs())
    soak = next((run for run in reversed(every) if run.series), None)
    parts = {
        "stacks": _stacks(),
        "faults": _faults(),
        "planted": _planted(),
        "runs": _chaos_runs(every),
        "record": _record(every),
        "memory": _memory(soak),
    }
    written = {PICTURE: _curve(soak)} if soak else {}
    for name in ("chaos.md", "record.md"):
        text = (DOCS / name).read_text()
        written[DOCS / name] = _MARKED.sub(lambda m: f"{m[1]}\n{parts[m[2]]}\n{m[3]}", text)
    return written


def _stacks() -> str:
    rows = [(f"`{one.name}`", one.about) for one in STACKS.values()]
    return _table(("Stack", "What runs"), rows)


def _faults() -> str:
    rows = []
    for scenario in SCENARIOS:
        where = (f"`{one.name}`" for one in STACKS.values() if scenario in scenarios_of(one))
        rows.append((f"`{scenario.__name__}`", _first(scenario), ", ".join(where)))
    return _table(("Scenario", "What happens", "Stacks"), rows)


def _planted() -> str:
    rows = []
    for one in PLANTED:
        about = LEASES if one.sql else _first(getattr(planted, one.name))
        found = ", ".join(f"*{kind}*" for kind in sorted(one.found_as))
        rows.append((f"`{one.name}`", about, f"`{one.scenario.__name__}`", found))
    return _table(("Mistake", "What it is", "Found in", "As"), rows)


LEASES = "Leases are judged by the clock of the process, not of the database."


def _chaos_runs(every: Iterable[Run]) -> str:
    rows = []
    for run in every:
        if run.proof.startswith(CHAOS):
            done = run.figures
            counts = (f"{done[name]:,.0f}" for name in ("scenarios", "accepted", "attempts"))
            more = (f"{done[name]:,.0f}" for name in ("decisions", "requests"))
            stack, found = run.proof.removeprefix(CHAOS), "; ".join(run.broken) or "nothing"
            length = f"{run.seconds / 60:,.0f} min"
            head = run.date, f"`{run.commit}`", f"`{stack}`", str(run.seed), length
            rows.append((*head, *counts, *more, found))
    heads = ("Date", "Commit", "Stack", "Seed", "Lasted", "Scenarios", "Accepted", "Attempts")
    return _table((*heads, "Decisions", "Requests", "Violations"), rows)


def _record(every: Iterable[Run]) -> str:
    by_kind: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for run in every:
        if run.proof in KINDS:
            by_kind[run.proof, run.date, run.commit].append(run)
    rows = [_row(KINDS[proof], some) for (proof, _, _), some in sorted(by_kind.items())]
    return _table(("Proof", "How much", "Seeds", "Date", "Commit", "Violations", "Again"), rows)


def _row(kind: Kind, some: Sequence[Run]) -> Sequence[str]:
    total: Counter[str] = Counter()
    for run in some:
        total.update(run.figures)
    seeds = sorted({run.seed for run in some})
    shown = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    number = round(total[kind.unit])
    found = [one for run in some for one in run.broken]
    command = kind.command.format(n=number, seed=seeds[0])
    much = f"{number:,} {kind.unit}" + _beside(total, kind.unit)
    first = some[0]
    return (
        f"{kind.title}: {kind.says}",
        much,
        shown,
        first.date,
        f"`{first.commit}`",
        "; ".join(found) or "nothing",
        f"`{command}`",
    )


def _beside(total: Mapping[str, float], unit: str) -> str:
    others = (f"{count:,.0f} {name}" for name, count in sorted(total.items()) if name != unit)
    text = ", ".join(others)
    return f" ({text})" if text else ""


def _memory(soak: Run | None) -> str:
    if soak is None:
        return "No soak is on record.\n"
    return (
        f"![Resident memory of a server under load over {soak.figures['minutes']:.0f} minutes: "
        f"between {min(soak.series):.0f} and {max(soak.series):.0f} MB](pictures/soak.svg)\n"
    )


def _curve(soak: Run) -> str:
    """Memory over time, with an axis at zero, at the highest value, and at the end."""
    series, minutes = soak.series, soak.figures["minutes"]
    top = max(series) * 1.1
    across, down = (WIDTH - 60) / max(len(series) - 1, 1), (HEIGHT - 30) / top
    points = " ".join(
        f"{50 + at * across:.1f},{HEIGHT - 20 - value * down:.1f}"
        for at, value in enumerate(series)
    )
    ground = HEIGHT - 20
    labels = "".join(_label(x, y, text) for x, y, text in _labels(series, minutes, ground, down))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="11" fill="#626a76">'
        f'<path d="M50 10V{ground}H{WIDTH - 10}" fill="none" stroke="#868e9a"/>'
        f'<polyline points="{points}" fill="none" stroke="#2f4fc6" stroke-width="1.5"/>'
        f"{labels}</svg>\n"
    )


def _labels(
    series: Sequence[float], minutes: float, ground: int, down: float
) -> Iterator[tuple[float, float, str]]:
    yield 4, ground, "0 MB"
    yield 4, ground - max(series) * down + 4, f"{max(series):.0f} MB"
    yield WIDTH - 60, HEIGHT - 5, f"{minutes:.0f} min"


def _label(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}">{text}</text>'


def _first(thing: object) -> str:
    return " ".join((thing.__doc__ or "").strip().split("\n\n")[0].split())


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(one)} |" for one in lines) + "\n"


def main() -> None:
    """Write the pages."""
    for path, text in pages().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
