"""
Ports for virtual time: a clock set by hand, and ids and tokens that are the same in every run.

Scenarios of definitions and tests run on these ports. Each of them passes the contract of its port.
"""

from collections.abc import Awaitable, Callable, Collection
from hashlib import sha256

from attrs import evolve

from wfcore.errors import PackagesUnavailable
from wfcore.model.workflow import Needs
from wfcore.rules.auth.api_key import ALPHABET
from wfcore.rules.clock_jumps import HeldTime, held_time, service_time
from wfcore.time import EpochMs


class ManualClock:
    """A clock that moves only by `advance` and `jump`."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self._wall = now
        self._steady = 0
        self._known = HeldTime.started(now, 0)

    def now(self) -> EpochMs:
        return EpochMs(self._wall)

    def deadline_now(self) -> EpochMs:
        self._known, now = held_time(self._known, self._wall, self._steady)
        return now

    def service_now(self) -> EpochMs:
        self._known, now = service_time(self._known, self._wall, self._steady)
        return now

    def advance(self, by_ms: int) -> None:
        """Let *by_ms* milliseconds pass."""
        self._wall += by_ms
        self._steady += by_ms

    def jump(self, by_ms: int) -> None:
        """Move the wall clock by *by_ms*; no time passes."""
        self._wall += by_ms


class CountingIds:
    """
    Ids in the order of their creation, the same in every run. *node* distinguishes generators.
    """

    def __init__(self, node: str = "") -> None:
        self._node = node
        self._last = 0
        self._count = 0

    def new(self, prefix: str, now: EpochMs) -> str:
        self._last = max(self._last, now)
        self._count += 1
        return f"{prefix}_{self._last:013d}{self._count:09d}{self._node}"


class CountingTokens:
    """Base62 text, different at every call and the same in every run."""

    def __init__(self) -> None:
        self._count = 0

    def text(self, length: int) -> str:
        self._count += 1
        digest = b"".join(
            sha256(f"{self._count}:{part}".encode()).digest() for part in range(length // 32 + 1)
        )
        return "".join(ALPHABET[byte % len(ALPHABET)] for byte in digest[:length])


class PlainPasswords:
    """Passwords without the cost of a hash. Only for tests."""

    async def hash(self, password: str) -> str:
        return f"plain:{password[::-1]}"

    async def verify(self, password: str, hashed: str | None) -> bool:
        return hashed == f"plain:{password[::-1]}"


class NotedEnvironments:
    """
    `Environments` that install nothing and only remember needs. A package whose name starts with a
    text in *missing* cannot be installed. The lock of resolved needs names the `release` of the
    index.
    """

    def __init__(self, *missing: str) -> None:
        self.missing = missing
        self.idle: dict[Needs, bool] = {}
        self.release = 1

    async def prepare(self, needs: Needs) -> Needs:
        for package in needs.packages:
            if package.startswith(self.missing or "\0"):
                raise PackagesUnavailable(f"there is no {package}")
        locked = evolve(needs, lock=needs.lock or f"release {self.release}")
        self.idle[locked] = False
        return locked

    async def restore(self, needs: Needs) -> str:
        if needs.lock is None:
            raise PackagesUnavailable("they are not pinned")
        return str(self.find(await self.prepare(needs)))

    def find(self, needs: Needs) -> str | None:
        if needs not in self.idle:
            return None
        self.idle[needs] = False
        return f"/packages/{'+'.join(needs.packages)}/{needs.lock}"

    async def prune(self, in_use: Callable[[], Awaitable[Collection[Needs]]]) -> int:
        if not any(self.idle.values()):
            return 0
        kept = await in_use()
        going = [needs for needs, idle in self.idle.items() if idle and needs not in kept]
        for needs in going:
            del self.idle[needs]
        return len(going)

    def grow_old(self) -> None:
        """Make all environments look unused for a long time."""
        self.idle = dict.fromkeys(self.idle, True)
