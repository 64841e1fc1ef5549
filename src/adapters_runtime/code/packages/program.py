"""
The start of an installer outside the sandbox, and the part of its messages that people may read.

An installer works with the operator's configuration and rights, so it gets the operator's
environment without this service's own secrets. Addresses in its messages are cut to the host,
because the rest may be a password or token. PK-8.
"""

import asyncio
import os
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from adapters_runtime.sandbox.client import uninterrupted
from wfcore.errors import PackagesUnavailable

LIMIT_S = 600.0
_MOST_LINES = 12
_MOST_CHARACTERS = 1_500
_OURS = re.compile(r"WFCORE_.*|.*_API_KEY", re.IGNORECASE)
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_ADDRESS = re.compile(r"\b([a-z][a-z0-9+.-]*)://([^\s'\"<>,;)]*)", re.IGNORECASE)
_HOST = re.compile(r"(?:[^/@]*@)*([\w.-]+(?::[0-9]+)?)(?=[/?#]|$)")
_MARK = re.compile(r"^(?:ERROR:|npm (?:error|ERR!)(?: code| 404| notarget)?(?=\s|$))\s*")
_SMALL_TALK = re.compile(
    r"^(?:WARNING:|DEPRECATION:|\[notice\]|npm warn|npm notice|A complete log of this run"
    r"|Note that you can also install from a|tarball, folder, http url|In most cases you or one)"
    r"|^\s*$",
    re.IGNORECASE,
)


@frozen
class ProgramResult:
    """The exit status of a program, and all of its output."""

    status: int
    output: str


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of *environment* that an installer gets."""
    return {name: value for name, value in environment.items() if not _OURS.fullmatch(name)}


async def run(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], limit_s: float = LIMIT_S
) -> ProgramResult:
    """
    Run a program in *folder* to its end.

    If the call is cancelled or the time is over, the program's whole session is killed. Raises
    `PackagesUnavailable` if the program cannot be started or takes too long.
    """
    try:
        program = await _started(argv, folder, environment)
    except OSError as trouble:
        raise PackagesUnavailable(f"{argv[0]}: {trouble.strerror or trouble}") from None
    try:
        async with asyncio.timeout(limit_s):
            output, _ = await program.communicate()
    except TimeoutError:
        raise PackagesUnavailable(f"gave up after {limit_s:.0f} s") from None
    finally:
        await uninterrupted(_end(program))
    return ProgramResult(program.returncode or 0, output.decode("utf-8", "replace"))


async def _started(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> asyncio.subprocess.Process:
    """The started program. A cancellation kills it, because nobody else would know of it."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            cwd=folder,
            env=dict(environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):
            await uninterrupted(_end(await uninterrupted(starting)))
        raise


async def _end(program: asyncio.subprocess.Process) -> None:
    """Kill the program with its whole session, unless it has ended."""
    if program.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        await program.wait()


def error_line(output: str, folder: Path) -> str:
    """The end of an installer's output, as one line without chatter, paths and addresses."""
    lines = [_cleaned(line, folder) for line in output.splitlines()]
    errors = next((at for at, line in enumerate(lines) if _MARK.match(line)), 0)
    messages = [_MARK.sub("", line).strip() for line in _last_exception(lines[errors:])]
    kept = [line for line in messages if not _SMALL_TALK.search(line)]
    return "; ".join(kept[-_MOST_LINES:])[-_MOST_CHARACTERS:] or "it said nothing"


def _last_exception(lines: list[str]) -> list[str]:
    """The lines of the last exception, or all *lines* without a traceback."""
    if not any(_MARK.sub("", line).startswith("Traceback (") for line in lines):
        return lines
    last = max(at for at, line in enumerate(lines) if line[:1].strip())
    return [line for line in lines[last:] if line.strip("^ ")]


def _cleaned(line: str, folder: Path) -> str:
    line = _CONTROL.sub("", line).replace(str(folder), ".")
    return _ADDRESS.sub(_without_secrets, line)


def _without_secrets(found: re.Match[str]) -> str:
    host = _HOST.match(found[2])
    return f"{found[1]}://{f'{host[1]}/' if host else ''}…"
