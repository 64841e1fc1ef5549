"""Looking at passwords is expensive on purpose: how much of it may go on, and for whom."""

import asyncio
import threading

import pytest
from argon2 import PasswordHasher, extract_parameters

from adapters_runtime.passwords import AT_ONCE, MOST_WAITING, Argon2Passwords
from wfcore.errors import NotReady
from wfcore.rules.limits import LOGINS_EACH


class Hasher:
    """Counts who is in it, and lets nobody out before the test says so."""

    def __init__(self) -> None:
        self.inside, self.most, self.calls = 0, 0, 0
        self.go, self._lock = threading.Event(), threading.Lock()

    def verify(self, hashed: str, password: str) -> bool:
        with self._lock:
            self.calls += 1
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.go.wait(60)
        with self._lock:
            self.inside -= 1
        return False


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> tuple[Argon2Passwords, Hasher]:
    """Real threads around a hasher that waits."""
    made, hasher = Argon2Passwords(), Hasher()
    monkeypatch.setattr(made, "_hasher", hasher)
    return made, hasher


async def test_two_are_looked_at_and_a_bounded_number_waits(held):
    """The next one is told at once that the server is busy; who waited is answered. SE-6."""
    looking, hasher = held
    room = AT_ONCE + MOST_WAITING
    crowd = [asyncio.create_task(looking.verify("x", "y")) for _ in range(room)]
    await asyncio.sleep(0)
    for _ in range(3):
        with pytest.raises(NotReady, match=r"^Too many logins at once; try again in a moment$"):
            await looking.verify("x", "y")
    hasher.go.set()
    assert await asyncio.gather(*crowd) == [False] * room
    assert (hasher.calls, hasher.most <= AT_ONCE) == (room, True)
    assert await looking.verify("x", "y") is False


async def test_who_gives_up_makes_room(held):
    """A cancelled wait is not worked at, and holds no place. SE-6."""
    looking, hasher = held
    crowd = [asyncio.create_task(looking.verify("x", "y")) for _ in range(AT_ONCE + MOST_WAITING)]
    await asyncio.sleep(0)
    for one in crowd:
        one.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)
    hasher.go.set()
    assert await looking.verify("x", "y") is False
    assert hasher.calls <= AT_ONCE + 1


def test_no_address_fills_the_queue_alone():
    """All that one may ask for in a minute leaves room for others. SE-6."""
    assert LOGINS_EACH < MOST_WAITING


async def test_an_unknown_email_costs_what_a_known_one_does(monkeypatch: pytest.MonkeyPatch):
    """One look at a hash of the same parameters each, from the first one on; and no hash made."""
    costs, made = list[object](), 0
    real = PasswordHasher()

    class Noting(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> bool:
            costs.append(extract_parameters(str(hash)))
            return super().verify(hash, password)

        def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
            nonlocal made
            made += 1
            return super().hash(password, salt=salt)

    monkeypatch.setattr("argon2.PasswordHasher", Noting)
    looking = Argon2Passwords()
    assert not await looking.verify("correct horse", None)
    assert not await looking.verify("wrong", real.hash("correct horse"))
    assert costs[0] == costs[1] == extract_parameters(real.hash("x"))
    assert (len(costs), made) == (2, 0)
