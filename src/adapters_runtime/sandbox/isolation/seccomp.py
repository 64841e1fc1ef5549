"""
The system call filter of a step, which refuses calls that no ordinary program needs.

The filter is the last line of defence. Other means prevent everything that the filter refuses, but
with the filter a step cannot even reach a kernel bug behind one of these calls.

Calls are refused for their effect, such as "changes an inode other than by writing to it". A test
checks that the lists of names are complete: it makes each call by its number, with and without the
filter. A call whose arguments the filter cannot see (`openat2`) does not exist for a step.

Standard library only.
"""

import ctypes
import struct
from collections.abc import Iterable, Iterator

from adapters_runtime.sandbox.isolation import landlock
from adapters_runtime.sandbox.isolation.syscall_numbers import AUDIT_ARCH, machine, number_of
from adapters_runtime.sandbox.isolation.syscalls import syscall

EPERM, ENOMEM, EMFILE, ENOTTY, ENOSYS, EOPNOTSUPP, EAFNOSUPPORT = 1, 12, 24, 25, 38, 95, 97
ENOPROTOOPT, EPROTONOSUPPORT = 92, 93
_ALLOW, _KILL, _ERRNO, _NOTIFY = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000
_NEW_LISTENER = 1 << 3

_NEW_NAMESPACES = 0x7E020000
_FAST_OPEN = 0x20000000
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_PROTOCOLS = (0, 1, 6, 17, 58)
"""ICMP, TCP and UDP. Other protocols have further calls to connect and to listen."""
_PORTS_AND_GROUPS = ((1, 15), (0, 51), (270, 1))
"""
The options of sockets, by level and name, with which a step could get what `bind` refuses.
SO_REUSEPORT shares a port, IP_LOCAL_PORT_RANGE (of IPv6, too) limits the ports that the kernel
chooses from, NETLINK_ADD_MEMBERSHIP subscribes to changes.
"""
WATCHED = ("connect", "bind", "listen")
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

_words = str.split

_REFUSED = _words("""
    mount umount2 pivot_root chroot fsopen fsconfig fsmount fspick open_tree move_mount
    mount_setattr open_tree_attr swapon swapoff reboot kexec_load kexec_file_load init_module
    finit_module delete_module create_module get_kernel_syms query_module bpf perf_event_open
    userfaultfd ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp
    pidfd_getfd keyctl add_key request_key unshare setns open_by_handle_at name_to_handle_at acct
    quotactl quotactl_fd syslog settimeofday clock_settime clock_adjtime adjtimex sethostname
    setdomainname iopl ioperm lookup_dcookie nfsservctl vhangup fanotify_init fanotify_mark
    migrate_pages move_pages memfd_secret shmget shmat shmctl msgget msgsnd msgrcv msgctl semget
    semop semtimedop semctl mq_open mq_unlink modify_ldt personality uselib ustat sysfs _sysctl
""")
"""The calls that fail with EPERM, whatever their arguments."""

_UNKNOWN = _words("""
    clone3 io_uring_setup io_uring_enter io_uring_register io_setup memfd_create
""")
"""
The calls that fail as on a kernel without them; programs then do without these calls. A filter
cannot see the arguments of `clone3`; memory of `memfd_create` is counted nowhere without a control
group; the requests of `io_setup` come out of one pool of the whole machine.
"""

# Landlock checks what is opened, and not what is done to an inode through a descriptor or a path.
# So these are all calls that change an inode and not its content.
_OWNERS_AND_ATTRIBUTES = _words("""
    chown lchown fchown fchownat
    setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat
    file_setattr
""")
"""The calls that fail with EOPNOTSUPP: programs that copy files take it for a poor file system."""
_MODES_AND_TIMES = _words("""
    chmod fchmod fchmodat fchmodat2 utime utimes futimesat utimensat
""")
"""
The calls that do nothing and report success: an error would break every program that copies files.
"""
_CREATES: dict[str, tuple[int | None, int]] = {
    "open": (1, 2),
    "openat": (2, 3),
    "creat": (None, 1),
    "mknod": (None, 1),
    "mknodat": (None, 2),
}
"""
The calls that make files, with the positions of their flags and their mode. None: the call always
makes a file.
"""
_O_CREAT, _O_TMPFILE, _SET_IDS = 0o100, 0o20000000, 0o6000
_FILE_SYSTEMS = tuple(letter << 8 for letter in b"fXvr\x94")
"""The types of `ioctl` requests to file systems, which set flags, projects and seals of inodes."""
_SETLEASE, _NOTIFY_OF_FOLDER, _SET_RW_HINT = 1024, 1026, 1036
_ON_INODES = (_SETLEASE, _NOTIFY_OF_FOLDER, _SET_RW_HINT)
"""The commands of `fcntl` that change or watch an inode through a descriptor for reading."""

