"""What it does with files."""

import ctypes
import fcntl
import os
import stat
import struct
import time
from contextlib import suppress

from tests.proofs.escapes.inside.calls import called, called_number, libc, opened, read, syscall


def read_database(t):
    return len(read(t["database"])) > 0


def read_signing_key(t):
    return len(read(t["signing_key"])) > 0


def list_data_folder(t):
    return os.listdir(t["data"])


def write_data_folder(t):
    with open(t["data"] + "/planted", "w") as file:
        file.write("x")
    os.unlink(t["data"] + "/planted")
    return True


def stat_database(t):
    return os.stat(t["database"]).st_size > 0


def follow_link(t):
    os.symlink(t["database"], "link")
    return len(read("link")) > 0


def link_file(t):
    os.link(t["owned"], "stolen")
    return read("stolen")


def read_outside(t):
    return read(t["public"] + "/public.txt")


def write_outside(t):
    with open(t["public"] + "/open/" + str(os.getpid()), "w") as file:
        file.write("x")
    return True


def list_outside(t):
    return os.listdir(t["public"])


def watch_outside(t):
    watch = called_number(libc.inotify_init1, os.O_CLOEXEC)
    try:
        return called(libc.inotify_add_watch, watch, t["public"].encode(), 0x100)
    finally:
        os.close(watch)


def watch_shared(t):
    watch = called_number(libc.inotify_init1, os.O_CLOEXEC)
    try:
        return called(libc.inotify_add_watch, watch, t["shared"].encode(), 0x20)
    finally:
        os.close(watch)


def watch_shared_for_all(t):
    by_handle = 0x200
    watch = called_number(libc.fanotify_init, by_handle, os.O_RDONLY)
    try:
        opens = ctypes.c_uint64(0x20)
        return called(libc.fanotify_mark, watch, 1, opens, -100, t["shared"].encode())
    finally:
        os.close(watch)


def lock_shared(t):
    fd = os.open(t["shared"], os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    finally:
        os.close(fd)


def list_home(t):
    return t["in_home"] and set(t["in_home"]) <= set(os.listdir(t["home"]))


def list_logs(t):
    return os.listdir("/var/log") is not None


def list_devices_of_kernel(t):
    return os.listdir("/sys/kernel")


def read_shadow(t):
    return read("/etc/shadow")


def write_system(t):
    return opened("/usr/lib/os-release", os.O_WRONLY)


def change_mode(t):
    path = t["public"] + "/mode.txt"
    os.chmod(path, 0o644)
    return stat.S_IMODE(os.stat(path).st_mode) == 0o644


def change_shared(t, change):
    """Whether *change* does anything to a file of the server's that every step may read."""
    fd = os.open(t["shared"], os.O_RDONLY)
    try:
        before = os.fstat(fd).st_ctime_ns
        while time.time_ns() < before + 20_000_000:  # two ticks of the coarsest clock of files
            time.sleep(0.005)
        with suppress(OSError):
            change(fd)
        return os.fstat(fd).st_ctime_ns != before
    finally:
        os.close(fd)


def change_shared_mode(t):
    return change_shared(t, lambda fd: os.fchmod(fd, 0o4750))


def change_shared_owner(t):
    return change_shared(t, lambda fd: os.fchown(fd, os.getuid(), os.getgid()))


def change_shared_times(t):
    return change_shared(t, lambda fd: os.utime(fd, (1, 1)))


def change_shared_attributes(t):
    return change_shared(t, lambda fd: os.setxattr(fd, "user.probe", b"x"))


def change_shared_flags(t):
    flags = struct.pack("q", 0x40)  # not to be dumped
    return change_shared(t, lambda fd: fcntl.ioctl(fd, 0x40086602, flags))


def change_shared_by_newest_call(t):
    attributes = ctypes.create_string_buffer(struct.pack("QIIII", 0x80, 0, 0, 0, 0))
    path = t["shared"].encode()
    return change_shared(t, lambda fd: syscall(469, 469, -100, path, attributes, 24, 0))


def lease_shared(t):
    fd = os.open(t["shared"], os.O_RDONLY)
    try:
        return fcntl.fcntl(fd, 1024, fcntl.F_RDLCK) == 0
    finally:
        os.close(fd)


def truncate(t):
    path = t["public"] + "/truncate.txt"
    os.truncate(path, 0)
    return os.stat(path).st_size == 0


def remove(t):
    os.unlink(t["public"] + "/remove.txt")
    return True


def open_devices(t):
    names = ("kmsg", "mem", "fuse", "kvm", "net/tun", "ptmx", "vda", "sda", "loop-control")
    for name in names:
        try:
            return opened("/dev/" + name, os.O_RDONLY)
        except OSError:
            pass
    return False


def make_device(t):
    os.mknod("device", stat.S_IFBLK | 0o600, os.makedev(7, 0))
    return True


def write_kernel_settings(t):
    return opened("/proc/sys/kernel/hostname", os.O_WRONLY)


def neighbours_file(t):
    return t["secret"].encode() in read(t["neighbour_file"])
