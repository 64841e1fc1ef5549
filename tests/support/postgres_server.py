"""
A real PostgreSQL server for tests: one cluster for a session, an empty database for each test.

The binaries are those of the distribution; where there are none, tests that need them fail. The
server refuses to run as root, so root starts it as the user that the package made. It listens on a
Unix socket in a folder of its own and nowhere else.
"""

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import asyncpg
import pytest
from attrs import define, field

from adapters_store.postgres.store import PostgresStore
from tests.support.distribution import missing

PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
USER = "postgres"
RUNNING = "TEST_POSTGRES"
"""The folder of a server that many sessions share, each with a database of its own."""
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "32MB",
    "listen_addresses": "''",
    "max_connections": "200",
    "log_min_messages": "fatal",
}
EMPTY = """DO $$ DECLARE t text; BEGIN
    FOR t IN SELECT relname FROM pg_class WHERE relkind = 'r' AND reltuples <> -2
        AND relnamespace = current_schema()::regnamespace
        AND relname NOT IN ('wfcore_schemas', 'audit_chain', 'changes')
    LOOP EXECUTE 'DELETE FROM ' || t; END LOOP;
    UPDATE audit_chain SET start_number = 0, start_hash = repeat('0', 64),
        end_number = 0, end_hash = repeat('0', 64);
END $$"""


def binaries() -> Path:
    """Where the server's programs are."""
    found = shutil.which("postgres")
    places = [Path(found).parent] if found else PLACES
    if not places:
        missing("no PostgreSQL: apt-get install postgresql")
    return places[0]


@define
class Cluster:
    """A server with its folder. `settings` on top of `SETTINGS`."""

    folder: Path
    settings: Mapping[str, str] = field(factory=dict)
    process: "subprocess.Popen[bytes] | None" = None

    def as_user(self) -> dict[str, object]:
        """Options of `subprocess` for programs that must not be root's."""
        if os.geteuid():
            return {}
        user = pwd.getpwnam(USER)
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}

    def make(self) -> None:
        """Make the cluster's files."""
        if not os.geteuid():
            user = pwd.getpwnam(USER)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        command = [binaries() / "initdb", "-D", self.folder / "data", "-U", "wfcore", "-A", "trust"]
        options = ["-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"]
        run = [str(part) for part in (*command, *options)]
        done = subprocess.run(run, cwd=self.folder, capture_output=True, **self.as_user())  # type: ignore[call-overload]
        if done.returncode:
            pytest.fail(done.stderr.decode(), pytrace=False)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = [f"-c{name}={value}" for name, value in (SETTINGS | dict(self.settings)).items()]
        command = [binaries() / "postgres", "-D", self.folder / "data", "-k", self.folder, *options]
        self.process = subprocess.Popen(
            [str(part).replace("''", "") for part in command],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self.as_user(),  # type: ignore[call-overload]
        )
        asyncio.run(self._answers())

    async def _answers(self) -> None:
        async with asyncio.timeout(60):
            while True:
                try:
                    connection = await asyncpg.connect(self.url("postgres"))
                    break
                except (OSError, asyncpg.PostgresError):
                    assert self.process is not None
                    assert self.process.poll() is None
                    await asyncio.sleep(0.02)
        await connection.close()

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop it: at once, as after a power cut, or with another signal of its own."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(timeout=60)
            self.process = None

    def url(self, database: str) -> str:
        """Where a database is."""
        return f"postgresql://wfcore@/{database}?host={self.folder}"

    def execute(self, sql: str, database: str = "postgres") -> None:
        """Run statements in a database."""

        async def run() -> None:
            connection = await asyncpg.connect(self.url(database))
            try:
                await connection.execute(sql)
            finally:
                await connection.close()

        asyncio.run(run())


def cluster(**settings: str) -> Iterator[Cluster]:
    """
    A running server; a folder with a short name, because that of a socket must be short. One with
    no settings of its own is that of `RUNNING`, if there is one.
    """
    if not settings and (running := os.environ.get(RUNNING)):
        yield Cluster(Path(running))
        return
    folder = Path(tempfile.mkdtemp(prefix="wfpg"))
    made = Cluster(folder, settings)
    try:
        made.make()
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def prepared(made: Cluster, name: str = "") -> str:
    """The URL of a database with our schema, of this process if it has no *name*."""
    name = name or f"wfcore_{os.getpid()}"
    try:
        made.execute(f"CREATE DATABASE {name}")
    except asyncpg.DuplicateDatabaseError:
        return made.url(name)

    async def prepare() -> None:
        await (await PostgresStore.open(made.url(name))).close()

    asyncio.run(prepare())
    return made.url(name)


async def emptied(url: str) -> str:
    """*url*, whose database holds nothing but its schema."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(EMPTY)
    finally:
        await connection.close()
    return url
