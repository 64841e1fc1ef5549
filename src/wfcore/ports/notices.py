"""Sending notices: what a notifier is given, and how it says that it could not."""

from typing import Protocol

from attrs import define, field, frozen

from wfcore.errors import WfError
from wfcore.model.json import JsonObject
from wfcore.model.notice import NoticeKind
from wfcore.time import DurationMs


@frozen
class NoticeLine:
    """One thing to tell: `path` leads to its page on this server, `about` is what is said of it."""

    kind: NoticeKind
    path: str
    about: JsonObject = field(factory=dict, repr=False)


@frozen
class Message:
    """
    One message to one address, in facts: a notifier has the words.

    `id` is the notice's, the same for every attempt. `to` is an email, or empty where the channel
    is a room. `lines`: one; of a digest several.
    """

    id: str
    channel: str
    to: str
    language: str
    lines: tuple[NoticeLine, ...]

    @property
    def kind(self) -> str:
        """What its words are found by."""
        return self.lines[0].kind.value if len(self.lines) == 1 else "digest"


@define
class NotDelivered(WfError):
    """It did not arrive, as far as is known. The words never show a secret or an address."""

    message: str

    def __str__(self) -> str:
        return self.message


@define
class NoticeRefused(NotDelivered):
    """The other side will not take it, however often it is tried."""


@define
class NoticeDelayed(NotDelivered):
    """
    Not now: nothing was sent. `after_ms`: when to try again; the attempt does not count. None: it
    counts, and the next one comes in its turn.
    """

    after_ms: DurationMs | None = None


class Notifier(Protocol):
    """The channels that the operator set up."""

    async def send(self, message: Message) -> str:
        """
        Deliver once; what the other side said, in words without secrets.

        Sending a message of the same id again is allowed: receivers know it by its id.

        Raises:
            NoticeRefused, NoticeDelayed: see there. A channel that is not set up is a
                `NoticeRefused` that names the setting.
            NotDelivered: it failed, and is tried again.
        """
