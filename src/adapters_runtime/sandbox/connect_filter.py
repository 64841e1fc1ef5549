"""
The gate for connections of a step with network access: it keeps the server's own port closed.

The filter suspends each `connect` of the step until the supervisor answers. The supervisor reads
the address from the caller's memory once and, if it may be reached, connects the caller's own
socket itself: what was checked is what is connected, whatever the caller does to its memory
meanwhile. Only the caller waits for a slow peer. Standard library only.
"""

import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress

from adapters_runtime.sandbox.isolation.syscalls import syscall

_RECEIVE, _ANSWER, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_NOTICE = struct.Struct("QIIiIQ6Q")
_REPLY = struct.Struct("QqiI")
_LONGEST_ADDRESS = 128
_MAPPED = b"\0" * 10 + b"\xff\xff"  # IPv4 written as IPv6
_ANYWHERE = {4: b"\0" * 4, 16: b"\0" * 16}

Listen = Callable[[int, int, Callable[[], None]], None]

_libc = ctypes.CDLL(None, use_errno=True)


class Gate:
    """
    Answers requests at *listener*. *closed* are (address, port); an empty address means any of this
    machine's.

    *listen* registers a function to be called when a descriptor is ready; *forget* removes it.
    """

    def __init__(
        self,
        listener: int,
        closed: Iterable[tuple[str, int]],
        listen: Listen,
        forget: Callable[[int], None],
    ) -> None:
        self._listener = listener
        self._closed = [(_packed(address), port) for address, port in closed]
        self.listen = listen
        self.forget = forget
        listen(listener, select.POLLIN, self._on_notice)

    def _on_notice(self) -> None:
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notice)
        except OSError:
            return  # the caller is gone
        id, thread, _, _, _, _, fd, where, length, *_ = _NOTICE.unpack(notice)
        try:
            address = _read_memory(thread, where, min(length, _LONGEST_ADDRESS))
            fcntl.ioctl(self._listener, _IS_VALID, struct.pack("Q", id))  # still the same thread
            borrowed = _borrow(thread, fd)
        except OSError as trouble:
            self.answer(id, trouble.errno or errno.EINVAL)
            return
        if self._is_closed(address):
            os.close(borrowed)
            self.answer(id, errno.EACCES)
        else:
            _Connecting(self, id, borrowed, address)

    def _is_closed(self, address: bytes) -> bool:
        host, port = _host_and_port(address)
        return any(
            port == closed_port and (host == closed if closed else _is_here(host))
            for closed, closed_port in self._closed
        )

    def answer(self, id: int, error: int) -> None:
        """Let the call *id* return, with *error* unless it is 0."""
        with suppress(OSError):  # nobody may wait for it any more
            fcntl.ioctl(self._listener, _ANSWER, _REPLY.pack(id, 0, -error, 0))


class _Connecting:
    """One socket of a caller while it is being connected."""

    def __init__(self, gate: Gate, id: int, fd: int, address: bytes) -> None:
        self._gate = gate
        self._id = id
        self._fd = fd
        self._flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        self._waits = not self._flags & os.O_NONBLOCK
        if self._waits:
            fcntl.fcntl(fd, fcntl.F_SETFL, self._flags | os.O_NONBLOCK)
        failed = _libc.connect(fd, address, len(address))
        error = ctypes.get_errno() if failed else 0
        if self._waits and error in (errno.EINPROGRESS, errno.EALREADY):
            gate.listen(fd, select.POLLOUT, self._on_decided)
        else:
            self._end(error)

    def _on_decided(self) -> None:
        self._gate.forget(self._fd)
        with socket.socket(fileno=os.dup(self._fd)) as asked:
            self._end(asked.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

    def _end(self, error: int) -> None:
        if self._waits:
            fcntl.fcntl(self._fd, fcntl.F_SETFL, self._flags)
        os.close(self._fd)
        self._gate.answer(self._id, error)


def _read_memory(thread: int, where: int, length: int) -> bytes:
    fd = os.open(f"/proc/{thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, length, where)
    finally:
        os.close(fd)


def _borrow(thread: int, fd: int) -> int:
    """The same open socket as a descriptor of ours. Only of the families that the gate knows."""
    process = os.pidfd_open(_process_of(thread))
    try:
        borrowed = syscall("pidfd_getfd", process, fd, 0)
    finally:
        os.close(process)
    with socket.socket(fileno=os.dup(borrowed)) as asked:  # raises where it is no socket
        if asked.family in (socket.AF_INET, socket.AF_INET6):
            return borrowed
    os.close(borrowed)
    raise OSError(errno.EAFNOSUPPORT, "no such connections here")


def _process_of(thread: int) -> int:
    with open(f"/proc/{thread}/status", "rb", buffering=0) as status:
        for line in status.readall().splitlines():
            if line.startswith(b"Tgid:"):
                return int(line.split()[1])
    return thread


def _host_and_port(address: bytes) -> tuple[bytes, int]:
    """Host and port of an IPv4 or IPv6 address; other addresses are never connected."""
    family = int.from_bytes(address[:2], sys.byteorder) if len(address) >= 8 else 0
    port = int.from_bytes(address[2:4], "big")
    if family == socket.AF_INET:
        return address[4:8], port
    if family == socket.AF_INET6 and len(address) >= 24:
        return address[8:24].removeprefix(_MAPPED), port
    return b"", 0


def _is_here(host: bytes) -> bool:
    """Whether a packed address is this machine's own: only those can be bound to."""
    if len(host) not in _ANYWHERE:
        return False
    if host == _ANYWHERE[len(host)]:
        return True
    family = socket.AF_INET if len(host) == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as tried:
        try:
            tried.bind((socket.inet_ntop(family, host), 0))
        except OSError as trouble:
            return trouble.errno != errno.EADDRNOTAVAIL
    return True


def _packed(address: str) -> bytes:
    if not address:
        return b""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.inet_pton(family, address).removeprefix(_MAPPED)
