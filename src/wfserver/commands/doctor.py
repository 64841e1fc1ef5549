"""`wfcore doctor`: what works here, and what to install."""

from collections.abc import Mapping

import attrs
import click

from wfcore.model.workflow import Language
from wfcore.ports.runtime import LanguageState
from wfserver.definition import interpreters
from wfserver.health import checks, tried
from wfserver.isolation import COUNTING, isolation_here
from wfserver.terminal.invocation import Session
from wfserver.terminal.options import Command, pass_session
from wfserver.terminal.output import clean, console, put_json


@click.command("doctor", cls=Command)
@click.option("--online", is_flag=True, help="Ask the providers of models whether they answer.")
@click.option("--tell", metavar="EMAIL", help="Send a test over every channel, mail to EMAIL.")
@pass_session
def doctor_command(session: Session, online: bool, tell: str | None) -> int:
    """Check store, languages, isolation, providers. Exit status 1: something essential fails."""
    found = [*checks(session, online=online), *(tried(session, tell) if tell else ())]
    languages = interpreters().states()
    level = isolation_here(session.settings())
    ok = all(check.ok or not check.essential for check in found)
    if session.json:
        put_json(
            {
                "ok": ok,
                "checks": [attrs.asdict(check) for check in found],
                "languages": {name.value: _state(state) for name, state in languages.items()},
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
    _put_languages(languages)
    return 0 if ok else 1


def _state(state: LanguageState) -> dict[str, object]:
    return {
        "available": state.available,
        "path": state.path,
        "version": state.version,
        "cure": state.cure,
    }


def _put_languages(languages: Mapping[Language, LanguageState]) -> None:
    click.echo()
    for name, state in languages.items():
        found = "  ".join(filter(None, (state.version, state.path))) or "what is on PATH"
        _line(state.available, "yellow", name, found if state.available else "missing", state.cure)


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
