"""
Dispatch by NATS JetStream: one stream of work, one queue for each pool of workers.

A message holds the id of an execution, and nothing else. Its subject names the pool: the first
label that the execution needs, or `any`. An execution that is due later has one scheduled message,
which a newer message replaces. The consumer of each pool delivers each message once, and again if
the message was not acknowledged in time; it delivers no more at once than its limit
(`max_ack_pending`).

The first process to connect makes the stream. If a server is lost or emptied, its messages are
lost: workers find those executions by polling. Decision 222.
"""

import asyncio
import json
import logging
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import nats
from attrs import define, field, frozen
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import APIError

from adapters_runtime.engine.addresses import several_hosts
from wfcore.ports.queue import DueExecution
from wfcore.rules.backoff import Backoff
from wfcore.time import DurationMs

log = logging.getLogger("wfcore.dispatch")

ANY = "any"
LABEL = "label:"
OLDEST = (2, 12)
"""The oldest version of servers with scheduled messages."""
CONNECT_S = 2
ANSWER_S = 2.0
"""How long the server may take to answer before the connection is given up."""
PING_S = 10
TAKE_S = 1.0
REQUEST_S = 30.0
"""How long an unanswered request for messages stays valid."""
PUBLISHED_AT_ONCE = 256
TWICE_S = 120.0
"""The seconds within which a message with the same key is dropped."""
SOON_MS = 20
"""Work due within this time is published at once instead of scheduled."""
IN_FLIGHT = 1_000
DOWN = "dispatch queue unreachable; polling the database"
LOST = "the connection was lost"
BACKOFF = Backoff(first=0.25, longest=5.0)
"""The seconds before the next connection, after a connection that was lost."""
STEADY_S = 10.0
"""A connection that lasted this long resets the backoff."""
_NAME_IN_USE = 10058
TROUBLE = (nats.errors.Error, OSError, TimeoutError, UnicodeError)
"""The errors of a connection. UnicodeError: the name of a host cannot be encoded."""

IN_CLEAR = (
    "must begin with tls://, because nats:// tells its login in clear text to anybody at the port, "
    "or end with ?tls=none if nobody else can take it"
)


class Unsuitable(ConnectionError):
    """Raised for a server that is too old, or has no JetStream."""


@frozen
class StreamSettings:
    """
    The servers of a dispatch and the settings of its stream.

    `name`: the stream's name, by which installations on one server differ. `in_flight`: the most
    unsettled deliveries of a pool. `replicas`: the number of the stream's replicas.
    """

    servers: tuple[str, ...] = field(repr=False)
    name: str = "wfcore"
    in_flight: int = IN_FLIGHT
    replicas: int = 1

    @classmethod
    def of(cls, url: str) -> Self:
        """
        The settings in `tls://user:password@host:4222,host2:4222?name=…&in_flight=…&replicas=…`.

        Raises `ValueError`, also for a login without TLS or `tls=none`. The error does not repeat
        *url*. ST-9.
        """
        named = several_hosts(url)
        try:
            parts, servers = urlsplit(named.first), named.servers
            options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
            whole = all(urlsplit(one).hostname and (urlsplit(one).port or 1) for one in servers)
        except ValueError:
            whole, options, servers = False, {}, ()
        if not whole or parts.path.strip("/") or parts.fragment:
            raise ValueError("must be nats://HOST:4222, several hosts separated by commas")
        if unknown := options.keys() - {"name", "in_flight", "replicas", "tls"}:
            known = "name, in_flight, replicas, tls"
            raise ValueError(f"has no option {min(unknown)}; there are {known}")
        if (tls := options.pop("tls", "")) not in ("", "none") or (tls and parts.scheme == "tls"):
            raise ValueError("tls must be none, or be left out, and none is for nats:// only")
        name, counts = options.pop("name", "wfcore"), options.items()
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise ValueError("name must be of letters, digits, - and _")
        if wrong := [one for one, text in counts if not text.isdigit() or not int(text)]:
            raise ValueError(f"{wrong[0]} must be a whole number from 1 on")
        if named.login and parts.scheme != "tls" and not tls:
            raise ValueError(IN_CLEAR)
        return cls(servers, name, **{one: int(text) for one, text in counts})


