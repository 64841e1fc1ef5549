"""A client that never rests: it starts, decides, cancels, asks again, and remembers each answer."""

import asyncio
from random import Random
from typing import Any

import httpx

from proof.promises import Promises, Start
from proof.world import World

RUSH_S = 0.03
"""The longest pause between two acts."""


class Client:
    """Acts by chance until the server is gone. What it was told goes into *promises*."""

    def __init__(self, http: httpx.AsyncClient, world: World, promises: Promises) -> None:
        self._http = http
        self._world = world
        self._promises = promises

    async def act(self, chance: Random, api_key: str, done: asyncio.Semaphore) -> None:
        """One act after the other, each counted, until an answer does not come."""
        acts = (self._start, self._start, self._start, self._decide, self._cancel, self._repeat)
        try:
            while True:
                await chance.choice(acts)(chance, api_key)
                done.release()
                await asyncio.sleep(chance.uniform(0, RUSH_S))
        except httpx.TransportError:
            self._promises.counts["cut off"] += 1

    async def _start(self, chance: Random, api_key: str) -> None:
        tag = f"t{len(self._promises.sent)}"
        values = {"tag": tag, "nap": chance.choice(("0", "0.05", "0.3"))}
        flow = chance.choice(("work", "work", "ask"))
        if chance.random() < 0.5:
            path = f"/api/v1/workflows/{self._world.workflows[flow]}/executions"
            start = Start(tag, path, api_key, {"inputs": values})
        else:
            path = f"/api/webhooks/{self._world.webhooks[flow]}/trigger"
            start = Start(tag, path, self._world.hook_key, values)
        self._promises.sent[tag] = start
        await self.send(start)

    async def send(self, start: Start) -> None:
        """Send a start, the first time or again."""
        once = {"Idempotency-Key": start.tag}
        answer = await self._post(start.path, start.api_key, start.body, once)
        if self._expect(answer, 202):
            replayed = answer.headers.get("Idempotent-Replayed") == "true"
            self._promises.accepted(start, answer.json()["executionId"], replayed)

    async def _repeat(self, chance: Random, api_key: str) -> None:
        if self._promises.started:
            await self.send(self._promises.sent[chance.choice(list(self._promises.started))])

    async def _decide(self, chance: Random, api_key: str) -> None:
        query = "/api/v1/approvals?status=PENDING&size=50"
        answer = await self._http.get(query, headers=_bearer(api_key))
        if not (self._expect(answer, 200) and (waiting := answer.json()["approvals"])):
            return
        verb = chance.choice(("approve", "approve", "reject"))
        await self.decide(chance.choice(waiting)["id"], verb, api_key)

    async def decide(self, approval_id: str, verb: str, api_key: str) -> None:
        """Approve or reject; somebody else may be faster (404)."""
        status = {"approve": "APPROVED", "reject": "REJECTED"}[verb]
        self._promises.asked.setdefault(approval_id, set()).add(status)
        answer = await self._post(f"/api/v1/approvals/{approval_id}/{verb}", api_key)
        if self._expect(answer, 200, 404) and answer.status_code == 200:
            self._promises.answered(approval_id, status)

    async def _cancel(self, chance: Random, api_key: str) -> None:
        recent = list(self._promises.started.values())[-30:]
        if not recent:
            return
        execution_id = chance.choice(recent)
        self._promises.to_cancel.add(execution_id)
        answer = await self._post(f"/api/v1/executions/{execution_id}/cancel", api_key)
        if self._expect(answer, 200, 404) and answer.status_code == 200:
            self._promises.cancelled.add(execution_id)
            self._promises.counts["cancelled"] += 1

    async def _post(
        self, path: str, api_key: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        return await self._http.post(
            path, json=body or {}, headers={**_bearer(api_key), **(headers or {})}
        )

    def _expect(self, answer: httpx.Response, *statuses: int) -> bool:
        if answer.status_code in statuses:
            return True
        request = answer.request
        said = f"{request.method} {request.url.path}: {answer.status_code} {answer.text}"
        self._promises.broken.append(f"odd answer: {said}")
        return False


def _bearer(api_key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"}
