"""The level of isolation of code steps on this machine, its gaps, and how to get a better level."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from adapters_runtime.sandbox.isolation.config import LADDER, LANDLOCK, NAMESPACE, PROCESS, UID
from adapters_runtime.sandbox.isolation_level import Isolation, Level, find_level_now
from wfserver.settings.isolation import step_isolation
from wfserver.settings.record import Settings

HOLDS: Mapping[str, tuple[str, ...]] = {
    NAMESPACE: (
        "files, processes, network and users of its own",
        "a folder of limited size",
        "limits on memory, processes, output and time",
    ),
    UID: (
        "a user of its own",
        "no file or network of the server's",
        "limits on memory, processes, output and time",
    ),
    LANDLOCK: (
        "no file or network of the server's",
        "limits on memory, output and time",
    ),
    PROCESS: ("a killed process tree", "limits on memory, output and time"),
}
LACKS: Mapping[str, tuple[str, ...]] = {
    NAMESPACE: (),
    UID: ("a limit on disk space", "hidden names of files"),
    LANDLOCK: (
        "a user of its own",
        "a limit on disk space",
        "a number of processes of its own",
        "hidden names of files",
    ),
    PROCESS: (
        "protected files",
        "a closed network",
        "protected processes",
        "steps that say `listen`",
    ),
}

_SWITCHES = {
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
    "/proc/sys/kernel/unprivileged_userns_clone": ("0", "1"),
    "/proc/sys/user/max_user_namespaces": ("0", "10000"),
}
_FLAGS = (
    "--security-opt seccomp=deploy/container/seccomp.json --security-opt systempaths=unconfined"
)
_FLAGS_AS_ROOT = "--cap-add SYS_ADMIN --cap-add NET_ADMIN"
COUNTING = "start the server as a systemd unit with Delegate=yes, or with /sys/fs/cgroup writable"
"""The way to get control groups for steps."""
_CONTAINERS = ("/.dockerenv", "/run/.containerenv")
_MARK = "container"
"""The variable that systemd, Podman and our image set for processes in a container."""


@frozen
class IsolationReport:
    """
    A level of isolation: what it holds, what it lacks, and how to get a better level.

    `uncounted`: why no control group counts memory and processes of a step; None: a control group
    does. `missed`: why steps cannot have a stronger level, by level. `refused`: the level is below
    `minimum`, and code steps are not run.
    """

    level: str
    holds: tuple[str, ...]
    lacks: tuple[str, ...]
    cure: str | None
    missed: Mapping[str, str]
    minimum: str
    refused: bool
    uncounted: str | None = None

    @property
    def memory(self) -> str:
        """The way in which the limit of memory is enforced, in one line."""
        if self.uncounted is None:
            return "counted by the kernel, in a control group for each step"
        return f"measured twice a second or more, not counted: {self.uncounted}"

    @property
    def summary(self) -> str:
        """The report in one line."""
        if self.refused:
            return f"{self.level}, below the minimum {self.minimum}: code steps are refused"
        lacks = f"; but not {', '.join(self.lacks)}" if self.lacks else ""
        return f"{self.level}: {', '.join(self.holds)}{lacks}"


def report(level: Level, isolation: Isolation) -> IsolationReport:
    """The report on *level*, which was found for *isolation*."""
    better = LADDER[: LADDER.index(level.name)]
    return IsolationReport(
        level=level.name,
        holds=HOLDS[level.name],
        lacks=LACKS[level.name],
        cure=_cure(level, isolation) if better else None,
        missed=dict(level.missed),
        minimum=isolation.least,
        refused=level.is_below(isolation.least),
        uncounted=level.uncounted,
    )


def isolation_here(settings: Settings) -> IsolationReport:
    """The report without a server: a probe step runs in a temporary folder."""
    isolation = step_isolation(settings)
    with tempfile.TemporaryDirectory() as folder:
        return report(find_level_now(isolation.forced, Path(folder, "steps")), isolation)


def _cure(level: Level, isolation: Isolation) -> str:
    """How to get the level `namespace` here, or a level that is not below the minimum."""
    if level.name == LANDLOCK and level.is_below(isolation.least) and os.geteuid() == 0:
        return (
            "run the server as an ordinary user, or give its container user ids beside root's; "
            "WFCORE_MIN_ISOLATION=landlock accepts that steps are root"
        )
    for switch, (bad, good) in _SWITCHES.items():
        if _read(switch) == bad:
            name = switch.removeprefix("/proc/sys/").replace("/", ".")
            return f"let programs make namespaces: sysctl {name}={good}"
    if os.environ.get(_MARK) or any(os.path.exists(path) for path in _CONTAINERS):
        flags = _FLAGS_AS_ROOT if os.geteuid() == 0 else _FLAGS
        return f"let the container make namespaces: {flags}"
    return "a kernel with user namespaces: Linux 5.12 or newer"


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None
