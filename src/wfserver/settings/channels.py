"""
The settings of the channels of notices.

`WFCORE_SMTP_URL` makes the channel `mail`, `WFCORE_NOTIFY_<NAME>` makes a channel with that name in
small letters.
"""

import re
from collections.abc import Collection, Mapping, MutableMapping
from pathlib import Path

from attrs import field, frozen

from wfcore.errors import InvalidInput
from wfcore.rules.notices.facts import MAIL
from wfcore.wire.languages import ENGLISH, LANGUAGES

SMTP_URL = "WFCORE_SMTP_URL"
MAIL_FROM = "WFCORE_MAIL_FROM"
ROOMS = "WFCORE_NOTIFY_"
FAILURE_CHANNELS = "WFCORE_FAILURE_CHANNELS"
MOST_ROWS = 50
_NAME = re.compile(f"{ROOMS}([A-Z][A-Z0-9_]*)")


@frozen
class NoticeSettings:
    """
    The settings of notices. `smtp`: the URL of the mail server. `sender`: the address of the
    sender. `rooms`: the URLs of the other channels, by name. `templates`: the folder of the
    operator's own texts. `rows`: how many rows of an approval a mail shows. `failure_channels`: the
    channels that get every failure. NT-8.
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
    """Whether *name* is a variable that sets up a channel."""
    return _NAME.fullmatch(name) is not None


def notice_settings(env: Mapping[str, str]) -> NoticeSettings:
    """The settings of notices in *env*. Raises `InvalidInput`."""
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
    """The names in *text*, a list with commas; each name once."""
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
    """Remove the URLs of channels, which may hold passwords, so that no child inherits them."""
    for name in [*filter(is_of_a_channel, environment), SMTP_URL]:
        environment.pop(name, None)


def setting_of_channel(channel: str) -> str:
    """The variable that sets up *channel*."""
    return SMTP_URL if channel == MAIL else f"{ROOMS}{channel.upper()}"
