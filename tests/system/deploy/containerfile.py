"""
A Containerfile, followed line by line without a daemon, and its image run as containers run.

Each stage is a folder that begins as a copy of a root file system that debootstrap made. RUN lines
are executed in it as root, in namespaces of their own. A `Container` enters what came of it: new
namespaces, a read-only root, what Docker, Podman and containerd mask in /proc, and the system call
filter that they have by default. Needs root on Linux.
"""

import io
import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import define, field, frozen
from dockerfile_parse import DockerfileParser

from adapters_runtime.sandbox.isolation.syscall_numbers import AUDIT_ARCH, machine, number_of

HERE = Path(__file__).parents[3]
FILE = HERE / "deploy" / "container" / "Containerfile"
PATHS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BUILD_S, CALL_S = 900, 120


def lines_of(file: Path = FILE) -> list[tuple[str, str]]:
    """Instruction and text of each line, continuation lines joined, without comments."""
    parser = DockerfileParser(fileobj=io.BytesIO(file.read_bytes()), env_replace=False)
    found = [(one["instruction"], one["value"]) for one in parser.structure]
    return [line for line in found if line[0] != "COMMENT"]


def in_context() -> list[str]:
    """The names that `.dockerignore` lets into the context; it begins with `*`."""
    rules = (HERE / ".dockerignore").read_text().splitlines()
    everything, *rest = [rule for rule in rules if rule[:1] != "#"]
    assert everything == "*"
    return [rule[1:] for rule in rest if rule[0] == "!"]


@define
class Image:
    """A root file system, and how a container of it is run: texts as the file has them."""

    root: Path
    env: dict[str, str] = field(factory=lambda: {"PATH": PATHS})
    arguments: dict[str, str] = field(factory=dict)
    workdir: str = "/"
    said: dict[str, str] = field(factory=dict)
    """USER, VOLUME, EXPOSE, STOPSIGNAL, HEALTHCHECK, ENTRYPOINT, CMD."""

    def argv(self, word: str) -> list[str]:
        """The command line of an instruction in JSON, after its options."""
        found: list[str] = json.loads(self.said[word][self.said[word].index("[") :])
        return found


@define
class Follower:
    """Builds an image from *base*; *given*: build arguments. An unknown instruction is an error."""

    base: Path
    folder: Path
    given: Mapping[str, str] = field(factory=dict)
    defaults: dict[str, str] = field(factory=dict)
    stages: dict[str, Image] = field(factory=dict)

    FOLLOWED = frozenset({"ARG", "FROM", "RUN", "COPY", "ENV", "WORKDIR"})
    SAID = frozenset({"USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"})

    def build(self, lines: Sequence[tuple[str, str]]) -> Image:
        """The last stage, every line executed."""
        image = Image(self.base)
        for word, text in lines:
            if word == "FROM":
                image = self._begin(text)
            elif word == "ARG":
                name, _, default = text.partition("=")
                known = image.arguments if self.stages else self.defaults
                known[name] = self.given.get(name, " ".join(shlex.split(default)))
            elif word == "RUN":
                self._run(image, text)
            elif word == "COPY":
                self._copy(image, *shlex.split(text))
            elif word == "ENV":
                image.env |= dict(pair.split("=", 1) for pair in shlex.split(text))
            elif word == "WORKDIR":
                image.workdir = text
                (image.root / text.lstrip("/")).mkdir(parents=True, exist_ok=True)
            else:
                assert word in self.SAID, f"{word} is not followed"
                image.said[word] = text
        return image

    def _begin(self, text: str) -> Image:
        source, *name = re.split(r"\s+AS\s+", text)
        assert source == "${BASE}", "every stage begins with the one base"
        root = self.folder / f"stage{len(self.stages)}"
        subprocess.run(["cp", "-a", "--reflink=auto", self.base, root], check=True)
        self.stages[name[0] if name else ""] = image = Image(root)
        return image

    def _run(self, image: Image, text: str) -> None:
        env = {"HOME": "/root", **image.env, **image.arguments}
        if trusted := os.environ.get("PIP_CERT"):
            env["PIP_CERT"] = trusted
            text = f"export PIP_CERT=/dev/pip.crt; {text}"
        line = ["env", "-C", image.workdir, "/bin/sh", "-c", text]
        ran = subprocess.run(
            _inside(image.root, SHARED_NETWORK, line, shares_network=True),
            env=env,
            capture_output=True,
            text=True,
            timeout=BUILD_S,
        )
        assert ran.returncode == 0, f"RUN {text}\n{(ran.stdout + ran.stderr)[-6000:]}"

    def _copy(self, image: Image, *words: str) -> None:
        *names, target = words
        source = HERE
        if names[0].startswith("--from="):
            source = self.stages[names.pop(0).removeprefix("--from=")].root
        into = image.root / os.path.join(image.workdir, target).lstrip("/")
        for name in names:
            found = source / name.lstrip("/")
            if found.is_dir():
                without = shutil.ignore_patterns("__pycache__") if source == HERE else None
                shutil.copytree(found, into, symlinks=True, ignore=without, dirs_exist_ok=True)
            else:
                shutil.copy2(found, into / found.name)


