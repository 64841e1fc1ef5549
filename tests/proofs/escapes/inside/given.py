"""What it does with the files of an earlier step, and in the place of its state."""

import ctypes
import os

from tests.proofs.escapes.inside.calls import called, libc


def given_file(name):
    return os.environ["WF_FILES"] + "/leave/" + name


def opened_up(name):
    for path in (os.path.dirname(given_file(name)), given_file(name)):
        try:
            os.chmod(path, 0o777)
        except OSError:
            """Perhaps it can be written to all the same."""
    return given_file(name)


def written(path):
    with open(path, "w") as file:
        file.write("changed")
    return True


def write_given(t):
    return written(opened_up("write_given"))


def write_given_by_proc(t):
    fd = os.open(opened_up("write_given_by_proc"), os.O_RDONLY)
    return written("/proc/self/fd/" + str(fd))


def empty_given(t):
    os.truncate(opened_up("empty_given"), 0)
    return True


def replace_given(t):
    written("other")
    os.rename("other", opened_up("replace_given"))
    return True


def remove_given(t):
    os.unlink(opened_up("remove_given"))
    return True


def remount_given(t):
    tree = os.environ["WF_FILES"].encode()
    remount = ctypes.c_ulong(32 | 4096)
    try:
        called(libc.mount, b"", tree, b"", remount, None)
    except OSError:
        """Perhaps it was writable from the beginning."""
    return written(opened_up("remount_given"))


def changed_files(names):
    """Which files of the earlier step are not as it left them: each holds its own name."""
    said = {}
    for name in names:
        try:
            with open(given_file(name)) as file:
                said[name] = file.read() != name
        except OSError:
            said[name] = True
    return said


def leave_files(folder, names):
    for name in names:
        with open(folder + "/" + name, "w") as file:
            file.write(name)


def state_by_link(t):
    os.symlink(t["database"], os.environ["WF_STATE"])
    return True


def state_by_name(t):
    with open("state", "w") as file:
        file.write("{}")
    os.link("state", os.environ["WF_STATE"])
    return True


def state_by_pipe(t):
    os.mkfifo(os.environ["WF_STATE"])
    return True


def state_by_size(t):
    with open(os.environ["WF_STATE"], "w") as file:
        file.truncate(64 << 20)
    return True
