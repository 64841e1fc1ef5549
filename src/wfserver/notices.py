"""
The notifiers that send notices over the channels of the settings.

Further schemes come from installed packages. Decision 138.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from wfcore.errors import InvalidInput
from wfcore.model.notice import NoticeKind
from wfcore.ports.notices import Message, NoticeLine, NoticeRefused, Notifier, Receipt
from wfcore.rules.notices.facts import MAIL
from wfcore.usecases.services import Services
from wfserver.settings.channels import SMTP_URL, NoticeSettings, setting_of_channel

if TYPE_CHECKING:
    from wfserver.settings.record import Settings

NOTIFIERS = "wfcore.notifiers"


class Channels:
    """A `Notifier` that passes each message to the notifier of its channel."""

    def __init__(self, notifiers: Mapping[str, Notifier]) -> None:
        self._notifiers = notifiers

    async def send(self, message: Message) -> Receipt:
        """See `Notifier`."""
        notifier = self._notifiers.get(message.channel)
        if notifier is None:
            raise NoticeRefused(f"{setting_of_channel(message.channel)} is not set")
        return await notifier.send(message)


def new_notifier(
    settings: NoticeSettings, public_url: str | None, allow_private: bool, services: Services
) -> Notifier | None:
    """
    The notifier for all channels; None: there is no channel. Raises `InvalidInput` for a URL that
    cannot be read, and for an unknown scheme.
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
    Send a test over *channel* at once; returns the answer of the other side. Raises `InvalidInput`
    for a channel that is not set up, `NotDelivered`.
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
    test = Message(id, channel, to, language, (NoticeLine(NoticeKind.TEST, "/"),))
    return (await notifier.send(test)).text


def _installed(
    setting: str, scheme: str, url: str, services: Services, forms: Iterable[str]
) -> Notifier:
    """
    The notifier of an installed package: its entry point in the group `wfcore.notifiers` is called
    with the URL and the services, and returns a `Notifier`.
    """
    from importlib.metadata import entry_points

    offered = {one.name: one for one in entry_points(group=NOTIFIERS)}
    if scheme not in offered:
        known = ", ".join([*(f"{form}+https" for form in forms), *sorted(offered)])
        raise InvalidInput(setting, f"no package offers {scheme or 'this'}://; known are {known}")
    found: Notifier = offered[scheme].load()(url, services)
    return found
