"""The port that sends notices: messages for a notifier, and its errors."""

from typing import Protocol

from attrs import define, field, frozen

from wfcore.errors import WfError
from wfcore.model.json import JsonObject
from wfcore.model.notice import NoticeKind
from wfcore.time import DurationMs


@frozen
class NoticeLine:
    """
    One line of a notice. `path`: the page of the line on this server; `about`: the facts to show.
    """

    kind: NoticeKind
    path: str
    about: JsonObject = field(factory=dict, repr=False)


@frozen
class LetterFile:
    """A file that a mail carries. `content_type` as the artifact's."""

    name: str
    content_type: str
    content: bytes = field(repr=False)


@frozen
class Letter:
    """
    The mail that a step of a workflow sends, in its author's words. ML-1.

    `to`: addresses. `body`: the plain text; `markdown`: the Markdown of the HTML part.
    """

    to: tuple[str, ...]
    subject: str
    body: str = field(repr=False)
    markdown: str = field(repr=False)
    files: tuple[LetterFile, ...] = field(default=(), repr=False)


@frozen
class Receipt:
    """
    The answer of the other side to a message that it took. `text` contains no secrets.

    Of a mail, `message_id` is its header `Message-ID`, and `refused` the recipients whom the other
    side refused.
    """

    text: str
    message_id: str = ""
    refused: tuple[str, ...] = ()


@frozen
class Message:
    """
    One message to one address, as facts; the notifier writes the words.

    `id`: the notice's id, the same for every attempt. `to`: an email, or empty if the channel is a
    room. `lines`: one line, or several for a digest. `letter`: the mail of a step, which a notifier
    sends without words of its own. `zone`: the reader's time zone, as in the IANA database; None:
    UTC.
    """

    id: str
    channel: str
    to: str
    language: str
    lines: tuple[NoticeLine, ...]
    letter: Letter | None = None
    zone: str | None = None

    @property
    def kind(self) -> str:
        """The key under which a notifier finds the words."""
        return self.lines[0].kind.value if len(self.lines) == 1 else "digest"


@define
class NotDelivered(WfError):
    """
    A message that, as far as is known, did not arrive. The error's text shows no secret and no
    address.
    """

    message: str

    def __str__(self) -> str:
        return self.message


@define
class NoticeRefused(NotDelivered):
    """A message that the other side refuses for good."""


@define
class NoticeDelayed(NotDelivered):
    """
    A message that was not sent now. `after_ms`: the wait before the next attempt, without counting
    this one; None: this attempt counts, and the next attempt follows as usual.
    """

    after_ms: DurationMs | None = None


class Notifier(Protocol):
    """The channels that the operator set up."""

    async def send(self, message: Message) -> Receipt:
        """
        Deliver *message* once. Returns the answer of the other side.

        The same message may be sent again: receivers recognise its id.

        Raises `NoticeRefused`, also for a channel that is not set up (the error names the setting);
        `NoticeDelayed` if the message can be sent later; `NotDelivered` if the attempt failed and
        another attempt follows.
        """
