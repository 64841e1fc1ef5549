"""A whole flow by a client that openapi-python-client made: `flow.py URL KEY WORKFLOW`."""

import sys
from typing import TypeVar

from wfcore_http_api_client import AuthenticatedClient
from wfcore_http_api_client.api.approvals import (
    approvals_approve,
    approvals_of_execution,
    approvals_read,
)
from wfcore_http_api_client.api.artifacts import artifacts_download, artifacts_list_all
from wfcore_http_api_client.api.executions import executions_follow, executions_result
from wfcore_http_api_client.api.workflows import workflows_start
from wfcore_http_api_client.models import (
    ApprovalDetail,
    ApprovalStatus,
    ApproveBody,
    ApproveBodyEditedItems,
    ArtifactList,
    ErrorView,
    ExecutionApprovals,
    ResultView,
    Row,
    StartBody,
    StartBodyInputs,
    StartView,
)
from wfcore_http_api_client.types import File

T = TypeVar("T")


def given(kind: type[T], answer: object) -> T:
    assert isinstance(answer, kind), answer
    return answer


url, key, workflow = sys.argv[1:]
api = AuthenticatedClient(base_url=url, token=key)

inputs = StartBody(inputs=StartBodyInputs.from_dict({"customer": "Ann"}))
started = workflows_start.sync(workflow, client=api, body=inputs, wait=20, idempotency_key="once")
id = given(StartView, started).execution_id
listed = given(ExecutionApprovals, approvals_of_execution.sync(id, client=api))
approval = given(ApprovalDetail, approvals_read.sync(listed.approvals[0].id, client=api))
group = approval.reviewable_groups[0]
rows = [Row.from_dict({**group.items[0].to_dict(), "amount": 7})]
edited = ApproveBodyEditedItems()
edited[group.name] = rows
other = ApproveBody(expected_items_hash="0" * 64)
refused = given(ErrorView, approvals_approve.sync(approval.id, client=api, body=other))
body = ApproveBody(
    comment=refused.error, edited_items=edited, expected_items_hash=approval.items_hash
)
decided = given(ApprovalDetail, approvals_approve.sync(approval.id, client=api, body=body))
assert decided.status is ApprovalStatus.APPROVED
result = given(ResultView, executions_result.sync(id, client=api, wait=20))
events = given(str, executions_follow.sync(id, client=api))
(artifact,) = given(ArtifactList, artifacts_list_all.sync(id, client=api)).artifacts
file = given(File, artifacts_download.sync(id, artifact.id, client=api))
steps = len(result.step_results.additional_properties)
ended = "execution.completed" in events
print(result.status.value, steps, str(ended).lower(), file.payload.read().decode())
