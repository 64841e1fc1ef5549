"""
THE table: one route per path and method. The tree of routes, the OpenAPI document and the tests of
all routes come from this table. A route of v1 that answers 404 for an ended execution or a decided
approval has an entry in `also`: EX-21, AP-14.
"""

from adapters_http.downloads import OUTPUT_MEDIA
from adapters_http.handlers import (
    accounts,
    approvals,
    artifacts,
    authoring,
    events,
    executions,
    groups,
    links,
    notices,
    operating,
    operations,
    sessions,
    webhooks,
    workflows,
)
from adapters_http.handlers import webhooks as triggers
from adapters_http.route import OWN_KEYS, Auth, Parameter, Route
from wfcore.errors import AlreadyDecided, AlreadyFinished
from wfcore.model.access import Scope
from wfcore.model.approval import ApprovalStatus
from wfcore.model.event import AuditOutcome
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.model.notice import NoticeStatus
from wfcore.ports.records import SEARCHED
from wfcore.rules.limits import APPROVAL_BODY, EDITED_ROWS_BODY, SOURCE_BYTES, STATE_BYTES
from wfcore.rules.paging import LARGEST_PAGE
from wfcore.usecases.executions.browsing import SHORTEST_END
from wfcore.wire import requests
from wfcore.wire import webhooks as hooks
from wfcore.wire.approvals import ApprovalDetail, ApprovalPage, ExecutionApprovals
from wfcore.wire.common import DoneView, HealthView, SessionView
from wfcore.wire.decisions import DecisionResults, DecisionView, GateView
from wfcore.wire.events import ArtifactList, ArtifactView, ExplanationView, LogPage
from wfcore.wire.executions import (
    CallbackStateView,
    ExecutionCounts,
    ExecutionPage,
    RedrivePlanView,
    ResultView,
    StartView,
    StatusView,
    StepView,
)
from wfcore.wire.operating import (
    AccountUsageView,
    AuditPage,
    DifferenceView,
    InvitationView,
    KeyList,
    KeyView,
    LoginLinkView,
    NoticePage,
    NoticeView,
    OperatorHealthView,
    PeopleGroupDetail,
    PeopleGroupList,
    PeopleGroupView,
    PersonDetail,
    PersonPage,
    PersonView,
    SecretList,
    SecretView,
    ShareList,
    ShareView,
    TriggerList,
    VersionPage,
    VersionView,
    WorkflowSummaryPage,
)
from wfcore.wire.schema import Schemas
from wfcore.wire.webhooks import TriggerView
from wfcore.wire.workflows import (
    DefinitionView,
    WorkflowPage,
    WorkflowStateView,
    WorkflowTriggerView,
    WorkflowView,
)


def _one_of(*words: str) -> dict[str, object]:
    return {"type": "string", "enum": [*words]}


def _number(default: int, largest: int | None = None) -> dict[str, object]:
    cut = {"description": f"larger ones are cut to {largest}"} if largest else {}
    return {"type": "integer", "minimum": 1, "default": default, **cut}


