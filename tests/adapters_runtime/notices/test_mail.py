"""Mail over real sockets: what arrives, what a hostile name can do, and by which connection."""

import asyncio
import os
import re
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from attrs import evolve

from adapters_runtime.notices import mail
from adapters_runtime.notices.mail import MailNotifier, read_sender, read_smtp_url
from adapters_runtime.notices.rendering import Words
from wfcore.errors import InvalidInput
from wfcore.model.notice import NoticeKind
from wfcore.ports.notices import (
    Letter,
    LetterFile,
    Message,
    NotDelivered,
    NoticeLine,
    NoticeRefused,
)
from wfcore.testing.contracts import NotifierContract
from wfcore.testing.contracts.notifier import a_message

from .mail_server import PASSWORD, MailServer, a_mail_server, text_of

SENDER = read_sender("flows@example.org")
BASE = "https://flows.example.org"
MOST_S = 60


@pytest.fixture
def post() -> Iterator[MailServer]:
    with a_mail_server() as server:
        yield server


@pytest.fixture
def notifier(post: MailServer) -> MailNotifier:
    return MailNotifier(read_smtp_url(post.url), SENDER, Words(BASE))


class TestMail(NotifierContract):
    """The contract, over SMTP."""


async def test_a_mail_says_what_machines_want_to_know(
    notifier: MailNotifier, post: MailServer
) -> None:
    """Its id is the notice's, no holiday answer comes back, and there is text beside HTML."""
    await notifier.send(a_message(post))
    (mail,) = post.mails
    assert mail["Message-ID"] == "<ntc_1@example.org>"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert (mail["From"], mail["To"]) == ("flows@example.org", "bob@example.org")
    assert mail["Subject"] == "review0"
    assert "3 rows to look at." in text_of(mail)
    assert "Open the approval: https://flows.example.org/approvals/appr_0" in text_of(mail)
    assert '<a href="https://flows.example.org/approvals/appr_0" style' in text_of(mail, "html")


CSV = LetterFile("a\r\nb.csv", "text/csv", b"id;\xe9\n")
LETTER = Letter(
    ("ann@example.org", "bob@example.org"),
    "Report for b\u00fccher",
    "**Done**: a_b_c [here](https://evil.example/x)",
    "**Done**: a\\_b\\_c [here](https://evil.example/x)",
    (CSV, LetterFile("x.bin", "nonsense", b"\x00\xff" * 9)),
)


def a_letter(letter: Letter = LETTER) -> Message:
    line = NoticeLine(NoticeKind.STEP_MAIL, "/executions/exec_1")
    return Message("ntc_7", "mail", "", "en", (line,), letter)


async def test_a_letter_is_markdown_as_text_and_as_html(
    notifier: MailNotifier, post: MailServer
) -> None:
    """ML-5: the text is the Markdown, values show as they are, a link is followed by its host."""
    receipt = await notifier.send(a_letter())
    (mail,) = post.mails
    assert receipt.message_id == mail["Message-ID"] == "<ntc_7@example.org>"
    assert (mail["To"], mail["Subject"]) == ("ann@example.org, bob@example.org", LETTER.subject)
    assert text_of(mail).strip() == LETTER.body
    page = text_of(mail, "html")
    assert "<strong>Done</strong>: a_b_c" in page
    assert '>here</a> <span class="host">(evil.example)</span>' in page
    assert post.recipients == [["ann@example.org", "bob@example.org"]]


async def test_files_go_along_byte_for_byte(notifier: MailNotifier, post: MailServer) -> None:
    """ML-4: content is kept; a type that is none is a stream of bytes; a name adds no header."""
    await notifier.send(a_letter())
    found = [*post.mails[0].iter_attachments()]
    assert [one.get_payload(decode=True) for one in found] == [f.content for f in LETTER.files]
    assert [one.get_content_type() for one in found] == ["text/csv", "application/octet-stream"]
    assert [one.get_content_disposition() for one in found] == ["attachment"] * 2


