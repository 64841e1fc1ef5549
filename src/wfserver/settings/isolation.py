"""
The isolation of steps that the settings ask for: what no step may see, reach or take. CS-20.

No step takes a port that a URL names in any setting or variable of the environment, or in what
configures pip and npm, wherever the URL leads: a setting that is added later is covered, too. It
does not matter whether a server listens there now: a step that took the port of a mail relay while
the relay restarts would be sent its password.
"""

import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from urllib.parse import urlsplit

import attrs

from adapters_runtime.code.packages.settings import written
from adapters_runtime.engine.addresses import several_hosts
from adapters_runtime.engine.dispatching import NATS_PORT
from adapters_runtime.sandbox.isolation_level import Isolation
from adapters_store import POSTGRES, servers_of
from wfserver.settings.record import Settings

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://([^\s/?#\"'<>]+)", re.I)
_DEFAULTS: Mapping[str, tuple[int, ...]] = {
    "http": (80,),
    "https": (443,),
    "nats": (NATS_PORT,),
    "tls": (NATS_PORT,),
    "smtp": (25, 587),
    "smtps": (465,),
    "postgres": (5432,),
    "postgresql": (5432,),
    "redis": (6379,),
    "socks5": (1080,),
}
_COLLECTOR = (4317, 4318)
"""The default ports of collectors of traces."""


Ports = tuple[tuple[str, int], ...]


def step_isolation(settings: Settings, port: int | None = None) -> Isolation:
    """The isolation that *settings* ask for, for a server that listens on *port*."""
    steps = settings.steps
    own: Ports = () if port is None else (("", port),)
    private = (settings.data, settings.artifacts_folder, settings.seal_key_file, settings.file)
    return Isolation(
        forced=steps.isolation,
        minimum=steps.minimum,
        reads=steps.reads,
        writes=steps.writes,
        hidden=tuple(map(os.path.realpath, filter(None, private))),
        closed=(
            *own,
            *_store_ports(settings.store, settings.direct),
            *_engine_ports(settings.engine),
        ),
        reserved=ports_of(settings, port),
    )


def _store_ports(*urls: str | None) -> Ports:
    """Addresses and ports of the store, if it is a server; all addresses of its names."""
    servers = [
        one for url in urls if (url or "").startswith(POSTGRES) for one in servers_of(url or "")
    ]
    return tuple(dict.fromkeys(place for server in servers for place in _places(*server)))


def _engine_ports(url: str | None) -> Ports:
    """Addresses and ports of the dispatching queue; no step may take executions from it."""
    try:
        named = [urlsplit(f"//{one}") for one in several_hosts(url or "").hosts if one]
        servers = [(one.hostname or "", one.port or NATS_PORT) for one in named]
    except ValueError:
        return ()  # it is refused when it is opened
    return tuple(dict.fromkeys(place for server in servers for place in _places(*server)))


def _places(host: str, port: int) -> Ports:
    if not host:
        return (("", port),)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:  # a step cannot resolve the name either
        return ()
    addresses = sorted({str(address[0]).partition("%")[0] for *_, address in found})
    return tuple((address, port) for address in addresses)


def ports_of(settings: Settings, port: int | None = None) -> tuple[int, ...]:
    """The ports that no step takes, in order, each once. *port*: the port of the server, if any."""
    found = {settings.port, *([port] if port else []), *_COLLECTOR}
    named = chain(_texts(settings), os.environ.values(), written(os.environ))
    found |= set(ports_named(named))
    for url in filter(None, (settings.store, settings.direct)):
        if url.startswith(POSTGRES):
            with suppress(ValueError):  # it is refused when it is opened
                found |= {its_port for _, its_port in servers_of(url)}
    return tuple(sorted(found - {0}))


def ports_named(texts: Iterable[str]) -> Iterator[int]:
    """The ports of the URLs in *texts*; without a port, the usual ports of the scheme."""
    for text in texts:
        for scheme, place in _URL.findall(text):
            for one in place.rpartition("@")[2].split(","):
                named = re.search(r":([0-9]{1,5})$", one)
                yield from [int(named[1])] if named else _DEFAULTS.get(scheme.lower(), ())


def _texts(value: object) -> Iterator[str]:
    """All texts in *value*, at every depth."""
    if isinstance(value, str):
        yield value
    elif attrs.has(kind := type(value)):
        for one in attrs.fields(kind):
            yield from _texts(getattr(value, one.name))
    elif isinstance(value, Mapping):
        for one in chain(value.keys(), value.values()):
            yield from _texts(one)
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from _texts(one)