@frozen
class NatsDelivery:
    """The `wfcore.ports.queue.DueDelivery` of NATS, which answers by the present connection."""

    dispatch: "NatsDispatch"
    execution_id: str
    tries: int
    reply: str

    async def keep(self) -> None:
        """Restart the time within which the message must be settled."""
        await self.dispatch.answer(self.reply, b"+WPI")

    async def settle(self) -> None:
        """Acknowledge the message."""
        await self.dispatch.answer(self.reply, b"+ACK")

    async def put_back(self, in_ms: DurationMs) -> None:
        """Refuse the message, so that the message is delivered again after *in_ms*."""
        delay = {"delay": max(in_ms, 1) * 1_000_000}
        await self.dispatch.answer(self.reply, b"-NAK " + json.dumps(delay).encode())


@define
class _PoolRequest:
    """The number of messages of one pool that were requested and have not arrived."""

    inbox: str
    missing: int = 0
    until: float = 0.0


@define(eq=False)
class NatsDispatch:
    """The `wfcore.ports.queue.DispatchQueue` of NATS, over one connection after the other."""

    settings: StreamSettings
    keep_s: float
    up: bool = False
    _client: Client | None = None
    _lost: asyncio.Event = field(factory=asyncio.Event)
    _loss: str = LOST
    _pools: dict[str, _PoolRequest] = field(factory=dict)
    _arrived: asyncio.Queue[NatsDelivery] = field(factory=asyncio.Queue)

    @classmethod
    def at(cls, url: str, keep_s: float) -> Self:
        """The dispatch at *url*, not yet connected. Raises `ValueError` for an invalid URL."""
        return cls(StreamSettings.of(url), keep_s)

    async def run(self, changed: Callable[[], None]) -> None:
        """Connect, and again after each loss, until cancelled."""
        lost = 0
        while True:
            began = math.inf
            try:
                await self._connect()
                self.up, began = True, time.monotonic()
                changed()
                log.info("a dispatch delivers what is due")
                await self._lost.wait()
                raise ConnectionError(self._loss)
            except TROUBLE as error:
                lost = 0 if time.monotonic() - began > STEADY_S else lost
                if self.up or not lost:
                    log.warning(DOWN, extra={"error": type(error).__name__, "detail": str(error)})
            finally:
                was_up, self.up = self.up, False
                await self._disconnect()
            if was_up:
                changed()
            lost += 1
            await asyncio.sleep(BACKOFF.wait(lost))

    def _give_up(self, why: object) -> None:
        """End this connection, so that `run` makes another one."""
        self._loss = f"{type(why).__name__}: {why}"
        self._lost.set()

    async def _connect(self) -> None:
        self._lost, self._arrived = asyncio.Event(), asyncio.Queue()
        self._loss = LOST
        self._pools.clear()
        self._client = client = await connected(self.settings, self._lost)
        await _make_stream(client, self.settings)

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(*TROUBLE):
                async with asyncio.timeout(CONNECT_S):
                    await client.close()

    async def tell(self, due: Collection[DueExecution]) -> bool:
        """Publish *due*, and return whether the stream has stored all."""
        waiting = list(due)
        for first in range(0, len(waiting), PUBLISHED_AT_ONCE):
            if self._client is None or not self.up:
                return False
            batch = map(self._publish, waiting[first : first + PUBLISHED_AT_ONCE])
            failed = [one for one in await asyncio.gather(*batch, return_exceptions=True) if one]
            if failed:
                self._give_up(failed[0])
                return False
        return True

    async def _publish(self, one: DueExecution) -> None:
        if self._client is None:
            raise nats.errors.ConnectionClosedError
        name, subject = self.settings.name, f"{self.settings.name}.due.{pool_of(one.needs)}"
        headers = {api.Header.MSG_ID.value: one.key}
        if one.in_ms > SOON_MS:
            at = datetime.fromtimestamp(time.time() + one.in_ms / 1_000, UTC)
            text = at.replace(tzinfo=None).isoformat(timespec="milliseconds")
            headers |= {"Nats-Schedule": f"@at {text}Z", "Nats-Schedule-Target": subject}
            subject = f"{name}.at.{one.execution_id}"
        stream = self._client.jetstream(timeout=ANSWER_S)
        await stream.publish(subject, one.execution_id.encode(), headers=headers)

    async def take(self, limit: int, able: Collection[str] | None = None) -> Sequence[NatsDelivery]:
        """Request *limit* messages of each pool, and wait for the first to arrive."""
        found: list[NatsDelivery] = []
        if limit:
            try:
                for pool in pools_of(able):
                    await self._request(pool, limit)
                async with asyncio.timeout(TAKE_S):
                    found.append(await self._arrived.get())
            except TimeoutError:
                return found
            except TROUBLE as error:
                self._give_up(error)
        while not self._arrived.empty():
            found.append(self._arrived.get_nowait())
        return found

    async def _request(self, name: str, limit: int) -> None:
        client, now = self._client, time.monotonic()
        if client is None:
            return
        if (pool := self._pools.get(name)) is None:
            pool = self._pools[name] = await self._join(client, name)
        if pool.until < now:
            pool.missing = 0  # the answer was lost
        if (wanted := limit - pool.missing) > 0:
            pool.missing, pool.until = limit, now + 2 * REQUEST_S
            request = {"batch": wanted, "expires": int(REQUEST_S * 1_000_000_000)}
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.settings.name}.{name}"
            await client.publish(subject, json.dumps(request).encode(), reply=pool.inbox)

    async def _join(self, client: Client, name: str) -> _PoolRequest:
        """Make the queue of the pool *name* if it does not exist, and an inbox for its messages."""
        config = api.ConsumerConfig(
            durable_name=name,
            filter_subject=f"{self.settings.name}.due.{name}",
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=3 * self.keep_s,
            max_ack_pending=self.settings.in_flight,
        )
        await client.jetstream(timeout=ANSWER_S).add_consumer(self.settings.name, config)
        pool = _PoolRequest(client.new_inbox())

        async def receive(message: Msg) -> None:
            self._on_message(pool, message)

        await client.subscribe(pool.inbox, cb=receive)
        return pool

    def _on_message(self, pool: _PoolRequest, message: Msg) -> None:
        status = (message.headers or {}).get("Status")
        if status is None:
            pool.missing = max(pool.missing - 1, 0)
            tries = message.metadata.num_delivered
            # Others may publish any bytes here: to the store they are an unknown id.
            id = message.data.decode(errors="replace").replace("\0", "\ufffd")
            one = NatsDelivery(self, id, tries, message.reply)
            self._arrived.put_nowait(one)
        elif status in ("404", "408"):
            left = (message.headers or {}).get("Nats-Pending-Messages", "")
            pool.missing = max(pool.missing - int(left), 0) if left.isdigit() else 0
        elif status != "100":  # the queue is gone, or does not work as it should: connect again
            self._give_up(Unsuitable(f"the queue answers {status[:40]}"))

    async def answer(self, reply: str, text: bytes) -> None:
        """Answer a delivery with *text*. Without a connection, the message is delivered again."""
        if self._client is not None:
            with suppress(*TROUBLE):
                await self._client.publish(reply, text)

    async def gauges(self) -> Mapping[str, float]:
        """The metrics of each pool, or only whether the dispatch is up if no server answers."""
        client = self._client
        found: Iterable[api.ConsumerInfo] = ()
        if client is not None and self.up:
            with suppress(*TROUBLE):
                stream = client.jetstream(timeout=ANSWER_S)
                found = await stream.consumers_info(self.settings.name)
        shown: dict[str, float] = {"wfcore_dispatch_up": float(self.up)}
        for one in found:
            pool = f'{{pool="{one.name}"}}'
            shown[f"wfcore_dispatch_backlog{pool}"] = one.num_pending or 0
            shown[f"wfcore_dispatch_unsettled{pool}"] = one.num_ack_pending or 0
            shown[f"wfcore_dispatch_again{pool}"] = one.num_redelivered or 0
        return shown


