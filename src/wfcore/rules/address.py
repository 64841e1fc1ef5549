"""
The IP addresses that outgoing calls may reach. CB-4, AI-6.

The lists are this project's own. Python's `ipaddress.is_global` changed between patch releases;
with these lists every Python judges an address alike. They come from the IANA special-purpose
address registries for IPv4 and IPv6 (RFC 6890 and later additions), read strictly: IPv6 forms that
carry an IPv4 address (mapped, NAT64, 6to4, Teredo) are refused as a whole, because only the
translator in between knows the destination.
"""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_CLOSED_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by a provider's customers
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # the host of a virtual machine in Azure, in public space
            "169.254.0.0/16",  # link-local, where clouds keep their metadata
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # IETF protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")
"""All addresses that IANA assigns as global unicast. Every other address is refused."""
_CLOSED_V6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # IETF protocol assignments: Teredo, benchmarks, ORCHID
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "3fff::/20",  # documentation
        ),
    )
)
_NO_HOST_V4 = tuple(
    map(
        IPv4Network,
        ("0.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"),
    )
)
_NO_HOST_V6 = tuple(map(IPv6Network, ("::/128", "fe80::/10", "ff00::/8", "64:ff9b::/96")))


def numeric(host: str) -> str | None:
    """
    The IPv4 address that *host* spells in any of the forms that every resolver reads: `2130706433`,
    `0x7f.1`, `0177.0.0.1`; None for a name. For a number that is too large: `0.0.0.0`, an address
    that is always refused.
    """
    parts = host.removesuffix(".").split(".")
    if len(parts) > _MOST_PARTS or not all(map(_NUMBER.fullmatch, parts)):
        return None
    *first, last = map(_value, parts)
    if any(number > _BYTE for number in first) or last >= 256 ** (_MOST_PARTS - len(first)):
        return "0.0.0.0"  # noqa: S104 - an address to refuse
    shifted = (number << 8 * (_MOST_PARTS - 1 - at) for at, number in enumerate(first))
    return str(IPv4Address(sum(shifted) + last))


_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+", re.IGNORECASE | re.ASCII)
_MOST_PARTS, _BYTE = 4, 255


def _value(part: str) -> int:
    if part[:2].lower() == "0x":
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") and set(part) <= set("01234567") else 10)


def is_public(address: str) -> bool:
    """
    Whether *address* belongs to the public internet.

    Raises `ValueError` if the text is not an IP address.
    """
    found = ip_address(address)
    if isinstance(found, IPv6Address):
        return found in _GLOBAL_V6 and not any(found in one for one in _CLOSED_V6)
    return not any(found in one for one in _CLOSED_V4)


def is_host(address: str) -> bool:
    """
    Whether *address* can be a host that an operator intends, loopback and private ones included.

    False for link-local addresses, because clouds keep credentials there, and for multicast,
    broadcast and "any" addresses. Raises `ValueError` if the text is not an IP address.
    """
    found = ip_address(address)
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return is_host(str(found.ipv4_mapped))
        return not any(found in one for one in _NO_HOST_V6)
    return not any(found in one for one in _NO_HOST_V4)
