"""
Every call that a key may make, as data: the request, and the shape of the answer.

There is no transport here: the clients send these calls, a test compares them with the server's
table of routes, and a program with an HTTP stack of its own can use them alone.
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
class ApiCall(Generic[T]):
    """
    One request. `path`: the path of the route, whose names `places` fill.

    `repeatable`: sending the request twice has the same effect as sending it once.
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
        """The path with its names filled."""
        filled = {name: quote(value, safe="") for name, value in self.places.items()}
        return self.path.format(**filled)


def list_workflows(
    page: int = 1, size: int = 50, *, after: str | None = None
) -> ApiCall[shapes.WorkflowPage]:
    """
    The workflows that the key's owner sees, by name. For the next page of any list, pass the `next`
    of the answer as *after*, instead of *page*.
    """
    return _get("/api/v1/workflows", shapes.WorkflowPage, **_page(page, size, after))


def _page(page: int, size: int, after: str | None) -> dict[str, Any]:
    return {"page": None if after else page, "size": size, "after": after}


def workflow(id: str) -> ApiCall[shapes.WorkflowView]:
    """One workflow, with its steps as they were written."""
    return _get("/api/v1/workflows/{id}", shapes.WorkflowView, {"id": id})


def start(
    workflow_id: str,
    inputs: JsonObject | None = None,
    *,
    monitored: bool = False,
    callback_url: str | None = None,
    idempotency_key: str | None = None,
    like: str | None = None,
    reference: str | None = None,
    wait_s: int | None = None,
) -> ApiCall[shapes.StartView]:
    """
    Start an execution. With *wait_s* the answer comes once the execution rests, or after that time.

    With an *idempotency_key* the call can be repeated, even if the first one may have succeeded.
    *like*: an execution whose inputs and reference are taken where the call gives no others.
    *reference*: a text by which people find the execution.
    """
    body = _given(
        inputs=dict(inputs or {}),
        enableMonitoring=monitored,
        callbackUrl=callback_url,
        like=like,
        reference=reference,
    )
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
    reference: str | None = None,
) -> ApiCall[shapes.ExecutionPage]:
    """
    The caller's own executions, and all executions of workflows that it owns. *since*, *until*:
    only executions accepted from *since* on and before *until*, in ms. *id_end*: the end of an id.
    *reference*: only executions with exactly this reference.
    """
    query: dict[str, Any] = {
        "workflowId": workflow_id,
        "status": status,
        "triggerSource": trigger_source,
        "from": since,
        "to": until,
        "idEnd": id_end,
        "reference": reference,
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
    reference: str | None = None,
) -> ApiCall[shapes.ExecutionCounts]:
    """
    The number of executions in each status, of those that `list_executions` shows, up to a cap.
    """
    query: dict[str, Any] = {
        "workflowId": workflow_id,
        "triggerSource": trigger_source,
        "from": since,
        "to": until,
        "reference": reference,
    }
    return _get("/api/v1/executions/counts", shapes.ExecutionCounts, **query)


def execution(
    id: str, wait_s: int | None = None, *, outputs: bool = True
) -> ApiCall[shapes.StatusView]:
    """
    The status view of an execution; with *wait_s* once it rests, or after that time. Without
    *outputs* the `output` of every step is None.
    """
    path = "/api/v1/executions/{id}"
    return _get(path, shapes.StatusView, {"id": id}, wait=wait_s, outputs=_wanted(outputs))


def step(execution_id: str, key: str) -> ApiCall[shapes.StepView]:
    """The result of one step, by its name, or in a loop by `loop.<index>.<name>`."""
    path = "/api/v1/executions/{id}/steps/{key}"
    return _get(path, shapes.StepView, {"id": execution_id, "key": key})


def logs(execution_id: str, after: int = 0, step: str | None = None) -> ApiCall[shapes.LogPage]:
    """The output lines of all steps, or of one *step*. Pass `next` as *after* for further lines."""
    path = "/api/v1/executions/{id}/logs"
    return _get(path, shapes.LogPage, {"id": execution_id}, after=after, step=step)


def definition(execution_id: str) -> ApiCall[shapes.DefinitionView]:
    """The definition of an execution, even if the workflow has changed since."""
    path = "/api/v1/executions/{id}/definition"
    return _get(path, shapes.DefinitionView, {"id": execution_id})


