"""
What the server tells its spawner once, and about each step before its job. Standard library only.

Both are sent by `marshal` as plain tuples.
"""

from typing import Any, NamedTuple

NAMESPACE, UID, LANDLOCK, PROCESS = "namespace", "uid", "landlock", "process"
LADDER = (NAMESPACE, UID, LANDLOCK, PROCESS)
"""The levels of isolation, the strongest first."""

STEP_DIR = "/step"
"""Where a step in a mount namespace of its own finds its folder."""

FOLDERS = ("work", "home", "tmp", "artifacts")
OUTPUT, CONTEXT = "output.json", "context.json"


class SandboxConfig(NamedTuple):
    """
    The settings for all steps of a server.

    *base*: a folder of the server below which the spawner may mount. *memory* and *processes*:
    limits of a whole step if a control group counts them. *disk* and *inodes*: the size of a step's
    folder if it has a file system of its own. *reads* and *writes*: paths that every step may see.
    *hidden*: paths that no step may see, even inside visible ones. *closed*: ports that no step
    reaches, each as `(address, port)`, where an empty address means this machine. *reserved*: ports
    that no step takes.
    """

    level: str
    base: str = ""
    disk: int = 512 << 20
    inodes: int = 16_384
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    closed: tuple[tuple[str, int], ...] = ()
    reserved: tuple[int, ...] = ()
    memory: int = 1 << 30
    processes: int = 256


JOB_FD = 3
LOOPBACK, ANY = "loopback", "any"
"""Where a step may listen; empty: nowhere."""


class Prestart(NamedTuple):
    """A program that is started before its job: how, and under which limits."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    limits: tuple[tuple[str, int], ...]


class Profile(NamedTuple):
    """
    What must be known of a step before its job, so that everything can be prepared for it.

    *readable*: further paths that it may see because its interpreter needs them. *ahead*: its
    program, if it is started before the job: it reads the job from `JOB_FD`. *listen*: where it may
    listen, `LOOPBACK`, `ANY` or nowhere.
    """

    network: bool = False
    readable: tuple[str, ...] = ()
    prestart: Prestart | None = None
    listen: str = ""


def packed(profile: Profile) -> tuple[Any, ...]:
    """The profile as plain tuples, for `marshal`."""
    network, readable, prestart, listen = profile
    return network, readable, tuple(prestart) if prestart else None, listen


def unpacked(words: tuple[Any, ...]) -> Profile:
    """The inverse of `packed`."""
    network, readable, prestart, listen = words
    return Profile(network, readable, Prestart(*prestart) if prestart else None, listen)
