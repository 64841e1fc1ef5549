"""
`wfcore simulate`: the service in simulated worlds full of faults, checked for broken promises.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from wfcore.testing.simulator import CampaignSummary
from wfcore.testing.simulator.command import Campaign
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
from wfserver.terminal.output import console


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
    help="Play one kept world or path instead, and show all of its trace.",
)
@click.option(
    "--exhaustive",
    is_flag=False,
    flag_value="list",
    metavar="[SCOPE]",
    help="Visit every state of a small world instead; without SCOPE, list these worlds.",
)
@pass_invocation
def simulate_command(
    invocation: Invocation,
    worlds: int,
    seed: int,
    failures: int,
    keep: Path | None,
    replay: Path | None,
    exhaustive: str | None,
) -> int:
    """
    Play small worlds of nodes that crash, stores that fail and clients that race, in virtual
    time, and judge every change of the store. Exit status 1: a promise was broken.
    """
    campaign = Campaign(worlds, seed, failures, keep, replay, invocation.json, exhaustive)
    return campaign.run(click.echo, _progress)


@contextmanager
def _progress(worlds: int) -> Iterator[Callable[[CampaignSummary], None]]:
    """A function that shows the progress as a bar, if stderr is a terminal."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda summary: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    figures = TextColumn("{task.fields[executions]:,} executions, {task.fields[faults]:,} faults")
    bar = Progress(BarColumn(), MofNCompleteColumn(), figures, TimeElapsedColumn(), console=out)
    with bar:
        task = bar.add_task("", total=worlds, executions=0, faults=0)

        def update(summary: CampaignSummary) -> None:
            if summary.worlds % 10 == 0 or summary.worlds == worlds:
                faults = summary.faults.total()
                bar.update(
                    task,
                    completed=summary.worlds,
                    executions=summary.executions,
                    faults=faults,
                )

        yield update
