"""The client for asyncio."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import uuid4

import httpx2 as httpx

from wfcore.model.approval import ApprovalStatus, Verdict
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.model.json import JsonObject
from wfcore.rules.execution.machine import EXECUTION
from wfcore.wire import shapes
from wfcore.wire.explanation import ExplanationView
from wfcore.wire.results import StepView
from wfcore_client import calls
from wfcore_client.answers import RECONNECT_S, EventReader, check, read
from wfcore_client.backoff import PATIENT, TROUBLE, Backoff
from wfcore_client.calls import Call, Row
from wfcore_client.errors import Unreachable

T = TypeVar("T")

TIMEOUT_S = 30.0
LONGEST_WAIT_S = 60
RESTING = frozenset({*EXECUTION.final, ExecutionStatus.AWAITING_APPROVAL})


class AsyncClient:
    """
    The API at *url*, with *key*. Close it, or use it as a context.

    Every method raises `ApiError` where the server says no and `Unreachable` where it says
    nothing; *patience* says what is sent again before that.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout_s: float = TIMEOUT_S,
        backoff: Backoff = PATIENT,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._patience = backoff
        self._timeout_s = timeout_s
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=timeout_s,
            transport=transport,
        )

    @classmethod
    def in_process(cls, app: Any, key: str, backoff: Backoff = PATIENT) -> Self:
        """The same over an ASGI application of this process, without a socket."""
        transport = httpx.ASGITransport(app=app)
        return cls("http://in-process", key, backoff=backoff, transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Send any call. Raises `ApiError`, `Unreachable`."""
        tried = 0
        while True:
            tried += 1
            try:
                return await self._send(call)
            except TROUBLE as trouble:
                pause = self._patience.pause(call, trouble, tried)
                if pause is None:
                    raise
                await asyncio.sleep(pause)

    async def _send(self, call: Call[T]) -> T:
        waited = float(str(call.query.get("wait", 0)))
        try:
            answer = await self._http.request(
                call.method,
                call.address,
                params=dict(call.query),
                json=call.body,
                headers=dict(call.headers),
                timeout=self._timeout_s + waited,
            )
        except httpx.TransportError as error:
            raise Unreachable(type(error).__name__) from error
        return read(call, answer.status_code, answer.headers, answer.content)

    async def list_workflows(
        self, page: int = 1, size: int = 50, *, after: str | None = None
    ) -> shapes.WorkflowPage:
        """See `calls.list_workflows`; the same holds for every method below."""
        return await self.send(calls.list_workflows(page, size, after=after))

    async def workflow(self, id: str) -> shapes.WorkflowView:
        return await self.send(calls.workflow(id))

    async def start(
        self,
        workflow_id: str,
        inputs: JsonObject | None = None,
        *,
        monitored: bool = False,
        callback_url: str | None = None,
        idempotency_key: str | None = None,
        wait_s: int | None = None,
    ) -> shapes.StartView:
        """See `calls.start`; without an idempotency key a fresh one is made, so it may repeat."""
        call = calls.start(
            workflow_id,
            inputs,
            monitored=monitored,
            callback_url=callback_url,
            idempotency_key=idempotency_key or str(uuid4()),
            wait_s=wait_s,
        )
        return await self.send(call)

    async def list_executions(
        self,
        workflow_id: str | None = None,
        status: ExecutionStatus | Sequence[ExecutionStatus] | None = None,
        page: int = 1,
        size: int = 50,
        *,
        trigger_source: TriggerSource | Sequence[TriggerSource] | None = None,
        since: int | None = None,
        until: int | None = None,
        oldest_first: bool = False,
        after: str | None = None,
    ) -> shapes.ExecutionPage:
        call = calls.list_executions(
            workflow_id,
            status,
            page,
            size,
            trigger_source=trigger_source,
            since=since,
            until=until,
            oldest_first=oldest_first,
            after=after,
        )
        return await self.send(call)

    async def execution(
        self, id: str, wait_s: int | None = None, *, outputs: bool = True
    ) -> shapes.StatusView:
        return await self.send(calls.execution(id, wait_s, outputs=outputs))

    async def step(self, execution_id: str, key: str) -> StepView:
        return await self.send(calls.step(execution_id, key))

    async def logs(
        self, execution_id: str, after: int = 0, step: str | None = None
    ) -> shapes.LogPage:
        return await self.send(calls.logs(execution_id, after, step))

    async def definition(self, execution_id: str) -> shapes.DefinitionView:
        return await self.send(calls.definition(execution_id))

    async def result(
        self, id: str, wait_s: int | None = None, *, outputs: bool = True
    ) -> shapes.ResultView:
        return await self.send(calls.result(id, wait_s, outputs=outputs))

    async def explain(self, id: str) -> ExplanationView:
        return await self.send(calls.explain(id))

    async def cancel(self, id: str) -> shapes.StatusView:
        return await self.send(calls.cancel(id))

    async def redrive(self, id: str, wait_s: int | None = None) -> shapes.StartView:
        return await self.send(calls.redrive(id, wait_s))

    async def list_approvals(
        self,
        status: ApprovalStatus | Sequence[ApprovalStatus] | None = None,
        page: int = 1,
        size: int = 20,
        *,
        workflow_id: str | None = None,
        execution_id: str | None = None,
        waiting_for_me: bool = False,
        since: int | None = None,
        until: int | None = None,
        oldest_first: bool = False,
        after: str | None = None,
    ) -> shapes.ApprovalPage:
        call = calls.list_approvals(
            status,
            page,
            size,
            workflow_id=workflow_id,
            execution_id=execution_id,
            waiting_for_me=waiting_for_me,
            since=since,
            until=until,
            oldest_first=oldest_first,
            after=after,
        )
        return await self.send(call)

    async def approval(self, id: str) -> shapes.ApprovalDetail:
        return await self.send(calls.approval(id))

    async def approvals_of(self, execution_id: str) -> shapes.ExecutionApprovals:
        return await self.send(calls.approvals_of(execution_id))

    async def approve(
        self,
        id: str,
        edited_items: Mapping[str, Sequence[Row]] | None = None,
        comment: str | None = None,
        expected_items_hash: str | None = None,
    ) -> shapes.ApprovalDetail:
        return await self.send(calls.approve(id, edited_items, comment, expected_items_hash))

    async def reject(self, id: str, comment: str | None = None) -> shapes.ApprovalDetail:
        return await self.send(calls.reject(id, comment))

    async def list_artifacts(self, execution_id: str) -> shapes.ArtifactList:
        return await self.send(calls.list_artifacts(execution_id))

    async def artifact(self, execution_id: str, id: str) -> shapes.ArtifactView:
        return await self.send(calls.artifact(execution_id, id))

    async def trigger(
        self,
        webhook_id: str,
        payload: JsonObject | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> shapes.TriggerView:
        """See `calls.trigger`; without an idempotency key a fresh one is made."""
        key = idempotency_key or str(uuid4())
        return await self.send(calls.trigger(webhook_id, payload, idempotency_key=key))

    async def decide(
        self, approval_id: str, decision: Verdict, comment: str | None = None
    ) -> shapes.DecisionView:
        return await self.send(calls.decide(approval_id, decision, comment))

    async def rest(self, execution_id: str, within_s: float = 300) -> shapes.StatusView:
        """
        The status view of an execution that rests: ended, or waiting for people.

        Raises `TimeoutError`.
        """
        deadline = monotonic() + within_s
        while True:
            left = int(min(deadline - monotonic(), LONGEST_WAIT_S))
            if left < 1:
                raise TimeoutError(f"{execution_id} does not rest yet")
            view = await self.execution(execution_id, wait_s=left)
            if view.status in RESTING:
                return view

    async def events(self, execution_id: str, after: int = 0) -> AsyncIterator[shapes.EventView]:
        """The events after number *after*, as they come, until the terminal one."""
        reader = EventReader(after)
        address = f"/api/v1/executions/{execution_id}/events"
        while not reader.over:
            async with self._stream(address, {"Last-Event-ID": str(reader.last)}) as answer:
                if answer.status_code == 204:
                    return
                async for line in answer.aiter_lines():
                    for event in reader.line(line):
                        yield event
            if not reader.over:
                await asyncio.sleep(RECONNECT_S)

    async def download(self, artifact: shapes.ArtifactView, to: Path) -> Path:
        """Write an artifact's content to the file *to*, piece by piece."""
        async with self._stream(self._at(artifact.download_url), {}) as answer:
            with to.open("wb") as file:
                async for chunk in answer.aiter_bytes():
                    file.write(chunk)
        return to

    def _at(self, path: str) -> httpx.URL:
        """
        A whole path of the server, which may lie below a mount: on the same host whatever it says.
        """
        return self._http.base_url.copy_with(raw_path=f"/{path.lstrip('/')}".encode())

    @asynccontextmanager
    async def _stream(
        self, address: str | httpx.URL, headers: Mapping[str, str]
    ) -> AsyncIterator[httpx.Response]:
        try:
            async with self._http.stream("GET", address, headers=dict(headers)) as answer:
                if answer.status_code >= 400:
                    check(answer.status_code, answer.headers, await answer.aread())
                yield answer
        except httpx.TransportError as error:
            raise Unreachable(type(error).__name__) from error
