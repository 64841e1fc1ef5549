"""What it asks of the kernel: privileges, namespaces, odd calls."""

import ctypes
import os
import struct

from tests.proofs.escapes.inside.calls import called, called_number, libc, proc, status, syscall


def gain_privileges(t):
    return status("NoNewPrivs") == "0"


def keep_capabilities(t):
    return int(status("CapPrm"), 16) != 0


def new_user_namespace(t):
    pid = os.fork()
    if pid == 0:
        os._exit(libc.unshare(0x10000000) != 0)
    return os.waitpid(pid, 0)[1] == 0


def clone_into_namespace(t):
    pid = syscall(56, 220, 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def clone3_into_namespace(t):
    arguments = struct.pack("11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
    pid = syscall(435, 435, ctypes.create_string_buffer(arguments, 88), 88)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def mount(t):
    os.makedirs("m", exist_ok=True)
    called(libc.mount, b"tmpfs", os.path.abspath("m").encode(), b"tmpfs", 0, None)
    called(libc.umount, os.path.abspath("m").encode())
    return True


def enter_namespace(t):
    with open(proc(t["server"], "ns/uts")) as namespace:
        return called(libc.setns, namespace.fileno(), 0)


def change_root(t):
    pid = os.fork()
    if pid == 0:
        os._exit(libc.chroot(b"/") != 0)
    return os.waitpid(pid, 0)[1] == 0


def load_program(t):
    attributes = struct.pack("IIIII", 2, 4, 8, 1, 0) + bytes(100)
    os.close(syscall(321, 280, 0, ctypes.create_string_buffer(attributes), len(attributes)))
    return True


def count_events(t):
    attributes = struct.pack("IIQ", 1, 120, 0) + bytes(104)
    os.close(syscall(298, 241, ctypes.create_string_buffer(attributes), 0, -1, -1, 0))
    return True


def handle_faults(t):
    os.close(syscall(323, 282, os.O_CLOEXEC))
    return True


def use_keys(t):
    return syscall(248, 217, b"user", b"wfcore-probe", b"x", 1, -2) > 0


def use_ring(t):
    os.close(syscall(425, 425, 4, ctypes.create_string_buffer(120)))
    return True


def memory_nobody_counts(t):
    os.close(syscall(319, 279, b"x", 0))
    return True


def shared_segment(t):
    id = syscall(29, 194, 0, 4096, 0o1600)
    libc.shmctl(id, 0, None)
    return True


def segment_of_others(t):
    """A segment of the server's user, by its number, which is easily guessed."""
    libc.shmat.restype = ctypes.c_void_p
    at = libc.shmat(t["segment"], None, 0)
    if at == ctypes.c_void_p(-1).value:
        return False
    libc.shmdt(ctypes.c_void_p(at))
    return True


def message_queue(t):
    name = b"wfcore-%d" % os.getpid()
    os.close(syscall(240, 180, name, os.O_CREAT | os.O_RDWR, 0o600, None))
    syscall(241, 181, name)
    return True


def personality(t):
    before = libc.personality(0xFFFFFFFF)
    called(libc.personality, before | 0x0040000)
    libc.personality(before)
    return True


def read_kernel_log(t):
    return called_number(libc.klogctl, 10, None, 0) > 0


def open_by_handle(t):
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount_id = ctypes.c_int()
    syscall(303, 264, -100, b"/usr", handle, ctypes.byref(mount_id), 0)
    return True
