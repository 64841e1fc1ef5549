"""The URLs of stores: the kind and the place of the store that a URL names."""

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from wfcore.errors import InvalidInput

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
GROUP = "wfcore.stores"


def is_postgres(url: str | None) -> bool:
    return (url or "").startswith(POSTGRES)


def servers_of(url: str) -> list[tuple[str, int]]:
    """
    The hosts and ports in a PostgreSQL URL, as the driver reads the URL. The host "" is this
    machine; a Unix socket is left out. Raises `ValueError` without the URL in its message.
    """
    try:
        parts = urlsplit(url)
        parameters = dict(parse_qsl(parts.query))
        named = (
            parts.netloc.rpartition("@")[2]
            or parameters.get("host")
            or os.environ.get("PGHOST", "")
        )
        ports = (parameters.get("port") or os.environ.get("PGPORT") or "5432").split(",")
        hosts = [urlsplit(f"//{one}") for one in named.split(",")]
        each = zip(hosts, ports if len(ports) > 1 else ports * len(hosts), strict=True)
        found = [(host.hostname or "", host.port or int(port), host.path) for host, port in each]
    except ValueError:
        raise ValueError(
            "is not a valid URL; percent-encode / ? # @ : and [ ] in a user or password"
        ) from None
    return [(host, port) for host, port, socket in found if not socket]


def installed_for(url: str | None) -> "EntryPoint | None":
    """
    The entry point that an installed package offers for the scheme of *url*; None without such a
    package, or for a scheme of ours.
    """
    scheme, there, _ = (url or "").partition("://")
    if not there or scheme == "sqlite" or is_postgres(url):
        return None
    return next((one for one in offered() if one.name == scheme), None)


def offered() -> "EntryPoints":
    from importlib.metadata import entry_points  # slow to load, and for few

    return entry_points(group=GROUP)


def database_of(url: str | None, data_dir: Path) -> Path | None:
    """The file of the SQLite store at *url*; None for any other store. Raises `InvalidInput`."""
    try:
        has_none = url == "memory:" or is_postgres(url) or installed_for(url) is not None
        return None if has_none else path_of(url, data_dir)
    except ValueError as error:
        raise InvalidInput("--store", str(error)) from None


def path_of(url: str | None, data_dir: Path) -> Path:
    if url is None:
        return data_dir / "wfcore.db"
    if url.startswith(SQLITE) and len(url) > len(SQLITE):
        return Path(url.removeprefix(SQLITE))
    own = "".join(f", {one.name}://…" for one in offered())
    ours = "sqlite:///PATH (sqlite:////PATH from the root), postgresql://…"
    shown = f"{url.partition('://')[0]}://…" if "@" in url else url
    raise ValueError(f"{shown!r} names no store; use {ours}{own} or memory:")
