"""The checks of the machine that a server needs, each with a cure."""

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from adapters_store import POSTGRES
from adapters_store.sql.sealing import id_of
from wfserver.data.archive import last_backup
from wfserver.data.folder import SIGNING_KEY_FILE, trouble_with
from wfserver.data.seal_keys import file_of, read_keys
from wfserver.definitions.packages import LazyEnvironments
from wfserver.doctor.isolation import isolation_here
from wfserver.errors import CommandFailed
from wfserver.failures import explain
from wfserver.settings.names import SEAL_KEY
from wfserver.settings.record import Settings

_LITTLE_DISK = 1 << 30
_NO_DISK = 64 << 20


@frozen
class CheckResult:
    """The result of one check. *essential*: nothing works if the check fails."""

    name: str
    ok: bool
    detail: str
    cure: str | None = None
    essential: bool = False


def of_the_machine(settings: Settings) -> Sequence[CheckResult]:
    """The checks that a running server repeats: of folder, disk, backups, keys, and steps."""
    return [program(), folder(settings.data), disk(settings.data), backups(settings),
            keys(settings), packages(settings), isolation(settings)]  # fmt: skip


def program() -> CheckResult:
    """The versions of wfcore and Python."""
    from importlib.metadata import version

    python = ".".join(map(str, sys.version_info[:3]))
    return CheckResult("wfcore", True, f"{version('wfcore')} on Python {python}")


def folder(data: Path) -> CheckResult:
    """Whether this process can use the data folder, and other users cannot."""
    if not os.path.lexists(data):
        return CheckResult("data", True, f"{data} is not there yet; wfcore up makes it")
    trouble = trouble_with(data)
    if trouble is not None:
        return CheckResult("data", False, trouble.what, trouble.cure, essential=True)
    if data.stat().st_mode & 0o077:
        cure = f"chmod 700 {data}"
        return CheckResult("data", False, f"{data} can be read by other users", cure)
    return CheckResult("data", True, str(data))


def disk(data: Path) -> CheckResult:
    """The free space on the disk of the data folder."""
    there = next(folder for folder in (data, *data.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    detail = f"{free / (1 << 30):.1f} GiB free"
    cure = None if free >= _LITTLE_DISK else "make room; steps and artifacts need it"
    return CheckResult("disk", cure is None, detail, cure, essential=free < _NO_DISK)


def keys(settings: Settings) -> CheckResult:
    """The key that seals the store, and whether other users may read a key file."""
    sealing = file_of(settings)
    files = (settings.data / SIGNING_KEY_FILE, sealing)
    bare = [file for file in files if file.exists() and file.stat().st_mode & 0o077]
    if bare:
        named = " and ".join(map(str, bare))
        return CheckResult("keys", False, f"{named}: other users may read it", f"chmod 600 {named}")
    if settings.seal_key is not None:
        return CheckResult("keys", True, f"{SEAL_KEY} seals what is stored")
    if not sealing.exists():
        return CheckResult("keys", True, f"none yet; the first start makes {sealing}")
    try:
        first, *older = (id_of(key) for key in read_keys(sealing))
    except CommandFailed as error:
        return CheckResult("keys", False, explain(error), f"put the right {sealing} back", True)
    kept = f", {', '.join(older)} still open what is older" if older else ""
    return CheckResult("keys", True, f"{first} in {sealing} seals what is stored{kept}")


def backups(settings: Settings) -> CheckResult:
    """The last archive of `wfcore backup`. Backups of a database server are not known here."""
    if (settings.store or "").startswith(POSTGRES):
        return CheckResult("backups", True, "left to the tools of the database server")
    if last := last_backup(settings.data):
        return CheckResult("backups", True, last)
    cure = "wfcore backup FILE; make one every day, and keep it on another machine"
    return CheckResult("backups", False, "none by wfcore backup yet", cure)


def isolation(settings: Settings) -> CheckResult:
    """The isolation of steps from each other and from the server."""
    level = isolation_here(settings)
    return CheckResult("isolation", not level.lacks, level.summary, level.cure)


def packages(settings: Settings) -> CheckResult:
    """The installers of steps' packages, and the packages that are cached."""
    kept = LazyEnvironments(settings.packages_folder, lambda: settings).here
    usage, tools = kept.usage(), asyncio.run(kept.tools())
    there = ", ".join(tool.version for tool in tools if tool.version)
    missing = "; ".join(tool.cure for tool in tools if not tool.version)
    detail = f"{there or 'no installer'}; {usage.count} cached, {usage.bytes / (1 << 20):.1f} MiB"
    return CheckResult("packages", not missing, detail, missing or None)
