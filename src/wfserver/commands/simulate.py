"""`wfcore simulate`: the service in small worlds where everything goes wrong, judged."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from wfcore.errors import InvalidInput
from wfcore.testing.simulator import Failure, Recipe, Summary, play, shrunk, simulate
from wfserver.terminal.invocation import Session
from wfserver.terminal.options import Command, pass_session
from wfserver.terminal.output import console, put_json, put_table

LAST_LINES = 60
"""How much of a trace is shown; a kept world shows all of it."""


@click.command("simulate", cls=Command)
@click.option("--worlds", type=click.IntRange(1), default=500, show_default=True, metavar="N")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    metavar="S",
    help="The first world; the next ones are S+1, S+2, ... A seed is always the same world.",
)
@click.option(
    "--failures",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Stop when so many worlds have broken a promise.",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep each failing world, made small, as a file in this folder.",
)
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Play one kept world instead, and show all of its trace.",
)
@pass_session
def simulate_command(
    session: Session, worlds: int, seed: int, failures: int, keep: Path | None, replay: Path | None
) -> int:
    """
    Play small worlds of nodes that crash, stores that fail and clients that race, in virtual
    time, and judge every change of the store. Exit status 1: a promise was broken.
    """
    if replay is not None:
        return _replay(session, replay)
    started = time.process_time()
    with _progress(worlds) as told:
        summary = simulate(range(seed, seed + worlds), failures, told)
    spent = time.process_time() - started
    found = [_Found(failure) for failure in summary.failures]
    for one in found:
        one.keep(keep)
    if session.json:
        put_json(_document(summary, seed, spent, found))
    else:
        _show(summary, seed, spent)
        for one in found:
            one.show()
    return 1 if found else 0


class _Found:
    """A world that broke a promise, made small."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        self.recipe = shrunk(failure.recipe, failure.broken)
        self.played = play(self.recipe, traced=True)
        self.file: Path | None = None

    def keep(self, folder: Path | None) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self.file = folder / f"world-{self.failure.seed}.json"
            self.file.write_text(self.recipe.to_json())

    def show(self) -> None:
        click.secho(f"\nseed {self.failure.seed}: {self.failure.broken}", fg="red")
        trace = self.played.trace
        if len(trace) > LAST_LINES:
            click.echo(f"... {len(trace) - LAST_LINES} lines before")
        for line in trace[-LAST_LINES:]:
            click.echo(line)
        again = f"--replay {self.file}" if self.file else f"--worlds 1 --seed {self.failure.seed}"
        click.echo(f"again: wfcore simulate {again}")

    def document(self) -> dict[str, Any]:
        return {
            "seed": self.failure.seed,
            "broken": self.failure.broken,
            "file": str(self.file) if self.file else None,
            "trace": list(self.played.trace),
        }


def _replay(session: Session, file: Path) -> int:
    try:
        recipe = Recipe.from_json(file.read_text())
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput("--replay", f"{file} is no kept world: {error!r}") from None
    played = play(recipe, traced=True)
    if session.json:
        put_json({"seed": recipe.seed, "broken": played.broken, "trace": list(played.trace)})
    else:
        click.echo("\n".join(played.trace))
    return 1 if played.broken else 0


@contextmanager
def _progress(worlds: int) -> Iterator[Callable[[Summary], None]]:
    """A bar on the terminal, where there is one."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda summary: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    said = TextColumn("{task.fields[executions]:,} executions, {task.fields[faults]:,} faults")
    bar = Progress(BarColumn(), MofNCompleteColumn(), said, TimeElapsedColumn(), console=out)
    with bar:
        task = bar.add_task("", total=worlds, executions=0, faults=0)

        def told(summary: Summary) -> None:
            if summary.worlds % 10 == 0 or summary.worlds == worlds:
                faults = summary.faults.total()
                bar.update(
                    task,
                    completed=summary.worlds,
                    executions=summary.executions,
                    faults=faults,
                )

        yield told


def _show(summary: Summary, seed: int, spent: float) -> None:
    rate = summary.executions / spent if spent else 0
    hours = summary.virtual_ms / 3_600_000
    click.echo(
        f"{summary.worlds:,} worlds from seed {seed}: {summary.executions:,} executions, "
        f"{summary.turns:,} turns, {hours:.1f} h of virtual time in {spent:.1f} s of CPU "
        f"({rate:,.0f} executions/s)"
    )
    click.echo(
        f"requests: {summary.answered:,} answered, {summary.refused:,} refused, "
        f"{summary.unheard:,} never answered"
    )
    rows = [(kind, f"{times:,}") for kind, times in summary.faults.most_common()]
    put_table(("FAULT", "TIMES"), rows, len(rows))
    coverage = summary.coverage
    click.echo(f"rows of the machines: {coverage.reached} of {len(coverage.rows)} reached")
    for row in coverage.missing:
        click.echo(f"  not reached: {row}")
    if not summary.failures:
        click.secho("every promise was kept", fg="green")


def _document(summary: Summary, seed: int, spent: float, found: list[_Found]) -> dict[str, Any]:
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
