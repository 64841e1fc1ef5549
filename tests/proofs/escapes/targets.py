"""What there is to reach: a server's files, processes and ports, and some of other people."""

import ctypes
import fcntl
import os
import secrets
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

SIOCGIFADDR = 0x8915

VICTIM = """
import ctypes, sys
kept = ctypes.create_string_buffer(8)
print(ctypes.addressof(kept), flush=True)
sys.stdin.read()
"""
RELAY = 25_725
"""Where a mail relay would be, and nobody is."""
DISK, FILES, PROCESSES, MEMORY = 8 << 20, 200, 40, 128 << 20


@contextmanager
def targets() -> Iterator[dict[str, Any]]:
    """Everything but what belongs to a server and its steps."""
    secret = f"secret_{secrets.token_hex(8)}"
    with ExitStack() as stack:
        public = stack.enter_context(_public())
        victim, address = stack.enter_context(_victim(secret))
        stack.enter_context(_listening(socket.AF_UNIX, f"{public}/socket"))
        stack.enter_context(_listening(socket.AF_UNIX, f"\0{secret}"))
        os.chmod(f"{public}/socket", 0o777)
        yield {
            "secret": secret,
            "public": public,
            "owned": f"{public}/owned.txt",
            "shared": stack.enter_context(_shared()),
            "segment": stack.enter_context(_segment()),
            "victim": victim,
            "address": address,
            "abstract": secret,
            "port": stack.enter_context(_listening(socket.AF_INET, ("127.0.0.1", 0))),
            "datagram_port": stack.enter_context(_echoing()),
            "own_address": _own_address(),
            "relay_port": RELAY,
            "free_port": RELAY + 1,
            **_home(),
            "hostname": os.uname().nodename,
            "disk": DISK,
            "files": FILES,
            "processes": PROCESSES,
            "memory": MEMORY,
        }


def _home() -> dict[str, Any]:
    home = os.path.expanduser("~")
    return {"home": home, "in_home": os.listdir(home) if os.access(home, os.R_OK) else []}


def renew(public: str) -> None:
    """The files that probes change or take away, as they were."""
    for name in ("owned", "mode", "truncate", "remove"):
        path = Path(public, f"{name}.txt")
        path.write_text("x")
        path.chmod(0o600)


@contextmanager
def _public() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="escapes-")
    try:
        os.chmod(folder, 0o755)
        Path(folder, "public.txt").write_text("x")
        Path(folder, "public.txt").chmod(0o644)
        Path(folder, "open").mkdir()
        Path(folder, "open").chmod(0o777)
        renew(folder)
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _shared() -> Iterator[str]:
    """A file that every step may read, alone in its folder."""
    with tempfile.TemporaryDirectory(prefix="shared-") as folder:
        os.chmod(folder, 0o755)
        path = Path(folder, "file.txt")
        path.write_text("x")
        path.chmod(0o644)
        yield str(path)


@contextmanager
def _segment() -> Iterator[int]:
    """A shared segment of the server's user."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.shmget(0, 4096, 0o1600)
    assert number >= 0
    yield number
    libc.shmctl(number, 0, None)


@contextmanager
def _victim(secret: str) -> Iterator[tuple[int, int]]:
    """A process of the server's user."""
    argv = [sys.executable, "-c", VICTIM, secret]
    env = {**os.environ, "SERVER_SECRET": secret}
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe, text=True) as victim:
        assert victim.stdout
        yield victim.pid, int(victim.stdout.readline())
        victim.kill()


@contextmanager
def _listening(family: int, address: Any) -> Iterator[int]:
    """Somebody who says a word to whoever connects."""
    with socket.socket(family) as listener:
        listener.bind(address)
        listener.listen(64)
        thread = threading.Thread(target=_greet, args=(listener,), daemon=True)
        thread.start()
        yield listener.getsockname()[1] if family == socket.AF_INET else 0
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def _greet(listener: socket.socket) -> None:
    while True:
        try:
            guest, _ = listener.accept()
        except OSError:
            return
        with guest:
            try:
                guest.sendall(b"hello")
            except OSError:
                continue


@contextmanager
def _echoing() -> Iterator[int]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as echo:
        echo.bind(("127.0.0.1", 0))
        port = int(echo.getsockname()[1])
        thread = threading.Thread(target=_echo, args=(echo,), daemon=True)
        thread.start()
        yield port
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", ("127.0.0.1", port))
        thread.join()


def _echo(echo: socket.socket) -> None:
    while True:
        data, guest = echo.recvfrom(10)
        if not data:
            return
        echo.sendto(data, guest)


def _own_address() -> str:
    """An address of this machine's that is no loopback one, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            with suppress(OSError):  # an interface without an IPv4 address
                found = fcntl.ioctl(asking, SIOCGIFADDR, request)[20:24]
                if found[0] != 127:
                    return socket.inet_ntoa(found)
    return "127.0.0.1"