PAGE = Parameter("page", "Page, counted from 1", _number(1) | {"maximum": LARGEST_PAGE})
SIZE = Parameter("size", "Rows per page", _number(50, 200))
APPROVAL_SIZE = Parameter("size", "Rows per page", _number(20, 200))
AFTER = Parameter("after", "`next` of the previous page; with page it is 400; total is left out")
WORKFLOW_ID = Parameter("workflowId", "Only executions of this workflow")
STATUS = Parameter("status", "Only these statuses", Schemas().of(ExecutionStatus), repeats=True)
SOURCE = Parameter("triggerSource", "Only so started", Schemas().of(TriggerSource), repeats=True)
_INSTANT = {"type": "integer", "format": "int64", "minimum": 0, "maximum": 999_999_999_999_999}
FROM = Parameter("from", "Only those from this instant on, in ms since 1970", _INSTANT)
TO = Parameter("to", "Only those before this instant, in ms since 1970", _INSTANT)
ID_END = Parameter(
    "idEnd",
    f"Only those whose id ends so, among the newest {SEARCHED:,} that the rest leaves",
    {"type": "string", "minLength": SHORTEST_END},
)
REFERENCE = Parameter("reference", "Only those with exactly this reference")
SORT = Parameter("sort", "Oldest or newest first", _one_of("startedAt", "-startedAt"))
APPROVAL_STATUS = Parameter(
    "status", "Only these statuses", Schemas().of(ApprovalStatus), repeats=True
)
NOTICE_STATUS = Parameter("status", "Only these statuses", Schemas().of(NoticeStatus), repeats=True)
APPROVAL_SORT = Parameter(
    "sort",
    "Oldest or newest first, or the first to expire first",
    _one_of("createdAt", "-createdAt", "expiresAt"),
)
APPROVALS_OF = Parameter("workflowId", "Only approvals of this workflow")
EXECUTION_ID = Parameter("executionId", "Only approvals of this execution")
WAITING = Parameter(
    "waitingForMe",
    "Only open ones that the caller may approve and has not yet",
    {"type": "boolean"},
)
STEP = Parameter("step", "Only lines of the step with this key")
STREAM = Parameter("stream", "Only lines of this stream", _one_of("stdout", "stderr"))
SEARCH = Parameter("search", "Only lines that contain this text, in upper or lower case")
AFTER_LINE = Parameter("after", "`next` of the answer before", {"type": "integer", "minimum": 0})
WAIT = Parameter(
    "wait",
    "Answer as soon as the execution ends or waits for people, at the latest after so many seconds",
    {"type": "integer", "minimum": 1, "maximum": 60},
)
WAIT_DECIDED = Parameter(
    "wait", "Answer as soon as people have decided, at the latest after so many seconds",
    WAIT.schema,
)  # fmt: skip
OUTPUTS = Parameter("outputs", "none: steps are shown without their output", _one_of("none"))
DOWNLOAD = Parameter("download", "The output itself, as a file: text, or JSON")
ONCE = Parameter(
    "Idempotency-Key",
    "The same key within 24 h returns the first answer and starts nothing",
    {"type": "string", "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
)
WEBHOOKS = Parameter(
    "webhooks",
    "true: what this server sends is under `webhooks`, not with the operations that ask for it",
    {"type": "boolean"},
)
LAST_EVENT = Parameter(
    "Last-Event-ID", "The number of the last event seen", {"type": "integer", "minimum": 0}
)
CONFIRM = Parameter("confirm", "1: decide now; else the confirmation page", _one_of("1"))
OLD_VERSION = Parameter("from", "The older version; without it the one before", {"type": "integer"})
COMMENT = Parameter("comment", "Words for the history", {"type": "string", "maxLength": 4000})
SEEN = Parameter("expectedItemsHash", "The itemsHash of the rows that the reviewer saw")
EVENT = Parameter("event", "Only events whose name begins with this, like `approval`")
OUTCOME = Parameter("outcome", "Only this outcome", Schemas().of(AuditOutcome))
ACCOUNT_ID = Parameter("accountId", "Only of this account; owners read their own whatever it says")
KEY_ID = Parameter("keyId", "Only by this key")
TARGET = Parameter("target", "Only entries about this, an execution for example")
BEFORE = Parameter("before", "`next` of the page before", {"type": "integer", "minimum": 0})
EVERYWHERE = Parameter("everywhere", "1: end every session of the account", _one_of("1"))
EXPIRES = Parameter("expires", "Until when the signature is good", {"type": "integer"})
SIGNATURE = Parameter("signature", "Of a signed link")

# fmt: off
ROUTES: tuple[Route, ...] = (
    # Workflows
    Route("GET", "/api/v1/workflows", Auth.KEY, workflows.list_all,
          "List workflows", Scope.WORKFLOW_READ,
          query=(PAGE, SIZE, AFTER), returns=WorkflowPage),
    Route("GET", "/api/v1/workflows/{id}", Auth.KEY, workflows.read,
          "Read a workflow", Scope.WORKFLOW_READ,
          returns=WorkflowView, refuses=(404,)),
    Route("POST", "/api/v1/workflows/{id}/executions", Auth.KEY, workflows.start,
          "Start an execution", Scope.WORKFLOW_EXECUTE, requests.StartBody,
          status=202, query=(WAIT,), headers=(ONCE,), returns=StartView,
          refuses=(404, 409), starts=True),

    # Executions
    Route("GET", "/api/v1/executions", Auth.KEY, executions.list_all,
          "List executions", Scope.EXECUTION_READ,
          query=(WORKFLOW_ID, STATUS, SOURCE, REFERENCE, FROM, TO, ID_END, SORT, PAGE, SIZE,
                 AFTER),
          returns=ExecutionPage),
    Route("GET", "/api/v1/executions/counts", Auth.KEY, executions.counts,
          "Count executions by status", Scope.EXECUTION_READ,
          query=(WORKFLOW_ID, SOURCE, REFERENCE, FROM, TO), returns=ExecutionCounts),
    Route("GET", "/api/v1/executions/{id}", Auth.KEY, executions.read,
          "Read an execution's status", Scope.EXECUTION_READ,
          query=(WAIT, OUTPUTS), returns=StatusView, refuses=(404,)),
    Route("GET", "/api/v1/executions/{id}/definition", Auth.KEY, executions.definition,
          "Read the definition that an execution runs by", Scope.EXECUTION_READ,
          returns=DefinitionView, refuses=(404,)),
    Route("GET", "/api/v1/executions/{id}/callback", Auth.KEY, executions.callback,
          "Read what became of an execution's callback", Scope.EXECUTION_READ,
          returns=CallbackStateView, refuses=(404,)),
    Route("GET", "/api/v1/executions/{id}/result", Auth.KEY, executions.result,
          "Read an execution's result", Scope.EXECUTION_READ,
          query=(WAIT, OUTPUTS), returns=ResultView, refuses=(404, 409)),
    Route("GET", "/api/v1/executions/{id}/steps/{key}", Auth.KEY, executions.step,
          "Read the result of one step", Scope.EXECUTION_READ,
          query=(DOWNLOAD,), files=("text/plain", OUTPUT_MEDIA), returns=StepView, refuses=(404,)),
    Route("GET", "/api/v1/executions/{id}/logs", Auth.KEY, executions.logs,
          "Read the output lines of an execution's steps", Scope.EXECUTION_READ,
          query=(STEP, STREAM, SEARCH, AFTER_LINE), returns=LogPage, refuses=(404,)),
    Route("GET", "/api/v1/executions/{id}/explain", Auth.KEY, executions.explain,
          "Explain where an execution is", Scope.EXECUTION_READ,
          returns=ExplanationView, refuses=(404,)),
    Route("POST", "/api/v1/executions/{id}/cancel", Auth.KEY, executions.cancel,
          "Cancel an execution", Scope.EXECUTION_CANCEL, requests.NoBody,
          query=(OUTPUTS,), returns=StatusView, also={AlreadyFinished: 404}),
    Route("POST", "/api/v1/executions/{id}/redrive", Auth.KEY, workflows.redrive,
          "Start again where an execution stopped", Scope.WORKFLOW_EXECUTE, requests.RedriveBody,
          status=202, query=(WAIT,), returns=StartView, otherwise={200: RedrivePlanView},
          refuses=(404, 409), starts=True),
    Route("GET", "/api/v1/executions/{id}/events", Auth.KEY, events.follow,
          "Follow an execution", Scope.EXECUTION_READ,
          headers=(LAST_EVENT,), media="text/event-stream", refuses=(204, 404)),

    # Approvals
    Route("GET", "/api/v1/approvals", Auth.KEY, approvals.list_all,
          "List approvals", Scope.APPROVAL_RESPOND,
          query=(APPROVAL_STATUS, APPROVALS_OF, EXECUTION_ID, WAITING, FROM, TO, APPROVAL_SORT,
                 PAGE, APPROVAL_SIZE, AFTER), returns=ApprovalPage),
    Route("GET", "/api/v1/approvals/{id}", Auth.KEY, approvals.read,
          "Read an approval", Scope.APPROVAL_RESPOND,
          returns=ApprovalDetail, refuses=(404,)),
    Route("GET", "/api/v1/approvals/execution/{executionId}", Auth.KEY, approvals.of_execution,
          "List the approvals of an execution", Scope.APPROVAL_RESPOND,
          returns=ExecutionApprovals, refuses=(404,)),
    Route("POST", "/api/v1/approvals/{id}/approve", Auth.KEY, approvals.approve,
          "Approve", Scope.APPROVAL_RESPOND, requests.ApproveBody, EDITED_ROWS_BODY,
          keys_once=True, returns=ApprovalDetail,
          also={AlreadyDecided: 404}, refuses=(409,)),
    Route("POST", "/api/v1/approvals/{id}/reject", Auth.KEY, approvals.reject,
          "Reject", Scope.APPROVAL_RESPOND, requests.RejectBody,
          keys_once=True, returns=ApprovalDetail, also={AlreadyDecided: 404}),
    Route("POST", "/api/v1/approvals/{id}/revise", Auth.KEY, approvals.revise,
          "Ask for changes", Scope.APPROVAL_RESPOND, requests.ReviseBody,
          keys_once=True, returns=ApprovalDetail,
          also={AlreadyDecided: 404}, refuses=(409,)),
    Route("POST", "/api/v1/approvals/{id}/delegate", Auth.KEY, approvals.delegate,
          "Let somebody else decide", Scope.APPROVAL_RESPOND, requests.DelegateBody,
          returns=ApprovalDetail, also={AlreadyDecided: 404}),
    Route("POST", "/api/v1/approvals/decisions", Auth.KEY, approvals.decide_several,
          "Decide several approvals", Scope.APPROVAL_RESPOND, requests.DecisionsBody,
          keys_once=True, returns=DecisionResults),

    # Gates: approvals of programs, without a workflow
    Route("POST", "/api/v1/gates", Auth.KEY, workflows.open_gate,
          "Ask people", Scope.WORKFLOW_EXECUTE, requests.GateBody, EDITED_ROWS_BODY,
          keys_once=True, query=(WAIT_DECIDED,), headers=(ONCE,), returns=GateView,
          refuses=(409,), starts=True),
    Route("GET", "/api/v1/gates/{id}", Auth.KEY, workflows.read_gate,
          "Read what people decided", Scope.EXECUTION_READ,
          query=(WAIT_DECIDED,), returns=GateView, refuses=(404,)),

    # Artifacts
    Route("GET", "/api/v1/executions/{id}/artifacts", Auth.KEY, artifacts.list_all,
          "List an execution's artifacts", Scope.ARTIFACT_READ,
          returns=ArtifactList, refuses=(404,)),
    Route("GET", "/api/v1/executions/{id}/artifacts/{aid}", Auth.KEY, artifacts.read,
          "Read an artifact's metadata", Scope.ARTIFACT_READ,
          returns=ArtifactView, refuses=(404,)),
    Route("GET", "/api/executions/{id}/artifacts/{aid}/download", Auth.DOWNLOAD, artifacts.download,
          "Download an artifact", Scope.ARTIFACT_READ,
          query=(EXPIRES, SIGNATURE), media="application/octet-stream", files=("*/*",),
          refuses=(206, 302, 404, 416)),

    # Webhook triggers: the canonical and the retained path
    Route("POST", "/api/webhooks/{id}/trigger", Auth.TRIGGER, triggers.trigger,
          "Trigger a workflow", Scope.WEBHOOK_TRIGGER,
          status=202, headers=(ONCE,), returns=TriggerView,
          refuses=(200, 404, 409), starts=True),
    Route("POST", "/api/webhook-trigger/{id}", Auth.TRIGGER, triggers.trigger,
          "Trigger a workflow (retained path)", Scope.WEBHOOK_TRIGGER,
          status=202, headers=(ONCE,), returns=TriggerView,
          refuses=(200, 404, 409), starts=True),

    # Approval responses: by machine, and by a link for people
    Route("POST", "/api/webhook-trigger/approval", Auth.KEY_AFTER_BODY, approvals.respond,
          "Decide an approval", Scope.APPROVAL_RESPOND, requests.DecisionBody, APPROVAL_BODY,
          keys_once=True, returns=DecisionView, refuses=(404, 409)),
    Route("GET", "/api/webhook-trigger/approval/{id}/{decision}", Auth.KEY, links.decide,
          "Decide an approval by a link", Scope.APPROVAL_RESPOND,
          query=(CONFIRM, COMMENT, SEEN), media="text/html", refuses=(400, 404, 409)),

    # Webhook management and sessions: the console's
    Route("POST", "/api/webhooks", Auth.SESSION, webhooks.create,
          "Create a webhook", Scope.WORKFLOW_EXECUTE, body=requests.WebhookBody,
          returns=hooks.WebhookView, refuses=(404, 409)),
    Route("GET", "/api/webhooks", Auth.SESSION, webhooks.list_all,
          "List webhooks", Scope.WORKFLOW_READ, query=(PAGE, SIZE, AFTER),
          returns=hooks.WebhookPage),
    Route("PUT", "/api/webhooks/{id}", Auth.SESSION, webhooks.update,
          "Change a webhook", Scope.WORKFLOW_EXECUTE, body=requests.WebhookChangeBody,
          returns=hooks.WebhookView, refuses=(404, 409)),
    Route("DELETE", "/api/webhooks/{id}", Auth.SESSION, webhooks.delete,
          "Delete a webhook", Scope.WORKFLOW_EXECUTE, returns=hooks.WebhookDeleted, refuses=(404,)),
    Route("GET", "/api/webhooks/{id}/stats", Auth.SESSION, webhooks.stats,
          "Read a webhook's statistics", Scope.WORKFLOW_READ, returns=hooks.StatsView,
          refuses=(404,)),
    Route("GET", "/api/webhooks/{id}/deliveries", Auth.SESSION, webhooks.list_deliveries,
          "List a webhook's last deliveries", Scope.WORKFLOW_READ,
          query=(PAGE, SIZE), returns=hooks.DeliveryPage, refuses=(404,)),
    Route("POST", "/api/webhooks/{id}/deliveries/{deliveryId}/replay", Auth.SESSION,
          webhooks.replay, "Replay a delivery", Scope.WORKFLOW_EXECUTE, body=requests.NoBody,
          status=202, returns=TriggerView, refuses=(404, 409), starts=True),
    Route("POST", "/api/webhooks/{id}/test", Auth.SESSION, webhooks.test,
          "Deliver a signed sample", Scope.WORKFLOW_EXECUTE, body=requests.TestBody, status=202,
          returns=TriggerView, otherwise={200: hooks.IgnoredView}, refuses=(404, 409, 429),
          starts=True),
    Route("POST", "/api/session", Auth.LOGIN, sessions.create,
          "Sign in", body=requests.LoginBody, returns=SessionView),
    Route("GET", "/api/session", Auth.SESSION, sessions.read,
          "Read who is signed in", visitors="it says who they are", returns=SessionView),
    Route("DELETE", "/api/session", Auth.SESSION, sessions.delete,
          "Sign out", query=(EVERYWHERE,), returns=DoneView),

    # Notices: for operators
    Route("GET", "/api/notices", Auth.SESSION, notices.list_all,
          "List notices", query=(NOTICE_STATUS, PAGE, SIZE, AFTER),
          returns=NoticePage, refuses=(404,)),
    Route("POST", "/api/notices/{id}/retry", Auth.SESSION, notices.retry,
          "Try a notice again", body=requests.NoBody, returns=NoticeView, refuses=(404, 409)),
    Route("POST", "/api/notices/test", Auth.SESSION, notices.test,
          "Send a test", body=requests.NoticeTestBody, returns=NoticeView, refuses=(404,)),

    # People: for operators
    Route("GET", "/api/accounts", Auth.SESSION, accounts.list_all,
          "List accounts", query=(PAGE, SIZE, AFTER), returns=PersonPage, refuses=(404,)),
    Route("GET", "/api/accounts/{id}", Auth.SESSION, accounts.read,
          "Read an account, by id or email", returns=PersonDetail, refuses=(404,)),
    Route("PUT", "/api/accounts/{id}", Auth.SESSION, accounts.change,
          "Change an account", body=requests.AccountBody, returns=PersonView, refuses=(404, 409)),
    Route("DELETE", "/api/accounts/{id}/sessions", Auth.SESSION, accounts.end_sessions,
          "Sign an account out everywhere", returns=DoneView, refuses=(404,)),
    Route("POST", "/api/accounts/{id}/link", Auth.SESSION, accounts.make_link,
          "Create a link to sign in", body=requests.NoBody, returns=LoginLinkView,
          refuses=(404, 409)),

    Route("POST", "/api/invitations", Auth.SESSION, accounts.invite,
          "Invite a person", body=requests.InvitationBody, status=201, returns=InvitationView,
          refuses=(404, 409)),
    Route("POST", "/api/invitations/{id}/renew", Auth.SESSION, accounts.invite_again,
          "Send an invitation again", body=requests.NoBody, returns=InvitationView,
          refuses=(404, 409)),
    Route("DELETE", "/api/invitations/{id}", Auth.SESSION, accounts.withdraw_invitation,
          "Withdraw an invitation", returns=DoneView, refuses=(404, 409)),

    # Groups of people: for operators
    Route("GET", "/api/groups", Auth.SESSION, groups.list_all,
          "List groups", returns=PeopleGroupList, refuses=(404,)),
    Route("POST", "/api/groups", Auth.SESSION, groups.create,
          "Create a group", body=requests.GroupBody, status=201, returns=PeopleGroupView,
          refuses=(404, 409)),
    Route("GET", "/api/groups/{name}", Auth.SESSION, groups.read,
          "Read a group", returns=PeopleGroupDetail, refuses=(404,)),
    Route("PUT", "/api/groups/{name}", Auth.SESSION, groups.change,
          "Change a group", body=requests.MembersBody, returns=PeopleGroupView, refuses=(404, 409)),
    Route("DELETE", "/api/groups/{name}", Auth.SESSION, groups.delete,
          "Delete a group", returns=DoneView, refuses=(404, 409)),

    # What owners look after, and operators: by session
    Route("GET", "/api/workflows", Auth.SESSION, operating.list_summaries,
          "List what workflows do, without their definitions", Scope.WORKFLOW_READ,
          query=(PAGE, SIZE, AFTER), returns=WorkflowSummaryPage),
    Route("GET", "/api/workflows/{id}/versions", Auth.SESSION, authoring.list_versions,
          "List the versions of a workflow", Scope.WORKFLOW_READ,
          query=(PAGE, SIZE), returns=VersionPage, refuses=(404,)),
    Route("GET", "/api/workflows/{id}/versions/{number}", Auth.SESSION, authoring.read_version,
          "Read the text of a version", Scope.WORKFLOW_READ, returns=VersionView, refuses=(404,)),
    Route("GET", "/api/workflows/{id}/versions/{number}/difference", Auth.SESSION,
          authoring.compare, "Compare two versions", Scope.WORKFLOW_READ,
          query=(OLD_VERSION,), returns=DifferenceView, refuses=(404,)),
    # Changing what runs is more than running it: no scope, so visitors need all. AU-11.
    Route("POST", "/api/workflows", Auth.SESSION, authoring.create,
          "Create a workflow", body=requests.DefinitionBody, body_limit=4 * SOURCE_BYTES,
          status=201, returns=VersionView, refuses=(404, 409)),
    Route("PUT", "/api/workflows/{id}", Auth.SESSION, authoring.change,
          "Change a workflow", body=requests.DefinitionChangeBody, body_limit=4 * SOURCE_BYTES,
          returns=VersionView, refuses=(404, 409)),
    Route("DELETE", "/api/workflows/{id}", Auth.SESSION, authoring.delete,
          "Delete a workflow", returns=DoneView, refuses=(404,)),
    Route("POST", "/api/workflows/{id}/versions/{number}/restore", Auth.SESSION,
          authoring.restore, "Restore a version", body=requests.RestoreBody,
          returns=VersionView, refuses=(404, 409)),
    Route("GET", "/api/workflows/{id}/shares", Auth.SESSION, authoring.list_shares,
          "List with whom a workflow is shared", returns=ShareList, refuses=(404,)),
    Route("PUT", "/api/workflows/{id}/shares/{account}", Auth.SESSION, authoring.share,
          "Share a workflow", body=requests.ShareBody, returns=ShareView, refuses=(404,)),
    Route("DELETE", "/api/workflows/{id}/shares/{account}", Auth.SESSION, authoring.unshare,
          "Share a workflow no longer", returns=DoneView, refuses=(404,)),
    Route("GET", "/api/workflows/{id}/state", Auth.SESSION, workflows.read_state,
          "Read the state of a workflow", Scope.WORKFLOW_READ,
          returns=WorkflowStateView, refuses=(404,)),
    Route("PUT", "/api/workflows/{id}/state", Auth.SESSION, workflows.set_state,
          "Set values of a workflow's state", body=requests.StateBody, body_limit=2 * STATE_BYTES,
          returns=WorkflowStateView, refuses=(404,)),
    Route("GET", "/api/keys", Auth.SESSION, operating.list_keys,
          "List keys", visitors=OWN_KEYS, returns=KeyList),
    Route("POST", "/api/keys", Auth.SESSION, operating.create_key,
          "Create a key", visitors=OWN_KEYS, body=requests.KeyBody,
          returns=KeyView, refuses=(409,)),
    Route("POST", "/api/keys/{id}/rotate", Auth.SESSION, operating.rotate_key,
          "Rotate a key", visitors=OWN_KEYS, body=requests.RotateBody, returns=KeyView,
          refuses=(404, 409)),
    Route("DELETE", "/api/keys/{id}", Auth.SESSION, operating.revoke_key,
          "Revoke a key", visitors=OWN_KEYS, returns=KeyView, refuses=(404,)),
    Route("GET", "/api/secrets", Auth.SESSION, operating.list_secrets,
          "List the names of secrets", returns=SecretList),
    Route("PUT", "/api/secrets/{name}", Auth.SESSION, operating.set_secret,
          "Set a secret", body=requests.SecretBody, returns=SecretView, refuses=(404,)),
    Route("DELETE", "/api/secrets/{name}", Auth.SESSION, operating.delete_secret,
          "Delete a secret", returns=DoneView, refuses=(404,)),
    Route("GET", "/api/health", Auth.SESSION, operating.read_health,
          "Read the server's health, as an operator", returns=OperatorHealthView, refuses=(404,)),
    Route("GET", "/api/usage", Auth.SESSION, operating.read_usage,
          "Read what is used of quotas and models", returns=AccountUsageView),
    Route("GET", "/api/triggers", Auth.SESSION, operating.list_triggers,
          "List triggers and what runs next", Scope.WORKFLOW_READ, returns=TriggerList),
    Route("POST", "/api/triggers/{id}/pause", Auth.SESSION, operating.pause_trigger,
          "Pause a trigger", Scope.WORKFLOW_EXECUTE, body=requests.NoBody,
          returns=WorkflowTriggerView, refuses=(404,)),
    Route("POST", "/api/triggers/{id}/resume", Auth.SESSION, operating.resume_trigger,
          "Resume a trigger", Scope.WORKFLOW_EXECUTE, body=requests.NoBody,
          returns=WorkflowTriggerView, refuses=(404,)),
    Route("GET", "/api/audit", Auth.SESSION, operating.list_audit,
          "Read the audit log",
          query=(EVENT, OUTCOME, ACCOUNT_ID, KEY_ID, TARGET, FROM, TO, SIZE, BEFORE),
          returns=AuditPage),

    # What the command line does, for operators elsewhere
    Route("POST", "/api/admin/{operation}", Auth.ADMIN, operating.perform,
          "Administer", body_limit=4 * EDITED_ROWS_BODY, refuses=(404, 409)),

    # Operations
    Route("GET", "/healthz", Auth.OPEN, operations.healthz,
          "Is the process alive", returns=HealthView),
    Route("GET", "/readyz", Auth.OPEN, operations.readyz,
          "Is the store reachable", returns=HealthView),
    Route("GET", "/metrics", Auth.OPEN, operations.metrics,
          "Metrics in Prometheus text", media="text/plain"),
    Route("GET", "/openapi.json", Auth.OPEN, operations.openapi,
          "This description", query=(WEBHOOKS,)),
    Route("GET", "/schema/definition.json", Auth.OPEN, operations.schema,
          "The JSON Schema of definitions", media="application/schema+json"),
)
# fmt: on
