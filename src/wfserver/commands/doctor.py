"""`wfcore doctor`: checks of the machine, the settings and the store, each with a cure."""

from collections.abc import Mapping
from functools import partial

import attrs
import click

from adapters_runtime.sandbox.isolation.config import UID
from wfcore.model.workflow import Language, Runtime
from wfcore.ports.runtime import LanguageState
from wfserver.definitions.read import interpreters
from wfserver.doctor.checks import checks, compared, tried
from wfserver.doctor.isolation import COUNTING, isolation_here
from wfserver.serving.server import require_servable
from wfserver.terminal.bulk import agreed
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
from wfserver.terminal.output import clean, console, put_json, say


@click.command("doctor", cls=Command)
@click.option("--online", is_flag=True, help="Ask the providers of models whether they answer.")
@click.option("--tell", metavar="EMAIL", help="Send a test over every channel, mail to EMAIL.")
@click.option("--artifacts", is_flag=True, help="Compare files and records of artifacts.")
@click.option("--mend", is_flag=True, help="With it, delete files of executions that are gone.")
@click.option("--yes", is_flag=True, help="Without asking.")
@pass_invocation
def doctor_command(
    invocation: Invocation, online: bool, tell: str | None, artifacts: bool, mend: bool, yes: bool
) -> int:
    """Check store, languages, isolation, providers. Exit status 1: something essential fails."""
    if mend and not artifacts:
        raise click.UsageError("--mend goes with --artifacts")
    settings = invocation.settings()
    found = [*checks(settings, invocation.work_in, require_servable, online=online)]
    if tell:
        found += tried(settings, invocation.work_in, tell)
    if artifacts:
        what = "Files of these executions, which are not in the store, go"
        confirm = partial(agreed, what, yes=yes) if mend else None
        found.append(compared(invocation.work_in, confirm))
    level = isolation_here(settings)
    here = interpreters(settings.steps.javascript, public=level.level == UID)
    languages, runtimes = here.states(), here.runtimes()
    ok = all(check.ok or not check.essential for check in found)
    if invocation.json:
        put_json(
            {
                "ok": ok,
                "checks": [attrs.asdict(check) for check in found],
                "languages": {name.value: _state(state) for name, state in languages.items()},
                "runtimes": {name.value: _state(state) for name, state in runtimes.items()},
                "isolation": attrs.asdict(level),
            }
        )
        return 0 if ok else 1
    for check in found:
        bad = "red" if check.essential else "yellow"
        _line(check.ok, bad, check.name, check.detail, check.cure)
    _line(not level.lacks, "yellow", "isolation", level.summary, level.cure)
    counted = level.uncounted is None
    _line(counted, "yellow", "memory", f"of steps: {level.memory}", None if counted else COUNTING)
    for stronger, trouble in level.missed.items():
        _line(False, "yellow", "", f"not {stronger}: {trouble}", None)
    _put_interpreters(languages)
    _put_interpreters(runtimes)
    return 0 if ok else 1


def _state(state: LanguageState) -> dict[str, object]:
    return {
        "available": state.available,
        "path": state.path,
        "version": state.version,
        "cure": state.cure,
    }


def _put_interpreters(
    found: Mapping[Language, LanguageState] | Mapping[Runtime, LanguageState],
) -> None:
    say()
    for name, state in found.items():
        about = "  ".join(filter(None, (state.version, state.path))) or "what is on PATH"
        _line(state.available, "yellow", name, about if state.available else "missing", state.cure)


def _line(ok: bool, bad: str, name: str, detail: str, cure: str | None) -> None:
    from rich.table import Table
    from rich.text import Text

    row = Table.grid(padding=(0, 2, 0, 0))
    row.add_column(no_wrap=True)
    row.add_column(no_wrap=True, min_width=10)
    row.add_column(overflow="fold")
    mark = Text("✔", "green") if ok else Text("✘" if bad == "red" else "!", bad)
    row.add_row(mark, name, Text(clean(detail)))
    if cure and not ok:
        row.add_row("", "", Text(f"→ {cure}", bad))
    console().print(row)