def callback(execution_id: str) -> ApiCall[shapes.CallbackStateView]:
    """The state of an execution's callback; `NotFound` if it has none."""
    path = "/api/v1/executions/{id}/callback"
    return _get(path, shapes.CallbackStateView, {"id": execution_id})


def result(
    id: str, wait_s: int | None = None, *, outputs: bool = True
) -> ApiCall[shapes.ResultView]:
    """The result of an execution; `Conflict` before its end. *outputs*: as in `execution`."""
    path = "/api/v1/executions/{id}/result"
    return _get(path, shapes.ResultView, {"id": id}, wait=wait_s, outputs=_wanted(outputs))


def _wanted(outputs: bool) -> str | None:
    return None if outputs else "none"


def explain(id: str) -> ApiCall[shapes.ExplanationView]:
    """An explanation why nothing happens, or what happens next."""
    return _get("/api/v1/executions/{id}/explain", shapes.ExplanationView, {"id": id})


def cancel(id: str, *, outputs: bool = True) -> ApiCall[shapes.StatusView]:
    """End an execution at once; `NotFound` if it has ended. *outputs*: as in `execution`."""
    path = "/api/v1/executions/{id}/cancel"
    return _post(path, shapes.StatusView, {"id": id}, outputs=_wanted(outputs))


def redrive(
    id: str,
    wait_s: int | None = None,
    *,
    start: str | None = None,
    newest: bool = False,
    inputs: JsonObject | None = None,
    digest: str | None = None,
) -> ApiCall[shapes.StartView]:
    """
    Start a new execution that begins where the execution *id* stopped, or at the step *start*.
    *newest*: with the workflow's present version; *inputs* replace those of *id*, name by name.
    *digest*: of a plan (see `plan_redrive`); a `Conflict` if it no longer holds.
    """
    body = _redrive(start, newest, inputs, digest=digest)
    path = "/api/v1/executions/{id}/redrive"
    return _post(path, shapes.StartView, {"id": id}, body, wait=wait_s)


def plan_redrive(
    id: str,
    *,
    start: str | None = None,
    newest: bool = False,
    inputs: JsonObject | None = None,
) -> ApiCall[shapes.RedrivePlanView]:
    """Read what `redrive` would do: what is kept, what runs, and how often it had begun."""
    body = _redrive(start, newest, inputs, dryRun=True)
    return _post("/api/v1/executions/{id}/redrive", shapes.RedrivePlanView, {"id": id}, body)


def _redrive(
    start: str | None, newest: bool, inputs: JsonObject | None, **more: object
) -> JsonObject:
    about = {"from": start, "definition": "newest" if newest else None, "inputs": inputs}
    return _given(**about, **more)


def open_gate(
    message: str,
    groups: Sequence[JsonObject] | None = None,
    approvers: Sequence[str] | None = None,
    timeout_ms: int | None = None,
    *,
    idempotency_key: str | None = None,
    wait_s: int | None = None,
) -> ApiCall[shapes.GateView]:
    """
    Ask people for an approval, without a workflow. With *wait_s* the answer comes once they have
    decided, or after that time. *groups*: groups of rows, with `name`, `rows`, and `columns` as in
    a definition.
    """
    body = _given(message=message, groups=groups, approvers=approvers, timeout=timeout_ms)
    return once(_post("/api/v1/gates", shapes.GateView, {}, body, wait=wait_s), idempotency_key)


