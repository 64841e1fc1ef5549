"""
The pools of the spawner: how many supervisors to hold ready for each profile of steps.

Preparing a sandbox takes longer than most steps run, so the spawner prepares sandboxes before there
is a job. Only a step's profile must be known beforehand (`isolation.config.Profile`: network or
not, which paths, which interpreter to start), and steps of one profile share spare supervisors.

- Every profile in use has one spare. If a step finds its pool empty shortly after another step,
  the pool grows by one, up to `MOST_EACH`.
- A spare with a started interpreter costs more than the rest of a step, so the first step of such a
  profile does not grow the pool: steps that come one by one start only what they use.
- A pool that was quiet for `QUIET_S` shrinks to one spare. After `IDLE_S` the pool is dropped, or
  after `LARGE_IDLE_S` if its spares hold a started interpreter, because that is memory.
- Only the `MOST_PROFILES` profiles used last are kept. The usual profile is never dropped.

Pure: time is an argument, and the caller makes and ends the processes. Standard library only,
since the spawner runs it.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
S = TypeVar("S")

MOST_PROFILES = 6
MOST_EACH = 4
QUIET_S = 20.0
"""The time without a step after which a pool shrinks to one spare."""
IDLE_S = 300.0
"""The time without a step after which a pool is dropped."""
LARGE_IDLE_S = 30.0
"""The same time for a pool whose spares hold a started interpreter."""


class _Pool(Generic[S]):
    def __init__(self, now: float, is_large: bool) -> None:
        self.spares: list[S] = []
        self.wanted = 0 if is_large else 1
        self.used_at = now
        self.idle_s = LARGE_IDLE_S if is_large else IDLE_S
        self.is_large = is_large


class Pools(Generic[K, S]):
    """
    The pools by profile.

    *always*: the profile that has a spare from the start, and is never dropped. *is_large*: whether
    spares of a profile take much memory.
    """

    def __init__(self, always: K, is_large: Callable[[K], bool] = lambda _: False) -> None:
        self._always = always
        self._is_large = is_large
        self._pools: dict[K, _Pool[S]] = {always: _Pool(0.0, is_large=False)}

    def take(self, profile: K, now: float) -> S | None:
        """A spare for *profile*, or None if the pool is empty; this grows the pool."""
        known = self._pools.pop(profile, None)
        pool = known or _Pool(now, self._is_large(profile))
        self._pools[profile] = pool  # the latest used is last
        if known and not pool.spares and now - pool.used_at < QUIET_S:
            pool.wanted = min(pool.wanted + 1, MOST_EACH)
        pool.used_at = now
        return pool.spares.pop(0) if pool.spares else None  # the first made is ready the soonest

    def wants(self, profile: K) -> bool:
        """
        Whether to keep a spare that has just served a step. All spares are kept until the pool is
        quiet; of a large profile, no more spares than would be made.
        """
        pool = self._pools.get(profile)
        return pool is not None and (not pool.is_large or len(pool.spares) < pool.wanted)

    def add(self, profile: K, spare: S) -> None:
        """Add *spare* to the pool of *profile*."""
        self._pools[profile].spares.append(spare)

    def forget(self, spare: S) -> None:
        """Remove the dead *spare* from its pool."""
        for pool in self._pools.values():
            if spare in pool.spares:
                pool.spares.remove(spare)

    def missing(self) -> K | None:
        """The last used of the profiles that need another spare, or None."""
        for profile in reversed(self._pools):
            if len(self._pools[profile].spares) < self._pools[profile].wanted:
                return profile
        return None

    def surplus(self, now: float) -> list[S]:
        """Removes and returns the spares to end now."""
        gone: list[S] = []
        for profile, pool in list(self._pools.items()):
            quiet = now - pool.used_at
            if quiet >= QUIET_S:
                pool.wanted = min(pool.wanted, 1)
            is_old = len(self._pools) > MOST_PROFILES or quiet >= pool.idle_s
            if is_old and profile != self._always:
                del self._pools[profile]
                pool.wanted = 0
            if is_old or quiet >= QUIET_S:
                gone += pool.spares[pool.wanted :]
                del pool.spares[pool.wanted :]
        return gone

    def next_surplus_s(self, now: float) -> float | None:
        """The seconds until spares may be surplus, or None if no time will make them so."""
        waits = [
            (QUIET_S if max(pool.wanted, len(pool.spares)) > 1 else pool.idle_s)
            - (now - pool.used_at)
            for profile, pool in self._pools.items()
            if profile != self._always or max(pool.wanted, len(pool.spares)) > 1
        ]
        return max(min(waits), 0.0) if waits else None

    def __iter__(self) -> Iterator[S]:
        return (spare for pool in self._pools.values() for spare in pool.spares)
