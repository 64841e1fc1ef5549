"""
Quota counters of all machines: exact, and without a transaction for every request.

Requests that arrive while other requests are being counted are counted together: one statement
counts any number of requests, of any keys. So the row of a busy key has a few hundred transactions
a second at most, and every process knows the true count. No counts are leased to processes, so no
counts must be returned, or are lost with a process.
"""

import asyncio
import json
from collections.abc import Sequence

from attrs import define, field

from adapters_store.postgres.connection import Pool, close_pool, lent, open_pool, rows_of
from wfcore.errors import StoreClosed
from wfcore.model.access import Admission, Window
from wfcore.rules.auth.rate_limit import KEPT_LONGER, full_of
from wfcore.time import EpochMs

CONNECTIONS = 2
TRIMMED_AT_ONCE = 1_000

TAKE = """SELECT t.taken, t.counts FROM json_to_recordset(?::json) AS a (
        who text, kinds text[], starts bigint[], stops bigint[], limits bigint[],
        wanted bigint, used_at bigint, place bigint),
    LATERAL wfcore_take(a.who, a.kinds, a.starts, a.stops, a.limits, a.wanted, a.used_at) t
    ORDER BY a.place"""
LOOK = """SELECT kind, begins, sum(admitted)::bigint FROM quotas
    WHERE subject = ? AND begins = ANY(?::bigint[]) GROUP BY kind, begins"""
LAST_USED = "SELECT max(last_at) FROM quotas WHERE subject = ? AND last_at > 0"
TRIM = """DELETE FROM quotas WHERE (subject, kind, begins) IN (
    SELECT subject, kind, begins FROM quotas
    WHERE ends < ? AND (kind <> 'day' OR ends < ?) LIMIT ? FOR UPDATE SKIP LOCKED)
    RETURNING 1"""

Group = tuple[str, tuple[Window, ...]]
"""A subject and its windows; requests with the same group are counted together."""


@define(eq=False)
class PostgresCounters:
    """Implements `wfcore.ports.counters.Counters`. Created by `PostgresCounters.open`."""

    pool: Pool
    _waiting: dict[Group, list[tuple[EpochMs, "asyncio.Future[Admission]"]]] = field(factory=dict)
    _working: "asyncio.Task[None] | None" = None

    @classmethod
    async def open(cls, url: str) -> "PostgresCounters":
        """Counters in the database at *url*, whose schema is ours. Raises `StoreUnavailable`."""
        return cls(await open_pool(url, CONNECTIONS))

    async def take(self, subject: str, windows: tuple[Window, ...], now: EpochMs) -> Admission:
        """Count one admission in every window, or in none. Raises `StoreUnavailable`."""
        if not windows:
            return Admission((), ())
        if self.pool.is_closing():
            raise StoreClosed()
        answer: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault((subject, windows), []).append((now, answer))
        if self._working is None:
            self._working = asyncio.ensure_future(self._work())
        return await answer

    async def _work(self) -> None:
        """Count the waiting requests, until no request waits."""
        await asyncio.sleep(0)  # what arrives in this turn of the loop is counted together
        while self._waiting:
            groups, self._waiting = self._waiting, {}
            try:
                await self._count(groups)
            except Exception as error:
                for waiting in groups.values():
                    for _, answer in waiting:
                        if not answer.done():
                            answer.set_exception(error)
        self._working = None

    async def _count(
        self, groups: dict[Group, list[tuple[EpochMs, "asyncio.Future[Admission]"]]]
    ) -> None:
        order = sorted(groups, key=lambda group: group[0])  # rows are locked in one order
        requests = [
            {**_request(group, [now for now, _ in groups[group]]), "place": place}
            for place, group in enumerate(order)
        ]
        async with lent(self.pool) as connection:
            found = await rows_of(connection, TAKE, json.dumps(requests))
        for group, (taken, counts) in zip(order, found, strict=True):
            _, windows = group
            for place, (_, answer) in enumerate(groups[group]):
                if answer.done():
                    continue
                if place < taken:
                    mine = tuple(count - taken + place + 1 for count in counts)
                    answer.set_result(Admission((), mine))
                else:
                    answer.set_result(Admission(full_of(windows, counts), tuple(counts)))

    async def peek_counts(self, subject: str, windows: tuple[Window, ...]) -> tuple[int, ...]:
        """The number that each window has admitted. Raises `StoreUnavailable`."""
        async with lent(self.pool) as connection:
            found = await rows_of(connection, LOOK, subject, [one.start for one in windows])
        counts = {(kind, begins): admitted for kind, begins, admitted in found}
        return tuple(counts.get((one.kind, one.start), 0) for one in windows)

    async def last_used(self, subject: str) -> EpochMs | None:
        """The instant at which *subject* was last admitted."""
        async with lent(self.pool) as connection:
            return (await rows_of(connection, LAST_USED, subject))[0][0]  # type: ignore[no-any-return]

    async def trim(self, before: EpochMs) -> None:
        """Delete windows that ended before *before*. Raises `StoreUnavailable`."""
        gone, long_before = TRIMMED_AT_ONCE, before - KEPT_LONGER["day"]
        while gone == TRIMMED_AT_ONCE:
            async with lent(self.pool) as connection:
                gone = len(await rows_of(connection, TRIM, before, long_before, TRIMMED_AT_ONCE))

    async def close(self) -> None:
        """Count the waiting requests, then close the connections."""
        if self._working is not None:
            await asyncio.wait((self._working,))
        await close_pool(self.pool)


def _request(group: Group, at: Sequence[EpochMs]) -> dict[str, object]:
    subject, windows = group
    return {
        "who": subject,
        "kinds": [one.kind for one in windows],
        "starts": [one.start for one in windows],
        "stops": [one.end for one in windows],
        "limits": [one.limit for one in windows],
        "wanted": len(at),
        "used_at": max(at),
    }