class _StrictTlsClient(Client):
    """The driver's client, which here demands TLS for `tls://` instead of only trying TLS. ST-9."""

    def _connect_command(self) -> bytes:
        """The first command, with the login. For `tls://` only if the server has agreed to TLS."""
        server, line = self._current_server, self._transport
        wanted = server is not None and server.uri.scheme == "tls"
        if wanted and line and not self._server_info.get("tls_required"):
            line.close()  # type: ignore[no-untyped-call]
            raise Unsuitable("the server offers no TLS, which tls:// demands")
        return super()._connect_command()


async def connected(settings: StreamSettings, lost: asyncio.Event) -> Client:
    """A connection to a suitable server; *lost* is set at its end. Raises errors of `TROUBLE`."""

    async def ended() -> None:
        lost.set()

    async def failed(error: Exception) -> None:
        log.debug("connection", extra={"error": type(error).__name__})

    client = _StrictTlsClient()
    await client.connect(
        list(settings.servers),
        name="wfcore",
        allow_reconnect=False,
        connect_timeout=CONNECT_S,
        max_reconnect_attempts=1,
        ping_interval=PING_S,
        disconnected_cb=ended,
        closed_cb=ended,
        error_cb=failed,
    )
    version = client.connected_server_version
    if (version.major, version.minor) < OLDEST:
        await client.close()
        raise Unsuitable(f"the server is {version.major}.{version.minor}; 2.12 or newer is needed")
    return client


