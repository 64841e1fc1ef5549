"""The ports whose values rules take as arguments: time, calendars, ids, passwords, templates."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Protocol, TypeVar

from wfcore.errors import NotConfirmed
from wfcore.model.json import Json
from wfcore.model.passkey import PasskeyMaterial, Registration, RelyingParty
from wfcore.model.trace import Trace
from wfcore.rules.limits import TEXT_RESULT
from wfcore.time import EpochMs

T = TypeVar("T")


class Offload(Protocol):
    """Runs long pure computations outside the event loop."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        """
        Run *work*; returns its result and raises its errors. *work* changes nothing, and its data
        does not change in the meantime.
        """


async def inline(work: Callable[[], T], /) -> T:
    """An `Offload` that runs *work* in place."""
    return work()


Tracing = Callable[[str], Trace | None]
"""
Returns the trace that begins with an execution, by the execution's id; None: no spans are made.
TR-2.
"""


class Clock(Protocol):
    """A source of the present time."""

    def now(self) -> EpochMs:
        """The wall clock."""

    def deadline_now(self) -> EpochMs:
        """
        The time with which approval deadlines and schedules are compared.

        On a store with a clock of its own this is the store's clock, so that servers whose clocks
        differ agree. AP-47. Otherwise this is the wall clock, except in the 5 minutes after a jump
        of more than 60 s relative to the monotonic clock: then this is the time without the jump,
        so that a wrong clock does not expire open approvals. See `rules.clock_jumps`.
        """

    def service_now(self) -> EpochMs:
        """
        The time of work on one machine: due times, leases, delays, retries and timestamps of
        executions. Use cases call `Store.now`; a store on one machine answers with this time. Never
        earlier than a previous value, even if the wall clock is set back and the process restarted;
        otherwise equal to the time of deadlines. See `rules.clock_jumps.service_time`.
        """


class Calendar(Protocol):
    """Cron expressions of five fields, and time zones by name."""

    def problems(self, cron: str, timezone: str) -> Mapping[str, str]:
        """The problems by field (`cron`, `timezone`); empty if both are valid."""

    def next_local(self, cron: str, after: datetime) -> datetime | None:
        """
        The first local time after *after* that matches *cron*, or None. Both times are naive and in
        whole seconds. Daylight saving is not considered: see `rules.triggers.schedule`.
        """

    def zone(self, name: str) -> tzinfo:
        """The zone of that name. Raises `ValueError`."""


class Ids(Protocol):
    """A source of ids."""

    def new(self, prefix: str, now: EpochMs) -> str:
        """A new id: prefix, underscore, a time-ordered part. Unique across processes."""


class Tokens(Protocol):
    """A source of secrets."""

    def text(self, length: int) -> str:
        """*length* random base62 characters, unguessable."""


class Passwords(Protocol):
    """
    Hashing and verifying passwords. Both methods raise `NotReady` if too many calls are waiting.
    """

    async def hash(self, password: str) -> str: ...
    async def verify(self, password: str, hashed: str | None) -> bool:
        """
        Whether *password* matches *hashed*. None takes as long as a real hash and never matches.
        """


class Passkeys(Protocol):
    """The cryptography of passkeys. The rules decide which answer counts."""

    def material(
        self, answer: Registration, challenge: bytes, party: RelyingParty
    ) -> PasskeyMaterial:
        """
        The new passkey in a browser's answer. Raises `NotConfirmed` if the answer is not for
        *challenge* and *party*, or the authenticator did not verify the person.
        """

    def verifies(self, public_key: bytes, algorithm: int, signature: bytes, signed: bytes) -> bool:
        """As `wfcore.rules.receipt.Verifies`. False for a key that cannot be read."""


class NoPasskeys:
    """`Passkeys` of a server without them: no answer counts."""

    def material(
        self, answer: Registration, challenge: bytes, party: RelyingParty
    ) -> PasskeyMaterial:
        raise NotConfirmed("this server has no passkeys")

    def verifies(self, public_key: bytes, algorithm: int, signature: bytes, signed: bytes) -> bool:
        return False


class Sealer(Protocol):
    """Encrypts cells of a store, so that the store's file alone reveals no contents."""

    @property
    def keys(self) -> Sequence[str]:
        """The ids of the keys that can open cells; the first key seals."""

    @property
    def where(self) -> str:
        """The source of the keys, described for the operator."""

    def make(self) -> None:
        """Create a first key if there is none; called before the first sealing."""

    def seal(self, text: str, place: str) -> str:
        """
        Seal *text* (not empty) for *place*: the key's id, a dot, and printable ASCII. Sealing the
        same text twice gives different results.
        """

    def open(self, sealed: str, place: str) -> str:
        """
        The text that was sealed for *place*. Raises `ValueError` for an unknown key, a changed cell
        or another place.
        """

    def seal_bytes(self, data: bytes, place: str) -> bytes:
        """
        Seal *data* for *place*: the key's id as four bytes, then the sealed data. Only `open_bytes`
        reads the result.
        """

    def open_bytes(self, sealed: bytes, place: str) -> bytes:
        """The data that `seal_bytes` sealed for *place*. Raises `ValueError` as `open` does."""


Inserted = Callable[[str], str]
"""Converts a text that a template inserts into another text."""


class Templates(Protocol):
    """
    Expressions in `{{ }}` over data; no statements, no evaluation of code. Deterministic.

    A string that consists of one template keeps the value's type; any other string becomes text.
    """

    def render(
        self,
        value: Json,
        names: Mapping[str, Json],
        limit: int = TEXT_RESULT,
        inserted: Inserted | None = None,
        *,
        missing_is_null: bool = False,
    ) -> Json:
        """
        Evaluate every template in *value* (strings, also inside lists and objects). With *inserted*
        the result is a text, and *inserted* converts the text of each expression, except the result
        of the filter `markdown`. MD-3. With *missing_is_null*, a field that is not in the data is
        null, and so is a field of null.

        Raises `TemplateFailed`: unknown name, wrong type, budget exceeded, a result with an integer
        that does not fit 64 bits, or a result larger than *limit* (the characters of its texts,
        plus 1 for each other value).
        """

    def problems(self, text: str, known: Mapping[str, Collection[str] | None]) -> Sequence[str]:
        """
        Errors in *text* that can be found without data: syntax, statements, unknown names.

        *known* maps each top-level name to the names below (None: any name).
        """