_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
_OF_PROCESS = _words("prlimit64 sched_setaffinity sched_setscheduler sched_setparam sched_setattr")
"""The calls whose first argument is a process, where 0 is the caller."""
_OF_SOME = {"setpriority": 0, "ioprio_set": 1}
"""
The calls whose first argument says what the second identifies, with the value that means a process.
"""

Instruction = tuple[int, int, int, int]


class SyscallFilter:
    """
    A system call filter that refuses further calls, depending on the level.

    *sockets*: the allowed socket families. *watched*: the calls in `WATCHED` are referred to the
    owner of the listener. *same_files*: the step is in the server's file system, where Landlock
    does not hide metadata. *same_user*: the step runs as the server's own user, so changes that
    Landlock does not cover (modes, owners, attributes, times) are refused. *uncounted*: no control
    group counts the step's memory, so memory that can outlive its mappings is refused, because the
    supervisor could not measure it.
    """

    def __init__(
        self,
        sockets: tuple[int, ...],
        watched: bool = False,
        same_files: bool = False,
        same_user: bool = False,
        uncounted: bool = False,
    ) -> None:
        self.sockets = sockets
        self.watched = watched
        self.same_files = same_files
        self.same_user = same_user
        self.uncounted = uncounted

    def ready(self) -> "SyscallFilter":
        """Compile the program for this process and all that it forks; returns the filter."""
        code = self.code(machine())
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(self._code))
        return self

    def install(self) -> int | None:
        """
        Apply the filter to this process and its children; returns the listener if it is `watched`.

        `ready` must have been called.
        """
        listener = syscall("seccomp", 1, _NEW_LISTENER if self.watched else 0, self._program)
        return listener if self.watched else None

    def code(self, machine_name: str) -> bytes:
        """The instructions for the kernel."""
        instructions = [
            (_LOAD, 0, 0, _ARCH),
            (_EQUAL, 1, 0, AUDIT_ARCH[machine_name]),
            (_RETURN, 0, 0, _KILL),
            (_LOAD, 0, 0, _NUMBER),
        ]
        if machine_name == "x86_64":
            instructions += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _ERRNO | ENOSYS)]
        for name, body in self._rules():
            number = number_of(name, machine_name)
            if number is not None:
                instructions += [(_EQUAL, 0, len(body), number), *body]
        instructions.append((_RETURN, 0, 0, _ALLOW))
        return b"".join(struct.pack("HBBI", *one) for one in instructions)

    def _rules(self) -> Iterator[tuple[str, list[Instruction]]]:
        for name in _REFUSED:
            yield name, _refuse(EPERM)
        for name in _UNKNOWN:
            yield name, _refuse(ENOSYS)
        yield "clone", _refuse_bits(0, _NEW_NAMESPACES, EPERM)
        yield "ioctl", self._requests()
        yield "fcntl", _refuse_values(1, _ON_INODES, EPERM)
        for name in _OF_PROCESS:
            yield name, _allow_values(0, (0,), EPERM)
        for name, process in _OF_SOME.items():
            yield name, _allow_only(process, 0, EPERM)
        yield "socket", self._sockets()
        yield "socketpair", _allow_values(0, (_UNIX,), EAFNOSUPPORT)
        if self.watched:
            for name in WATCHED:
                yield name, [(_RETURN, 0, 0, _NOTIFY)]
            yield "setsockopt", _refuse_pairs(1, _PORTS_AND_GROUPS, ENOPROTOOPT)
            for name, argument in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
                yield name, _refuse_bits(argument, _FAST_OPEN, EOPNOTSUPP)
        if self.same_files:
            yield "inotify_add_watch", _refuse(EPERM)
        if self.same_user:
            yield from _same_user()
        if self.uncounted:
            yield "mmap", _no_anonymous_sharing()
            yield "vmsplice", _refuse(ENOSYS)

    def _requests(self) -> list[Instruction]:
        """Refuses requests that type into a terminal or change an inode of the server's."""
        keys = _refuse_values(1, (_TIOCSTI, _TIOCLINUX), EPERM)
        if not self.same_user:
            return keys
        kind = [(_LOAD, 0, 0, _argument(1)), (_AND, 0, 0, 0xFF00)]
        return [*kind, *_refuse_if_equal(_FILE_SYSTEMS, ENOTTY), *keys]

    def _sockets(self) -> list[Instruction]:
        if _NETLINK not in self.sockets:
            return _allow_values(0, self.sockets, EAFNOSUPPORT if self.sockets else EPERM)
        routes_only = [(_LOAD, 0, 0, _argument(2)), (_EQUAL, 0, 1, 0), (_RETURN, 0, 0, _ALLOW)]
        usual = _allow_values(2, _PROTOCOLS, EPROTONOSUPPORT)
        families = [family for family in self.sockets if family not in (_NETLINK, _UNIX)]
        return [
            (_LOAD, 0, 0, _argument(0)),
            *(_allow_if_equal((_UNIX,)) if _UNIX in self.sockets else ()),
            (_EQUAL, 0, len(routes_only), _NETLINK),
            *routes_only,
            *(one for family in families for one in ((_EQUAL, 0, len(usual), family), *usual)),
            (_RETURN, 0, 0, _ERRNO | EAFNOSUPPORT),
        ]