async def _make_stream(client: Client, settings: StreamSettings) -> None:
    """Make the stream, or correct its settings if it exists."""
    stream = client.jetstream(timeout=ANSWER_S)
    config = api.StreamConfig(
        name=settings.name,
        subjects=[f"{settings.name}.due.*", f"{settings.name}.at.*"],
        retention=api.RetentionPolicy.WORK_QUEUE,
        num_replicas=settings.replicas,
        duplicate_window=TWICE_S,
        allow_msg_schedules=True,
    )
    try:
        await stream.add_stream(config)
    except APIError as error:
        if error.err_code != _NAME_IN_USE:
            raise
        await stream.update_stream(config)


def pool_of(needs: Iterable[str]) -> str:
    """
    The pool of executions with these *needs*: the pool of the alphabetically first label, or `any`.
    """
    labels = sorted(one.removeprefix(LABEL) for one in needs if one.startswith(LABEL))
    return _token(labels[0]) if labels else ANY


def pools_of(able: Collection[str] | None) -> Sequence[str]:
    """
    The pools of a worker: `any`, and one for each label that the worker has.

    The worker puts an execution back if the execution needs something else, too.
    """
    labels = {one.removeprefix(LABEL) for one in able or () if one.startswith(LABEL)}
    return [ANY, *sorted({_token(one) for one in labels})]


def _token(label: str) -> str:
    """*label* as a part of a subject and of a queue's name, where dots have a meaning."""
    return f"label-{label.replace('.', '_')}"


async def describe(url: str) -> str:
    """A text for people on the server at *url*. Raises `ValueError`, or errors of `TROUBLE`."""
    settings = StreamSettings.of(url)
    client = await connected(settings, asyncio.Event())
    try:
        account: Any = await client.jetstream(timeout=ANSWER_S).account_info()
        version = client.connected_server_version
        number = f"{version.major}.{version.minor}.{version.patch}"
        return f"NATS {number}; stream {settings.name}, {account.streams} in all"
    finally:
        await client.close()
