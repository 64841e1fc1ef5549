"""What it does with other processes, and what it finds that the server left."""

import ctypes
import os
import resource
import signal
import time

from tests.proofs.escapes.inside.calls import called_number, libc, opened, proc, read, syscall

# Processes


def list_processes(t):
    return t["secret"].encode() in read(proc(t["victim"], "cmdline"))


def read_environment(t):
    return t["secret"].encode() in read(proc(t["victim"], "environ"))


def read_map(t):
    return read(proc(t["victim"], "maps"))


def read_memory(t):
    local, remote = ctypes.create_string_buffer(8), (ctypes.c_void_p * 2)(t["address"], 8)
    mine = (ctypes.c_void_p * 2)(ctypes.addressof(local), 8)
    return called_number(libc.process_vm_readv, t["victim"], mine, 1, remote, 1, 0) > 0


def trace(t):
    seize, interrupt, detach = 0x4206, 0x4207, 17
    syscall(101, 117, seize, t["victim"], 0, 0)
    syscall(101, 117, interrupt, t["victim"], 0, 0)
    os.waitpid(t["victim"], 0x40000000)
    syscall(101, 117, detach, t["victim"], 0, 0)
    return True


def signal_server(t):
    os.kill(t["server"], 0)
    return True


def signal_victim(t):
    os.kill(t["victim"], 0)
    return True


def signal_by_descriptor(t):
    fd = os.pidfd_open(t["victim"])
    try:
        signal.pidfd_send_signal(fd, 0)
    finally:
        os.close(fd)
    return True


def signal_supervisor(t):
    parent = os.getppid()
    if parent == 1:  # the first process of a namespace: what kills others does nothing to it
        os.kill(parent, signal.SIGKILL)
        os.kill(parent, signal.SIGSTOP)
        time.sleep(0.05)
        return False
    os.kill(parent, 0)
    return True


def signal_neighbour(t):
    os.kill(t["neighbour"], 0)
    return True


def neighbours_environment(t):
    return t["secret"].encode() in read(proc(t["neighbour"], "environ"))


def limit(pid):
    return resource.prlimit(
        pid, resource.RLIMIT_FSIZE, resource.prlimit(pid, resource.RLIMIT_FSIZE)
    )


def slow(pid):
    os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))
    return True


def move(pid):
    os.sched_setaffinity(pid, os.sched_getaffinity(pid))
    return True


def limit_victim(t):
    return limit(t["victim"])


def slow_victim(t):
    return slow(t["victim"])


def move_victim(t):
    return move(t["victim"])


def limit_parent(t):
    return limit(os.getppid())


def slow_parent(t):
    return slow(os.getppid())


def move_parent(t):
    return move(os.getppid())


def doom_victim(t):
    return opened(proc(t["victim"], "oom_score_adj"), os.O_WRONLY)


def doom_parent(t):
    return opened(proc(os.getppid(), "oom_score_adj"), os.O_WRONLY)


def delay_parent(t):
    with open(proc(os.getppid(), "timerslack_ns"), "w") as file:
        file.write("50000")
    return True


def dump_parent(t):
    return opened(proc(os.getppid(), "coredump_filter"), os.O_WRONLY)


def queue_parent(t):
    """Its disk requests."""
    before = syscall(252, 31, 1, os.getppid())
    syscall(251, 30, 1, os.getppid(), before or 0x4004)
    return True


def reschedule_parent(t):
    parent = os.getppid()
    os.sched_setscheduler(parent, os.sched_getscheduler(parent), os.sched_getparam(parent))
    return True


def slow_user(t):
    os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_USER, 0))
    return True


def advise_victim(t):
    """That its memory may be taken from it."""
    fd = os.pidfd_open(t["victim"])
    try:
        page = 4096
        place = (ctypes.c_void_p * 2)(t["address"] // page * page, page)
        return syscall(440, 440, fd, place, 1, 20, 0) == page
    finally:
        os.close(fd)


def take_descriptor(t):
    fd = os.pidfd_open(t["victim"])
    try:
        os.close(syscall(438, 438, fd, 0, 0))
    finally:
        os.close(fd)
    return True


# What the server left open or said


def inherited_secret(t):
    return os.environ.get("SERVER_SECRET")


def inherited_descriptors(t):
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and os.path.exists("/proc/self/fd/" + name):  # else the listing's own
            return True
    return False


def supervisors_environment(t):
    read(proc(os.getppid(), "environ"))
    return True


def name_of_machine(t):
    return os.uname().nodename == t["hostname"]