NO_SOCKETS = ()
OWN_NETWORK = (_UNIX, _INET, _INET6, _NETLINK)
SHARED_NETWORK = (_INET, _INET6, _NETLINK)


def _same_user() -> Iterator[tuple[str, list[Instruction]]]:
    if landlock.version() < landlock.KNOWS_TRUNCATE:
        yield "truncate", _refuse(EPERM)
    for name in _OWNERS_AND_ATTRIBUTES:
        yield name, _refuse(EOPNOTSUPP)
    for name in _MODES_AND_TIMES:
        yield name, [(_RETURN, 0, 0, _ERRNO)]  # reports success: see docs/isolation.md
    yield "openat2", _refuse(ENOSYS)  # its mode cannot be seen; programs have `openat`
    for name, (flags, mode) in _CREATES.items():
        yield name, _no_set_ids(flags, mode)
    for name in ("inotify_init", "inotify_init1"):  # the server's user has only a few in all
        yield name, _refuse(EMFILE)


def _no_set_ids(flags: int | None, mode: int) -> list[Instruction]:
    """Refuses new set-user-ID files, whose owner would be the server's user."""
    body = _refuse_bits(mode, _SET_IDS, EPERM)
    if flags is None:
        return body
    makes = [(_LOAD, 0, 0, _argument(flags)), (_ANY_BIT, 1, 0, _O_CREAT | _O_TMPFILE)]
    return [*makes, (_RETURN, 0, 0, _ALLOW), *body]


def _no_anonymous_sharing() -> list[Instruction]:
    """
    Refuses shared anonymous memory, which can outlive its mappings and then appears in no sum over
    processes.

    The other way to such memory is a writable `/dev/zero`, which `levels` and `filesystem` refuse.
    """
    flags = [(_LOAD, 0, 0, _argument(3))]
    for bit in (_MAP_SHARED, _MAP_ANONYMOUS):
        flags += [(_ANY_BIT, 1, 0, bit), (_RETURN, 0, 0, _ALLOW)]
    return [*flags, (_RETURN, 0, 0, _ERRNO | ENOMEM)]


def _refuse(errno: int) -> list[Instruction]:
    return [(_RETURN, 0, 0, _ERRNO | errno)]


def _refuse_bits(argument: int, bits: int, errno: int) -> list[Instruction]:
    return [
        (_LOAD, 0, 0, _argument(argument)),
        (_ANY_BIT, 0, 1, bits),
        (_RETURN, 0, 0, _ERRNO | errno),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _refuse_values(argument: int, values: Iterable[int], errno: int) -> list[Instruction]:
    held = (_LOAD, 0, 0, _argument(argument))
    return [held, *_refuse_if_equal(values, errno), (_RETURN, 0, 0, _ALLOW)]


def _refuse_if_equal(values: Iterable[int], errno: int) -> list[Instruction]:
    return [
        instruction
        for value in values
        for instruction in ((_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ERRNO | errno))
    ]


def _allow_values(argument: int, values: Iterable[int], errno: int) -> list[Instruction]:
    return [
        (_LOAD, 0, 0, _argument(argument)),
        *_allow_if_equal(values),
        (_RETURN, 0, 0, _ERRNO | errno),
    ]


def _refuse_pairs(first: int, pairs: Iterable[tuple[int, int]], errno: int) -> list[Instruction]:
    """Refuses calls whose argument *first* and the argument after it are one of *pairs*."""
    refused = [(_RETURN, 0, 0, _ERRNO | errno)]
    held, other_held = (_LOAD, 0, 0, _argument(first)), (_LOAD, 0, 0, _argument(first + 1))
    return [
        instruction
        for one, other in pairs
        for instruction in (held, (_EQUAL, 0, 3, one), other_held, (_EQUAL, 0, 1, other), *refused)
    ] + [(_RETURN, 0, 0, _ALLOW)]


def _allow_only(first: int, second: int, errno: int) -> list[Instruction]:
    """Allows calls only with *first* and *second* as first arguments."""
    refused = (_RETURN, 0, 0, _ERRNO | errno)
    held = (_LOAD, 0, 0, _argument(0))
    return [held, (_EQUAL, 1, 0, first), refused, *_allow_values(1, (second,), errno)]


def _allow_if_equal(values: Iterable[int]) -> list[Instruction]:
    return [
        instruction
        for value in values
        for instruction in ((_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW))
    ]


def _argument(index: int) -> int:
    return _ARGUMENTS + 8 * index
