"""The page of the command line, and the table of settings."""

import ast
import re
from collections.abc import Iterable, Iterator

import click

from wfdocs.markdown import cell, code, table
from wfdocs.rules import ROOT
from wfserver.cli import cli
from wfserver.settings.table import SETTINGS, Setting

_SETTING = re.compile(r"WFCORE_[A-Z]+(?:_[A-Z]+)*")
_TAKEN_BY_EACH = ("data", "store", "json", "help")


def cli_page() -> str:
    """Every command with its arguments and options."""
    parts = [
        "# Command line\n\n"
        "This page is generated from the program; `wfcore COMMAND --help` prints the same. Every "
        "command accepts `--data DIR`, `--store URL` and `--json`, before or after its own "
        "arguments. Exit status: 0 on success, 1 if the command failed, 2 if it was called "
        "incorrectly.\n"
    ]
    for path, command in commands(cli, click.Context(cli, info_name="wfcore")):
        parts.append(_command(path, command))
    return "\n".join(parts)


def commands(group: click.Group, ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Every command of *group* and its subgroups, with the words that invoke it."""
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        within = click.Context(command, info_name=name, parent=ctx)
        if isinstance(command, click.Group):
            yield from commands(command, within)
        else:
            yield within.command_path, command


def _command(path: str, command: click.Command) -> str:
    ctx = click.Context(command, info_name=path)
    pieces = [one for one in command.collect_usage_pieces(ctx) if one != "[OPTIONS]"]
    rows = [_option(one, ctx) for one in command.params if _is_own(one)]
    options = f"\n{table(('Option', 'What'), rows)}" if rows else ""
    about = cell((command.help or "").replace("\b", ""))
    return f"## {code(' '.join([path, *pieces]))}\n\n{about}\n{options}"


def _is_own(option: click.Parameter) -> bool:
    shown = isinstance(option, click.Option) and not option.hidden
    return shown and option.name not in _TAKEN_BY_EACH


def _option(option: click.Parameter, ctx: click.Context) -> tuple[str, str]:
    record = option.get_help_record(ctx)
    assert record is not None
    return code(record[0]), record[1]


def settings(found: Iterable[Setting] = SETTINGS) -> str:
    """The table of settings, with links as in `docs/`."""
    return table(("Setting", "Default", "What"), map(_setting, found))


def _setting(one: Setting) -> tuple[str, str, str]:
    names = filter(None, (one.name, one.option))
    return ", ".join(map(code, names)), one.default, one.what


def settings_read() -> set[str]:
    """Every `WFCORE_…` name that is a string literal in the program."""
    return {
        text
        for path in (ROOT / "src").rglob("*.py")
        if path != ROOT / "src/wfserver/settings/table.py"
        for node in ast.walk(ast.parse(path.read_text()))
        for text in ([node.value] if isinstance(node, ast.Constant) else [])
        if isinstance(text, str) and _SETTING.fullmatch(text)
    }
