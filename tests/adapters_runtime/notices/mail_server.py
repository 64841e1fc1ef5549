"""A mail server on loopback that notes what it takes and answers as it is told."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

PASSWORD = "s3cret-of-mail"


class _AnyPort(Controller):
    """A controller that finds its own port: it knows only the 0 that it asked for."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


class MailServer:
    """
    `answers` are replies to the next mails, then `250 OK`; "" hangs up. `refused`: the replies to
    recipients that are not taken.
    """

    channel = "mail"
    to = "bob@example.org"
    secret = PASSWORD

    def __init__(self, context: ssl.SSLContext | None = None, *, login: bool = False) -> None:
        self.logins = 0
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.answers: list[str] = []
        self.refused: dict[str, str] = {}
        more: dict[str, Any] = {}
        if context is not None:
            more |= {"tls_context": context, "require_starttls": True}
        if login:
            more |= {"authenticator": self._login, "auth_required": context is not None}
            more |= {"auth_require_tls": context is not None}
        self._controller = _AnyPort(self, hostname="127.0.0.1", port=0, **more)

    def _login(self, server: Any, session: Any, envelope: Any, way: str, data: Any) -> AuthResult:
        self.logins += 1
        given = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
        return AuthResult(success=given, handled=False)

    async def handle_RCPT(
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        answer = self.answers.pop(0) if self.answers else "250 OK"
        if not answer:
            server.transport.abort()
            return "421 bye"
        if answer.startswith("2"):
            content = envelope.original_content or b""
            mail = message_from_bytes(content, policy=policy.default)
            assert isinstance(mail, EmailMessage)
            self.mails.append(mail)
            self.recipients.append(list(envelope.rcpt_tos))
        return answer

    @property
    def port(self) -> int:
        return int(self._controller.server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}?tls=none"

    @property
    def received(self) -> list[str]:
        return [f"{one['Subject']}\n{text_of(one)}" for one in self.mails]

    def refuses(self) -> None:
        self.answers.append("550 no such user " + PASSWORD)

    def fails(self) -> None:
        self.answers.append("451 later " + PASSWORD)

    def hangs_up(self) -> None:
        self.answers.append("")


def text_of(mail: EmailMessage, kind: str = "plain") -> str:
    """The part of a mail that is plain text, or HTML."""
    part = mail.get_body((kind,))
    assert part is not None
    return str(part.get_content())


@contextmanager
def a_mail_server(
    context: ssl.SSLContext | None = None, *, login: bool = False
) -> Iterator[MailServer]:
    server = MailServer(context, login=login)
    server._controller.start()
    try:
        yield server
    finally:
        server._controller.stop()