@pytest.mark.parametrize(
    ("codes", "failure", "refused"),
    [
        ({"ann@example.org": "550 no"}, None, ("ann@example.org",)),
        ({"ann@example.org": "550 no", "bob@example.org": "550 no"}, NoticeRefused, ()),
        ({"ann@example.org": "550 no", "bob@example.org": "451 later"}, NotDelivered, ()),
    ],
)
async def test_recipients_may_be_refused(
    notifier: MailNotifier,
    post: MailServer,
    codes: dict[str, str],
    failure: type[NotDelivered] | None,
    refused: tuple[str, ...],
) -> None:
    """ML-1: some refused: taken for the others; all, and one only for now: tried again."""
    post.refused = codes
    if failure is None:
        assert (await notifier.send(a_letter())).refused == refused
        assert post.recipients == [["bob@example.org"]]
        return
    with pytest.raises(NotDelivered) as raised:
        await notifier.send(a_letter())
    assert type(raised.value) is failure


async def test_names_cannot_add_headers(notifier: MailNotifier, post: MailServer) -> None:
    """A line break in a name is a blank of the subject; nobody else gets the mail."""
    step = "a\r\nBcc: eve@example.org\nX-Evil: 1\r\n\r\nbody\x00\u2028x"
    await notifier.send(a_message(post, step=step))
    (mail,) = post.mails
    assert post.recipients == [["bob@example.org"]]
    assert (mail["Bcc"], mail["X-Evil"]) == (None, None)
    assert mail["Subject"] == ("a Bcc: eve@example.org X-Evil: 1 body\ufffd\ufffdx")


WRITES_A_MAIL = "=?utf-8?q?x=0D=0AReply-To:_eve@example.org=0D=0A=0D=0ASend_it_to_eve?="
IN_BASE64 = f"=?utf-8?b?{b64encode(b'x' + os.linesep.encode() + b'Bcc: eve').decode()}?="


@pytest.mark.parametrize("hostile", [WRITES_A_MAIL, IN_BASE64, f"a {WRITES_A_MAIL} b"])
async def test_what_mail_readers_decode_adds_no_header(
    notifier: MailNotifier, post: MailServer, hostile: str
) -> None:
    """ML-5: text of data that encodes a line break begins neither a header nor the body."""
    file = LetterFile(hostile, "text/plain", b"x")
    await notifier.send(a_letter(evolve(LETTER, subject=hostile, files=(file,))))
    await notifier.send(a_message(post, step=hostile))
    for one in post.mails:
        assert one["Reply-To"] is None
        assert "= ?utf-8?" in one["Subject"]
        for part in one.walk():
            assert {name.lower() for name in part} <= OUR_HEADERS
    assert text_of(post.mails[0]).strip() == LETTER.body
    (attached,) = post.mails[0].iter_attachments()
    assert attached.get_filename() == hostile.replace("=?", "= ?")


OUR_HEADERS = {
    *("subject", "from", "to", "date", "message-id", "auto-submitted", "x-auto-response-suppress"),
    *("mime-version", "content-type", "content-transfer-encoding", "content-disposition"),
    *("x-peer", "x-mailfrom", "x-rcptto"),
}


@pytest.mark.parametrize(
    "to",
    [
        "bob@example.org, eve@example.org",
        "bob@example.org\r\nBcc: eve@example.org",
        "Bob <bob@example.org>",
        "@example.org",
        "bob@",
        "bob",
        "",
    ],
)
async def test_an_address_is_one_address(notifier: MailNotifier, post: MailServer, to: str) -> None:
    """What is no single address is refused before anything is sent."""
    message = Message("ntc_1", "mail", to, "en", a_message(post).lines)
    with pytest.raises(NoticeRefused, match="no email address"):
        await notifier.send(message)
    assert post.mails == []


async def test_a_mail_has_a_date(notifier: MailNotifier, post: MailServer) -> None:
    """It is of now: without one, many servers take a mail for spam."""
    await notifier.send(a_message(post))
    (mail,) = post.mails
    sent = parsedate_to_datetime(mail["Date"])
    assert abs(datetime.now(UTC) - sent) < timedelta(seconds=MOST_S)


