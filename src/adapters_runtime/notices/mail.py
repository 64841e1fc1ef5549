"""
Mail by SMTP, with the standard library's client. Decision 138.

Each mail has a daemon thread of its own, so that a slow server blocks neither shared threads nor
the end of the process.

`smtps://` speaks TLS from the first byte. `smtp://` demands STARTTLS, unless the URL ends with
`?tls=none`, for a relay on the same machine. Certificates are always checked.
"""

import asyncio
import re
import smtplib
import socket
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import localtime
from functools import partial
from html import escape
from threading import Thread, Timer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from attrs import field, frozen

from adapters_runtime.notices.rendering import NoticeText, Words
from wfcore.errors import InvalidInput
from wfcore.ports.notices import Letter, Message, NotDelivered, NoticeRefused, Receipt
from wfcore.rules import markdown
from wfcore.rules.execution.mail import one_line
from wfcore.rules.mailbox import mailbox
from wfcore.rules.visible import visible

SMTP_URL = "WFCORE_SMTP_URL"
MAIL_FROM = "WFCORE_MAIL_FROM"
TIMEOUT_S, CONVERSATION_S = 20.0, 60.0
"""The time limits for each answer of the server, and for the whole conversation."""
NO_STARTTLS = (
    "offers no STARTTLS, which smtp:// demands: write smtps:// if it speaks TLS from the start, or "
    "?tls=none at the end if it is a relay on this machine"
)
_PORTS = {"smtp": 587, "smtps": 465}
_LASTING = range(500, 600)
_ONLY_OURS = (530, 534, 535, 538)
"""The codes for wrong credentials, which are not the recipient's fault, and may be corrected."""
_CONTENT_TYPE = re.compile(r"(application|audio|image|text|video)/([a-z0-9][a-z0-9.+-]{0,99})")
_PAGE = """\
<!doctype html>
<html>
<head><meta charset="utf-8"><title>{}</title></head>
<body dir="auto" style="font-family: sans-serif; line-height: 1.5; max-width: 40em">
{}
</body>
</html>
"""


@frozen
class SmtpServer:
    """The server that takes mail. `tls`: "tls" from the first byte, "starttls", or "none"."""

    host: str
    port: int
    tls: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def read_smtp_url(text: str) -> SmtpServer:
    """The server in the setting *text*. Raises `InvalidInput`, which does not repeat *text*."""
    try:
        where = urlsplit(text)
        port = where.port or _PORTS.get(where.scheme, 0)
    except ValueError:
        raise InvalidInput(SMTP_URL, "is no URL; write smtp://user:password@host:587") from None
    query = parse_qs(where.query)
    tls = query.pop("tls", ["starttls"])[-1]
    if where.scheme not in _PORTS or not where.hostname or query or where.path.strip("/"):
        fix = "must be smtp://user:password@host:587 or smtps://user:password@host:465"
        raise InvalidInput(SMTP_URL, fix)
    if tls not in ("starttls", "none"):
        raise InvalidInput(SMTP_URL, "tls must be starttls or none")
    user = unquote(where.username) if where.username else None
    password = unquote(where.password) if where.password else None
    tls = "tls" if where.scheme == "smtps" else tls
    return SmtpServer(where.hostname, port, tls, user, password)


def read_sender(text: str | None) -> Address:
    """The sender in the setting *text*: `flows@example.org`. Raises `InvalidInput`."""
    if not text:
        raise InvalidInput(MAIL_FROM, f"must name the sender, because {SMTP_URL} is set")
    try:
        return _address(text)
    except NoticeRefused:
        raise InvalidInput(MAIL_FROM, "must be an email address") from None


