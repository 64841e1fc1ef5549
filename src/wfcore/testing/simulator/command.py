"""
A campaign from the command line: the work of `wfcore simulate`, with the core alone.

`python -m wfcore.testing.simulator.command` does the same without the packages of the server.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from attrs import frozen

from wfcore.errors import InvalidInput
from wfcore.testing.simulator.campaign import BrokenWorld, CampaignSummary, simulate
from wfcore.testing.simulator.catalogue import law_of
from wfcore.testing.simulator.exploration import ReplayedPath
from wfcore.testing.simulator.exploration.report import LIST, ScopeReport, replayed
from wfcore.testing.simulator.scenario import WorldScenario
from wfcore.testing.simulator.shrink import shrink_scenario
from wfcore.testing.simulator.trace_summary import summarize_trace
from wfcore.testing.simulator.world import WorldResult, play

Say = Callable[[str], None]
Progress = Callable[[int], AbstractContextManager[Callable[[CampaignSummary], None]]]
"""A function that takes the number of worlds and shows the progress of the campaign."""


def quietly(worlds: int) -> AbstractContextManager[Callable[[CampaignSummary], None]]:
    """A `Progress` that shows nothing."""
    return nullcontext(lambda summary: None)


@frozen
class Campaign:
    """
    A campaign to play: the kept world or path *replay*, or the scope *exhaustive*, or else *worlds*
    worlds from *seed* on.
    """

    worlds: int = 500
    seed: int = 1
    failures: int = 1
    keep: Path | None = None
    replay: Path | None = None
    as_json: bool = False
    exhaustive: str | None = None

    def run(self, say: Say, progress: Progress = quietly) -> int:
        """
        Play the campaign and report to *say*; return the exit status. Raises `InvalidInput` if the
        file *replay* is no kept world or path, and for an unknown scope.
        """
        if self.exhaustive is not None:
            return ScopeReport(self.exhaustive, self.keep, self.as_json).run(say)
        if self.replay is not None:
            return self._replayed(self.replay, say)
        started = time.process_time()
        with progress(self.worlds) as hears:
            seeds = range(self.seed, self.seed + self.worlds)
            summary = simulate(seeds, self.failures, hears)
        spent = time.process_time() - started
        found = [_Found(failure, self.keep) for failure in summary.failures]
        if self.as_json:
            say(json.dumps(_document(summary, self.seed, spent, found), indent=2))
        else:
            lines = [*_lines(summary, self.seed, spent)]
            say("\n".join([*lines, *(line for one in found for line in one.lines())]))
        return 1 if found else 0

    def _replayed(self, file: Path, say: Say) -> int:
        try:
            text = file.read_text()
            kept = json.loads(text)
            played: WorldResult | ReplayedPath
            if "path" in kept:
                played, name = replayed(kept), {"scope": kept["scope"]}
            else:
                scenario = WorldScenario.from_json(text)
                played, name = play(scenario, traced=True), {"seed": scenario.seed}
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput("--replay", f"{file} is no kept world: {error!r}") from None
        if self.as_json:
            say(json.dumps({**name, **_broken(played)}, indent=2))
        else:
            promise = [f"the promise: {law_of(played.broken)}"] if played.broken else []
            say("\n".join([*played.trace, *promise]))
        return 1 if played.broken else 0


def _broken(played: WorldResult | ReplayedPath) -> dict[str, Any]:
    law = law_of(played.broken)
    promise = {"id": law.id, "sentence": law.sentence} if played.broken else None
    return {"broken": played.broken, "promise": promise, "trace": list(played.trace)}


class _Found:
    """A world that broke a promise, shrunk, and kept if there is a folder."""

    def __init__(self, failure: BrokenWorld, folder: Path | None) -> None:
        self.failure = failure
        scenario = shrink_scenario(failure.scenario, failure.broken)
        self.played = play(scenario, traced=True)
        self.file: Path | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self.file = folder / f"world-{failure.seed}.json"
            self.file.write_text(scenario.to_json())

    def lines(self) -> Iterator[str]:
        """The report for people."""
        yield f"\nseed {self.failure.seed}: {self.failure.broken}"
        yield from summarize_trace(self.played.trace, self.played.broken)
        again = f"--replay {self.file}" if self.file else f"--worlds 1 --seed {self.failure.seed}"
        yield f"again: wfcore simulate {again}"

    def document(self) -> dict[str, Any]:
        """The report for programs, with the whole trace."""
        file = str(self.file) if self.file else None
        broken = {**_broken(self.played), "broken": self.failure.broken}
        return {"seed": self.failure.seed, "file": file, **broken}


def _lines(summary: CampaignSummary, seed: int, spent: float) -> Iterator[str]:
    rate = summary.executions / spent if spent else 0
    hours = summary.virtual_ms / 3_600_000
    yield (
        f"{summary.worlds:,} worlds from seed {seed}: {summary.executions:,} executions, "
        f"{summary.turns:,} turns, {hours:.1f} h of virtual time in {spent:.1f} s of CPU "
        f"({rate:,.0f} executions/s)"
    )
    yield (
        f"requests: {summary.answered:,} answered, {summary.refused:,} refused, "
        f"{summary.unheard:,} never answered"
    )
    rows = [("FAULT", "TIMES"), *((k, f"{n:,}") for k, n in summary.faults.most_common())]
    wide = max(len(kind) for kind, _ in rows)
    yield from (f"{kind:<{wide}}  {times}" for kind, times in rows)
    coverage = summary.coverage
    yield f"rows of the machines: {coverage.reached} of {len(coverage.rows)} reached"
    yield from (f"  not reached: {row}" for row in coverage.missing)
    if not summary.failures:
        yield "every promise was kept"


def _document(
    summary: CampaignSummary, seed: int, spent: float, found: list[_Found]
) -> dict[str, Any]:
    return {
        "worlds": summary.worlds,
        "seed": seed,
        "executions": summary.executions,
        "turns": summary.turns,
        "virtualMs": summary.virtual_ms,
        "cpuSeconds": round(spent, 3),
        "executionsPerSecond": round(summary.executions / spent) if spent else None,
        "requests": {
            "answered": summary.answered,
            "refused": summary.refused,
            "unheard": summary.unheard,
        },
        "faults": dict(summary.faults.most_common()),
        "rows": dict(summary.coverage.rows),
        "failures": [one.document() for one in found],
    }


def main(arguments: Sequence[str]) -> int:
    """Run the command without the packages of the server; return the exit status."""
    parser = argparse.ArgumentParser(
        "wfcore simulate", description="The service in worlds where everything goes wrong, judged."
    )
    parser.add_argument("--worlds", type=_at_least(1), default=500, metavar="N")
    parser.add_argument("--seed", type=_at_least(0), default=1, metavar="S", help="the first world")
    parser.add_argument("--failures", type=_at_least(1), default=1, metavar="N")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep failing worlds here")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="play one kept world instead")
    parser.add_argument("--exhaustive", nargs="?", const=LIST, metavar="SCOPE")
    parser.add_argument("--json", action="store_true", dest="as_json")
    try:
        return Campaign(**vars(parser.parse_args(arguments))).run(print)
    except (InvalidInput, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a number from {least} on")
        return int(text)

    return number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
