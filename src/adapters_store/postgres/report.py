"""What `doctor` says of the server: who it is, and what an operator may have set wrong."""

from attrs import frozen

from adapters_store.postgres.connection import lent, rows_of
from adapters_store.postgres.migrate import migrations
from adapters_store.postgres.store import PostgresStore
from wfcore.time import EpochMs

OLDEST = 150_000
"""The oldest server that the tests have run with."""
FAR_MS = 2_000
"""A clock of this machine that is further away shows people times that others do not see."""

ABOUT = """SELECT current_setting('server_version'), current_setting('server_version_num')::bigint,
    current_setting('synchronous_commit'), current_setting('fsync'), pg_backend_pid()"""


@frozen
class Report:
    """A sentence, and what to do; None: nothing."""

    detail: str
    cure: str | None


async def report(store: PostgresStore, wall: EpochMs, direct: bool = False) -> Report:
    """
    *wall*: what the clock of this machine says. *direct*: hints are listened to at a URL of their
    own. Raises `StoreUnavailable`.
    """
    await store.ping()
    async with lent(store.pool) as connection:
        version, number, sync, fsync, pid = (await rows_of(connection, ABOUT))[0]
        pooled = pid != connection.get_server_pid()
    ahead = wall - store.now()
    detail = (
        f"PostgreSQL {version}, schema {migrations()[-1][0]}, writable; "
        f"{'behind a pooler' if pooled else 'connected directly'}; "
        f"this machine's clock is {ahead / 1_000:+.1f} s from its"
    )
    cure = _cure(number, sync, fsync, ahead)
    if cure is None and pooled and not direct:
        cure = "set WFCORE_STORE_DIRECT to a URL past the pooler: hints of others may not come"
    return Report(detail, cure)


def _cure(number: int, sync: str, fsync: str, ahead: int) -> str | None:
    """The gravest first."""
    if fsync != "on" or sync == "off":
        return "set fsync and synchronous_commit to on: an answer now may be lost in a power cut"
    if number < OLDEST:
        return f"use PostgreSQL {OLDEST // 10_000} or newer: older ones are not tested"
    if abs(ahead) > FAR_MS:
        return "let an NTP service keep both clocks: work goes by its time, calendars by yours"
    return None
