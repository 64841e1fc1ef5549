"""The servers that one URL names: `nats://user:password@one:4222,[::1]:4222?name=a`."""

import re
from typing import NamedTuple


class SeveralHosts(NamedTuple):
    """`scheme://login@each,of,hosts` and what follows, with the hosts taken apart."""

    scheme: str
    login: str
    hosts: tuple[str, ...]
    rest: str

    @property
    def servers(self) -> tuple[str, ...]:
        """A URL of each server, without *rest*."""
        at = "@" if self.login else ""
        return tuple(f"{self.scheme}://{self.login}{at}{one}" for one in self.hosts)

    @property
    def first(self) -> str:
        """The URL as it were with one host."""
        return f"{self.servers[0]}{self.rest}"


def several_hosts(url: str) -> SeveralHosts:
    """
    The parts of *url*. `urlsplit` is for one host: since Python 3.11.4, and in what distributions
    mend, it refuses a list that holds an IPv6 address.
    """
    scheme, _, after = url.partition("://")
    netloc = re.split(r"[/?#]", after, maxsplit=1)[0]
    login, _, hosts = netloc.rpartition("@")
    return SeveralHosts(scheme, login, tuple(hosts.split(",")), after[len(netloc) :])