DEVICES = """
mount -t tmpfs -o mode=755 tmpfs dev
for one in null zero full random urandom; do : >dev/$one; mount --bind /dev/$one dev/$one; done
ln -s /proc/self/fd dev/fd
mkdir dev/shm
mount -t tmpfs -o mode=1777 tmpfs dev/shm
"""
SHARED_NETWORK = """
for one in resolv.conf hosts; do : >>etc/$one; mount --bind /etc/$one etc/$one; done
[ -z "$PIP_CERT" ] || { : >dev/pip.crt; mount --bind "$PIP_CERT" dev/pip.crt; }
"""
"""Names, and the certificates that pip trusts here."""
READ_ONLY = """
mount -o remount,bind,ro .
mount -t tmpfs -o mode=1777 tmpfs tmp
"""
MASKS = """
for one in kcore keys timer_list; do [ ! -e proc/$one ] || mount --bind /dev/null proc/$one; done
for one in acpi scsi; do [ ! -e proc/$one ] || mount -t tmpfs -o ro tmpfs proc/$one; done
for one in bus fs irq sys sysrq-trigger; do
  [ ! -e proc/$one ] || { mount --bind proc/$one proc/$one; mount -o remount,bind,ro proc/$one; }
done
"""
"""What containers do not see of /proc, and what they see read-only."""
LOOPBACK = """
import fcntl, socket, struct
with socket.socket() as any_one:
    fcntl.ioctl(any_one, 0x8914, struct.pack("16sh22x", b"lo", 1))
"""


def _inside(
    root: Path, mounts: str, argv: Sequence[str], shares_network: bool = False
) -> list[str]:
    """The command that runs *argv* in *root*, in namespaces of its own, after *mounts*."""
    new = ("mount", "pid", "ipc", "uts", *(() if shares_network else ("net",)))
    up = "" if shares_network else f"{shlex.quote(sys.executable)} -ISc {shlex.quote(LOOPBACK)}\n"
    script = f"""path=$PATH
PATH=/usr/sbin:/usr/bin:/sbin:/bin
{up}cd "$0"
mount --rbind . .
cd "$0"
mount -t proc proc proc
{DEVICES}{mounts}
pivot_root . .
umount -l .
exec env PATH="$path" "$@" """
    unshare = ["unshare", *(f"--{kind}" for kind in new), "--fork", "--kill-child"]
    return [*unshare, "--propagation=private", "sh", "-ec", script, str(root), *argv]


_words = str.split
REFUSED = _words("""
    acct add_key bpf clock_adjtime clock_settime delete_module fanotify_init finit_module fsconfig
    fsmount fsopen fspick init_module io_uring_enter io_uring_register io_uring_setup kcmp
    kexec_file_load kexec_load keyctl lookup_dcookie mount mount_setattr move_mount move_pages
    open_by_handle_at open_tree perf_event_open pivot_root quotactl reboot request_key setdomainname
    sethostname setns settimeofday swapoff swapon syslog umount2 unshare userfaultfd vhangup
""")
"""What the default filter refuses to whoever lacks CAP_SYS_ADMIN and its like, with EPERM."""
PROFILE = HERE / "deploy" / "container" / "seccomp.json"
NEW_NAMESPACES, EPERM, ENOSYS = 0x7E020000, 1, 38
Instruction = tuple[int, int, int, int]
_LOAD, _EQUAL, _ANY_BIT, _GIVE, _ALLOW, _ERRNO = 0x20, 0x15, 0x45, 0x06, 0x7FFF0000, 0x50000


