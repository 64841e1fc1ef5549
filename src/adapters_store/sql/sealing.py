"""
The sealer of our stores: AES-256-GCM-SIV with a ring of keys. Decision 86.

This cipher stays safe if a nonce repeats. Random nonces of 96 bits may repeat before a busy
server's key is old. The library is loaded with the first cell, because most commands open no cell.
"""

import os
import re
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from wfcore.ports.system import Sealer

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

KEY_BYTES = 32
_NONCE_BYTES = 12
_ID_BYTES = 4
_PREFIX = "wfs_"
_WRITTEN = re.compile(rf"{_PREFIX}([A-Za-z0-9_-]{{43}})")
_RELOAD_S = 1.0
"""The seconds for which a sealer may miss the new key of another process."""


def new_key() -> str:
    """A random key in its written form."""
    return _PREFIX + urlsafe_b64encode(os.urandom(KEY_BYTES)).decode().rstrip("=")


def keys_in(text: str) -> Sequence[str]:
    """
    The keys in *text*, separated by blanks, commas or lines; `#` begins a comment.

    Raises `ValueError`, which never contains a key.
    """
    words = " ".join(line.partition("#")[0] for line in text.splitlines()).replace(",", " ").split()
    if not words:
        raise ValueError("holds no key; wfcore seal key makes one")
    for number, word in enumerate(words, 1):
        if not _WRITTEN.fullmatch(word):
            raise ValueError(
                f"key {number} is none: wfs_ and 43 characters; wfcore seal key makes one"
            )
    return tuple(dict.fromkeys(words))


def id_of(key: str) -> str:
    """The id of a key, which reveals nothing about the key; every sealed cell starts with it."""
    return sha256(b"wfcore seal key " + _bytes(key)).hexdigest()[:8]


def _bytes(key: str) -> bytes:
    return urlsafe_b64decode(key.removeprefix(_PREFIX) + "=")


@runtime_checkable
class Sealed(Protocol):
    """A store whose cells are sealed, and can be sealed anew."""

    async def sealed(self) -> Mapping[str | None, int]:
        """The number of cells by the id of their key (None: in clear)."""

    async def reseal(self, sealer: Sealer, *, clear: bool = False) -> int:
        """
        Seal all cells that have another key with the first key of *sealer*, in batches, until a
        pass over all tables finds no such cell; returns the number of sealed cells. *clear*: cells
        in clear are sealed, too.
        """

    async def forget_keys(self, ids: Sequence[str]) -> Sequence[str]:
        """
        Forget the keys of *ids* that seal no cell, so that a start no longer requires these keys;
        returns the ids of the forgotten keys.
        """


class AeadSealer:
    """
    Implements `wfcore.ports.system.Sealer`. Seals with the first of *keys* and opens with any of
    *keys*.

    With *file* the keys are read from the file (`keys_in`), and again when the file changes: a
    rotation in another process needs no restart. If the file is missing, `make` creates it with
    *write*, once the store knows that no cell is sealed with another key. Raises `ValueError`,
    `OSError`.
    """

    def __init__(
        self,
        keys: Sequence[str] = (),
        file: Path | None = None,
        write: Callable[[Path, bytes], None] | None = None,
        where: str = "",
    ) -> None:
        self.where = where or str(file)
        self._file = file
        self._write = write
        self._read_state: tuple[int, int] | None = None
        self._read_at = 0.0
        self._raw: Mapping[str, bytes] = {}
        self._ciphers: dict[str, AESGCMSIV] = {}
        if file is None:
            self._take(keys)
        elif write is None or file.exists():
            self._read(file)

    @property
    def keys(self) -> Sequence[str]:
        """The ids of the present keys; the key that seals comes first."""
        self._reload(at_once=True)
        return tuple(self._raw)

    def make(self) -> None:
        """
        Create the file if it is missing; of two simultaneous attempts, the file of the first
        attempt remains.
        """
        if not self._raw and self._file is not None and self._write is not None:
            self._write(self._file, f"{new_key()}\n".encode())
            self._read(self._file)

    def seal(self, text: str, place: str) -> str:
        """*text* encrypted and bound to *place*."""
        id, data = self._encrypted(text.encode(), place)
        return f"{id}.{b64encode(data).decode()}"

    def seal_bytes(self, data: bytes, place: str) -> bytes:
        """*data* encrypted and bound to *place*, after the id of the key."""
        id, sealed = self._encrypted(data, place)
        return bytes.fromhex(id) + sealed

    def open(self, sealed: str, place: str) -> str:
        """The text that was sealed for *place*. Raises `ValueError`."""
        id, _, written = sealed.partition(".")
        self._require(id)
        return self._decrypted(id, b64decode(written, validate=True), place).decode()

    def open_bytes(self, sealed: bytes, place: str) -> bytes:
        """The bytes that were sealed for *place*. Raises `ValueError`."""
        id = sealed[:_ID_BYTES].hex()
        self._require(id)
        return self._decrypted(id, sealed[_ID_BYTES:], place)

    def _encrypted(self, data: bytes, place: str) -> tuple[str, bytes]:
        """The id of the key, and the nonce with the encrypted *data*."""
        self._reload()
        id = next(iter(self._raw))
        nonce = os.urandom(_NONCE_BYTES)
        return id, nonce + self._cipher(id).encrypt(nonce, data, place.encode())

    def _require(self, id: str) -> None:
        if id not in self._raw:
            self._reload(at_once=True)
        if id not in self._raw:
            raise ValueError(f"it is sealed with the key {id!r}, which is not there")

    def _decrypted(self, id: str, data: bytes, place: str) -> bytes:
        from cryptography.exceptions import InvalidTag

        cipher = self._cipher(id)
        try:
            return cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], place.encode())
        except InvalidTag:
            raise ValueError("it was changed, or belongs elsewhere") from None

    def _cipher(self, id: str) -> "AESGCMSIV":
        found = self._ciphers.get(id)
        if found is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

            found = self._ciphers[id] = AESGCMSIV(self._raw[id])
        return found

    def _reload(self, at_once: bool = False) -> None:
        """Read the file again if it has changed. A file that cannot be read changes nothing."""
        if self._file is None or not (at_once or monotonic() - self._read_at > _RELOAD_S):
            return
        try:
            self._read(self._file)
        except (OSError, ValueError):
            self._read_at = monotonic()

    def _read(self, file: Path) -> None:
        self._read_at = monotonic()
        found = file.stat()
        seen = found.st_mtime_ns, found.st_ino
        if seen != self._read_state:
            self._take(keys_in(file.read_text("utf-8")))
            self._read_state = seen

    def _take(self, keys: Sequence[str]) -> None:
        self._raw = {id_of(key): _bytes(key) for key in keys}
        self._ciphers = {}
