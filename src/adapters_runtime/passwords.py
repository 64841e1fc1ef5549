"""Passwords of console logins: Argon2id."""

import asyncio
import secrets

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError


class Argon2Passwords:
    """Argon2id, in threads, two at a time: each takes 64 MiB while it runs."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher()
        self._turn = asyncio.Semaphore(2)
        self._dummy: str | None = None

    async def hash(self, password: str) -> str:
        async with self._turn:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def verify(self, password: str, hashed: str | None) -> bool:
        if hashed is None and self._dummy is None:
            self._dummy = await self.hash(secrets.token_hex())
        async with self._turn:
            fits = await asyncio.to_thread(self._fits, password, hashed or self._dummy or "")
        return fits and hashed is not None

    def _fits(self, password: str, hashed: str) -> bool:
        try:
            return self._hasher.verify(hashed, password)
        except (VerificationError, InvalidHashError):
            return False
