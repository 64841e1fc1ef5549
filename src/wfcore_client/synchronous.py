"""The client for programs without an event loop."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Self, TypeVar
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


class Client:
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
    ) -> None:
        self._patience = backoff
        self._timeout_s = timeout_s
        self._http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=timeout_s
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Send any call. Raises `ApiError`, `Unreachable`."""
        tried = 0
        while True:
            tried += 1
            try:
                return self._send(call)
            except TROUBLE as trouble:
                pause = self._patience.pause(call, trouble, tried)
                if pause is None:
                    raise
                sleep(pause)

    def _send(self, call: Call[T]) -> T:
        waited = float(str(call.query.get("wait", 0)))
        try:
            answer = self._http.request(
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

    def list_workflows(
        self, page: int = 1, size: int = 50, *, after: str | None = None
    ) -> shapes.WorkflowPage:
        """See `calls.list_workflows`; the same holds for every method below."""
        return self.send(calls.list_workflows(page, size, after=after))

    def workflow(self, id: str) -> shapes.WorkflowView:
        return self.send(calls.workflow(id))

    def start(
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
        return self.send(call)

    def list_executions(
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
        return self.send(call)

    def execution(
        self, id: str, wait_s: int | None = None, *, outputs: bool = True
    ) -> shapes.StatusView:
        return self.send(calls.execution(id, wait_s, outputs=outputs))

    def step(self, execution_id: str, key: str) -> StepView:
        return self.send(calls.step(execution_id, key))

    def logs(self, execution_id: str, after: int = 0, step: str | None = None) -> shapes.LogPage:
        return self.send(calls.logs(execution_id, after, step))

    def definition(self, execution_id: str) -> shapes.DefinitionView:
        return self.send(calls.definition(execution_id))

    def result(
        self, id: str, wait_s: int | None = None, *, outputs: bool = True
    ) -> shapes.ResultView:
        return self.send(calls.result(id, wait_s, outputs=outputs))

    def explain(self, id: str) -> ExplanationView:
        return self.send(calls.explain(id))

    def cancel(self, id: str) -> shapes.StatusView:
        return self.send(calls.cancel(id))

    def redrive(self, id: str, wait_s: int | None = None) -> shapes.StartView:
        return self.send(calls.redrive(id, wait_s))

    def list_approvals(
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
        return self.send(call)

    def approval(self, id: str) -> shapes.ApprovalDetail:
        return self.send(calls.approval(id))

    def approvals_of(self, execution_id: str) -> shapes.ExecutionApprovals:
        return self.send(calls.approvals_of(execution_id))

    def approve(
        self,
        id: str,
        edited_items: Mapping[str, Sequence[Row]] | None = None,
        comment: str | None = None,
        expected_items_hash: str | None = None,
    ) -> shapes.ApprovalDetail:
        return self.send(calls.approve(id, edited_items, comment, expected_items_hash))

    def reject(self, id: str, comment: str | None = None) -> shapes.ApprovalDetail:
        return self.send(calls.reject(id, comment))

    def list_artifacts(self, execution_id: str) -> shapes.ArtifactList:
        return self.send(calls.list_artifacts(execution_id))

    def artifact(self, execution_id: str, id: str) -> shapes.ArtifactView:
        return self.send(calls.artifact(execution_id, id))

    def trigger(
        self,
        webhook_id: str,
        payload: JsonObject | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> shapes.TriggerView:
        """See `calls.trigger`; without an idempotency key a fresh one is made."""
        key = idempotency_key or str(uuid4())
        return self.send(calls.trigger(webhook_id, payload, idempotency_key=key))

    def decide(
        self, approval_id: str, decision: Verdict, comment: str | None = None
    ) -> shapes.DecisionView:
        return self.send(calls.decide(approval_id, decision, comment))

    def rest(self, execution_id: str, within_s: float = 300) -> shapes.StatusView:
        """
        The status view of an execution that rests: ended, or waiting for people.

        Raises `TimeoutError`.
        """
        deadline = monotonic() + within_s
        while True:
            left = int(min(deadline - monotonic(), LONGEST_WAIT_S))
            if left < 1:
                raise TimeoutError(f"{execution_id} does not rest yet")
            view = self.execution(execution_id, wait_s=left)
            if view.status in RESTING:
                return view

    def events(self, execution_id: str, after: int = 0) -> Iterator[shapes.EventView]:
        """The events after number *after*, as they come, until the terminal one."""
        reader = EventReader(after)
        address = f"/api/v1/executions/{execution_id}/events"
        while not reader.over:
            with self._stream(address, {"Last-Event-ID": str(reader.last)}) as answer:
                if answer.status_code == 204:
                    return
                for line in answer.iter_lines():
                    yield from reader.line(line)
            if not reader.over:
                sleep(RECONNECT_S)

    def download(self, artifact: shapes.ArtifactView, to: Path) -> Path:
        """Write an artifact's content to the file *to*, piece by piece."""
        with self._stream(self._at(artifact.download_url), {}) as answer, to.open("wb") as file:
            for chunk in answer.iter_bytes():
                file.write(chunk)
        return to

    def _at(self, path: str) -> httpx.URL:
        """
        A whole path of the server, which may lie below a mount: on the same host whatever it says.
        """
        return self._http.base_url.copy_with(raw_path=f"/{path.lstrip('/')}".encode())

    @contextmanager
    def _stream(
        self, address: str | httpx.URL, headers: Mapping[str, str]
    ) -> Iterator[httpx.Response]:
        try:
            with self._http.stream("GET", address, headers=dict(headers)) as answer:
                if answer.status_code >= 400:
                    check(answer.status_code, answer.headers, answer.read())
                yield answer
        except httpx.TransportError as error:
            raise Unreachable(type(error).__name__) from error
