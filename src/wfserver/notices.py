"""
Notices: the settings of channels, and the notifiers that send by them.

`WFCORE_SMTP_URL` makes the channel `mail`, `WFCORE_NOTIFY_<NAME>` one with that name in small
letters. A scheme that is not ours is looked for among installed packages. Decisions 107, 138.
"""

import re
from collections.abc import Collection, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from attrs import field, frozen

from wfcore.errors import InvalidInput
from wfcore.model.notice import NoticeKind
from wfcore.ports.notices import Message, NoticeLine, NoticeRefused, Notifier
from wfcore.rules.notices.facts import MAIL
from wfcore.usecases.services import Services
from wfcore.wire.languages import ENGLISH, LANGUAGES

if TYPE_CHECKING:
    from wfserver.settings import Settings

NOTIFIERS = "wfcore.notifiers"
SMTP_URL = "WFCORE_SMTP_URL"
MAIL_FROM = "WFCORE_MAIL_FROM"
ROOMS = "WFCORE_NOTIFY_"
FAILURE_CHANNELS = "WFCORE_FAILURE_CHANNELS"
MOST_ROWS = 50
_NAME = re.compile(f"{ROOMS}([A-Z][A-Z0-9_]*)")


@frozen
class NoticeSettings:
    """
    `smtp`: where mail is handed in, `sender` who it is from. `rooms`: the URL of each other
    channel. `templates`: the folder with the operator's own. `rows`: of an approval, in a mail.
    `failure_channels`: where every failure is told. NT-8.
    """

    smtp: str | None = field(default=None, repr=False)
    sender: str | None = None
    rooms: Mapping[str, str] = field(factory=dict, repr=False)
    templates: Path | None = None
    language: str = ENGLISH
    rows: int = 0
    failure_channels: tuple[str, ...] = ()

    @property
    def channels(self) -> frozenset[str]:
        """The names of all channels."""
        return frozenset((*self.rooms, *((MAIL,) if self.smtp else ())))


def is_of_a_channel(name: str) -> bool:
    """Whether a variable sets a channel up."""
    return _NAME.fullmatch(name) is not None


def notice_settings(env: Mapping[str, str]) -> NoticeSettings:
    """What *env* says. Raises `InvalidInput`."""
    smtp, sender = env.get(SMTP_URL) or None, env.get(MAIL_FROM) or None
    if smtp is not None:
        _require_mail(smtp, sender)
    rooms = {}
    for name, url in env.items():
        named = _NAME.fullmatch(name)
        if named is not None and url:
            rooms[named[1].lower()] = url
    if MAIL in rooms:
        raise InvalidInput(f"{ROOMS}MAIL", f"the channel mail is set by {SMTP_URL}")
    folder = env.get("WFCORE_NOTICE_TEMPLATES")
    offered = (*rooms, *((MAIL,) if smtp else ()))
    return NoticeSettings(
        smtp=smtp,
        sender=sender,
        rooms=rooms,
        templates=Path(folder).absolute() if folder else None,
        language=_language(env),
        rows=_rows(env),
        failure_channels=_failure_channels(env, offered),
    )


def _failure_channels(env: Mapping[str, str], offered: Collection[str]) -> tuple[str, ...]:
    named = names_in(env.get(FAILURE_CHANNELS) or "")
    for name in named:
        if name not in offered:
            known = f"known: {', '.join(sorted(offered))}" if offered else "none is set up"
            raise InvalidInput(FAILURE_CHANNELS, f"{name!r} is not a channel; {known}")
    return named


