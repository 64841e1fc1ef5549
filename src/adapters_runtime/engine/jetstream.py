"""
Dispatch by NATS JetStream: one stream of work, one queue for each pool of workers.

A message is the id of an execution, and nothing else. Its subject names the pool: the first label
that the execution needs, or `any`. What is due later is a scheduled message, one for each
execution: a newer one replaces it. A consumer for each pool hands out each message once, again if
it was not acknowledged in time, and no more at once than its limit (`max_ack_pending`) allows.

The stream is made by whoever connects first. A server that was emptied, or lost, costs the messages
that it held: those executions are found by workers who look. Decision 222.
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
"""Servers before it have no scheduled messages."""
CONNECT_S = 2
ANSWER_S = 2.0
"""How long an answer to a message or a question may take before the connection is given up."""
PING_S = 10
TAKE_S = 1.0
ASKED_S = 30.0
"""How long an unanswered request for messages stays valid."""
TOLD_AT_ONCE = 256
TWICE_S = 120.0
"""Within which a message with the same key is dropped."""
SOON_MS = 20
"""What is due so soon is told as due."""
IN_FLIGHT = 1_000
DOWN = "no dispatch: what is due is found by looking"
LOST = "the connection was lost"
BACKOFF = Backoff(first=0.25, longest=5.0)
"""In seconds, after a connection that was lost."""
STEADY_S = 10.0
"""How long a connection is of use, for the next loss to count as the first."""
_NAME_IN_USE = 10058
TROUBLE = (nats.errors.Error, OSError, TimeoutError, UnicodeError)
"""What a connection ends with, and a host name that is none."""


IN_CLEAR = (
    "must begin with tls://, because nats:// tells its login in clear text to anybody at the port, "
    "or end with ?tls=none if nobody else can take it"
)


class Unsuitable(ConnectionError):
    """The server is too old, or has no JetStream."""


@frozen
class Place:
    """
    Where and how: `name` of the stream, by which installations on one server differ; `in_flight`:
    deliveries of a pool that are not settled, at most; `replicas` of the stream.
    """

    servers: tuple[str, ...] = field(repr=False)
    name: str = "wfcore"
    in_flight: int = IN_FLIGHT
    replicas: int = 1

    @classmethod
    def of(cls, url: str) -> Self:
        """
        From `tls://user:password@host:4222,host2:4222?name=…&in_flight=…&replicas=…`. Raises
        `ValueError`, which does not repeat it, also for a login without TLS or `tls=none`. ST-9.
        """
        named = several_hosts(url)
        try:
            parts, servers = urlsplit(named.first), named.servers
            said = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
            whole = all(urlsplit(one).hostname and (urlsplit(one).port or 1) for one in servers)
        except ValueError:
            whole, said, servers = False, {}, ()
        if not whole or parts.path.strip("/") or parts.fragment:
            raise ValueError("must be nats://HOST:4222, several hosts separated by commas")
        if unknown := said.keys() - {"name", "in_flight", "replicas", "tls"}:
            known = "name, in_flight, replicas, tls"
            raise ValueError(f"has no option {min(unknown)}; there are {known}")
        if (tls := said.pop("tls", "")) not in ("", "none") or (tls and parts.scheme == "tls"):
            raise ValueError("tls must be none, or be left out, and none is for nats:// only")
        name, counts = said.pop("name", "wfcore"), said.items()
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise ValueError("name must be of letters, digits, - and _")
        if wrong := [one for one, text in counts if not text.isdigit() or not int(text)]:
            raise ValueError(f"{wrong[0]} must be a whole number from 1 on")
        if named.login and parts.scheme != "tls" and not tls:
            raise ValueError(IN_CLEAR)
        return cls(servers, name, **{one: int(text) for one, text in counts})


@frozen
class NatsDelivery:
    """Implements `wfcore.ports.queue.DueDelivery`: answers by whatever connection there is."""

    dispatch: "NatsDispatch"
    execution_id: str
    tries: int
    reply: str

    async def keep(self) -> None:
        """Begin its time anew."""
        await self.dispatch.answer(self.reply, b"+WPI")

    async def settle(self) -> None:
        """Acknowledge it."""
        await self.dispatch.answer(self.reply, b"+ACK")

    async def put_back(self, in_ms: DurationMs) -> None:
        """Refuse it for a while."""
        delay = {"delay": max(in_ms, 1) * 1_000_000}
        await self.dispatch.answer(self.reply, b"-NAK " + json.dumps(delay).encode())


@define
class _Requested:
    """Messages of one pool that were asked for and have not come."""

    inbox: str
    asked: int = 0
    until: float = 0.0


@define(eq=False)
class NatsDispatch:
    """Implements `wfcore.ports.queue.DispatchQueue` over one connection after the other."""

    place: Place
    keep_s: float
    up: bool = False
    _client: Client | None = None
    _lost: asyncio.Event = field(factory=asyncio.Event)
    _why: str = LOST
    _pools: dict[str, _Requested] = field(factory=dict)
    _come: asyncio.Queue[NatsDelivery] = field(factory=asyncio.Queue)

    @classmethod
    def at(cls, url: str, keep_s: float) -> Self:
        """Not yet connected. Raises `ValueError` for a URL that cannot be read."""
        return cls(Place.of(url), keep_s)

    async def run(self, changed: Callable[[], None]) -> None:
        """Connect, and connect again."""
        lost = 0
        while True:
            began = math.inf
            try:
                await self._connect()
                self.up, began = True, time.monotonic()
                changed()
                log.info("a dispatch delivers what is due")
                await self._lost.wait()
                raise ConnectionError(self._why)
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
        """This connection is of no use."""
        self._why = f"{type(why).__name__}: {why}"
        self._lost.set()

    async def _connect(self) -> None:
        self._lost, self._come = asyncio.Event(), asyncio.Queue()
        self._why = LOST
        self._pools.clear()
        self._client = client = await connected(self.place, self._lost)
        await _make_stream(client, self.place)

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(*TROUBLE):
                async with asyncio.timeout(CONNECT_S):
                    await client.close()

    async def tell(self, due: Collection[DueExecution]) -> bool:
        """Publish each, and wait until the stream has it."""
        waiting = list(due)
        for first in range(0, len(waiting), TOLD_AT_ONCE):
            if self._client is None or not self.up:
                return False
            told = map(self._publish, waiting[first : first + TOLD_AT_ONCE])
            failed = [one for one in await asyncio.gather(*told, return_exceptions=True) if one]
            if failed:
                self._give_up(failed[0])
                return False
        return True

    async def _publish(self, one: DueExecution) -> None:
        if self._client is None:
            raise nats.errors.ConnectionClosedError
        name, subject = self.place.name, f"{self.place.name}.due.{pool_of(one.needs)}"
        headers = {api.Header.MSG_ID.value: one.key}
        if one.in_ms > SOON_MS:
            at = datetime.fromtimestamp(time.time() + one.in_ms / 1_000, UTC)
            text = at.replace(tzinfo=None).isoformat(timespec="milliseconds")
            headers |= {"Nats-Schedule": f"@at {text}Z", "Nats-Schedule-Target": subject}
            subject = f"{name}.at.{one.execution_id}"
        stream = self._client.jetstream(timeout=ANSWER_S)
        await stream.publish(subject, one.execution_id.encode(), headers=headers)

    async def take(self, limit: int, able: Collection[str] | None = None) -> Sequence[NatsDelivery]:
        """Ask each pool for as many as are wanted, and wait for the first to come."""
        found: list[NatsDelivery] = []
        if limit:
            try:
                for pool in pools_of(able):
                    await self._ask(pool, limit)
                async with asyncio.timeout(TAKE_S):
                    found.append(await self._come.get())
            except TimeoutError:
                return found
            except TROUBLE as error:
                self._give_up(error)
        while not self._come.empty():
            found.append(self._come.get_nowait())
        return found

    async def _ask(self, name: str, limit: int) -> None:
        client, now = self._client, time.monotonic()
        if client is None:
            return
        if (pool := self._pools.get(name)) is None:
            pool = self._pools[name] = await self._joined(client, name)
        if pool.until < now:
            pool.asked = 0  # its answer was lost
        if (wanted := limit - pool.asked) > 0:
            pool.asked, pool.until = limit, now + 2 * ASKED_S
            asked = {"batch": wanted, "expires": int(ASKED_S * 1_000_000_000)}
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.place.name}.{name}"
            await client.publish(subject, json.dumps(asked).encode(), reply=pool.inbox)

    async def _joined(self, client: Client, name: str) -> _Requested:
        """The queue of that pool, which may exist, and an inbox for its messages."""
        config = api.ConsumerConfig(
            durable_name=name,
            filter_subject=f"{self.place.name}.due.{name}",
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=3 * self.keep_s,
            max_ack_pending=self.place.in_flight,
        )
        await client.jetstream(timeout=ANSWER_S).add_consumer(self.place.name, config)
        pool = _Requested(client.new_inbox())

        async def came(message: Msg) -> None:
            self._came(pool, message)

        await client.subscribe(pool.inbox, cb=came)
        return pool

    def _came(self, pool: _Requested, message: Msg) -> None:
        status = (message.headers or {}).get("Status")
        if status is None:
            pool.asked = max(pool.asked - 1, 0)
            tries = message.metadata.num_delivered
            # what others published here may be any bytes: to the store it is an id that nobody has
            id = message.data.decode(errors="replace").replace("\0", "\ufffd")
            one = NatsDelivery(self, id, tries, message.reply)
            self._come.put_nowait(one)
        elif status in ("404", "408"):
            left = (message.headers or {}).get("Nats-Pending-Messages", "")
            pool.asked = max(pool.asked - int(left), 0) if left.isdigit() else 0
        elif status != "100":  # the queue is gone, or does not work as it should: begin anew
            self._give_up(Unsuitable(f"the queue answers {status[:40]}"))

    async def answer(self, reply: str, text: bytes) -> None:
        """Say something about a delivery; without a connection it is delivered again."""
        if self._client is not None:
            with suppress(*TROUBLE):
                await self._client.publish(reply, text)

    async def gauges(self) -> Mapping[str, float]:
        """What each pool waits for; only that it is down if the server does not answer."""
        client = self._client
        found: Iterable[api.ConsumerInfo] = ()
        if client is not None and self.up:
            with suppress(*TROUBLE):
                stream = client.jetstream(timeout=ANSWER_S)
                found = await stream.consumers_info(self.place.name)
        shown: dict[str, float] = {"wfcore_dispatch_up": float(self.up)}
        for one in found:
            pool = f'{{pool="{one.name}"}}'
            shown[f"wfcore_dispatch_backlog{pool}"] = one.num_pending or 0
            shown[f"wfcore_dispatch_unsettled{pool}"] = one.num_ack_pending or 0
            shown[f"wfcore_dispatch_again{pool}"] = one.num_redelivered or 0
        return shown


class _Careful(Client):
    """The driver's client, which by itself takes `tls://` for a wish of ours only. ST-9."""

    def _connect_command(self) -> bytes:
        """The first words, with our login; over TLS if the server has agreed to it by now."""
        server, line = self._current_server, self._transport
        wanted = server is not None and server.uri.scheme == "tls"
        if wanted and line and not self._server_info.get("tls_required"):
            line.close()  # type: ignore[no-untyped-call]
            raise Unsuitable("the server offers no TLS, which tls:// demands")
        return super()._connect_command()


