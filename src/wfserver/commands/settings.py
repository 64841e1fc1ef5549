"""`wfcore settings`: every setting with its value and its source."""

from collections import ChainMap
from collections.abc import Iterator, Mapping

import click
from attrs import asdict, frozen

from adapters_runtime.ai.providers import is_of_a_provider
from wfserver.settings.channels import is_of_a_channel
from wfserver.settings.file import OF_PROVIDERS, is_secret
from wfserver.settings.table import KNOWN
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
from wfserver.terminal.output import put_json, put_table


@click.command("settings", cls=Command)
@pass_invocation
def settings_command(invocation: Invocation) -> None:
    """Every setting with its value, and where that came from. Secrets are not shown."""
    invocation.settings()
    given = {
        "DATA": invocation.data,
        "STORE": invocation.store,
        "SETTINGS": invocation.settings_file,
    }
    options = {f"WFCORE_{name}": value for name, value in given.items() if value}
    found = list(in_force(invocation.environment, options))
    if invocation.json:
        put_json({"items": [{**asdict(one), "set": one.source != "default"} for one in found]})
        return
    rows = [
        (one.name, "(not shown)" if one.value is None else one.value, one.source) for one in found
    ]
    put_table(("setting", "value", "from"), rows, None)


@frozen
class InForce:
    """A setting in force. `value` None: secret. `source`: an option, a place, or `default`."""

    name: str
    value: str | None
    source: str


def in_force(environment: ChainMap[str, str], options: Mapping[str, str]) -> Iterator[InForce]:
    """
    Each setting with its value and its source. *environment* has the file of settings below it.
    *options*: the options of the command line, by variable.
    """
    others = [name for name in environment if name not in KNOWN and _is_of_ours(name)]
    for name in (*KNOWN, *sorted(others)):
        text = options.get(name) or environment.get(name)
        if not text:
            if name in KNOWN:
                yield InForce(name, KNOWN[name].default.replace("`", ""), "default")
            continue
        beside = "environment" if name in environment.maps[0] else "file"
        source = KNOWN[name].option if name in options else beside
        yield InForce(name, None if is_secret(name) else text, source)


def _is_of_ours(name: str) -> bool:
    return name in OF_PROVIDERS or is_of_a_provider(name) or is_of_a_channel(name)
