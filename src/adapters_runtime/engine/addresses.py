"""URLs of several servers, such as `nats://user:password@one:4222,[::1]:4222?name=a`."""

import re
from typing import NamedTuple


class SeveralHosts(NamedTuple):
    """The parts of `scheme://login@each,of,hosts`, and of the *rest* of the URL after them."""

    scheme: str
    login: str
    hosts: tuple[str, ...]
    rest: str

    @property
    def servers(self) -> tuple[str, ...]:
        """A URL for each server, without the rest."""
        at = "@" if self.login else ""
        return tuple(f"{self.scheme}://{self.login}{at}{one}" for one in self.hosts)

    @property
    def first(self) -> str:
        """The URL with the first host only, and with the rest."""
        return f"{self.servers[0]}{self.rest}"


def several_hosts(url: str) -> SeveralHosts:
    """
    The parts of *url*.

    `urlsplit` is for one host: since Python 3.11.4, and in older versions that distributions patch,
    it refuses a list that holds an IPv6 address.
    """
    scheme, _, after = url.partition("://")
    netloc = re.split(r"[/?#]", after, maxsplit=1)[0]
    login, _, hosts = netloc.rpartition("@")
    return SeveralHosts(scheme, login, tuple(hosts.split(",")), after[len(netloc) :])