async def connected(place: Place, lost: asyncio.Event) -> Client:
    """A connection to a server that suits; *lost* is set when it ends. Raises what hinders it."""

    async def ended() -> None:
        lost.set()

    async def failed(error: Exception) -> None:
        log.debug("connection", extra={"error": type(error).__name__})

    client = _Careful()
    await client.connect(
        list(place.servers),
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


async def _make_stream(client: Client, place: Place) -> None:
    """The stream as it should be, whoever made it."""
    stream = client.jetstream(timeout=ANSWER_S)
    config = api.StreamConfig(
        name=place.name,
        subjects=[f"{place.name}.due.*", f"{place.name}.at.*"],
        retention=api.RetentionPolicy.WORK_QUEUE,
        num_replicas=place.replicas,
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
    """Where an execution with these needs is queued: by the first label, in alphabetical order."""
    labels = sorted(one.removeprefix(LABEL) for one in needs if one.startswith(LABEL))
    return _token(labels[0]) if labels else ANY


def pools_of(able: Collection[str] | None) -> Sequence[str]:
    """
    The pools of a worker: `any`, and one for each label that it carries. What it gets there and
    cannot do, because it also needs something else, it puts back.
    """
    labels = {one.removeprefix(LABEL) for one in able or () if one.startswith(LABEL)}
    return [ANY, *sorted({_token(one) for one in labels})]


def _token(label: str) -> str:
    """A label as a part of a subject and of a queue's name, where dots have a meaning."""
    return f"label-{label.replace('.', '_')}"


async def seen(url: str) -> str:
    """What a connection finds, for people. Raises `ValueError`, or what the client raises."""
    place = Place.of(url)
    client = await connected(place, asyncio.Event())
    try:
        account: Any = await client.jetstream(timeout=ANSWER_S).account_info()
        version = client.connected_server_version
        said = f"NATS {version.major}.{version.minor}.{version.patch}"
        return f"{said}; stream {place.name}, {account.streams} in all"
    finally:
        await client.close()
