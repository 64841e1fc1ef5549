"""
The file system that a step sees: read-only system folders, and a folder of its own.

The spawner makes the `RootTemplate` once, in a mount namespace of its own. `enter` enters a root
made from the template for one step, before the step's job is known. Steps without further paths
share a root that lacks only their own mounts. Nothing else exists inside: no home, no data folder,
no other step. Standard library only.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from adapters_runtime.sandbox.isolation.config import FILES, STEP_DIR, Profile, SandboxConfig
from adapters_runtime.sandbox.isolation.syscalls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    move_mount,
    pivot_root,
    restrict_mounts,
    umount,
)

_words = str.split

SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt", "nix", "gnu")
"""The folders of the root that hold programs and libraries."""

_SETTINGS = _words("""
    alternatives bash.bashrc ca-certificates ca-certificates.conf crypto-policies debian_version
    fonts gai.conf gitconfig host.conf inputrc java* ld.so.cache ld.so.conf ld.so.conf.d
    locale.alias locale.conf localtime lua* magic mime.types nsswitch.conf os-release perl pki
    profile protocols python3* ruby* services ssl/certs ssl/openssl.cnf terminfo timezone
""")


def settings() -> list[str]:
    """The existing names in /etc that programs read and that are not secret."""
    prefixes = tuple(name[:-1] for name in _SETTINGS if name.endswith("*"))
    found = [name for name in os.listdir("/etc") if name.startswith(prefixes)]
    return found + [name for name in _SETTINGS if os.path.lexists(f"/etc/{name}")]


DEVICES = ("null", "zero", "full", "random", "urandom")
RESOLVING = ("resolv.conf", "hosts")

_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
_USERS = {
    "passwd": f"root:x:0:0:root:/:/bin/sh\nstep:x:1000:1000:step:{STEP_DIR}/home:/bin/sh\n",
    "group": "root:x:0:\nstep:x:1000:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "hostname": "localhost\n",
    "resolv.conf": "",
}
_READ_ONLY = MS_RDONLY | MS_NOSUID | MS_NODEV
_NO_DEVICES = MS_NOSUID | MS_NODEV


class RootTemplate:
    """The part of the root that all steps see, below `base`, in a mount namespace of its own."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._base = config.base
        mount("", "/", flags=MS_REC | MS_PRIVATE)
        mount("tmpfs", self._base, "tmpfs", _NO_DEVICES, "mode=755,size=4m")
        self._system = [name for name in SYSTEM if os.path.isdir(f"/{name}")]
        for name in self._system:
            if not os.path.islink(f"/{name}"):
                _show(f"/{name}", f"{self._base}/{name}", _READ_ONLY)
        self._make_settings(f"{self._base}/etc")
        self._make_devices(f"{self._base}/dev")
        self._plain = self._assemble("plain")
        _link_temporary(self._plain)

    def _make_settings(self, etc: str) -> None:
        os.mkdir(etc, 0o755)
        for name, text in _USERS.items():
            _write(f"{etc}/{name}", text.encode())
        for name in settings():
            _copy_setting(f"/etc/{name}", f"{etc}/{name}")
        for path in (*self._config.reads, *self._config.writes):
            if path.startswith("/etc/") and not os.path.lexists(self._base + path):
                _place(path, self._base + path)  # now: it is read-only for each step
        _seal(etc, _READ_ONLY)

    def _make_devices(self, dev: str) -> None:
        os.mkdir(dev, 0o755)
        for name in DEVICES:
            _write(f"{dev}/{name}")
            mount(f"/dev/{name}", f"{dev}/{name}", flags=MS_BIND)
        for name, target in _LINKS.items():
            os.symlink(target, f"{dev}/{name}")
        os.symlink(f"{STEP_DIR}/tmp", f"{dev}/shm")  # noqa: S108 - the step's own
        _seal(dev, MS_RDONLY | MS_NOSUID | MS_NOEXEC)

    def enter(self, profile: Profile, user: int, group: int) -> None:
        """Enter the root of one step for good. The step will run as *user* of *group*."""
        wanted = self._wanted(profile)
        root = self._assemble("root") if wanted else self._plain
        if profile.network:
            self._show_resolving(root)
        for path, flags in wanted:
            if not self._is_hidden(path):
                _show(path, root + path, flags)
        masks = self._hide(root)
        for path, flags in wanted:
            if self._is_hidden(path):
                _show(path, root + path, flags)
        for mask in masks:
            mount("", mask, flags=MS_REMOUNT | MS_BIND | _READ_ONLY)
        if wanted:
            _link_temporary(root)
        mount("proc", f"{root}/proc", "proc", _NO_DEVICES | MS_NOEXEC, "hidepid=2")
        self._mount_folder(root + STEP_DIR, user, group)
        os.chdir(root)
        pivot_root(".", ".")
        umount(".")
        mount("", "/", flags=MS_REMOUNT | MS_BIND | _READ_ONLY)
        os.chdir("/")

    def _assemble(self, name: str) -> str:
        """Make a root with the system folders in it, and empty folders for the other mounts."""
        root = f"{self._base}/{name}"
        os.makedirs(root, 0o755, exist_ok=True)
        mount("tmpfs", root, "tmpfs", _NO_DEVICES, "mode=755,size=1m,nr_inodes=2k")
        for shown in (*self._system, "etc", "dev"):
            if os.path.islink(f"/{shown}"):
                os.symlink(os.readlink(f"/{shown}"), f"{root}/{shown}")
            else:
                _bind(f"{self._base}/{shown}", f"{root}/{shown}")
        for own in ("proc", STEP_DIR[1:], "var", "run"):
            os.mkdir(f"{root}/{own}", 0o755)
        return root

    def _show_resolving(self, root: str) -> None:
        for name in RESOLVING:
            with suppress(FileNotFoundError):
                source = os.path.realpath(f"/etc/{name}", strict=True)
                mount(source, f"{root}/etc/{name}", flags=MS_BIND)
                restrict_mounts(f"{root}/etc/{name}", _READ_ONLY)

    def _wanted(self, profile: Profile) -> list[tuple[str, int]]:
        """The further paths that exist, each with the flags of its mount."""
        reads = _outermost((*self._config.reads, *profile.readable))
        wanted = [(path, _READ_ONLY) for path in reads if not self._is_shown(path)]
        wanted += [(path, _NO_DEVICES) for path in self._config.writes]
        return [(path, flags) for path, flags in wanted if os.path.exists(path)]

    def _is_shown(self, path: str) -> bool:
        return path.split("/")[1] in self._system and not self._is_hidden(path)

    def _is_hidden(self, path: str) -> bool:
        return any(_is_within(path, secret) for secret in self._config.hidden)

    def _hide(self, root: str) -> list[str]:
        """Cover hidden paths with empty folders or files; returns the empty folders."""
        masks = []
        for path in self._config.hidden:
            if os.path.isdir(root + path):
                mount("tmpfs", root + path, "tmpfs", _NO_DEVICES, "mode=755,size=64k,nr_inodes=64")
                masks.append(root + path)
            elif os.path.exists(root + path):
                mount(f"{root}/dev/null", root + path, flags=MS_BIND)
        return masks

    def renew(self, user: int, group: int) -> None:
        """Mount an empty folder for the next step, inside a root that `enter` has entered."""
        umount(STEP_DIR)
        self._mount_folder(STEP_DIR, user, group)

    def _mount_folder(self, path: str, user: int, group: int) -> None:
        size = f"size={self._config.disk},nr_inodes={self._config.inodes}"
        mount("tmpfs", path, "tmpfs", _NO_DEVICES, f"mode=700,uid={user},gid={group},{size}")