async def test_no_text_turns_what_is_read(notifier: MailNotifier, post: MailServer) -> None:
    """What changes the writing direction is seen: in message, names and rows, plain and HTML."""
    turned = "Bob \u202e REDRO"
    (line,) = a_message(post).lines
    named = {"workflow": turned, "step": turned, "message": turned}
    about = {**line.about, **named, "sample": [[{"k": turned}]]}
    lines = (NoticeLine(line.kind, line.path, about),)
    await notifier.send(Message("ntc_1", "mail", post.to, "en", lines))
    (mail,) = post.mails
    for part in (mail["Subject"], text_of(mail), text_of(mail, "html")):
        assert "\u202e" not in part
        assert "Bob \ufffd REDRO" in part
    assert text_of(mail).count("\ufffd") == 4


async def test_html_is_escaped(notifier: MailNotifier, post: MailServer) -> None:
    """Names, messages and cells are text in the page."""
    evil = "<img src=x onerror=alert(1)>"
    (line,) = a_message(post, step=evil).lines
    about = {**line.about, "message": evil, "workflow": evil, "sample": [[{evil: evil}]]}
    lines = (NoticeLine(line.kind, line.path, about),)
    await notifier.send(Message("ntc_1", "mail", post.to, "en", lines))
    page = text_of(post.mails[0], "html")
    assert "<img" not in page
    assert page.count("&lt;img") >= 4
    assert evil in text_of(post.mails[0])


async def test_german_words(notifier: MailNotifier, post: MailServer) -> None:
    """The language is the message's."""
    message = Message("ntc_1", "mail", post.to, "de", a_message(post).lines)
    await notifier.send(message)
    (mail,) = post.mails
    assert mail["Subject"] == "review0"
    assert "Payouts wartet auf Sie: review0" in text_of(mail)
    assert "3 Zeilen sind zu prüfen." in text_of(mail)
    assert 'lang="de"' in text_of(mail, "html")


async def test_without_a_public_address_there_is_no_link(post: MailServer) -> None:
    """A link to nowhere is worse than none."""
    notifier = MailNotifier(read_smtp_url(post.url), SENDER, Words(None))
    await notifier.send(a_message(post))
    assert "http" not in text_of(post.mails[0])


async def test_nobody_listens() -> None:
    """A server that is away is tried again."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"smtp://127.0.0.1:{unused.getsockname()[1]}?tls=none"
        notifier = MailNotifier(read_smtp_url(url), SENDER, Words(None))
        with pytest.raises(NotDelivered, match="ConnectionRefusedError"):
            await notifier.send(Message("n", "mail", "a@example.org", "en", _test()))


async def test_a_silent_server_keeps_nobody_else_waiting() -> None:
    """Mails that nobody answers take neither the threads of others nor the end of the process."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        url = f"smtp://127.0.0.1:{silent.getsockname()[1]}?tls=none"
        notifier = MailNotifier(read_smtp_url(url), SENDER, Words(None))
        message = Message("n", "mail", "a@example.org", "en", _test())
        mails = [asyncio.create_task(notifier.send(message)) for _ in range(40)]
        for _ in mails:
            await asyncio.sleep(0)
        async with asyncio.timeout(MOST_S):
            await asyncio.to_thread(int)
        assert not any(one.done() for one in mails)
        assert all(one.daemon for one in threading.enumerate() if one.name == "mail")
        for one in mails:
            one.cancel()
        await asyncio.gather(*mails, return_exceptions=True)


def _test() -> tuple[NoticeLine, ...]:
    return (NoticeLine(NoticeKind.TEST, "/"),)


async def test_starttls_is_demanded(post: MailServer) -> None:
    """Nothing is said to a server that offers no encryption; the error names both ways out."""
    url = f"smtp://127.0.0.1:{post.port}"
    notifier = MailNotifier(read_smtp_url(url), SENDER, Words(None))
    with pytest.raises(NotDelivered, match=r"offers no STARTTLS.*smtps://.*\?tls=none"):
        await notifier.send(a_message(post))
    assert post.mails == []


