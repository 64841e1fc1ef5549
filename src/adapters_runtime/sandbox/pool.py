"""
How many supervisors to hold ready, and for which profile of steps: the pools of the spawner.

Preparing a sandbox takes longer than most steps run, so it is done before there is a job. What has
to be known beforehand is little (`isolation.config.Profile`: network or not, which paths, which
interpreter to start), and steps of one profile can share spare supervisors.

- Every profile in use has one spare. If a step finds its pool empty shortly after another step,
  the pool grows by one, up to `MOST_EACH`.
- A spare that holds a started interpreter costs more than all else of a step, so the first step of
  such a profile asks for none: steps that come one by one start what they use and no more.
- A pool that was quiet for `QUIET_S` shrinks to one spare, and after `IDLE_S` it is given up;
  sooner if its spares hold a started interpreter, because that is memory.
- Only the `MOST_PROFILES` profiles used last are kept. The usual one is never given up.

Pure: time is an argument, and whoever calls this makes and ends the processes. Standard library
only, since the spawner runs it.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
S = TypeVar("S")

MOST_PROFILES = 6
MOST_EACH = 4
QUIET_S = 20.0
"""After so long without a step a pool shrinks to one."""
IDLE_S = 300.0
"""After so long it is given up."""
LARGE_IDLE_S = 30.0
"""After so long, one of spares that hold a started interpreter."""


class _Pool(Generic[S]):
    def __init__(self, now: float, is_large: bool) -> None:
        self.spares: list[S] = []
        self.wanted = 0 if is_large else 1
        self.used_at = now
        self.idle_s = LARGE_IDLE_S if is_large else IDLE_S
        self.is_large = is_large


class Pools(Generic[K, S]):
    """
    Pools by profile. *always*: the profile that is held ready from the start, and never given up.
    *is_large*: whether spares of a profile take much memory.
    """

    def __init__(self, always: K, is_large: Callable[[K], bool] = lambda _: False) -> None:
        self._always = always
        self._is_large = is_large
        self._pools: dict[K, _Pool[S]] = {always: _Pool(0.0, is_large=False)}

    def take(self, profile: K, now: float) -> S | None:
        """A spare of *profile*; None where there is none, which asks for more of them."""
        known = self._pools.pop(profile, None)
        pool = known or _Pool(now, self._is_large(profile))
        self._pools[profile] = pool  # the latest used is last
        if known and not pool.spares and now - pool.used_at < QUIET_S:
            pool.wanted = min(pool.wanted + 1, MOST_EACH)
        pool.used_at = now
        return pool.spares.pop(0) if pool.spares else None  # the first made is ready the soonest

    def wants(self, profile: K) -> bool:
        """
        Whether to hold one ready that has just served a step: not more large ones than would be
        made; of others all, until it gets quiet.
        """
        pool = self._pools.get(profile)
        return pool is not None and (not pool.is_large or len(pool.spares) < pool.wanted)

    def add(self, profile: K, spare: S) -> None:
        """Hold *spare* ready."""
        self._pools[profile].spares.append(spare)

    def forget(self, spare: S) -> None:
        """It is dead."""
        for pool in self._pools.values():
            if spare in pool.spares:
                pool.spares.remove(spare)

    def missing(self) -> K | None:
        """The profile that a spare should be made of next, the latest used first."""
        for profile in reversed(self._pools):
            if len(self._pools[profile].spares) < self._pools[profile].wanted:
                return profile
        return None

    def surplus(self, now: float) -> list[S]:
        """The spares to be given up now."""
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

    def next_look_s(self, now: float) -> float | None:
        """After how long something may have become surplus; None: never."""
        waits = [
            (QUIET_S if max(pool.wanted, len(pool.spares)) > 1 else pool.idle_s)
            - (now - pool.used_at)
            for profile, pool in self._pools.items()
            if profile != self._always or max(pool.wanted, len(pool.spares)) > 1
        ]
        return max(min(waits), 0.0) if waits else None

    def __iter__(self) -> Iterator[S]:
        return (spare for pool in self._pools.values() for spare in pool.spares)
