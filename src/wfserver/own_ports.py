"""
The ports that no step takes: the server's own, and those of whomever the server calls. CS-20.

Taken are all ports that a URL names in any setting or variable of the environment, or in what
configures pip and npm, wherever it leads: so a setting that is added later is in it, too. Whether
somebody is there at the moment does not matter: who takes the port of a mail relay while that
restarts is told its password.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain

import attrs

from adapters_runtime.code.packages.settings import written
from adapters_runtime.engine.dispatching import NATS_PORT
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
"""Where traces go unless a variable says otherwise."""


def ports_of(settings: Settings, port: int | None = None) -> tuple[int, ...]:
    """Each once, in order; *port*: where the server listens, if it does."""
    found = {settings.port, *([port] if port else []), *_COLLECTOR}
    named = chain(_texts(settings), os.environ.values(), written(os.environ))
    found |= set(ports_named(named))
    for url in filter(None, (settings.store, settings.direct)):
        if url.startswith(POSTGRES):
            with suppress(ValueError):  # it is refused when it is opened
                found |= {its_port for _, its_port in servers_of(url)}
    return tuple(sorted(found - {0}))


def ports_named(texts: Iterable[str]) -> Iterator[int]:
    """The ports to which the URLs in *texts* lead, as named or by the custom of their scheme."""
    for text in texts:
        for scheme, place in _URL.findall(text):
            for one in place.rpartition("@")[2].split(","):
                named = re.search(r":([0-9]{1,5})$", one)
                yield from [int(named[1])] if named else _DEFAULTS.get(scheme.lower(), ())


def _texts(value: object) -> Iterator[str]:
    """All texts in a record, at every depth."""
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
