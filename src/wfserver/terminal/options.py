"""
The classes of all commands, their shared options, and the types of arguments.

`--json`, `--data`, `--store`, `--url` and `--settings` may stand before or after the other
arguments of a command.
"""

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

import click

from wfserver.terminal.invocation import Invocation

_LONG_CHOICE = 60

C = TypeVar("C", bound=Callable[..., Any])

pass_invocation = click.make_pass_decorator(Invocation)
"""Passes the `Invocation` to a command as its first argument."""


def _note(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value and not ctx.resilient_parsing:
        setattr(ctx.ensure_object(Invocation), str(param.name), value)


def _shared(shown: bool) -> list[click.Parameter]:
    return [
        click.Option(
            ["--data"],
            metavar="DIR",
            help="The data folder.  [env WFCORE_DATA; default: ./wfcore-data]",
            expose_value=False,
            callback=_note,
            hidden=not shown,
        ),
        click.Option(
            ["--store"],
            metavar="URL",
            help="Where records are kept.  [env WFCORE_STORE; default: SQLite in DIR]",
            expose_value=False,
            callback=_note,
            hidden=not shown,
        ),
        click.Option(
            ["--url"],
            metavar="URL",
            help="A server elsewhere, with the key of scope ADMIN in WFCORE_KEY.  [env WFCORE_URL]",
            expose_value=False,
            callback=_note,
            hidden=not shown,
        ),
        click.Option(
            ["--settings", "settings_file"],
            metavar="FILE",
            help="Settings in TOML, below those of the environment.  [env WFCORE_SETTINGS]",
            expose_value=False,
            callback=_note,
            hidden=not shown,
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            help="One JSON document on stdout, nothing else there.",
            expose_value=False,
            callback=_note,
        ),
    ]


_NAMES = {"help_option_names": ["-h", "--help"], "max_content_width": 96}


class Command(click.Command):
    """A command with the shared options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["params"] = [*(kwargs.get("params") or ()), *_shared(shown=False)]
        kwargs["context_settings"] = {**_NAMES, **(kwargs.get("context_settings") or {})}
        super().__init__(*args, **kwargs)


class CommandGroup(click.Group):
    """A group for one noun, whose commands are verbs, with the shared options."""

    command_class = Command
    shows_shared = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["params"] = [*(kwargs.get("params") or ()), *_shared(self.shows_shared)]
        kwargs["no_args_is_help"] = False
        kwargs["context_settings"] = {**_NAMES, **(kwargs.get("context_settings") or {})}
        super().__init__(*args, **kwargs)


class Member(click.Choice):  # type: ignore[type-arg,unused-ignore]
    """A member of an enumeration, by its value in any case."""

    def __init__(self, members: type[StrEnum]) -> None:
        super().__init__([member.value for member in members], case_sensitive=False)
        self._members = members

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        all_of_them = "|".join(member.value for member in self._members)
        return all_of_them if len(all_of_them) <= _LONG_CHOICE else self._members.__name__.upper()

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> StrEnum:
        return self._members(super().convert(value, param, ctx))


class Duration(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A duration in milliseconds, from a text like 30s or 72h."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from wfcore.rules.definition.values import parse_duration

        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Since(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """An instant in epoch ms, from a duration ago (1h), an ISO date and time, or epoch ms."""

    name = "since"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from wfcore.rules.definition.values import parse_duration

        text = str(value)
        if re.fullmatch(r"[0-9]{9,16}", text):
            return int(text)
        try:
            return int(datetime.now(UTC).timestamp() * 1_000) - parse_duration(text)
        except ValueError:
            pass
        try:
            at = datetime.fromisoformat(text)
            return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000)
        except (ValueError, OverflowError):
            self.fail("must be like 1h, 2026-01-31T09:00 or epoch milliseconds", param, ctx)


class Pair(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A name and a value, from `name=value`."""

    name = "name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value[0], value[1]
        name, equals, text = str(value).partition("=")
        if not name or not equals:
            self.fail(f"{value!r} is not of the form name=value", param, ctx)
        return name, text


def inputs(command: C) -> C:
    """The option `-i` of commands that start a workflow."""
    option = click.option(
        "-i",
        "--input",
        "given",
        type=Pair(),
        multiple=True,
        metavar="NAME=VALUE",
        help="A variable of the workflow; JSON where its type is not string. Repeatable.",
    )
    return option(command)


def limit(command: C) -> C:
    """The option `--limit` of lists."""
    option = click.option(
        "--limit",
        type=click.IntRange(1, 10_000),
        default=50,
        show_default=True,
        help="How many to show at most.",
    )
    return option(command)


def span_of_time(command: C) -> C:
    """The options `--from` and `--to` of lists."""
    since = click.option("--from", "since", type=Since(), metavar="WHEN", help="From then on.")
    until = click.option("--to", "until", type=Since(), metavar="WHEN", help="Before then.")
    return since(until(command))


def password(command: C) -> C:
    """The option `--password-stdin`. There is no `--password`: other users can read arguments."""
    option = click.option(
        "--password-stdin", is_flag=True, help="Read the console password from stdin."
    )
    return option(command)


def read_line(wanted: bool) -> str | None:
    """The first line of stdin if it is *wanted*, else None."""
    if not wanted:
        return None
    return sys.stdin.readline().rstrip("\r\n")


def secret(command: C) -> C:
    """The option `--secret-stdin`, beside `--secret`, because other users can read arguments."""
    option = click.option(
        "--secret-stdin", is_flag=True, help="Read the secret from stdin, where nobody sees it."
    )
    return option(command)
