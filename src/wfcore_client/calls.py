"""
Every call that a key may make, as data: what to send, and the shape of the answer.

No transport here: the clients send these, a test compares them with the server's own table of
routes, and whoever has an HTTP stack of his own can use them alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

from wfcore_client import shapes
from wfcore_client.shapes import ApprovalStatus, ExecutionStatus, Row, TriggerSource, Verdict

T = TypeVar("T")
JsonObject: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Call(Generic[T]):
    """
    One request. `path` is that of the route, `places` fill its names.

    `repeatable`: sending it twice does what sending it once does.
    """

    method: str
    path: str
    returns: type[T]
    places: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str | list[str]] = field(default_factory=dict)
    body: JsonObject | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False

    @property
    def address(self) -> str:
        """The path with its places filled."""
        filled = {name: quote(value, safe="") for name, value in self.places.items()}
        return self.path.format(**filled)


def list_workflows(
    page: int = 1, size: int = 50, *, after: str | None = None
) -> Call[shapes.WorkflowPage]:
    """
    The workflows that the key's owner sees, by name. Every list goes on with *after*, the `next`
    of the answer before, instead of a page.
    """
    return _get("/api/v1/workflows", shapes.WorkflowPage, **_page(page, size, after))


def _page(page: int, size: int, after: str | None) -> dict[str, Any]:
    return {"page": None if after else page, "size": size, "after": after}


def workflow(id: str) -> Call[shapes.WorkflowView]:
    """One workflow, with its steps as written."""
    return _get("/api/v1/workflows/{id}", shapes.WorkflowView, {"id": id})


def start(
    workflow_id: str,
    inputs: JsonObject | None = None,
    *,
    monitored: bool = False,
    callback_url: str | None = None,
    idempotency_key: str | None = None,
    wait_s: int | None = None,
) -> Call[shapes.StartView]:
    """
    Start an execution. With *wait_s* the answer comes when it rests, at the latest then.

    With an *idempotency_key* it can be sent again, whatever became of the first time.
    """
    body: dict[str, Any] = {"inputs": dict(inputs or {}), "enableMonitoring": monitored}
    if callback_url is not None:
        body["callbackUrl"] = callback_url
    path = "/api/v1/workflows/{id}/executions"
    call = _post(path, shapes.StartView, {"id": workflow_id}, body, wait=wait_s)
    return once(call, idempotency_key)


def list_executions(
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
    id_end: str | None = None,
) -> Call[shapes.ExecutionPage]:
    """
    The caller's executions; all of a workflow that it owns. *since* and *until*: accepted at or
    after the one, and before the other, in ms. *id_end*: the last characters of an id.
    """
    query: dict[str, Any] = {
        "workflowId": workflow_id,
        "status": status,
        "triggerSource": trigger_source,
        "from": since,
        "to": until,
        "idEnd": id_end,
        "sort": "startedAt" if oldest_first else None,
        **_page(page, size, after),
    }
    return _get("/api/v1/executions", shapes.ExecutionPage, **query)


def count_executions(
    workflow_id: str | None = None,
    *,
    trigger_source: TriggerSource | Sequence[TriggerSource] | None = None,
    since: int | None = None,
    until: int | None = None,
) -> Call[shapes.ExecutionCounts]:
    """How many of those that `list_executions` shows have each status, counted up to a cap."""
    query: dict[str, Any] = {
        "workflowId": workflow_id,
        "triggerSource": trigger_source,
        "from": since,
        "to": until,
    }
    return _get("/api/v1/executions/counts", shapes.ExecutionCounts, **query)


def execution(
    id: str, wait_s: int | None = None, *, outputs: bool = True
) -> Call[shapes.StatusView]:
    """
    The status view; with *wait_s* when it rests, at the latest then. Without *outputs* the
    `output` of every step is None.
    """
    path = "/api/v1/executions/{id}"
    return _get(path, shapes.StatusView, {"id": id}, wait=wait_s, outputs=_wanted(outputs))


def step(execution_id: str, key: str) -> Call[shapes.StepView]:
    """The result of one step, by its name; in a loop by `loop.<index>.<name>`."""
    path = "/api/v1/executions/{id}/steps/{key}"
    return _get(path, shapes.StepView, {"id": execution_id, "key": key})


def logs(execution_id: str, after: int = 0, step: str | None = None) -> Call[shapes.LogPage]:
    """
    Output lines of its steps, or of one *step*. Every `next` is the *after* of the lines behind.
    """
    path = "/api/v1/executions/{id}/logs"
    return _get(path, shapes.LogPage, {"id": execution_id}, after=after, step=step)


def definition(execution_id: str) -> Call[shapes.DefinitionView]:
    """The definition that an execution runs by, whatever the workflow says since."""
    path = "/api/v1/executions/{id}/definition"
    return _get(path, shapes.DefinitionView, {"id": execution_id})


def callback(execution_id: str) -> Call[shapes.CallbackStateView]:
    """What became of the callback of an execution; `NotFound` if none was asked for."""
    path = "/api/v1/executions/{id}/callback"
    return _get(path, shapes.CallbackStateView, {"id": execution_id})


def result(id: str, wait_s: int | None = None, *, outputs: bool = True) -> Call[shapes.ResultView]:
    """The result; a `Conflict` before the end. *outputs*: of the steps, as in `execution`."""
    path = "/api/v1/executions/{id}/result"
    return _get(path, shapes.ResultView, {"id": id}, wait=wait_s, outputs=_wanted(outputs))


def _wanted(outputs: bool) -> str | None:
    return None if outputs else "none"


def explain(id: str) -> Call[shapes.ExplanationView]:
    """Why nothing is happening, or what happens next."""
    return _get("/api/v1/executions/{id}/explain", shapes.ExplanationView, {"id": id})


def cancel(id: str, *, outputs: bool = True) -> Call[shapes.StatusView]:
    """End it at once; a `NotFound` when it has ended. *outputs*: as in `execution`."""
    path = "/api/v1/executions/{id}/cancel"
    return _post(path, shapes.StatusView, {"id": id}, outputs=_wanted(outputs))


def redrive(id: str, wait_s: int | None = None) -> Call[shapes.StartView]:
    """A new execution that begins where this one stopped."""
    return _post("/api/v1/executions/{id}/redrive", shapes.StartView, {"id": id}, wait=wait_s)


def open_gate(
    message: str,
    groups: Sequence[JsonObject] | None = None,
    approvers: Sequence[str] | None = None,
    timeout_ms: int | None = None,
    *,
    idempotency_key: str | None = None,
    wait_s: int | None = None,
) -> Call[shapes.GateView]:
    """
    Ask people, without a workflow. With *wait_s* the answer comes when they have decided, at the
    latest then. *groups*: of rows, with `name`, `rows`, and `columns` as in a definition.
    """
    body = _given(message=message, groups=groups, approvers=approvers, timeout=timeout_ms)
    return once(_post("/api/v1/gates", shapes.GateView, {}, body, wait=wait_s), idempotency_key)


def gate(id: str, wait_s: int | None = None) -> Call[shapes.GateView]:
    """What people decided; with *wait_s* as soon as they have, at the latest then."""
    return _get("/api/v1/gates/{id}", shapes.GateView, {"id": id}, wait=wait_s)


def list_approvals(
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
) -> Call[shapes.ApprovalPage]:
    """
    The approvals that the caller may see, without their rows. *waiting_for_me*: only open ones
    that it may approve and has not yet. *since* and *until*: when they were opened, in ms.
    """
    query: dict[str, Any] = {
        "status": status,
        "workflowId": workflow_id,
        "executionId": execution_id,
        "waitingForMe": "true" if waiting_for_me else None,
        "from": since,
        "to": until,
        "sort": "createdAt" if oldest_first else None,
        **_page(page, size, after),
    }
    return _get("/api/v1/approvals", shapes.ApprovalPage, **query)


def approval(id: str) -> Call[shapes.ApprovalDetail]:
    """One approval with its rows, their columns, and its history."""
    return _get("/api/v1/approvals/{id}", shapes.ApprovalDetail, {"id": id})


def approvals_of(execution_id: str) -> Call[shapes.ExecutionApprovals]:
    """All approvals of one execution, without their rows."""
    path = "/api/v1/approvals/execution/{executionId}"
    return _get(path, shapes.ExecutionApprovals, {"executionId": execution_id})


def approve(
    approval: str | shapes.ApprovalDetail,
    edited_items: Mapping[str, Sequence[Row]] | None = None,
    comment: str | None = None,
    expected_items_hash: str | None = None,
    answers: JsonObject | None = None,
) -> Call[shapes.ApprovalDetail]:
    """
    Approve: the rows as they are, or exactly *edited_items* by group, with *answers* to its fields.

    *approval*: its id, or what was read of it. Then these rows are meant: a `Conflict` if they are
    others by now. So it is with the `items_hash` of an approval as *expected_items_hash*.
    """
    id, seen = (approval, None) if isinstance(approval, str) else (approval.id, approval.items_hash)
    expected = expected_items_hash or seen
    body = _given(
        editedItems=edited_items, comment=comment, expectedItemsHash=expected, answers=answers
    )
    return _post("/api/v1/approvals/{id}/approve", shapes.ApprovalDetail, {"id": id}, body)


def reject(id: str, comment: str | None = None) -> Call[shapes.ApprovalDetail]:
    """Reject: the execution stops."""
    path = "/api/v1/approvals/{id}/reject"
    return _post(path, shapes.ApprovalDetail, {"id": id}, _given(comment=comment))


def revise(id: str, comment: str) -> Call[shapes.ApprovalDetail]:
    """Ask for changes, which *comment* says: the execution goes back to an earlier step."""
    path = "/api/v1/approvals/{id}/revise"
    return _post(path, shapes.ApprovalDetail, {"id": id}, _given(comment=comment))


def delegate(id: str, to: str, until: int | None = None) -> Call[shapes.ApprovalDetail]:
    """Let *to* decide on your behalf, *until* an instant in ms, or until the approval expires."""
    path = "/api/v1/approvals/{id}/delegate"
    return _post(path, shapes.ApprovalDetail, {"id": id}, _given(to=to, until=until))


def decide_several(
    decisions: Sequence[JsonObject], comment: str | None = None
) -> Call[shapes.DecisionResults]:
    """
    Decide up to 50 approvals as they stand, each by itself: objects with `approvalId`, `decision`
    and, to approve, `expectedItemsHash`. *comment* goes with every one.
    """
    path = "/api/v1/approvals/decisions"
    body = {"decisions": [dict(one) for one in decisions], **_given(comment=comment)}
    return _post(path, shapes.DecisionResults, {}, body)


def list_artifacts(execution_id: str) -> Call[shapes.ArtifactList]:
    """The files that an execution left."""
    path = "/api/v1/executions/{id}/artifacts"
    return _get(path, shapes.ArtifactList, {"id": execution_id})


def artifact(execution_id: str, id: str) -> Call[shapes.ArtifactView]:
    """One file's metadata; its `download_url` opens it for 15 minutes."""
    path = "/api/v1/executions/{id}/artifacts/{aid}"
    return _get(path, shapes.ArtifactView, {"id": execution_id, "aid": id})


