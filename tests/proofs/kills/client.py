"""A client that never rests: it starts, decides, cancels, asks again, and remembers each answer."""

import asyncio
import hashlib
import hmac
import json
from random import Random
from typing import Any

import httpx

from tests.proofs.kills.flows import COUNTING
from tests.proofs.kills.promises import Answer, Promises, Start
from tests.proofs.kills.world import SECRET, SIGNED, World
from wfcore.model.access import Principal
from wfcore.model.execution import Execution, TriggerSource
from wfcore.usecases.executions.starting import start_execution
from wfcore.usecases.services import Services

RUSH_S = 0.03
"""The longest pause between two acts."""
EDITED = 0.8
"""How many of those who say yes to rows change them."""
CALLED_BACK = 0.7
"""How many of those who start by API want to be called back."""


class Client:
    """Acts by chance until the server is gone. What it was told goes into *promises*."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        world: World,
        promises: Promises,
        services: Services,
        callback_url: str,
    ) -> None:
        self._http = http
        self._callback_url = callback_url
        self._services = services
        self._world = world
        self._promises = promises
        self._counting = asyncio.Lock()

    async def act(self, chance: Random, api_key: str, done: asyncio.Semaphore) -> None:
        """One act after the other, each counted, until an answer does not come."""
        others = (self._cancel, self._repeat, self._fetch, self._ask_result)
        acts = (*[self._start] * 3, *[self._decide] * 2, *others)
        try:
            while True:
                await chance.choice(acts)(chance, api_key)
                done.release()
                await asyncio.sleep(chance.uniform(0, RUSH_S))
        except httpx.TransportError:
            self._promises.counts["cut off"] += 1

    async def _start(self, chance: Random, api_key: str) -> None:
        flow = chance.choice(("work", "work", "once", "ask", "tree", "tree", COUNTING))
        values = {"nap": chance.choice(("0", "0.05", "0.3"))}
        if flow == COUNTING:
            await self._start_counting(values)
            return
        if chance.random() < 0.3:
            await self._start_by_hand(flow, values)
        else:
            calls_back = chance.random() < CALLED_BACK
            await self.start(flow, values, chance.random() < 0.5, calls_back)

    async def _start_counting(self, values: dict[str, str]) -> None:
        """One after the other: two at once would add to the same count."""
        async with self._counting:
            tags = [tag for tag, one in self._promises.sent.items() if one.flow == COUNTING]
            if tags and not await self._has_counted(tags[-1]):
                return
            await self.start(COUNTING, values, by_webhook=False)

    async def _has_counted(self, tag: str) -> bool:
        """Whether nothing of the execution can still count."""
        if tag not in self._promises.started:
            return False
        async with self._services.store.view() as view:
            run = await view.get(Execution, self._promises.started[tag])
        if run is None or (last := run.step_results.get("last")) is None:
            return run is not None and run.status in ("CANCELLED", "INTERRUPTED")
        return not last.in_flight

    async def _start_by_hand(self, flow: str, values: dict[str, str]) -> None:
        """What `wfcore execution start` does beside the server: durable when it returns."""
        self._promises.counts["by hand"] += 1
        tag = f"m{self._promises.counts['by hand']}"
        workflow_id = self._world.workflows[flow]
        started = await start_execution(
            self._services,
            Principal(self._world.account),
            workflow_id,
            {"tag": tag, **values},
            source=TriggerSource.MANUAL,
        )
        self._promises.by_hand[tag] = started.execution_id

    async def start(
        self, flow: str, values: dict[str, str], by_webhook: bool, calls_back: bool = False
    ) -> None:
        """Send a start that was never sent before."""
        tag = f"t{len(self._promises.sent)}"
        values = {"tag": tag, **values}
        if by_webhook:
            path = f"/api/webhooks/{self._world.webhooks[flow]}/trigger"
            start = Start(tag, flow, path, values, by_webhook)
        else:
            path = f"/api/v1/workflows/{self._world.workflows[flow]}/executions"
            callback = {"callbackUrl": self._callback_url} if calls_back else {}
            start = Start(tag, flow, path, {"inputs": values, **callback})
        self._promises.sent[tag] = start
        await self.send(start)

    async def send(self, start: Start) -> None:
        """Send a start, the first time or again."""
        content = json.dumps(start.body).encode()
        headers = {"Idempotency-Key": start.tag, "Content-Type": "application/json"}
        headers |= self._credentials(start, content)
        answer = await self._http.post(start.path, content=content, headers=headers)
        if self._expect(answer, 202):
            replayed = answer.headers.get("Idempotent-Replayed") == "true"
            self._promises.accepted(start, answer.json()["executionId"], replayed)

    def _credentials(self, start: Start, content: bytes) -> dict[str, str]:
        if not start.by_webhook:
            return _bearer(self._world.keys[0])
        if start.flow != SIGNED:
            return _bearer(self._world.hook_key)
        digest = hmac.new(SECRET.encode(), content, hashlib.sha256).hexdigest()
        return {"X-Webhook-Signature": f"sha256={digest}"}

    async def _repeat(self, chance: Random, api_key: str) -> None:
        if self._promises.started:
            await self.send(self._promises.sent[chance.choice(list(self._promises.started))])

    async def _decide(self, chance: Random, api_key: str) -> None:
        query = "/api/v1/approvals?status=PENDING&size=50"
        answer = await self._http.get(query, headers=_bearer(api_key))
        if not (self._expect(answer, 200) and (waiting := answer.json()["approvals"])):
            return
        one = chance.choice(waiting)
        verb = chance.choice(("approve", "approve", "reject"))
        edits = verb == "approve" and one["reviewableGroups"] and chance.random() < EDITED
        note = f"n{chance.randrange(10**9)}" if edits else None
        await self.decide(one["id"], Answer(verb, note), api_key)

    async def decide(self, approval_id: str, answer: Answer, api_key: str) -> None:
        """Approve or reject; somebody else may be faster (404)."""
        self._promises.asked.setdefault(approval_id, []).append(answer)
        path = f"/api/v1/approvals/{approval_id}/{answer.verb}"
        said = await self._http.post(path, json=answer.body, headers=_bearer(api_key))
        if self._expect(said, 200, 404) and said.status_code == 200:
            self._promises.answered(approval_id, answer)

    async def _cancel(self, chance: Random, api_key: str) -> None:
        recent = list(self._promises.started.values())[-30:]
        recent += list(self._promises.by_hand.values())[-10:]
        if not recent:
            return
        execution_id = chance.choice(recent)
        self._promises.to_cancel.add(execution_id)
        path = f"/api/v1/executions/{execution_id}/cancel"
        answer = await self._http.post(path, json={}, headers=_bearer(api_key))
        if self._expect(answer, 200, 404) and answer.status_code == 200:
            self._promises.cancelled.add(execution_id)
            self._promises.counts["cancelled"] += 1

    async def _fetch(self, chance: Random, api_key: str) -> None:
        promises = self._promises
        works = [tag for tag in promises.started if promises.sent[tag].flow == "work"]
        if works:
            await self.fetch(chance.choice(works[-30:]), api_key)

    async def fetch(self, tag: str, api_key: str) -> None:
        """Download the artifact of a start; there must be one, where there was one before."""
        execution_id = self._promises.started[tag]
        path = f"/api/v1/executions/{execution_id}/artifacts"
        answer = await self._http.get(path, headers=_bearer(api_key))
        if not self._expect(answer, 200):
            return
        listed: list[dict[str, Any]] = answer.json()["artifacts"]
        if len(listed) > 1 or (execution_id in self._promises.left and not listed):
            self._promises.broken.append(f"artifact: {execution_id} has {listed}")
        for one in listed:
            file = await self._http.get(one["downloadUrl"])
            if self._expect(file, 200):
                self._promises.fetched(tag, one["id"], file.text)

    async def _ask_result(self, chance: Random, api_key: str) -> None:
        if self._promises.started:
            recent = list(self._promises.started.values())[-30:]
            await self.ask_result(chance.choice(recent), api_key)

    async def ask_result(self, execution_id: str, api_key: str) -> None:
        """Read the result, if there is one yet; there must be, where there was one before."""
        path = f"/api/v1/executions/{execution_id}/result"
        answer = await self._http.get(path, headers=_bearer(api_key))
        not_yet = () if execution_id in self._promises.results else (409,)
        if self._expect(answer, 200, *not_yet) and answer.status_code == 200:
            self._promises.told(execution_id, answer.json())

    def _expect(self, answer: httpx.Response, *statuses: int) -> bool:
        if answer.status_code in statuses:
            return True
        request = answer.request
        said = f"{request.method} {request.url.path}: {answer.status_code} {answer.text}"
        self._promises.broken.append(f"odd answer: {said}")
        return False


def _bearer(api_key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"}