def gate(id: str, wait_s: int | None = None) -> ApiCall[shapes.GateView]:
    """The decision at a gate; with *wait_s* once it is made, or after that time."""
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
) -> ApiCall[shapes.ApprovalPage]:
    """
    The approvals that the caller may see, without their rows. *waiting_for_me*: only open approvals
    that wait for the caller's own decision. *since*, *until*: only approvals opened from *since* on
    and before *until*, in ms.
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


def approval(id: str) -> ApiCall[shapes.ApprovalDetail]:
    """One approval with its rows, their columns, and its history."""
    return _get("/api/v1/approvals/{id}", shapes.ApprovalDetail, {"id": id})


def approvals_of(execution_id: str) -> ApiCall[shapes.ExecutionApprovals]:
    """All approvals of one execution, without their rows."""
    path = "/api/v1/approvals/execution/{executionId}"
    return _get(path, shapes.ExecutionApprovals, {"executionId": execution_id})


def approve(
    approval: str | shapes.ApprovalDetail,
    edited_items: Mapping[str, Sequence[Row]] | None = None,
    comment: str | None = None,
    expected_items_hash: str | None = None,
    answers: JsonObject | None = None,
) -> ApiCall[shapes.ApprovalDetail]:
    """
    Approve the rows, or exactly *edited_items* by group, with *answers* to the fields.

    *approval*: its id, or the approval as you read it. With the latter, or with
    *expected_items_hash*, it raises `Conflict` if the rows have changed since.
    """
    id, seen = (approval, None) if isinstance(approval, str) else (approval.id, approval.items_hash)
    expected = expected_items_hash or seen
    body = _given(
        editedItems=edited_items, comment=comment, expectedItemsHash=expected, answers=answers
    )
    return _post("/api/v1/approvals/{id}/approve", shapes.ApprovalDetail, {"id": id}, body)


def reject(id: str, comment: str | None = None) -> ApiCall[shapes.ApprovalDetail]:
    """Reject an approval, which stops the execution."""
    path = "/api/v1/approvals/{id}/reject"
    return _post(path, shapes.ApprovalDetail, {"id": id}, _given(comment=comment))


def revise(id: str, comment: str) -> ApiCall[shapes.ApprovalDetail]:
    """Ask for the changes in *comment*; the execution goes back to an earlier step."""
    path = "/api/v1/approvals/{id}/revise"
    return _post(path, shapes.ApprovalDetail, {"id": id}, _given(comment=comment))


def delegate(id: str, to: str, until: int | None = None) -> ApiCall[shapes.ApprovalDetail]:
    """Let *to* decide on your behalf, *until* an instant in ms, or until the approval expires."""
    path = "/api/v1/approvals/{id}/delegate"
    return _post(path, shapes.ApprovalDetail, {"id": id}, _given(to=to, until=until))


def decide_several(
    decisions: Sequence[JsonObject], comment: str | None = None
) -> ApiCall[shapes.DecisionResults]:
    """
    Decide up to 50 approvals without edits, each by itself. *decisions*: objects with `approvalId`,
    `decision` and, to approve, `expectedItemsHash`. *comment*: a comment on all of them.
    """
    path = "/api/v1/approvals/decisions"
    body = {"decisions": [dict(one) for one in decisions], **_given(comment=comment)}
    return _post(path, shapes.DecisionResults, {}, body)


def list_artifacts(execution_id: str) -> ApiCall[shapes.ArtifactList]:
    """The files that an execution left."""
    path = "/api/v1/executions/{id}/artifacts"
    return _get(path, shapes.ArtifactList, {"id": execution_id})


def artifact(execution_id: str, id: str) -> ApiCall[shapes.ArtifactView]:
    """One file's metadata; its `download_url` opens it for 15 minutes."""
    path = "/api/v1/executions/{id}/artifacts/{aid}"
    return _get(path, shapes.ArtifactView, {"id": execution_id, "aid": id})


def trigger(
    webhook_id: str, payload: JsonObject | None = None, *, idempotency_key: str | None = None
) -> ApiCall[shapes.TriggerView]:
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
) -> ApiCall[shapes.DecisionView]:
    """
    Decide an approval at the endpoint for other systems. It is a `Conflict` if the approval is
    decided, or if its rows have another hash than *expected_items_hash*.
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
) -> ApiCall[T]:
    return ApiCall("GET", path, returns, places or {}, _texts(query), repeatable=True)


def _post(
    path: str,
    returns: type[T],
    places: Mapping[str, str],
    body: JsonObject | None = None,
    **query: object,
) -> ApiCall[T]:
    return ApiCall("POST", path, returns, places, _texts(query), body or {})


def once(call: ApiCall[T], key: str | None) -> ApiCall[T]:
    """*call* with the idempotency *key*, if there is one, which makes it repeatable."""
    return call if key is None else replace(call, headers={"Idempotency-Key": key}, repeatable=True)


def _texts(query: Mapping[str, object]) -> Mapping[str, str | list[str]]:
    """The parameters of *query* as texts; a list repeats its parameter."""
    return {
        name: [*map(str, value)] if isinstance(value, list | tuple) else str(value)
        for name, value in query.items()
        if value is not None
    }


def _given(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
