"""
The first words of each connection to PostgreSQL: our password is never sent in clear text to a
server without proof of its identity. ST-8.

The driver obeys every demand of a server, and no setting prevents that. So the protocol class of
the driver is replaced by a class that reads along until a session has begun. Connections that other
code opens in the same process stay as they are. A trial connection would not do: an impostor may
demand SCRAM first, and clear text the next time.
"""

from contextvars import ContextVar
from ssl import CERT_REQUIRED, SSLContext
from typing import Any

import asyncpg
from asyncpg import protocol

CLEAR_TEXT = (3).to_bytes(4)
"""AuthenticationCleartextPassword, as PostgreSQL's protocol numbers it."""
REFUSED = (
    "the server wants the password in clear text, and no certificate proves that it is the server: "
    "let its pg_hba.conf say scram-sha-256, or add sslmode=verify-full to the URL in WFCORE_STORE "
    "(and WFCORE_STORE_DIRECT)"
)
_HEADER = 5
"""
The bytes at the beginning of a message: one byte for its type, four bytes for its length, which
counts these four bytes.
"""
_ours: ContextVar[bool] = ContextVar("ours", default=False)


class ClearTextRefused(asyncpg.InterfaceError):  # type: ignore[misc]
    """Raised when a server that has not proved its identity asks for our password in clear text."""

    def __init__(self) -> None:
        super().__init__(REFUSED)


class Careful(protocol.Protocol):  # type: ignore[misc]
    """
    The driver's protocol, which on our own connections refuses to send the password in clear text
    to a server without proof of its identity.
    """

    def __init__(self, addr: Any, begun: Any, params: Any, *rest: Any) -> None:
        super().__init__(addr, begun, params, *rest)
        self._begun = begun
        tls = params.ssl
        self._proven = isinstance(tls, SSLContext) and tls.verify_mode is CERT_REQUIRED
        self._reads = _ours.get()
        self._come = b""

    def data_received(self, data: bytes) -> None:
        """Pass on the received bytes: message by message until the session has begun."""
        if self._reads:
            self._come += data
            data = b""
        while self._reads and (message := self._next()):
            if message[:1] == b"R" and message[_HEADER:] == CLEAR_TEXT and not self._safe():
                self._refuse()
                return
            super().data_received(message)
            if message[:1] == b"Z":  # ready for queries
                self._reads, data = False, self._come
        if data:
            super().data_received(data)

    def _next(self) -> bytes:
        """The next complete message; empty if the message is not complete yet."""
        size = 1 + max(int.from_bytes(self._come[1:_HEADER]), _HEADER - 1)
        if len(self._come) < max(size, _HEADER):
            return b""
        message, self._come = self._come[:size], self._come[size:]
        return message

    def _safe(self) -> bool:
        return bool(self._proven and self.is_ssl)

    def _refuse(self) -> None:
        self._come = b""
        if not self._begun.done():
            self._begun.set_exception(ClearTextRefused())
        self.transport.abort()


protocol.Protocol = Careful


async def connected(*where: Any, **options: Any) -> Any:
    """A connection, as from `asyncpg.connect`. Raises also `ClearTextRefused`."""
    before = _ours.set(True)
    try:
        made = await asyncpg.connect(*where, **options)
    finally:
        _ours.reset(before)
    if not isinstance(made._protocol, Careful):
        made.terminate()
        raise asyncpg.InterfaceError(f"asyncpg {asyncpg.__version__} is not known; take an older")
    return made