def filter_of(names: Sequence[str], threads_only: bool) -> bytes:
    """
    A filter that refuses the calls of these *names*, as a program for the kernel; *threads_only*:
    also `clone` into namespaces, and `clone3`, of which that cannot be seen.
    """
    code: list[Instruction] = [
        *((_LOAD, 0, 0, 4), (_EQUAL, 1, 0, AUDIT_ARCH[machine()])),
        *((_GIVE, 0, 0, _ERRNO | ENOSYS), (_LOAD, 0, 0, 0)),
    ]
    for name in names:
        number = number_of(name, machine())
        if number is not None:
            code += [(_EQUAL, 0, 1, number), (_GIVE, 0, 0, _ERRNO | EPERM)]
    if threads_only:
        clone, clone3 = {"x86_64": 56, "aarch64": 220}[machine()], 435
        code += [(_EQUAL, 0, 1, clone3), (_GIVE, 0, 0, _ERRNO | ENOSYS), (_EQUAL, 0, 3, clone)]
        code += [(_LOAD, 0, 0, 16), (_ANY_BIT, 0, 1, NEW_NAMESPACES), (_GIVE, 0, 0, _ERRNO | EPERM)]
    return b"".join(struct.pack("=HBBI", *each) for each in [*code, (_GIVE, 0, 0, _ALLOW)])


def refused_by_profile() -> list[str]:
    """The calls that the profile of `deploy/container` refuses."""
    (rule,) = json.loads(PROFILE.read_text())["syscalls"]
    return list(rule["names"])


FILTERS: Mapping[str, Callable[[], bytes]] = {
    "default": lambda: filter_of(REFUSED, threads_only=True),
    "deploy/container/seccomp.json": lambda: filter_of(refused_by_profile(), threads_only=False),
    "unconfined": lambda: b"",
}


CONFINE = """
import ctypes, os, sys
code = bytes.fromhex(sys.argv[1])
if code:
    kept = ctypes.create_string_buffer(code, len(code))
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
    program = Program(len(code) // 8, ctypes.addressof(kept))
    if ctypes.CDLL(None).prctl(22, 2, ctypes.byref(program), 0, 0):
        sys.exit("no filter")
os.execvp(sys.argv[2], sys.argv[2:])
"""
DEFAULT_CAPABILITIES = (
    "chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service "
    "net_raw sys_chroot mknod audit_write setfcap"
)


@frozen
class Flags:
    """
    How a container is run. *filter*: of system calls, one of `FILTERS`. *masked*: with the masks
    over /proc. *capabilities*: what root in it has. *gains*: programs may give privileges.
    """

    user: str | None = None
    filter: str = "default"
    masked: bool = True
    capabilities: str = DEFAULT_CAPABILITIES
    gains: bool = True


@define
class Container:
    """A container of an image: what it runs at first, and what is executed in it later."""

    image: Image
    volume: Path
    flags: Flags = Flags()
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def user(self) -> str:
        return self.flags.user or self.image.said["USER"]

    def _confined(self, argv: Sequence[str]) -> list[str]:
        user, group = self.user.split(":")
        bounds = ",".join(f"+{name}" for name in self.flags.capabilities.split())
        code = FILTERS[self.flags.filter]().hex()
        return [
            *("/usr/bin/python3", "-ISc", CONFINE, code, "setpriv", f"--reuid={user}"),
            *(f"--regid={group}", "--clear-groups", f"--bounding-set=-all,{bounds}".rstrip(",")),
            *("--inh-caps=-all", *(() if self.flags.gains else ("--no-new-privs",))),
            *("env", "-C", self.image.workdir, *argv),
        ]

    def command(self, *argv: str) -> list[str]:
        """The command line that makes the container with *argv* as its first process."""
        os.chown(self.volume, *map(int, self.user.split(":")))
        self.volume.chmod(0o700)
        (volume,) = self.image.argv("VOLUME")
        mounts = f"{READ_ONLY}mount --bind {shlex.quote(str(self.volume))} .{volume}\n"
        return _inside(
            self.image.root, mounts + (MASKS if self.flags.masked else ""), self._confined(argv)
        )

    def begin(self, *command: str) -> None:
        """Start it with *command* after the image's entry point; without one, the image's."""
        first = [*self.image.argv("ENTRYPOINT"), *(command or self.image.argv("CMD"))]
        self.process = subprocess.Popen(
            self.command(*first), env=self.image.env, stdin=subprocess.DEVNULL, stdout=2
        )

    @property
    def pid(self) -> int:
        """Of its first process, seen from outside; 0 while there is none."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int((children.read_text().split() or ["0"])[0])

    def execute(self, *argv: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run *argv* in it, as the user of the image."""
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--net", "--ipc", "--uts"]
        return subprocess.run(
            [*enter, "--root", "--wd", *self._confined(argv)],
            env=self.image.env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=CALL_S,
        )

    def stop(self) -> None:
        """Tell its first process to end, as `docker stop` does."""
        os.kill(self.pid, signal.Signals[self.image.said["STOPSIGNAL"]])