def names_in(text: str) -> tuple[str, ...]:
    """The names in a text that separates them by commas, each once."""
    parts = (part.strip() for part in text.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def _require_mail(smtp: str, sender: str | None) -> None:
    from adapters_runtime.notices.mail import read_sender, read_smtp_url  # most commands send none

    read_smtp_url(smtp)
    read_sender(sender)


def _language(env: Mapping[str, str]) -> str:
    found = env.get("WFCORE_LANGUAGE") or ENGLISH
    if found not in LANGUAGES:
        raise InvalidInput("WFCORE_LANGUAGE", f"must be one of {', '.join(LANGUAGES)}")
    return found


def _rows(env: Mapping[str, str]) -> int:
    text = env.get("WFCORE_MAIL_ROWS") or "0"
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else MOST_ROWS + 1
    if number > MOST_ROWS:
        raise InvalidInput("WFCORE_MAIL_ROWS", f"must be a whole number from 0 to {MOST_ROWS}")
    return number


def forget_channels(environment: MutableMapping[str, str]) -> None:
    """Passwords and addresses of channels are not inherited by any later process."""
    for name in [*filter(is_of_a_channel, environment), SMTP_URL]:
        environment.pop(name, None)


class Channels:
    """A `Notifier` that hands each message to the channel it names."""

    def __init__(self, notifiers: Mapping[str, Notifier]) -> None:
        self._notifiers = notifiers

    async def send(self, message: Message) -> str:
        """See `Notifier`."""
        notifier = self._notifiers.get(message.channel)
        if notifier is None:
            raise NoticeRefused(f"{setting_of_channel(message.channel)} is not set")
        return await notifier.send(message)


def setting_of_channel(channel: str) -> str:
    """What the operator sets for a channel."""
    return SMTP_URL if channel == MAIL else f"{ROOMS}{channel.upper()}"


def new_notifier(
    settings: NoticeSettings, public_url: str | None, allow_private: bool, services: Services
) -> Notifier | None:
    """
    What sends by every channel; None: there is none. Raises `InvalidInput` for a URL that cannot
    be read, and for a scheme that nobody offers.
    """
    if not settings.channels:
        return None
    from adapters_runtime.engine.callbacks import HttpCallbackClient
    from adapters_runtime.notices.mail import MailNotifier, read_sender, read_smtp_url
    from adapters_runtime.notices.rendering import Words
    from adapters_runtime.notices.rooms import FORMS, RoomNotifier, read_room

    words = Words(public_url, settings.templates)
    client = HttpCallbackClient(allow_private)
    made: dict[str, Notifier] = {}
    if settings.smtp is not None:
        server, sender = read_smtp_url(settings.smtp), read_sender(settings.sender)
        made[MAIL] = MailNotifier(server, sender, words)
    for name, url in settings.rooms.items():
        setting, scheme = setting_of_channel(name), urlsplit(url).scheme
        if scheme.partition("+")[0] in FORMS:
            room = read_room(setting, url, allow_private)
            made[name] = RoomNotifier(room, client, words, services.clock)
        else:
            made[name] = _installed(setting, scheme, url, services, FORMS)
    return Channels(made)


async def try_channel(settings: "Settings", services: Services, channel: str, to: str) -> str:
    """
    Send a test over *channel* at once; what the other side said. Raises `InvalidInput` for a
    channel that is not set up, `NotDelivered`.
    """
    private = settings.policy.private_callbacks
    notifier = new_notifier(settings.notices, settings.public_url, private, services)
    if notifier is None or channel not in settings.notices.channels:
        known = ", ".join(sorted(settings.notices.channels)) or f"none is set; see {SMTP_URL}"
        raise InvalidInput("channel", f"there is no channel {channel!r}; there are: {known}")
    if channel == MAIL and "@" not in to:
        raise InvalidInput("--to", "must say who gets the mail")
    id = services.ids.new("ntc", services.clock.now())
    language = settings.notices.language
    return await notifier.send(
        Message(id, channel, to, language, (NoticeLine(NoticeKind.TEST, "/"),))
    )


def _installed(
    setting: str, scheme: str, url: str, services: Services, forms: Iterable[str]
) -> Notifier:
    """
    An entry point of the group `wfcore.notifiers` is called with the URL and the services, and
    gives a `Notifier`.
    """
    from importlib.metadata import entry_points

    offered = {one.name: one for one in entry_points(group=NOTIFIERS)}
    if scheme not in offered:
        known = ", ".join([*(f"{form}+https" for form in forms), *sorted(offered)])
        raise InvalidInput(setting, f"no package offers {scheme or 'this'}://; known are {known}")
    found: Notifier = offered[scheme].load()(url, services)
    return found
