"""
The keys that seal the store, in the environment or in a file. Decision 86.

With the key in the data folder, a copy of the database alone is unreadable. To protect a copy of
the whole folder, keep the key elsewhere: `WFCORE_SEAL_KEY_FILE`, or `WFCORE_SEAL_KEY`.
"""

import time
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from adapters_store.private_folder import alone
from adapters_store.sql.sealing import AeadSealer, id_of, keys_in, new_key
from wfserver.data.folder import SEAL_KEY_FILE, write_key
from wfserver.errors import CommandFailed
from wfserver.settings.names import SEAL_KEY

if TYPE_CHECKING:
    from wfserver.settings.record import Settings

_YOUNG_S = 60
"""For this time after a rotation, a server may still write values sealed with the old key."""


def sealer_of(settings: "Settings") -> AeadSealer | None:
    """
    The sealer for the store of *settings*; None for a store in memory. Raises `CommandFailed`.
    """
    if settings.store == "memory:":
        return None
    if settings.seal_key is not None:
        if settings.seal_key_file is not None:
            raise CommandFailed(f"{SEAL_KEY} and {SEAL_KEY}_FILE are both set; leave one out")
        return AeadSealer(_checked(settings.seal_key, SEAL_KEY), where=SEAL_KEY)
    return sealer_with(file_of(settings))


def sealer_with(file: Path) -> AeadSealer:
    """The sealer with the keys in *file*, which is made when a key is first needed."""
    if file.exists():
        read_keys(file)
    return AeadSealer(file=file, write=partial(write_key, replace=False))


def file_of(settings: "Settings") -> Path:
    """The file of the keys, for settings that hold no keys themselves."""
    return settings.seal_key_file or settings.data / SEAL_KEY_FILE


def read_keys(file: Path) -> list[str]:
    """The keys in *file*; the first key seals. Raises `CommandFailed`."""
    try:
        return _checked(file.read_text("utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise CommandFailed(f"{file} cannot be read: {why}") from None


def add_key(file: Path) -> None:
    """
    Put a new key before the others in *file*. The new key seals from now on, the others only open.
    """
    with alone(file.parent):  # of two rotations at once each keeps the other's key
        _write(file, [new_key(), *read_keys(file)])


def put_before(file: Path, keys: Collection[str]) -> None:
    """Put *keys* before the keys in *file*; *file* need not exist."""
    with alone(file.parent):
        own = read_keys(file) if file.exists() else []
        _write(file, tuple(dict.fromkeys([*keys, *own])))


def remove_keys(file: Path, ids: Collection[str]) -> None:
    """Remove the keys *ids* from *file*; the first key stays."""
    with alone(file.parent):
        first, *others = read_keys(file)
        _write(file, [first, *(key for key in others if id_of(key) not in ids)])


def require_settled(file: Path) -> None:
    """Raises `CommandFailed` if *file* has just changed: a server may not have read it yet."""
    if time.time() - file.stat().st_mtime < _YOUNG_S:
        raise CommandFailed(
            f"{file} changed less than a minute ago, and a server may still write what it sealed "
            "before; try again in a minute"
        )


def _write(file: Path, keys: Collection[str]) -> None:
    write_key(file, "".join(f"{key}\n" for key in keys).encode(), replace=True)


def _checked(text: str, where: str) -> list[str]:
    try:
        return list(keys_in(text))
    except ValueError as error:
        raise CommandFailed(f"{where}: {error}") from None
