"""The message of `wfcore up` once the server answers: facts, and commands to paste next."""

import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import wfcore
from wfcore.model.workflow import Language, Runtime
from wfcore.ports.runtime import LanguageState
from wfserver.data.bootstrap import First
from wfserver.terminal.output import console

if TYPE_CHECKING:
    from rich.console import Console

    from wfserver.doctor.isolation import IsolationReport
    from wfserver.serving.serve import ServerInfo

Languages = Mapping[Language, LanguageState]


def welcome_json(info: "ServerInfo", first: First, languages: Languages) -> Any:
    """The message for programs. `apiKey` is there only if it was just made."""
    return {
        "url": info.url,
        "data": str(info.system.settings.data),
        "store": info.system.location,
        "accountId": first.account.id,
        "email": first.account.email,
        **({"apiKey": first.new_key} if first.new_key else {}),
        "keyFile": str(first.key_file) if first.key_file else None,
        "sampleId": first.sample.id if first.sample else None,
        "languages": {name.value: state.available for name, state in languages.items()},
        "isolation": info.isolation.level if info.isolation else None,
        **({"console": console_url(info, first.way_in)} if first.way_in else {}),
    }


def welcome(info: "ServerInfo", first: First, languages: Languages) -> None:
    """Print the message."""
    out = console()
    out.print(f"wfcore {wfcore.__version__} answers at {info.url}", style="bold green")
    out.print()
    for name, lines in _facts(info, first, languages):
        for at, line in enumerate(lines):
            _print_fact(out, name if at == 0 else "", line)
    out.print()
    for title, commands in _next_steps(info, first):
        out.print(f"# {title}", style="dim")
        for command in commands:
            # Never wrapped, so that a copied command is complete.
            out.print(command, soft_wrap=True, style="cyan")
        out.print()
    out.print("Ctrl-C ends the server; the data stays.")
    if first.way_in:
        out.print(f"\nOpen the console, signed in as {first.account.email}; good once, for 15 min:")
        out.print(console_url(info, first.way_in), soft_wrap=True, style="bold cyan")


def console_url(info: "ServerInfo", token: str) -> str:
    """The address of the link with *token*, which signs in."""
    return f"{info.url}/in/{token}"


def _print_fact(out: "Console", name: str, line: str) -> None:
    from rich.text import Text

    out.print(Text.assemble((f"{name:<11}", "bold"), line), soft_wrap=True)


def _facts(
    info: "ServerInfo", first: First, languages: Languages
) -> Iterator[tuple[str, list[str]]]:
    yield "data", [str(info.system.settings.data)]
    yield "languages", list(_language_lines(languages))
    yield "isolation", list(_isolation_lines(info.isolation))
    yield "account", [f"{first.account.email} ({first.account.plan})"]
    if first.new_key:
        yield "key", [first.new_key, f"shown once; stored in {first.key_file}"]
    elif first.key_file:
        yield "key", [f"in {first.key_file}"]
    else:
        yield "key", ["the account has keys, but none of them lies in the data folder"]
    if first.sample:
        yield "sample", [f"{first.sample.name}, {first.sample.id}"]


def _isolation_lines(isolation: "IsolationReport | None") -> Iterator[str]:
    if isolation is None:
        yield "how steps are isolated is up to their runner, which is not wfcore's"
        return
    yield from wrap(isolation.summary, 68)
    if isolation.cure:
        yield f"to get more: {isolation.cure}"
    yield from wrap(f"memory of steps: {isolation.memory}", 68)


def _language_lines(languages: Languages) -> Iterator[str]:
    states = [state for state in languages.values() if state.language is not Language.COMMAND]
    yield from wrap(", ".join(_with_version(state) for state in states if state.available), 68)
    for state in states:
        if not state.available:
            yield f"{state.language} is missing: {state.cure}"


def _with_version(state: LanguageState) -> str:
    version = ".".join((state.version or "").split(".")[:2])
    if state.path and Path(state.path).name.startswith(Runtime.BUN):
        version = f"(Bun {version})"
    return f"{state.language} {version}".strip()


def _next_steps(info: "ServerInfo", first: First) -> Iterator[tuple[str, list[str]]]:
    wfcore = f"{program()} --data {shlex.quote(str(info.system.settings.data))}"
    if first.key_file is None:
        scope = "--scope WORKFLOW_READ --scope WORKFLOW_EXECUTE --scope EXECUTION_READ"
        make = f"{wfcore} key create --account {first.account.email} --name mine {scope}"
        yield "make a key, in another terminal", [make]
        return
    key = first.new_key or f"$(cat {shlex.quote(str(first.key_file))})"
    header = '-H "X-API-Key: $KEY"'
    exports = [f"export API={info.url}/api/v1", f"export KEY={key}"]
    if first.sample is None:
        yield "next, in another terminal", [*exports, f'curl -s "$API/workflows" {header}']
        return
    yield "next, in another terminal: watch the sample run", [f"{wfcore} try"]
    yield (
        "or by hand: start it, see what waits for you",
        [
            *exports,
            f'curl -s "$API/workflows/{first.sample.id}/executions" \\',
            f"  {header} -H 'Content-Type: application/json' -d '{{}}'",
            f'curl -s "$API/approvals?status=PENDING" {header}',
        ],
    )


def program() -> str:
    """The command `wfcore` for another terminal."""
    called = Path(sys.argv[0])
    if called.name != "wfcore":
        return f"{shlex.quote(sys.executable)} -m wfserver"
    found = shutil.which("wfcore")
    if found and Path(found).resolve() == called.resolve():
        return "wfcore"
    return shlex.quote(str(called.absolute()))
