"""The system call filter says what it should, on every machine that it is made for."""

import struct
from collections.abc import Sequence

import pytest

from adapters_runtime.sandbox.isolation import seccomp
from adapters_runtime.sandbox.isolation.seccomp import SyscallFilter
from adapters_runtime.sandbox.isolation.syscall_numbers import AUDIT_ARCH, MACHINES, number_of

ALLOWED, KILLED, NOTIFIED = 0x7FFF0000, 0x80000000, 0x7FC00000
NEW_USER, SIGCHLD, VFORK = 0x10000000, 17, 0x4000 | 0x100


def verdict(code: bytes, arch: int, number: int, arguments: Sequence[int] = ()) -> int:
    """What the kernel would make of a call: the program, run step by step."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, arch, 0, *words)
    program = [struct.unpack_from("<HBBI", code, at) for at in range(0, len(code), 8)]
    held, at = 0, 0
    while True:
        kind, if_true, if_false, value = program[at]
        at += 1
        if kind == 0x20:
            (held,) = struct.unpack_from("<I", data, value)
        elif kind == 0x06:
            return int(value)
        else:
            holds = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[kind]
            at += if_true if holds else if_false


def refused(errno: int) -> int:
    return 0x00050000 | errno


def said_of_socket(filter: SyscallFilter, machine: str, protocol: int) -> bool:
    """Whether both internet families are refused with that protocol."""
    verdicts = {said(filter, machine, "socket", family, 1, protocol) for family in (2, 10)}
    assert len(verdicts) == 1
    return verdicts != {ALLOWED}


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def said(filter: SyscallFilter, machine: str, name: str, *arguments: int) -> int:
    number = number_of(name, machine)
    assert number is not None
    return verdict(filter.code(machine), AUDIT_ARCH[machine], number, arguments)


def test_what_is_refused_to_all(machine: str) -> None:
    """Mounting, tracing, keys, bpf and the like; new namespaces; what cannot be looked into."""
    usual = SyscallFilter(seccomp.OWN_NETWORK)
    for name in ("mount", "ptrace", "keyctl", "bpf", "setns", "unshare", "mq_open", "shmget"):
        assert said(usual, machine, name) == refused(1), name
    for name in ("clone3", "io_uring_setup", "memfd_create"):
        assert said(usual, machine, name) == refused(38), name
    assert said(usual, machine, "clone", NEW_USER | SIGCHLD) == refused(1)
    assert said(usual, machine, "ioctl", 0, 0x5412) == refused(1)


def test_what_programs_need(machine: str) -> None:
    """Forks, threads, ordinary sockets and terminals' questions pass."""
    usual = SyscallFilter(seccomp.OWN_NETWORK)
    assert said(usual, machine, "clone", SIGCHLD) == ALLOWED
    assert said(usual, machine, "clone", VFORK | SIGCHLD) == ALLOWED
    assert said(usual, machine, "ioctl", 0, 0x5401) == ALLOWED
    assert said(usual, machine, "connect") == ALLOWED
    assert said(usual, machine, "fchmodat") == ALLOWED
    assert said(usual, machine, "inotify_add_watch") == ALLOWED
    assert said(usual, machine, "socketpair", 1) == ALLOWED


@pytest.mark.parametrize(
    ("sockets", "families"),
    [
        (seccomp.NO_SOCKETS, set()),
        (seccomp.OWN_NETWORK, {1, 2, 10, 16}),
        (seccomp.SHARED_NETWORK, {2, 10, 16}),
    ],
)
def test_families_of_sockets(machine: str, sockets: tuple[int, ...], families: set[int]) -> None:
    """Only the families that a step is to have, and of the kernel's own only routes."""
    made = SyscallFilter(sockets)
    found = {family for family in range(64) if said(made, machine, "socket", family) == ALLOWED}
    assert found == families
    assert said(made, machine, "socket", 16, 3, 15) != ALLOWED
    assert said(made, machine, "socketpair", 2) != ALLOWED
    if families:
        usual = {protocol for protocol in range(300) if not said_of_socket(made, machine, protocol)}
        assert usual == {0, 1, 6, 17, 58}


def test_a_watched_network(machine: str) -> None:
    """Each `connect`, `bind` and `listen` is asked about, and no other call does the like."""
    watched = SyscallFilter(seccomp.SHARED_NETWORK, watched=True)
    for name in ("connect", "bind", "listen"):
        assert said(watched, machine, name) == NOTIFIED
    for level, option in ((1, 15), (0, 51), (270, 1)):
        assert said(watched, machine, "setsockopt", 3, level, option) == refused(92)
    for level, option in ((1, 2), (6, 15), (1, 51), (0, 1), (0, 15), (270, 2), (41, 51)):
        assert said(watched, machine, "setsockopt", 3, level, option) == ALLOWED
    at_once = 0x20000000
    assert said(watched, machine, "sendto", 0, 0, 0, at_once) == refused(95)
    assert said(watched, machine, "sendmsg", 0, 0, at_once) == refused(95)
    assert said(watched, machine, "sendmmsg", 0, 0, 0, at_once) == refused(95)
    assert said(watched, machine, "sendto") == ALLOWED


def test_the_servers_own_user(machine: str) -> None:
    """What Landlock does not see is refused; modes are left as they are."""
    same = SyscallFilter(seccomp.NO_SOCKETS, same_files=True, same_user=True)
    assert said(same, machine, "fchmodat") == refused(0)
    assert said(same, machine, "fchownat") == refused(95)
    assert said(same, machine, "inotify_add_watch") == refused(1)


@pytest.mark.parametrize("sockets", [seccomp.NO_SOCKETS, seccomp.OWN_NETWORK])
def test_limits_and_priorities(machine: str, sockets: tuple[int, ...]) -> None:
    """A process sets those of itself, called 0: of no other, nor of all that its user has."""
    made = SyscallFilter(sockets)
    setters = ("setaffinity", "setscheduler", "setparam", "setattr")
    for name in ("prlimit64", *(f"sched_{setter}" for setter in setters)):
        assert said(made, machine, name, 0) == ALLOWED, name
        assert said(made, machine, name, 1) == refused(1), name
    for name, process in (("setpriority", 0), ("ioprio_set", 1)):
        assert said(made, machine, name, process, 0) == ALLOWED, name
        for kind in range(4):
            assert said(made, machine, name, kind, 1) == refused(1), name
            if kind != process:
                assert said(made, machine, name, kind, 0) == refused(1), name


def test_other_machines_calls_end_the_process(machine: str) -> None:
    """Numbers mean something else in another machine's or another mode's calls."""
    code = SyscallFilter(seccomp.OWN_NETWORK).code(machine)
    for arch in (0x40000003, *(AUDIT_ARCH[other] for other in MACHINES if other != machine)):
        assert verdict(code, arch, 1) == KILLED
    if machine == "x86_64":
        assert verdict(code, AUDIT_ARCH[machine], 0x40000000 | 1) == refused(38)


def test_unknown_calls_pass(machine: str) -> None:
    """It is a list of what is refused: new calls of the kernel's are not broken by it."""
    code = SyscallFilter(seccomp.OWN_NETWORK).code(machine)
    assert verdict(code, AUDIT_ARCH[machine], 9_999) == ALLOWED
