"""The channels of a server: each name with what sends by it. NT-2."""

from collections.abc import Mapping

from wfcore.ports.notices import Message, NoticeRefused, Notifier

MAIL = "mail"


class Channels:
    """A `Notifier` that hands each message to the channel it names."""

    def __init__(self, notifiers: Mapping[str, Notifier]) -> None:
        self._notifiers = notifiers

    async def send(self, message: Message) -> str:
        """See `Notifier`."""
        notifier = self._notifiers.get(message.channel)
        if notifier is None:
            raise NoticeRefused(f"{setting_of(message.channel)} is not set")
        return await notifier.send(message)


def setting_of(channel: str) -> str:
    """What the operator sets for a channel."""
    return "WFCORE_SMTP_URL" if channel == MAIL else f"WFCORE_NOTIFY_{channel.upper()}"
