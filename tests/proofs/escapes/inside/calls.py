"""
What the probes do, as the text of a step: plain Python, without anything of ours.

Each function tries one thing that a step must not be able to do, and says whether it could. `t`
are the targets: what there is to reach. An `OSError` means that it could not.

A step is one file: `trials` puts those of this folder together, this one first.
"""

import ctypes
import json
import os
import socket

libc = ctypes.CDLL(None, use_errno=True)
ARM = os.uname().machine == "aarch64"


def syscall(intel, arm, *arguments):
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    done = libc.syscall(ctypes.c_long(arm if ARM else intel), *words)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def called(function, *arguments):
    if function(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


def called_number(function, *arguments):
    number = function(*arguments)
    if number < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return number


def read(path):
    with open(path, "rb") as file:
        return file.read()


def opened(path, flags):
    os.close(os.open(path, flags | os.O_NONBLOCK))
    return True


def connected(family, address):
    with socket.socket(family) as tried:
        tried.settimeout(5)
        tried.connect(address)
        return tried.recv(100)


def status(name):
    for line in read("/proc/self/status").decode().splitlines():
        if line.startswith(name + ":"):
            return line.split()[1]
    return None


def proc(pid, name):
    return f"/proc/{pid}/{name}"


def run(names, t):
    said = {}
    for name in names:
        try:
            said[name] = bool(globals()[name](t))
        except OSError:
            said[name] = False
    with open(os.environ["WF_OUTPUT"], "w") as output:
        json.dump(said, output)
