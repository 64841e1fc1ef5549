"""
Where a provider's name leads to: looked up once, checked, and connected to as it was checked.

Which addresses an operator points to is the operator's business, loopback and private ones
too: that is where local models are. Never meant are those that are no host of their own.
AI-6, reliability of outgoing calls.
"""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from wfcore.ports.models import ModelBusy, ModelRefused

Address = IPv4Address | IPv6Address


async def addresses_of(host: str, port: int) -> Sequence[Address]:
    """
    The addresses of *host* that may be connected to, best first.

    Raises `ModelBusy` where the name cannot be looked up, `ModelRefused` where none may be.
    """
    try:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as trouble:
        raise ModelBusy(f"cannot look up {host}: {trouble}") from None
    addresses = list(dict.fromkeys(ip_address(str(one[4][0]).partition("%")[0]) for one in found))
    fit = [one for one in addresses if is_host(one)]
    if not fit:
        raise ModelRefused(f"{host} leads to {addresses[0]}, which is no host to ask")
    return fit


def is_host(address: Address) -> bool:
    """Whether *address* is one host's; not link-local, where clouds keep their credentials."""
    plain = getattr(address, "ipv4_mapped", None) or address
    return not (plain.is_multicast or plain.is_unspecified or plain.is_link_local)
