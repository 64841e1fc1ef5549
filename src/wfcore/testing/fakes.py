"""Stand-ins for ports that need no outside: a clock to turn, ids that count, noted hints."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from hashlib import sha256

from wfcore.errors import PackagesUnavailable, TemplateFailed
from wfcore.instants import EpochMs
from wfcore.model.json import Json
from wfcore.model.workflow import Needs
from wfcore.rules.api_key import ALPHABET


class ManualClock:
    """Time that moves when it is told to. Deadlines are held against the same time."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self._now = now

    def now(self) -> EpochMs:
        return EpochMs(self._now)

    deadline_now = now

    def advance(self, by_ms: int) -> None:
        """Let *by_ms* milliseconds pass."""
        self._now += by_ms


class CountingIds:
    """Ids that order by creation and are the same in every run."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, prefix: str, now: EpochMs) -> str:
        self._count += 1
        return f"{prefix}_{now:013d}{self._count:09d}"


class CountingTokens:
    """Base62 text, different at every call, the same in every run."""

    def __init__(self) -> None:
        self._count = 0

    def text(self, length: int) -> str:
        self._count += 1
        digest = b"".join(
            sha256(f"{self._count}:{part}".encode()).digest() for part in range(length // 32 + 1)
        )
        return "".join(ALPHABET[byte % len(ALPHABET)] for byte in digest[:length])


class PlainPasswords:
    """Passwords without a hash's cost. For tests only."""

    async def hash(self, password: str) -> str:
        return f"plain:{password}"

    async def verify(self, password: str, hashed: str | None) -> bool:
        return hashed == f"plain:{password}"


class NotedHints:
    """A `Wakeup` that keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str | None]] = []

    def runner(self) -> None:
        self.told.append(("runner", None))

    def stop(self, execution_id: str) -> None:
        self.told.append(("stop", execution_id))

    def timer(self) -> None:
        self.told.append(("timer", None))

    def events(self, execution_id: str) -> None:
        self.told.append(("events", execution_id))

    async def rest(self, execution_id: str, timeout_ms: int) -> None:
        self.told.append(("rest", execution_id))


class NotedEnvironments:
    """`Environments` that only remember. What has a name among *missing* cannot be installed."""

    def __init__(self, *missing: str) -> None:
        self.missing = missing
        self.idle: dict[Needs, bool] = {}

    async def prepare(self, needs: Needs) -> None:
        for package in needs.packages:
            if package.startswith(self.missing or "\0"):
                raise PackagesUnavailable(f"there is no {package}")
        self.idle[needs] = False

    def find(self, needs: Needs) -> str | None:
        if needs not in self.idle:
            return None
        self.idle[needs] = False
        return f"/packages/{'+'.join(needs.packages)}"

    async def prune(self, in_use: Callable[[], Awaitable[Collection[Needs]]]) -> int:
        if not any(self.idle.values()):
            return 0
        kept = await in_use()
        going = [needs for needs, idle in self.idle.items() if idle and needs not in kept]
        for needs in going:
            del self.idle[needs]
        return len(going)

    def grow_old(self) -> None:
        """Nobody has used anything for a long time."""
        self.idle = dict.fromkeys(self.idle, True)


class PathTemplates:
    """Templates that know dotted paths only: `{{ steps.fetch.output }}`. Enough for rules."""

    def render(self, value: Json, names: Mapping[str, Json]) -> Json:
        if isinstance(value, str):
            text = value.strip()
            if text.startswith("{{") and text.endswith("}}"):
                return self._find(text[2:-2].strip(), names)
            return value
        if isinstance(value, Mapping):
            return {key: self.render(item, names) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.render(item, names) for item in value]
        return value

    def _find(self, path: str, names: Mapping[str, Json]) -> Json:
        found: Json = names
        for part in path.split("."):
            if not isinstance(found, Mapping) or part not in found:
                raise TemplateFailed(path, f"{part} is unknown")
            found = found[part]
        return found

    def problems(self, text: str, known: Mapping[str, Collection[str] | None]) -> Sequence[str]:
        return ()
