"""Our password is never told to a server that has not proved who it is. ST-8."""

import asyncio
import shutil
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters_store.postgres.connection import close_pool, open_pool
from adapters_store.postgres.greeting import ClearTextRefused
from adapters_store.postgres.hints import PostgresHints
from tests.support.postgres_server import Cluster
from wfcore.errors import StoreRefused

SECRET = "hunter2"
SSL_REQUEST = 80877103


def said(kind: bytes, body: bytes) -> bytes:
    """A message of the protocol."""
    return kind + (len(body) + 4).to_bytes(4) + body


CLEAR = said(b"R", (3).to_bytes(4))
SCRAM = said(b"R", (10).to_bytes(4) + b"SCRAM-SHA-256\0\0")
WELCOME = said(b"R", bytes(4))
NOTICE = said(b"N", b"SNOTICE\0Mhello\0\0")


class Impostor:
    """Whoever has the port: says *answers* one by one, whatever it hears, and keeps all of it."""

    def __init__(self, answers: Sequence[bytes], theirs: ssl.SSLContext | None = None) -> None:
        self.answers = answers
        self.theirs = theirs
        self.heard = b""
        self.hears = asyncio.Event()
        self.gone = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._speak(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()
            self.gone.set()

    async def _speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(4))
        first = await reader.readexactly(size - 4)
        if first == SSL_REQUEST.to_bytes(4):
            writer.write(b"S" if self.theirs else b"N")
            if self.theirs:
                await writer.start_tls(self.theirs)
            size = int.from_bytes(await reader.readexactly(4))
            await reader.readexactly(size - 4)
        for answer in self.answers:
            writer.write(answer)
            await writer.drain()
        while data := await reader.read(4096):
            self.heard += data
            self.hears.set()


@asynccontextmanager
async def at_the_port(impostor: Impostor) -> AsyncIterator[str]:
    """Where it listens, as the URL of a store."""
    server = await asyncio.start_server(impostor.serve, "127.0.0.1", 0)
    try:
        yield f"postgresql://me:{SECRET}@localhost:{server.sockets[0].getsockname()[1]}/flows"
    finally:
        server.close()


@pytest.mark.parametrize(
    "answers",
    [
        [CLEAR],
        [SCRAM, CLEAR],
        [SCRAM + CLEAR],
        [NOTICE, CLEAR],
        [WELCOME + CLEAR],
        [bytes([one]) for one in SCRAM + CLEAR],
    ],
    ids=["at-once", "after-scram", "with-scram", "after-a-notice", "after-welcome", "in-pieces"],
)
@pytest.mark.parametrize("mode", ["", "?sslmode=disable", "?sslmode=allow"])
async def test_a_server_without_tls_is_told_no_password(answers: list[bytes], mode: str) -> None:
    """Whenever it asks for it; the error names the settings and both ways out."""
    impostor = Impostor(answers)
    async with at_the_port(impostor) as url:
        with pytest.raises(StoreRefused, match=r"scram-sha-256.*sslmode=verify-full") as refused:
            await open_pool(url + mode)
        await impostor.gone.wait()
    assert "WFCORE_STORE" in str(refused.value)
    assert SECRET not in str(refused.value)
    assert SECRET.encode() not in impostor.heard


async def test_the_connection_that_hears_hints_tells_none_either() -> None:
    """It is made anew whenever the server was away."""
    impostor = Impostor([CLEAR])
    async with at_the_port(impostor) as url:
        with pytest.raises(ClearTextRefused):
            await PostgresHints(None, url)._listen(lambda _: None)
        await impostor.gone.wait()
    assert SECRET.encode() not in impostor.heard


@pytest.fixture(scope="module")
def authority() -> Iterator[tuple[Path, ssl.SSLContext]]:
    """A certificate for localhost, and a server that has it."""
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
    folder = Path(tempfile.mkdtemp())
    file = folder / "both.pem"
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(file)
    yield file, theirs
    shutil.rmtree(folder)


@pytest.mark.parametrize("mode", ["", "?sslmode=require"])
async def test_tls_with_an_unchecked_certificate_proves_nothing(
    mode: str, authority: tuple[Path, ssl.SSLContext]
) -> None:
    """Anybody can make a certificate: the password is told to none whose own was not checked."""
    impostor = Impostor([CLEAR], authority[1])
    async with at_the_port(impostor) as url:
        with pytest.raises(StoreRefused, match="no certificate proves"):
            await open_pool(url + mode)
        await impostor.gone.wait()
    assert impostor.heard == b""


async def test_a_server_that_its_certificate_proves_gets_the_password(
    authority: tuple[Path, ssl.SSLContext],
) -> None:
    """As directories and clouds need it: over TLS, after the certificate was checked."""
    server = Impostor([CLEAR], authority[1])
    async with at_the_port(server) as url:
        where = f"{url}?sslmode=verify-full&sslrootcert={authority[0]}"
        opening = asyncio.ensure_future(open_pool(where))
        hears = asyncio.ensure_future(server.hears.wait())
        await asyncio.wait([opening, hears], return_when=asyncio.FIRST_COMPLETED)
        for task in (opening, hears):
            task.cancel()
        await asyncio.wait([opening, hears])
    assert server.heard == said(b"p", SECRET.encode() + b"\0")


@pytest.fixture(scope="module")
def asking() -> Iterator[Callable[[str], str]]:
    """A real server that wants the password in one way or another, by the name of the user."""
    folder = Path(tempfile.mkdtemp(prefix="wfpg"))
    made = Cluster(folder)
    try:
        made.make()
        ways = {"scram": "scram-sha-256", "digest": "md5", "clear": "password"}
        rules = [f"local all {user} {way}\n" for user, way in ways.items()]
        (folder / "data" / "pg_hba.conf").write_text("".join(rules) + "local all wfcore trust\n")
        made.start()
        for user in ways:
            kind = "md5" if user == "digest" else "scram-sha-256"
            made.execute(
                f"SET password_encryption = '{kind}'; CREATE ROLE {user} LOGIN PASSWORD '{SECRET}'"
            )
        yield lambda user: f"postgresql://{user}:{SECRET}@/postgres?host={folder}"
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("user", ["scram", "digest"])
async def test_a_challenge_is_answered(asking: Callable[[str], str], user: str) -> None:
    """A server that proves to know the password, or at least asks for a digest, lets us in."""
    pool = await open_pool(asking(user))
    assert await pool.fetchval("SELECT current_user") == user
    await close_pool(pool)


async def test_a_real_server_is_told_no_password_in_clear(asking: Callable[[str], str]) -> None:
    """The same rule at a Unix socket: its folder says little about who listens."""
    with pytest.raises(StoreRefused, match="scram-sha-256"):
        await open_pool(asking("clear"))
