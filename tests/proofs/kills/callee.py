"""Who is called back when executions end: outside of all that is killed, and not always well."""

import asyncio
import hashlib
import hmac
import json
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random
from typing import Self

from attrs import define

from tests.proofs.kills.checker import ENDED
from tests.proofs.kills.promises import Promises
from tests.proofs.kills.world import Sight
from wfcore.model.execution import Callback, Execution
from wfcore.usecases.services import Services

SLOW_S = 0.3
"""How long some calls wait for their answer: time enough for a kill."""


class Callee:
    """
    Holds each call, before it is answered, against what is on record at that moment, and against
    the call before it. `answers`: execution -> the attempt that was on record when it called -> the
    status that it got. While it is `moody` some calls fail and some wait.
    """

    def __init__(self, services: Services, secret: str, promises: Promises, chance: Random) -> None:
        self._services = services
        self._key = b64decode(secret.removeprefix("whsec_"))
        self._promises = promises
        self._chance = chance
        self._heard: Counter[str] = Counter()
        self._latest: dict[str, _Attempt] = {}
        self.answers: dict[str, dict[int, int]] = {}
        self.moody = True

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}/ended"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            headers, body = await _request(reader)
            attempt = self._begun(headers, reader)
            status = await self._answer(headers, body)
            attempt.is_answered = True
            writer.write(f"HTTP/1.1 {status} Said\r\ncontent-length: 0\r\n\r\n".encode())
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            self._promises.counts["calls cut off"] += 1
        finally:
            writer.close()

    def _begun(self, headers: Mapping[str, str], reader: asyncio.StreamReader) -> "_Attempt":
        """One attempt at a time: the next begins once the last is answered or broken off. CB-3."""
        id = headers["webhook-id"]
        last, self._latest[id] = self._latest.get(id), _Attempt(reader)
        if last is not None and not last.is_over:
            self._promises.broken.append(f"callback overlaps: {id}")
        return self._latest[id]

    async def _answer(self, headers: Mapping[str, str], body: bytes) -> int:
        told = json.loads(body)["data"]
        id: str = told["executionId"]
        self._heard[id] += 1
        self._promises.counts["called back"] += 1
        async with self._services.store.view() as view:
            run, record = await view.get(Execution, id), await view.get(Callback, id)
        wrong = self._promises.broken
        if not self._is_signed(id, headers, body):
            wrong.append(f"callback forged: {id} {headers}")
        if run is None or run.status not in ENDED or told["status"] != run.status:
            wrong.append(f"callback early: {id} is {run and run.status}, told was {told}")
        if record is None or record.attempts < self._heard[id]:
            wrong.append(f"callback uncounted: {id} called {self._heard[id]} times, {record}")
            return 500
        status = 204
        if self.moody:
            status = self._chance.choice((204, 204, 500))
            await asyncio.sleep(self._chance.choice((0, 0, SLOW_S)))
        self.answers.setdefault(id, {})[record.attempts] = status
        return status

    def _is_signed(self, id: str, headers: Mapping[str, str], body: bytes) -> bool:
        """By the Standard Webhooks scheme, with the secret of the key that started it. CB-2."""
        text = f"msg_{id}.{headers['webhook-timestamp']}.".encode() + body
        digest = b64encode(hmac.digest(self._key, text, hashlib.sha256)).decode()
        told = headers["webhook-id"], headers["webhook-signature"]
        return told == (f"msg_{id}", f"v1,{digest}")

    def wrong(self, sight: Sight) -> Iterator[str]:
        """An end owes a call; it counts as delivered by a good answer to its last attempt alone."""
        for id, run in sight.executions.items():
            record = sight.callbacks.get(id)
            if run.callback_url and run.status in ENDED and record is None:
                yield f"callback lost: {id} is {run.status} and owes nobody a call"
            if record is None or record.status == "PENDING":
                continue
            answer = self.answers.get(id, {}).get(record.attempts)
            if record.status != "DELIVERED" or answer != 204:
                yield f"callback untold: {id} is {record.status}, {self.answers.get(id)} {record}"

    def undelivered(self, sight: Sight) -> Iterator[str]:
        """What is still owed to it. CB-1, CB-3."""
        for id, run in sight.executions.items():
            if run.callback_url and (id not in sight.callbacks or sight.callbacks[id].due_at):
                yield f"callback lost: {id} is {run.status}: {sight.callbacks.get(id)}"


@define
class _Attempt:
    """A call that has begun; its server hangs up when it dies or waits no longer."""

    connection: asyncio.StreamReader
    is_answered: bool = False

    @property
    def is_over(self) -> bool:
        gone = self.connection.at_eof() or self.connection.exception() is not None
        return self.is_answered or gone


async def _request(reader: asyncio.StreamReader) -> tuple[Mapping[str, str], bytes]:
    _, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return headers, await reader.readexactly(int(headers["content-length"]))
