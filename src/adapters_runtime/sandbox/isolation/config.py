"""
The configuration of the spawner, sent once, and the profile of a step, sent before its job.

Both are sent by `marshal` as plain tuples. Standard library only.
"""

from typing import Any, NamedTuple

NAMESPACE, UID, LANDLOCK, PROCESS = "namespace", "uid", "landlock", "process"
LADDER = (NAMESPACE, UID, LANDLOCK, PROCESS)
"""The levels of isolation, the strongest first."""

STEP_DIR = "/step"
"""The path at which a step in a mount namespace of its own sees its folder."""

FOLDERS = ("work", "home", "tmp", "artifacts")
FILES = "files"
"""The folder of earlier steps' files in a step's folder; it exists only in steps that read some."""
OUTPUT, STATE, CONTEXT = "output.json", "state.json", "context.json"


class SandboxConfig(NamedTuple):
    """
    The settings for all steps of a server.

    *base*: a folder of the server below which the spawner may mount. *memory* and *processes*:
    limits of a whole step if a control group counts them. *disk* and *inodes*: the size of a step's
    folder if the folder has a file system of its own. *reads*: paths that every step may see.
    *writes*: paths that every step may change. *hidden*: paths that no step may see, even inside
    visible paths. *closed*: ports that no step can connect to, each as `(address, port)`, where an
    empty address means this machine. *reserved*: ports that no step can take.
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
"""The addresses at which a step may listen. Empty text means no address."""


class Prestart(NamedTuple):
    """A program that is started before its job, with its environment and limits."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    limits: tuple[tuple[str, int], ...]


class Profile(NamedTuple):
    """
    The properties of a step that must be known before its job, so that its sandbox can be prepared.

    *network*: whether the step may connect. *readable*: further paths that its interpreter reads.
    *prestart*: the program that is started before the job, and then reads the job from `JOB_FD`.
    *listen*: where the step may listen, `LOOPBACK`, `ANY` or nowhere.
    """

    network: bool = False
    readable: tuple[str, ...] = ()
    prestart: Prestart | None = None
    listen: str = ""


def packed(profile: Profile) -> tuple[Any, ...]:
    """*profile* as plain tuples, for `marshal`."""
    network, readable, prestart, listen = profile
    return network, readable, tuple(prestart) if prestart else None, listen


def unpacked(packed: tuple[Any, ...]) -> Profile:
    """The inverse of `packed`."""
    network, readable, prestart, listen = packed
    return Profile(network, readable, Prestart(*prestart) if prestart else None, listen)
