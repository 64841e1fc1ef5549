"""
Running an installer, and which of its messages people may read.

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
_MOST_WORDS = 1_500
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
class Ran:
    """How a program ended, and all of its output."""

    status: int
    said: str


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of an installer."""
    return {name: value for name, value in environment.items() if not _OURS.fullmatch(name)}


async def run(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], limit_s: float = LIMIT_S
) -> Ran:
    """
    Run a program in *folder* to its end.

    When cancelled or out of time, it is killed with its whole session. Raises `PackagesUnavailable`
    if it cannot be started or takes too long.
    """
    try:
        program = await _started(argv, folder, environment)
    except OSError as trouble:
        raise PackagesUnavailable(f"{argv[0]}: {trouble.strerror or trouble}") from None
    try:
        async with asyncio.timeout(limit_s):
            said, _ = await program.communicate()
    except TimeoutError:
        raise PackagesUnavailable(f"gave up after {limit_s:.0f} s") from None
    finally:
        await uninterrupted(_end(program))
    return Ran(program.returncode or 0, said.decode("utf-8", "replace"))


async def _started(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> asyncio.subprocess.Process:
    """
    The started program. If cancelled meanwhile, it is ended, because nobody else would know of it.
    """
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
    """Kill it with its whole session unless it has ended."""
    if program.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        await program.wait()


def words(said: str, folder: Path) -> str:
    """The end of what an installer printed, as one line without chatter, paths and addresses."""
    lines = [_cleaned(line, folder) for line in said.splitlines()]
    errors = next((at for at, line in enumerate(lines) if _MARK.match(line)), 0)
    told = [_MARK.sub("", line).strip() for line in _last_exception(lines[errors:])]
    kept = [line for line in told if not _SMALL_TALK.search(line)]
    return "; ".join(kept[-_MOST_LINES:])[-_MOST_WORDS:] or "it said nothing"


def _last_exception(lines: list[str]) -> list[str]:
    """Where an installer failed: its last message with what belongs to it."""
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