class MailNotifier:
    """
    The `Notifier` of the channel `mail`. *context* makes the TLS context; tests replace *context*,
    to trust an authority of their own.
    """

    def __init__(
        self,
        server: SmtpServer,
        sender: Address,
        words: Words,
        context: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self._server = server
        self._sender = sender
        self._words = words
        self._context = context

    async def send(self, message: Message) -> Receipt:
        """Send one mail; see `Notifier`."""
        letter = message.letter
        to = tuple(_address(one) for one in (letter.to if letter else (message.to,)))
        if letter is None:
            mail = self.compose(message, to[0], self._words.say(message))
        else:
            mail = self._letter(message.id, letter, to)
        answer: Future[Receipt] = Future()
        hand_in = partial(self._answer, answer, mail, [one.addr_spec for one in to])
        Thread(target=hand_in, name="mail", daemon=True).start()
        return await asyncio.wrap_future(answer)

    def compose(self, message: Message, to: Address, text: NoticeText) -> EmailMessage:
        """The mail of a notice, as plain text and as a small page."""
        mail = self._with_headers(message.id, text.title, (to,))
        mail.set_content(text.text + "\n" + _sample(text))
        mail.add_alternative(self._words.html(message, text), subtype="html")
        return mail

    def _letter(self, id: str, letter: Letter, to: Sequence[Address]) -> EmailMessage:
        """The mail of a step: its Markdown as text, the same as a small page, its files. ML-5."""
        mail = self._with_headers(id, letter.subject, to)
        mail.set_content(letter.body + "\n")
        page = _PAGE.format(escape(letter.subject), markdown.html(letter.markdown))
        mail.add_alternative(page, subtype="html")
        for file in letter.files:
            known = _CONTENT_TYPE.fullmatch(file.content_type)
            main, sub = known.groups() if known else ("application", "octet-stream")
            name = _as_written(one_line(file.name))
            mail.add_attachment(file.content, maintype=main, subtype=sub, filename=name)
        return mail

    def _with_headers(self, id: str, subject: str, to: Sequence[Address]) -> EmailMessage:
        mail = EmailMessage(policy=SMTP)
        mail["Subject"] = _as_written(subject)
        mail["From"] = self._sender
        mail["To"] = tuple(to)
        mail["Date"] = localtime()  # many servers count a mail without one as spam
        mail["Message-ID"] = f"<{id}@{self._sender.domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail["X-Auto-Response-Suppress"] = "All"
        return mail

    def _answer(self, answer: "Future[Receipt]", mail: EmailMessage, to: Sequence[str]) -> None:
        if not answer.set_running_or_notify_cancel():
            return
        try:
            answer.set_result(self._hand_in(mail, to))
        except Exception as error:
            answer.set_exception(error)

    def _hand_in(self, mail: EmailMessage, to: Sequence[str]) -> Receipt:
        where = self._server.host
        try:
            with self._connection() as smtp:
                if self._server.tls == "starttls":
                    self._secure(smtp)
                if self._server.user is not None:
                    smtp.login(self._server.user, self._server.password or "")
                not_for = smtp.send_message(mail, self._sender.addr_spec, to)
        except smtplib.SMTPRecipientsRefused as all_refused:
            codes = [code for code, _ in all_refused.recipients.values()]
            raise _answered(where, min(codes, key=_is_lasting)) from None
        except smtplib.SMTPResponseException as refused:
            raise _answered(where, refused.smtp_code) from None
        except (smtplib.SMTPNotSupportedError, smtplib.SMTPException) as refused:
            what = type(refused).__name__
            raise NotDelivered(f"{where} cannot take it as it is asked to: {what}") from None
        except (OSError, MessageError) as failure:
            raise NotDelivered(f"{where}: {type(failure).__name__}") from None
        return Receipt("handed in", mail["Message-ID"], tuple(not_for))

    def _secure(self, smtp: smtplib.SMTP) -> None:
        smtp.ehlo_or_helo_if_needed()
        if not smtp.has_extn("starttls"):
            raise NotDelivered(f"{self._server.host} {NO_STARTTLS}")
        smtp.starttls(context=self._context())

    def _connection(self) -> smtplib.SMTP:
        where = self._server
        return _Conversation(
            where.host, where.port, self._context() if where.tls == "tls" else None
        )


class _Conversation(smtplib.SMTP):
    """
    An SMTP conversation that ends after `CONVERSATION_S` at the latest.

    The timeout of a socket is for each read, so a server that sends a little now and then would
    hold the thread for ever. The connection is shut down below all protocols, TLS included.
    """

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None) -> None:
        self._context = context
        super().__init__(host, port, timeout=TIMEOUT_S)

    def connect(
        self, host: str = "", port: int = 0, source_address: Any = None
    ) -> tuple[int, bytes]:
        """Connect, and read the greeting, as `SMTP` and `SMTP_SSL` do."""
        plain = socket.create_connection((host, port), TIMEOUT_S, source_address)
        self._line = plain.dup()
        self._end = Timer(CONVERSATION_S, self._cut)
        self._end.daemon = True
        self._end.start()
        try:
            self.sock = plain
            if self._context is not None:
                self.sock = self._context.wrap_socket(plain, server_hostname=host)
            self.file = None
            return self.getreply()
        except BaseException:
            self.close()
            raise

    def _cut(self) -> None:
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the conversation. Later calls do nothing."""
        self._end.cancel()
        self._line.close()
        super().close()


def _answered(where: str, code: int) -> NotDelivered:
    """The error for an answer. Only the code is kept, since its text may quote the mail."""
    message = f"{where} answered {code}"
    return NoticeRefused(message) if _is_lasting(code) else NotDelivered(message)


def _is_lasting(code: int) -> bool:
    return code in _LASTING and code not in _ONLY_OURS


def _address(text: str) -> Address:
    """The address in *text*, which holds nothing else: no list, no header, no name."""
    try:
        address = Address(addr_spec=mailbox(text))
    except (MessageError, ValueError, IndexError):
        raise NoticeRefused("the address is no email address") from None
    return address


def _as_written(text: str) -> str:
    """
    *text* for a header, with `=?` taken apart. The library would decode `=?utf-8?q?=0D=0A?=` to a
    line break, which ends the header: whoever gives the text could write the mail. ML-5.
    """
    return text.replace("=?", "= ?")


def _sample(text: NoticeText) -> str:
    """The rows of *text*, a line each, with fields in their order."""
    lines = [
        visible(", ".join(f"{name}: {value}" for name, value in row.items()))
        for rows in text.rows
        for row in rows
    ]
    return "\n".join(("", *lines, "")) if lines else ""