def trigger(
    webhook_id: str, payload: JsonObject | None = None, *, idempotency_key: str | None = None
) -> Call[shapes.TriggerView]:
    """Trigger a webhook that is bound to the client's key."""
    path = "/api/webhooks/{id}/trigger"
    call = _post(path, shapes.TriggerView, {"id": webhook_id}, dict(payload or {}))
    return once(call, idempotency_key)


def decide(
    approval_id: str,
    decision: Verdict,
    comment: str | None = None,
    expected_items_hash: str | None = None,
    answers: JsonObject | None = None,
) -> Call[shapes.DecisionView]:
    """
    Decide an approval at the endpoint for other systems: one that is decided is a `Conflict` there,
    and so is one whose rows have another hash than *expected_items_hash*.
    """
    body = _given(
        approvalId=approval_id,
        decision=decision.value,
        comment=comment,
        expectedItemsHash=expected_items_hash,
        answers=answers,
    )
    return _post("/api/webhook-trigger/approval", shapes.DecisionView, {}, body)


def _get(
    path: str, returns: type[T], places: Mapping[str, str] | None = None, **query: object
) -> Call[T]:
    return Call("GET", path, returns, places or {}, _texts(query), repeatable=True)


def _post(
    path: str,
    returns: type[T],
    places: Mapping[str, str],
    body: JsonObject | None = None,
    **query: object,
) -> Call[T]:
    return Call("POST", path, returns, places, _texts(query), body or {})


def once(call: Call[T], key: str | None) -> Call[T]:
    """*call* with an idempotency key, if there is one: it can be sent again."""
    return call if key is None else replace(call, headers={"Idempotency-Key": key}, repeatable=True)


def _texts(query: Mapping[str, object]) -> Mapping[str, str | list[str]]:
    """As the query says them: what has several values is repeated."""
    return {
        name: [*map(str, value)] if isinstance(value, list | tuple) else str(value)
        for name, value in query.items()
        if value is not None
    }


def _given(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
