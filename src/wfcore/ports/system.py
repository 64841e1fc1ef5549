"""Time, calendars, identity, chance, passwords, templates: what rules take as arguments."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Protocol, TypeVar

from wfcore.model.json import Json
from wfcore.rules.limits import TEXT_RESULT
from wfcore.time import EpochMs

T = TypeVar("T")


class Offload(Protocol):
    """Where pure work is done that takes longer than others should wait for the event loop."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        """What *work* gives or raises. It changes nothing, and nothing that it reads changes."""


async def inline(work: Callable[[], T], /) -> T:
    """An `Offload` that has nowhere else to go: *work* is done here."""
    return work()


class Clock(Protocol):
    def now(self) -> EpochMs:
        """The wall clock."""

    def deadline_now(self) -> EpochMs:
        """
        The instant that deadlines of approvals are held against.

        The wall clock, except for 5 minutes after it jumped by more than 60 s against the
        monotonic one: then the time as if it had not jumped, so that a wrong clock does not
        reject what people were still asked. `rules.clock_jumps` says it of any two clocks.
        """

    def service_now(self) -> EpochMs:
        """
        The instant that work goes by on one machine: what is due, leases, delays, retries, and
        the stamps of executions. Use cases ask `Store.now`, and a store on one machine is given
        this. Never before one that it has told, though the wall clock be set back and the process
        start anew; else that of deadlines. See `rules.clock_jumps.service_time`.
        """


class Calendar(Protocol):
    """Cron expressions of five fields, and time zones by name."""

    def problems(self, cron: str, timezone: str) -> Mapping[str, str]:
        """What is wrong with them, by field (`cron`, `timezone`); empty: nothing."""

    def next_local(self, cron: str, after: datetime) -> datetime | None:
        """
        The first local time after *after* that *cron* names; both without a zone, in whole
        seconds. None: there is none. Says nothing of daylight saving: see
        `rules.triggers.schedule`.
        """

    def zone(self, name: str) -> tzinfo:
        """The zone of that name. Raises `ValueError`."""


class Ids(Protocol):
    def new(self, prefix: str, now: EpochMs) -> str:
        """A new id: prefix, underscore, a time-ordered part. Unique over processes."""


class Tokens(Protocol):
    def text(self, length: int) -> str:
        """*length* random base62 characters, unguessable."""


class Passwords(Protocol):
    """Both raise `NotReady` where more wait for their turn than there is room for."""

    async def hash(self, password: str) -> str: ...
    async def verify(self, password: str, hashed: str | None) -> bool:
        """Whether they fit. None costs as much time as a real hash, and never fits."""


class Sealer(Protocol):
    """Encrypts what a store keeps, so that whoever reads the file alone reads nothing of it."""

    @property
    def keys(self) -> Sequence[str]:
        """Ids of the keys that it opens with; it seals with the first."""

    @property
    def where(self) -> str:
        """Where the keys come from, in words for the operator."""

    def make(self) -> None:
        """Make a first key where there is none: called before anything is sealed."""

    def seal(self, text: str, place: str) -> str:
        """
        *text*, which is not empty, sealed for *place*: its key's id, a dot, and printable ASCII.
        Sealed twice, the same text looks different.
        """

    def open(self, sealed: str, place: str) -> str:
        """
        What was sealed for *place*. Raises `ValueError` for an unknown key, a changed text, another
        place.
        """


class Templates(Protocol):
    """
    Expressions in `{{ }}` over data; no statements, no evaluation of code. Deterministic.

    A string that is one template as a whole keeps the value's type; any other becomes text.
    """

    def render(self, value: Json, names: Mapping[str, Json], limit: int = TEXT_RESULT) -> Json:
        """
        Evaluate every template in *value* (strings, also inside lists and objects).

        Raises `TemplateFailed`: unknown name, wrong type, out of fuel, a result over *limit*
        (the characters of its texts, and one for each other value).
        """

    def problems(self, text: str, known: Mapping[str, Collection[str] | None]) -> Sequence[str]:
        """
        What can be seen to be wrong in *text* without data: syntax, statements, unknown names.

        *known* maps each top-level name to the names below it (None: anything).
        """
