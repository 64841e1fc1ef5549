"""
The filter for the sockets of a step with network access: it keeps the server's ports to the server.

The kernel suspends each `connect`, `bind` and `listen` of the step until the supervisor answers.
The supervisor reads the address from the caller's memory once and, if `Ports` allows it, makes the
call itself, on the caller's own socket: the checked address is the one that is used, whatever the
caller does to its memory meanwhile. Only the caller waits for a slow peer.

Other threads of the step can change the flags of the socket at any moment, so every call on it may
block. The filter therefore makes these calls in a thread of its own. A step that blocks this thread
delays only its own calls; the supervisor still watches the step. Decision 254. Standard library
only.
"""

import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from adapters_runtime.sandbox.isolation.syscall_numbers import number_here
from adapters_runtime.sandbox.isolation.syscalls import syscall
from adapters_runtime.sandbox.ports import Ports, family_of, host_and_port, packed

_RECEIVE, _ANSWER, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_NOTICE = struct.Struct("QIIiIQ6Q")
_REPLY = struct.Struct("QqiI")
_INT = 0xFFFFFFFF
_LONGEST_ADDRESS = 128
_ANYWHERE = {4: b"\0" * 4, 16: b"\0" * 16}
_SIZES = {socket.AF_INET: 16, socket.AF_INET6: 28}
_PORTS_CHOSEN = "/proc/sys/net/ipv4/ip_local_port_range"
_FIRST_FREE = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
_PATIENCE_S = 1.0

_libc = ctypes.CDLL(None, use_errno=True)


class ConnectFilter:
    """
    Answers the calls that arrive at *listener* by the rules of *ports*, until no process of the
    step is left; closes *listener* at the end. Raises `OSError`.
    """

    def __init__(self, listener: int, ports: Ports) -> None:
        self._listener = listener
        self._ports = ports
        self._bind, self._listen = number_here("bind"), number_here("listen")
        self._chooses = ports.may_meet(*_numbers(_PORTS_CHOSEN))
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        self._on_decided: dict[int, Callable[[], None]] = {}
        self._thread = threading.Thread(target=self._serve, daemon=True)
        try:
            self._thread.start()
        except RuntimeError as trouble:
            raise OSError(errno.EAGAIN, str(trouble)) from None

    def has_ended(self) -> bool:
        """
        Whether the thread has ended, as it does soon after its step. A thread that a step blocks
        beyond the step's end ends with this process.
        """
        self._thread.join(_PATIENCE_S)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        try:
            while self._answers():
                pass
        finally:
            for fd in (self._listener, *self._on_decided):
                os.close(fd)

    def _answers(self) -> bool:
        """Answer what has arrived; returns whether a process of the step is left."""
        for fd, events in self._poll.poll():
            if fd != self._listener:
                self._on_decided[fd]()
            elif events & select.POLLIN:
                self._on_notice()
            else:
                return False
        return True

    def watch(self, fd: int, on_decided: Callable[[], None]) -> None:
        """Call *on_decided* when the connection of the socket *fd* has succeeded or failed."""
        self._on_decided[fd] = on_decided
        self._poll.register(fd, select.POLLOUT)

    def forget(self, fd: int) -> None:
        """End the `watch` of *fd*."""
        del self._on_decided[fd]
        self._poll.unregister(fd)

    def _on_notice(self) -> None:
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notice)
        except OSError:
            return  # the caller is gone
        id, thread, _, call, _, _, fd, *arguments = _NOTICE.unpack(notice)
        try:
            if call == self._listen:
                with self._borrowed(id, thread, fd) as borrowed:
                    error = self._answer_listen(borrowed, arguments[0] & _INT)
            elif call == self._bind:
                address = _read_memory(thread, *arguments[:2])
                with self._borrowed(id, thread, fd, socket.AF_NETLINK) as borrowed:
                    error = self._answer_bind(borrowed, address)
            else:
                address = _read_memory(thread, *arguments[:2])
                with self._borrowed(id, thread, fd) as borrowed:
                    error = self._ports.of_connect(address, _is_here)
                    if not error:
                        _Connecting(self, id, os.dup(borrowed), address)
                        return  # `_Connecting` answers
        except OSError as trouble:
            error = trouble.errno or errno.EINVAL
        except OverflowError:  # an address that no memory has
            error = errno.EFAULT
        self.answer(id, error)

    @contextmanager
    def _borrowed(self, id: int, thread: int, fd: int, *more: int) -> Iterator[int]:
        """The caller's socket as a descriptor of this process. Raises `OSError`."""
        # The call still waits, so the memory that was read before was this thread's.
        fcntl.ioctl(self._listener, _IS_VALID, struct.pack("Q", id))
        borrowed = _borrow(thread, fd, (*_SIZES, *more))
        try:
            yield borrowed
        finally:
            os.close(borrowed)

    def _answer_bind(self, fd: int, address: bytes) -> int:
        if error := self._ports.of_bind(address, _numbers(_FIRST_FREE)[0]):
            return error
        is_chosen = family_of(address) != socket.AF_NETLINK and not host_and_port(address)[1]
        if self._chooses and is_chosen:
            address = self._with_port(fd, address)
        return ctypes.get_errno() if _libc.bind(fd, address, len(address)) else 0

    def _answer_listen(self, fd: int, backlog: int) -> int:
        """
        Bind the socket if it is not bound, then listen; returns the number of the error, or 0.

        The kernel would bind the socket at every address, to a port of its choice. Whether a socket
        is bound cannot be read from its name: after a failed connection the name is that of the
        previous connection.
        """
        with socket.socket(fileno=os.dup(fd)) as caller:
            anywhere = struct.pack("H", caller.family).ljust(_SIZES[caller.family], b"\0")
            error = self._answer_bind(fd, anywhere)
            if error and error != errno.EINVAL:  # which means that it is bound
                return error
            name = caller.getsockname()
        if error := self._ports.of_listen(packed(name[0]), name[1]):
            return error
        return ctypes.get_errno() if _libc.listen(fd, backlog) else 0

    def _with_port(self, fd: int, address: bytes) -> bytes:
        """Returns *address* with a port that the kernel chose and that is not reserved."""
        with socket.socket(fileno=os.dup(fd)) as caller, ExitStack() as held:
            while True:  # each reserved port is held, so that the kernel chooses another one
                tried = held.enter_context(socket.socket(caller.family, caller.type, caller.proto))
                if _libc.bind(tried.fileno(), address, len(address)):
                    raise OSError(ctypes.get_errno(), "cannot be bound to")
                port = int(tried.getsockname()[1])
                if self._ports.is_unreserved(port):
                    return address[:2] + port.to_bytes(2, "big") + address[4:]

    def answer(self, id: int, error: int) -> None:
        """
        Let the call *id* return with the error number *error*; if *error* is 0, the call succeeds.
        """
        with suppress(OSError):  # the caller may be gone
            fcntl.ioctl(self._listener, _ANSWER, _REPLY.pack(id, 0, -error, 0))


