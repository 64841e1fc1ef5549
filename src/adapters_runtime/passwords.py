"""Passwords of console logins: Argon2id."""

import asyncio
import secrets
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from wfcore.errors import NotReady

if TYPE_CHECKING:
    from argon2 import PasswordHasher

T = TypeVar("T")
AT_ONCE = 2
"""How many hashes are computed at once. Each takes 64 MiB, and a core."""
MOST_WAITING = 64
"""The length of the queue: more requests than one address may make in a minute. SE-6."""


class Argon2Passwords:
    """Argon2id in threads of its own, `AT_ONCE` at a time, with a limited queue."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, "passwords")
        self._pending = set[Future[Any]]()

    @cached_property
    def _hasher(self) -> "PasswordHasher":
        """The hasher, loaded with the first password: most servers only check keys."""
        from argon2 import PasswordHasher

        return PasswordHasher()

    @cached_property
    def _decoy(self) -> str:
        return _decoy_hash(self._hasher)

    async def hash(self, password: str) -> str:
        return await self._queued(self._hasher.hash, password)

    async def verify(self, password: str, hashed: str | None) -> bool:
        known = hashed is not None
        return await self._queued(self._fits, password, hashed if known else self._decoy) and known

    async def _queued(self, work: Callable[..., T], *args: Any) -> T:
        """The result of *work* in a thread. Raises `NotReady` if the queue is full."""
        if len(self._pending) >= AT_ONCE + MOST_WAITING:
            raise NotReady("Too many logins at once; try again in a moment")
        future = self._threads.submit(work, *args)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return await asyncio.wrap_future(future)

    def _fits(self, password: str, hashed: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        try:
            return self._hasher.verify(hashed, password)
        except (VerificationError, InvalidHashError):
            return False


def _decoy_hash(hasher: "PasswordHasher") -> str:
    """A hash that no password has. A check against it takes as long as any other check."""
    salt, digest = (
        b64encode(secrets.token_bytes(size)).rstrip(b"=").decode()
        for size in (hasher.salt_len, hasher.hash_len)
    )
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v=19${costs}${salt}${digest}"
