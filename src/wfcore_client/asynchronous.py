"""The client for asyncio. `synchronous` is generated from this file: `make client`."""

from asyncio import sleep
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import quote

import httpx2 as httpx

from wfcore_client import calls, shapes
from wfcore_client.answers import EventReader, check, read
from wfcore_client.backoff import Backoff
from wfcore_client.calls import ApiCall
from wfcore_client.errors import Unreachable
from wfcore_client.in_process import App, InProcess
from wfcore_client.methods import (
    BACKOFF,
    LONGEST_WAIT_S,
    RECONNECT_S,
    RESTING,
    TIMEOUT_S,
    TROUBLE,
    Part,
    address_of,
    described,
    keyed,
    pause,
    request_of,
)

P = ParamSpec("P")
T = TypeVar("T")


def _method(
    make: Callable[P, ApiCall[T]],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(make(*args, **kwargs))

    return described(method, make)


class AsyncClient:
    """
    A client of the API at *url*, with *key*. Close it, or use it as a context manager.

    Every method raises `ApiError` if the server refuses and `Unreachable` if it does not answer.
    Before that, requests are repeated according to *backoff*.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout_s: float = TIMEOUT_S,
        backoff: Backoff = BACKOFF,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._backoff = backoff
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=timeout_s,
            transport=transport,
        )

    @classmethod
    def in_process(cls, app: App, key: str, backoff: Backoff = BACKOFF) -> Self:
        """A client of an ASGI application in this process, without a socket."""
        return cls("http://in-process", key, backoff=backoff, transport=InProcess(app))

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

    async def send(self, call: ApiCall[T]) -> T:
        """Send any call. Raises `ApiError`, `Unreachable`."""
        tried = 0
        while True:
            tried += 1
            try:
                return await self._send(call)
            except TROUBLE as trouble:
                await self._rest_after(trouble, tried, call.repeatable)

    async def _rest_after(self, trouble: Exception, tried: int, repeatable: bool = True) -> None:
        """Wait before the next attempt. Raises *trouble* if there is none."""
        wait = pause(self._backoff, repeatable, trouble, tried)
        if wait is None:
            raise trouble
        await sleep(wait)

    async def _send(self, call: ApiCall[T]) -> T:
        try:
            answer = await self._http.send(request_of(self._http, call))
        except httpx.TransportError as error:
            raise Unreachable(type(error).__name__) from error
        return read(call, answer.status_code, answer.headers, answer.content)

    list_workflows = _method(calls.list_workflows)
    workflow = _method(calls.workflow)
    start = _method(keyed(calls.start))
    list_executions = _method(calls.list_executions)
    count_executions = _method(calls.count_executions)
    execution = _method(calls.execution)
    step = _method(calls.step)
    logs = _method(calls.logs)
    definition = _method(calls.definition)
    result = _method(calls.result)
    explain = _method(calls.explain)
    cancel = _method(calls.cancel)
    redrive = _method(calls.redrive)
    plan_redrive = _method(calls.plan_redrive)
    open_gate = _method(keyed(calls.open_gate))
    gate = _method(calls.gate)
    list_approvals = _method(calls.list_approvals)
    approval = _method(calls.approval)
    approvals_of = _method(calls.approvals_of)
    approve = _method(calls.approve)
    reject = _method(calls.reject)
    revise = _method(calls.revise)
    delegate = _method(calls.delegate)
    decide_several = _method(calls.decide_several)
    list_artifacts = _method(calls.list_artifacts)
    artifact = _method(calls.artifact)
    trigger = _method(keyed(calls.trigger))
    decide = _method(calls.decide)

    async def rest(self, execution_id: str, within_s: float = 300) -> shapes.StatusView:
        """
        The status view of an execution, once it has ended or waits for people.

        Raises `TimeoutError` after *within_s* seconds.
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
        """
        The events after number *after*, as they happen, up to the terminal event.

        After a lost connection, a new one continues behind the last event.
        """
        reader, tried = EventReader(after), 0
        address = f"/api/v1/executions/{quote(execution_id, safe='')}/events"
        while not reader.over:
            seen = reader.last
            try:
                async with self._stream(address, reader.headers) as answer:
                    if answer.status_code == 204:
                        return
                    async for line in answer.aiter_lines():
                        for event in reader.line(line):
                            yield event
                if not reader.over:
                    await sleep(RECONNECT_S)
            except TROUBLE as trouble:
                tried = 1 if reader.last > seen else tried + 1
                await self._rest_after(trouble, tried)

    async def download(self, artifact: shapes.ArtifactView, to: str | Path) -> Path:
        """
        Write an artifact's content to the file *to*, which appears once it is complete.

        After a lost connection, a new one continues with the rest. Raises `Corrupted` for content
        other than the server stored.
        """
        address, tried = address_of(self._http, artifact.download_url), 0
        with Part(artifact, to) as part:
            while not part.whole:
                try:
                    async with self._stream(address, part.headers) as answer:
                        part.begin(answer.status_code)
                        async for chunk in answer.aiter_bytes():
                            tried = 0
                            part.add(chunk)
                    break
                except TROUBLE as trouble:
                    tried += 1
                    await self._rest_after(trouble, tried)
            return part.finish()

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