def show_files(tree: int) -> None:
    """Show *tree*, from `open_tree`, read-only to the step in whose namespace this is called."""
    target = f"{STEP_DIR}/{FILES}"
    os.mkdir(target)
    move_mount(tree, target)
    restrict_mounts(target, _READ_ONLY)


def hide_files() -> None:
    """Undo `show_files` after the step, so that the mounts are as before it."""
    umount(f"{STEP_DIR}/{FILES}")


def _link_temporary(root: str) -> None:
    for link in ("tmp", "var/tmp"):
        if not os.path.lexists(f"{root}/{link}"):  # else a visible path lies below it
            os.symlink(f"{STEP_DIR}/tmp", f"{root}/{link}")  # noqa: S108 - the step's own


def _outermost(paths: Iterable[str]) -> list[str]:
    """*paths* without the paths that lie below another of *paths*."""
    found: list[str] = []
    for path in sorted(set(paths)):
        if not found or not path.startswith(f"{found[-1]}/"):
            found.append(path)
    return found


def _copy_setting(source: str, target: str) -> None:
    """Copy *source* to *target*. A link into a system folder stays a link."""
    os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
    real = os.path.realpath(source)
    if os.path.islink(source) and real.split("/")[1] in SYSTEM:
        os.symlink(real, target)
    elif os.path.isdir(real):
        _bind(real, target)
    elif os.path.isfile(real) and os.access(real, os.R_OK):
        with open(real, "rb") as file:
            _write(target, file.read())


def _show(source: str, target: str, flags: int) -> None:
    _bind(source, target)
    restrict_mounts(target, flags)


def _bind(source: str, target: str) -> None:
    """Mount *source* also at *target*, with all mounts below it."""
    _place(source, target)
    mount(source, target, flags=MS_BIND | MS_REC)


def _place(source: str, target: str) -> None:
    """Make an empty folder or file at *target*, to mount *source* on."""
    if os.path.isdir(source):
        os.makedirs(target, 0o755, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
        _write(target)


def _seal(folder: str, flags: int) -> None:
    """Make *folder* a mount of its own, and set *flags* on it and on all mounts inside it."""
    mount(folder, folder, flags=MS_BIND | MS_REC)
    restrict_mounts(folder, flags)


def _write(path: str, content: bytes = b"") -> None:
    with suppress(FileExistsError):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        os.write(fd, content)
        os.close(fd)


def carve(paths: Iterable[str], hidden: Iterable[str]) -> Iterator[str]:
    """
    *paths* without what is *hidden*, for rules that can only allow.

    A folder with a hidden path below it is replaced by its other entries. A path that is named
    explicitly stays, even inside a hidden path.
    """
    hidden = tuple(hidden)
    for path in paths:
        if any(secret != path and _is_within(secret, path) for secret in hidden):
            with suppress(OSError):
                below = (f"{path}/{name}" for name in os.listdir(path))
                yield from carve((one for one in below if one not in hidden), hidden)
        elif path not in hidden:
            yield path


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