class _Connecting:
    """A socket of the step during its `connect`."""

    def __init__(self, connect_filter: ConnectFilter, id: int, fd: int, address: bytes) -> None:
        self._filter = connect_filter
        self._id = id
        self._fd = fd
        self._flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        self._waits = not self._flags & os.O_NONBLOCK
        if self._waits:
            fcntl.fcntl(fd, fcntl.F_SETFL, self._flags | os.O_NONBLOCK)
        failed = _libc.connect(fd, address, len(address))
        error = ctypes.get_errno() if failed else 0
        if self._waits and error in (errno.EINPROGRESS, errno.EALREADY):
            connect_filter.watch(fd, self._on_decided)
        else:
            self._end(error)

    def _on_decided(self) -> None:
        self._filter.forget(self._fd)
        with socket.socket(fileno=os.dup(self._fd)) as decided:
            self._end(decided.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

    def _end(self, error: int) -> None:
        if self._waits:
            fcntl.fcntl(self._fd, fcntl.F_SETFL, self._flags)
        os.close(self._fd)
        self._filter.answer(self._id, error)


def _read_memory(thread: int, where: int, length: int) -> bytes:
    """The readable part of the address that a caller passed. Raises `OSError`."""
    if not 0 <= length & _INT <= _LONGEST_ADDRESS:
        raise OSError(errno.EINVAL, "no address is as long")
    fd = os.open(f"/proc/{thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, length & _INT, where)
    finally:
        os.close(fd)


def _borrow(thread: int, fd: int, families: tuple[int, ...]) -> int:
    """
    The socket *fd* of *thread* as a descriptor of this process.

    Raises `OSError` if *fd* is no socket of these *families*.
    """
    process = os.pidfd_open(_process_of(thread))
    try:
        borrowed = syscall("pidfd_getfd", process, fd & _INT, 0)
    finally:
        os.close(process)
    with socket.socket(fileno=os.dup(borrowed)) as known:  # raises if it is no socket
        if known.family in families:
            return borrowed
    os.close(borrowed)
    raise OSError(errno.EAFNOSUPPORT, "no such connections here")


def _process_of(thread: int) -> int:
    with open(f"/proc/{thread}/status", "rb", buffering=0) as status:
        for line in status.readall().splitlines():
            if line.startswith(b"Tgid:"):
                return int(line.split()[1])
    return thread


def _is_here(host: bytes) -> bool:
    """Whether a packed address is this machine's own. Only such addresses can be bound to."""
    if len(host) not in _ANYWHERE:
        return False
    if host == _ANYWHERE[len(host)]:
        return True
    family = socket.AF_INET if len(host) == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as tried:
            tried.bind((socket.inet_ntop(family, host), 0))
    except OSError as trouble:
        return trouble.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
    return True


def _numbers(path: str) -> list[int]:
    with open(path, "rb", buffering=0) as file:
        return [int(word) for word in file.readall().split()]
