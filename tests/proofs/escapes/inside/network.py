"""Whom it talks to."""

import ctypes
import socket
import struct
import sys
import threading
import time
from contextlib import contextmanager

from tests.proofs.escapes.inside.calls import connected, libc

# Network of a step that has none


def connect_to_server(t):
    with socket.create_connection(("127.0.0.1", t["server_port"]), 5) as tried:
        tried.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        return b"200" in tried.recv(1000)


def connect_to_port(t):
    return connected(socket.AF_INET, ("127.0.0.1", t["port"]))


def send_datagram(t):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        tried.settimeout(1)
        tried.sendto(b"x", ("127.0.0.1", t["datagram_port"]))
        return tried.recv(10)


def connect_to_path(t):
    return connected(socket.AF_UNIX, t["public"] + "/socket")


def connect_to_abstract(t):
    return connected(socket.AF_UNIX, "\0" + t["abstract"])


def list_interfaces(t):
    return [name for _, name in socket.if_nameindex() if name != "lo"]


def raw_packets(t):
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    return True


def to_the_hypervisor(t):
    socket.socket(40, socket.SOCK_STREAM).close()
    return True


def kernel_crypto(t):
    socket.socket(38, socket.SOCK_SEQPACKET).close()
    return True


def kernel_events(t):
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15).close()
    return True


# Network of a step that has it


def connect_anywhere_else(t):
    return connect_to_port(t)


def connect_by_other_name(t):
    for host in ("0.0.0.0", "127.1.2.3"):
        try:
            return socket.create_connection((host, t["server_port"]), 5)
        except OSError:
            pass
    return False


def connect_by_own_address(t):
    return socket.create_connection((t["own_address"], t["server_port"]), 5)


def connect_as_ipv6(t):
    with socket.socket(socket.AF_INET6) as tried:
        tried.connect(("::ffff:127.0.0.1", t["server_port"]))
    return True


def connect_without_waiting(t):
    with socket.socket() as tried:
        tried.setblocking(False)
        error = tried.connect_ex(("127.0.0.1", t["server_port"]))
        return error in (0, 115)


def connect_by_sending(t):
    with socket.socket() as tried:
        return tried.sendto(b"GET / HTTP/1.0\r\n\r\n", 0x20000000, ("127.0.0.1", t["server_port"]))


def is_server(tried, t):
    """Whether that is who answered; the other greets at once and hangs up."""
    tried.settimeout(0.2)
    try:
        tried.recv(10)
    except TimeoutError:
        return tried.getpeername()[1] == t["server_port"]
    except OSError:
        pass
    return False


@contextmanager
def changing(*ports):
    """An address of this machine, whose port another thread changes all the time."""
    family = struct.pack("=H", socket.AF_INET)
    address = bytearray(family + bytes((0, 0, 127, 0, 0, 1)) + bytes(8))
    written = [struct.pack(">H", port) for port in ports]
    going = True

    def change():
        while going:
            for port in written:
                address[2:4] = port

    sys.setswitchinterval(0.0001)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield (ctypes.c_char * 16).from_buffer(address)
    finally:
        going = False
        thread.join()


def connect_while_it_looks(t):
    """The address is changed all the time by another thread, from an allowed one and back."""
    with changing(t["port"], t["server_port"]) as place:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            with socket.socket() as tried:
                if libc.connect(tried.fileno(), place, 16) == 0 and is_server(tried, t):
                    return True
    return False


# Who listens


def listened(host, port, family=socket.AF_INET):
    with socket.socket(family) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        tried.bind((host, port))
        tried.listen()
    return True


def listen_on_loopback(t):
    return listened("127.0.0.1", t["free_port"])


def listen_everywhere(t):
    return listened("0.0.0.0", t["free_port"])


def listen_by_ipv6(t):
    return listened("::1", t["server_port"], socket.AF_INET6)


def listen_without_address(t):
    with socket.socket() as tried:
        tried.listen()
    return True


def listen_as_relay(t):
    return listened("127.0.0.1", t["relay_port"])


def listen_by_other_name(t):
    return listened("127.0.0.77", t["relay_port"])


def listen_as_mapped(t):
    with socket.socket(socket.AF_INET6) as tried:
        tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        tried.bind(("::ffff:127.0.0.1", t["relay_port"]))
        tried.listen()
    return True


def listen_while_it_looks(t):
    """The port is changed all the time by another thread, from an allowed one and back."""
    with changing(t["free_port"], t["relay_port"]) as place:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            with socket.socket() as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                bound = libc.bind(tried.fileno(), place, 16) == 0
                if bound and tried.getsockname()[1] == t["relay_port"]:
                    return True
    return False


def take_datagrams_as_relay(t):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        tried.bind(("127.0.0.1", t["relay_port"]))
    return True


def take_datagrams_by_ipv6(t):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as tried:
        tried.bind(("::1", t["server_port"]))
    return True


def share_a_port(t):
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return True


def choose_ports(t):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        tried.setsockopt(socket.IPPROTO_IP, 51, struct.pack("I", t["relay_port"] * 0x10001))
    return True


def take_datagrams(t):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        tried.bind(("127.0.0.1", t["free_port"]))
    return True


def other_protocol(t):
    for number in (132, 262, 33):  # SCTP, MPTCP, DCCP
        try:
            socket.socket(socket.AF_INET, socket.SOCK_STREAM, number).close()
            return True
        except OSError:
            pass
    return False


def be_told_of_routes(t):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as tried:
        tried.bind((0, 1))
    return True


def join_routes(t):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as tried:
        tried.bind((0, 0))
        tried.setsockopt(270, 1, 1)
    return True
