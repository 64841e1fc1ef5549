"""
Fakes of the ports that need no outside world: a clock set by hand, counting ids, recorded hints.

Each fake passes the contract of its port. For steps, files, callbacks and the store see
`fakes_running`.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from wfcore.errors import TemplateFailed
from wfcore.memory.virtual import CountingIds as CountingIds
from wfcore.memory.virtual import CountingTokens as CountingTokens
from wfcore.memory.virtual import ManualClock as ManualClock
from wfcore.memory.virtual import NotedEnvironments as NotedEnvironments
from wfcore.memory.virtual import PlainPasswords as PlainPasswords
from wfcore.model.json import Json
from wfcore.ports.hints import Rest
from wfcore.rules.limits import MIB, TEXT_RESULT
from wfcore.rules.variables import compact


class NotedHints:
    """A `Wakeup` that records hints and passes them on to its listeners."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str | None]] = []
        self._heard: dict[str, list[Callable[..., None]]] = {}
        self._followers: list[tuple[str, asyncio.Event]] = []

    def listen(self, **hear: Callable[..., None] | None) -> None:
        for name, one in hear.items():
            self._heard.setdefault(name, []).extend([one] if one else [])

    def runner(self) -> None:
        self._tell("runner")

    def stop(self, execution_id: str) -> None:
        self._tell("stop", execution_id)

    def reload(self, execution_id: str) -> None:
        self._tell("reload", execution_id)

    def timer(self) -> None:
        self._tell("timer")

    def _tell(self, name: str, *execution_id: str) -> None:
        self.told.append((name, execution_id[0] if execution_id else None))
        for hear in self._heard.get(name, ()):
            hear(*execution_id)

    def release(self) -> None:
        for _, grown in self._followers:
            grown.set()

    def events(self, execution_id: str) -> None:
        self.told.append(("events", execution_id))
        for followed, grown in self._followers:
            if followed == execution_id:
                grown.set()

    @contextmanager
    def follow(self, execution_id: str) -> Iterator[Rest]:
        follower = execution_id, asyncio.Event()
        self._followers.append(follower)

        async def rest(timeout_ms: int) -> None:
            self.told.append(("rest", execution_id))
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_ms / 1_000):
                    await follower[1].wait()
            follower[1].clear()

        try:
            yield rest
        finally:
            self._followers.remove(follower)


_TEMPLATE = re.compile(r"\{\{((?:(?!\}\}).)*)\}\}", re.DOTALL)


class PathTemplates:
    """Templates with dotted paths only: `{{ steps.fetch.output }}`. These are enough for rules."""

    def __init__(self, missing_is_null: bool = False) -> None:
        self._missing_is_null = missing_is_null

    def render(
        self,
        value: Json,
        names: Mapping[str, Json],
        limit: int = TEXT_RESULT,
        inserted: Callable[[str], str] | None = None,
        *,
        missing_is_null: bool = False,
    ) -> Json:
        result = PathTemplates(missing_is_null)._render(value, names, inserted)
        if len(compact(result)) > limit:
            raise TemplateFailed(str(value)[:100], f"the result is over {limit // MIB} MB")
        return result

    def _render(
        self, value: Json, names: Mapping[str, Json], inserted: Callable[[str], str] | None
    ) -> Json:
        if isinstance(value, str):
            if (whole := _TEMPLATE.fullmatch(value)) and inserted is None:
                return self._find(whole[1].strip(), names)
            put = inserted or str
            return _TEMPLATE.sub(lambda one: put(_text(self._find(one[1].strip(), names))), value)
        if isinstance(value, Mapping):
            return {key: self._render(item, names, inserted) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._render(item, names, inserted) for item in value]
        return value

    def _find(self, path: str, names: Mapping[str, Json]) -> Json:
        found: Json = names
        for part in path.split("."):
            if not isinstance(found, Mapping) or part not in found:
                if self._missing_is_null and found is not names:
                    return None
                raise TemplateFailed(path, f"{part} is unknown")
            found = found[part]
        return found

    def problems(self, text: str, known: Mapping[str, Collection[str] | None]) -> Sequence[str]:
        return tuple(_problems(text, known))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


def _problems(text: str, known: Mapping[str, Collection[str] | None]) -> Iterator[str]:
    if "{%" in text:
        yield "statements are not allowed"
    if text.count("{{") != len(_TEMPLATE.findall(text)):
        yield "a template is not closed"
    for path in _TEMPLATE.findall(text):
        first, *more = path.strip().split(".")
        below = known.get(first)
        if first not in known:
            yield f"unknown name {first}"
        elif below is not None and more and more[0] not in below:
            yield f"unknown name {first}.{more[0]}"


class PlainCalendar:
    """
    A calendar of cron expressions with numbers and `*` only, in the time zones that Python knows.
    """

    def problems(self, cron: str, timezone: str) -> Mapping[str, str]:
        found: dict[str, str] = {}
        fields = cron.split()
        if len(fields) != 5 or not all(field == "*" or field.isdecimal() for field in fields):
            found["cron"] = "must be five fields, each a number or *"
        try:
            self.zone(timezone)
        except ValueError:
            found["timezone"] = f"{timezone!r} is no time zone"
        return found

    def next_local(self, cron: str, after: datetime) -> datetime | None:
        wanted = [None if field == "*" else int(field) for field in cron.split()]
        day = after.replace(hour=0, minute=0, second=0)
        for _ in range(4 * 366):
            weekday = day.isoweekday() % 7
            if _agree(wanted[2:], (day.day, day.month, weekday)):
                for minute in range(24 * 60):
                    local = day + timedelta(minutes=minute)
                    if local > after and _agree(wanted[:2], (local.minute, local.hour)):
                        return local
            day += timedelta(days=1)
        return None

    def zone(self, name: str) -> tzinfo:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, OSError) as error:
            raise ValueError(name) from error


def _agree(wanted: Sequence[int | None], found: Sequence[int]) -> bool:
    return all(one is None or one == other for one, other in zip(wanted, found, strict=True))