async def test_without_tls_a_password_is_told_only_where_the_url_says_so() -> None:
    """Whoever takes the relay's port and offers no TLS is told none; `?tls=none` permits it."""
    with a_mail_server(login=True) as server:
        url = f"smtp://flows:{PASSWORD}@127.0.0.1:{server.port}"
        with pytest.raises(NotDelivered, match="offers no STARTTLS"):
            await MailNotifier(read_smtp_url(url), SENDER, Words(None)).send(a_message(server))
        assert server.logins == 0
        permitted = MailNotifier(read_smtp_url(f"{url}?tls=none"), SENDER, Words(None))
        await permitted.send(a_message(server))
        assert server.logins == 1


async def test_login_over_starttls(authority: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """User and password are sent over TLS whose certificate was checked; a wrong one is ours."""
    ours, theirs = authority
    with a_mail_server(theirs, login=True) as server:
        for password, sent in ((PASSWORD, 1), ("wrong", 1)):
            url = f"smtp://flows:{password}@localhost:{server.port}"
            notifier = MailNotifier(read_smtp_url(url), SENDER, Words(None), lambda: ours)
            if password == PASSWORD:
                await notifier.send(a_message(server))
            else:
                with pytest.raises(NotDelivered, match="answered 535") as failed:
                    await notifier.send(a_message(server))
                assert not isinstance(failed.value, NoticeRefused)
            assert len(server.mails) == sent
        distrusting = MailNotifier(read_smtp_url(url), SENDER, Words(None))
        with pytest.raises(NotDelivered, match="SSLCertVerificationError"):
            await distrusting.send(a_message(server))


@pytest.fixture
def authority(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A client that trusts one certificate, and a server that has it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(1)
    builder = builder.not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    made = builder.add_extension(names, False).sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file = tmp_path / "both.pem"
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(file)
    return ssl.create_default_context(cafile=str(file)), theirs


@pytest.mark.parametrize(
    ("url", "fix"),
    [
        ("http://example.org", "must be smtp://"),
        ("smtp://", "must be smtp://"),
        ("smtp://h:port", "is no URL"),
        ("smtp://h?tls=maybe", "tls must be starttls or none"),
        ("smtp://h?x=1", "must be smtp://"),
        ("smtp://h/path", "must be smtp://"),
    ],
)
def test_urls_that_cannot_be_read(url: str, fix: str) -> None:
    """The setting is named, what it says is not repeated."""
    with pytest.raises(InvalidInput, match=re.escape(fix)) as refused:
        read_smtp_url(url)
    assert refused.value.field == "WFCORE_SMTP_URL"


def test_urls_that_can_be_read() -> None:
    """Ports and encryption by scheme; user and password are percent-decoded, and not shown."""
    one = read_smtp_url("smtp://a%40b:p%3Aw@mail.example.org")
    assert (one.host, one.port, one.tls) == ("mail.example.org", 587, "starttls")
    assert (one.user, one.password) == ("a@b", "p:w")
    assert "p:w" not in repr(one)
    two = read_smtp_url("smtps://mail.example.org:2465")
    assert (two.port, two.tls, two.user) == (2465, "tls", None)


async def test_a_server_that_never_comes_to_an_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation as a whole has a limit, also one of a server that says a little for ever."""
    monkeypatch.setattr(mail, "CONVERSATION_S", 0.2)
    left = asyncio.Event()

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while True:
                writer.write(b"220-and another thing\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        left.set()

    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    async with server, asyncio.timeout(MOST_S):
        url = f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}?tls=none"
        notifier = MailNotifier(read_smtp_url(url), SENDER, Words(None))
        with pytest.raises(NotDelivered):
            await notifier.send(Message("n", "mail", "a@example.org", "en", _test()))
        await left.wait()


def test_a_conversation_that_is_over_cannot_be_cut_short(post: MailServer) -> None:
    """The limit may strike as the conversation ends: nothing is raised where nobody hears it."""
    talk = mail._Conversation("127.0.0.1", post.port, None)
    talk.close()
    talk._cut()
