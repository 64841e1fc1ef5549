"""How much it takes, and what it leaves running."""

import mmap
import os
import signal
import socket
import threading
import time
from contextlib import suppress

from tests.proofs.escapes.inside.calls import called, libc, syscall

# How much


def fill_disk(t):
    try:
        with open("filler", "wb", buffering=0) as file:
            for _ in range(t["disk"] * 2 >> 20):
                file.write(bytes(1 << 20))
            return os.fstat(file.fileno()).st_size > t["disk"]
    finally:
        os.unlink("filler")


def fill_folder(t):
    try:
        for number in range(t["files"] * 2):
            os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY))
    finally:
        for number in range(t["files"] * 2):
            if os.path.exists(f"f{number}"):
                os.unlink(f"f{number}")
    return True


def fill_memory(t):
    try:
        return len(bytearray(t["memory"] + (64 << 20)))
    except MemoryError:
        return False


def fill_process_table(t):
    born = []
    try:
        for _ in range(t["processes"] * 2):
            pid = os.fork()
            if pid == 0:
                time.sleep(30)
                os._exit(0)
            born.append(pid)
    finally:
        for pid in born:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return True


# Steps of their own: what they do shows in how they end, or in what is left of them.


def fill_memory_together(t):
    return filled_together(t, lambda: None)


def fill_memory_unread(t):
    """In processes that forbid others to look into them."""
    return filled_together(t, lambda: called(libc.prctl, 4, 0, 0, 0, 0))


def fill_memory_headless(t):
    """In processes whose first thread has ended, and with it what is told of it."""
    return filled_together(t, lambda: syscall(60, 93, 0))


def filled_together(t, hide):
    each = t["memory"] // 2

    def hold():
        kept = bytearray(os.urandom(1 << 20) * (each >> 20))
        time.sleep(3 if kept else 0)
        os._exit(0)

    for _ in range(6):
        if os.fork() == 0:
            threading.Thread(target=hold).start()
            hide()
            signal.pause()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return True


def fill_shared_memory(t):
    kept = []
    for _ in range(6):
        kept.append(mmap.mmap(-1, t["memory"] // 2))
        kept[-1].write(os.urandom(1 << 20) * (t["memory"] // 2 >> 20))
    time.sleep(3)
    return len(kept)


def drop_shared_memory(t):
    """Pages that are shared live on when the only process that knew them has dropped them."""
    return dropped(t, lambda size: mmap.mmap(-1, size))


def drop_shared_zeros(t):
    """The same by a device."""
    fd = os.open("/dev/zero", os.O_RDWR)
    return dropped(t, lambda size: mmap.mmap(fd, size))


def dropped(t, mapped):
    kept = []
    for _ in range(24):
        kept.append(mapped(t["memory"] // 4))
        for at in range(0, len(kept[-1]), mmap.PAGESIZE):
            kept[-1][at] = 1
        kept[-1].madvise(mmap.MADV_DONTNEED)
    time.sleep(3)
    return len(kept)


def fill_page_tables(t):
    """A page of a table for every 2 MiB that are looked at, though nothing is there."""
    step = 2 << 20
    pages = t["memory"] * 6 // mmap.PAGESIZE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # nothing is reserved
    kept = mmap.mmap(-1, pages * step, flags=flags, prot=mmap.PROT_READ)
    for at in range(pages):
        kept[at * step + mmap.PAGESIZE]
    time.sleep(3)
    return True


def fill_sockets(t):
    """As much as the kernel takes in each end of a pair, which nobody reads."""
    kept = []
    filled = 0
    while filled < t["memory"] * 2:
        kept.append(socket.socketpair())
        for end in kept[-1]:
            end.setblocking(False)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            with suppress(BlockingIOError):
                while True:
                    filled += end.send(bytes(32_768))
    time.sleep(3)
    return True


def flood(t):
    for _ in range(40):
        os.write(1, b"x" * 65_535 + b"\n")
    return True


def leave_orphan(t):
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            time.sleep(t["long"])
        os._exit(0)
    os.wait()
    return True


def outlive_timeout(t):
    leave_orphan(t)
    for fd in (0, 1, 2):
        os.close(fd)
    time.sleep(t["long"])


def fork_for_ever(t):
    """One chain is too quick to be looked at, one is slow enough to be seen."""
    end = time.monotonic() + t["long"]
    for pause in (0, 0.2):
        if os.fork() == 0:
            os.setsid()
            while time.monotonic() < end:
                if os.fork():
                    os._exit(0)
                time.sleep(pause)
            os._exit(0)
    time.sleep(t["long"])
