"""
Factories of records for tests. Every field has a sensible value, so a test names only the fields
that matter.

Ids are given or numbered (`acc_1`, `exec_7`); times are plain integers around `NOW`.
"""

from typing import Any

from wfcore.model.access import (
    Account,
    AccountStatus,
    ApiKey,
    Login,
    LoginLink,
    PeopleGroups,
    Permission,
    Scope,
    Session,
    Share,
    Tier,
)
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.event import AuditEntry, AuditOutcome, Event, EventKind
from wfcore.model.execution import (
    Artifact,
    Callback,
    Execution,
    ExecutionStatus,
    Replay,
    StepResult,
    StepStatus,
    TriggerSource,
)
from wfcore.model.node import Node
from wfcore.model.notice import Notice, NoticeKind
from wfcore.model.signing import SigningKey, SigningKeys
from wfcore.model.trigger import Schedule, Timer, Trigger
from wfcore.model.webhook import Delivery, DeliveryKind, Webhook
from wfcore.model.workflow import (
    CodeStep,
    Definition,
    DefinitionSnapshot,
    Language,
    Step,
    Workflow,
    WorkflowState,
)
from wfcore.rules.auth.signed_links import id_of
from wfcore.time import MINUTE, DurationMs, EpochMs, later

NOW = EpochMs(1_700_000_000_000)
"""The instant at which the records of these factories were made."""


def account(id: str = "acc_1", **fields: Any) -> Account:
    """An active PRO account with an email made from its id."""
    return Account(
        **{
            "id": id,
            "email": f"{id}@example.org",
            "plan": Tier.PRO,
            "status": AccountStatus.ACTIVE,
            "created_at": NOW,
            **fields,
        }
    )


def key(id: str = "key_1", **fields: Any) -> ApiKey:
    """A key of `acc_1` with every scope."""
    return ApiKey(
        **{
            "id": id,
            "account_id": "acc_1",
            "name": "a system",
            "scopes": frozenset(Scope.ordinary()),
            "secret_hash": "0" * 64,
            "created_at": NOW,
            **fields,
        }
    )


def session(id: str = "session_1", **fields: Any) -> Session:
    """A console login of `acc_1`."""
    return Session(
        **{"id": id, "account_id": "acc_1", "created_at": NOW, "last_seen_at": NOW, **fields}
    )


def login(id: str = "login_1", **fields: Any) -> Login:
    """One failed login attempt for a name."""
    return Login(**{"id": id, "failures": (NOW,), "last_failure_at": NOW, **fields})


def login_link(id: str = "link_1", **fields: Any) -> LoginLink:
    """A sign-in link for `acc_1` that works once, within 15 minutes."""
    times = {"created_at": NOW, "expires_at": later(NOW, 15 * MINUTE)}
    return LoginLink(**{"id": id, "account_id": "acc_1", **times, **fields})


def share(workflow_id: str = "wf_1", account_id: str = "acc_2", **fields: Any) -> Share:
    """A VIEW share of `wf_1` with `acc_2`."""
    return Share(
        **{
            "workflow_id": workflow_id,
            "account_id": account_id,
            "permission": Permission.VIEW,
            "created_at": NOW,
            **fields,
        }
    )


def workflow_state(workflow_id: str = "wf_1", **fields: Any) -> WorkflowState:
    """The state of `wf_1`, with one value."""
    return WorkflowState(**{"workflow_id": workflow_id, "values": {"cursor": "c"}, **fields})


def workflow(id: str = "wf_1", **fields: Any) -> Workflow:
    """A workflow of `acc_1` at revision 1, named after its id."""
    return Workflow(
        **{
            "id": id,
            "name": f"Workflow {id}",
            "owner_id": "acc_1",
            "revision": 1,
            "created_at": NOW,
            "updated_at": NOW,
            **fields,
        }
    )


def code_step(name: str = "work", **fields: Any) -> CodeStep:
    """A Python step that prints 1."""
    return CodeStep(**{"name": name, "language": Language.PYTHON, "source": "print(1)", **fields})


def definition(*steps: Step, **fields: Any) -> Definition:
    """A definition with *steps*, or with one code step if no steps are given."""
    chosen = steps or (code_step(),)
    written = tuple({"name": step.name} for step in chosen)
    return Definition(
        **{"name": "A workflow", "steps": chosen, "steps_as_written": written, **fields}
    )


def snapshot(workflow_id: str = "wf_1", revision: int = 1, **fields: Any) -> DefinitionSnapshot:
    """The definition of `wf_1` at one revision."""
    return DefinitionSnapshot(
        **{
            "workflow_id": workflow_id,
            "revision": revision,
            "definition": definition(),
            **fields,
        }
    )


def step_result(status: StepStatus = StepStatus.COMPLETED, **fields: Any) -> StepResult:
    """A step that started at `NOW`. If *status* is final, the step ended a second later."""
    ended = status not in (StepStatus.RUNNING, StepStatus.AWAITING_APPROVAL)
    return StepResult(
        **{
            "status": status,
            "started_at": NOW,
            "completed_at": EpochMs(NOW + 1_000) if ended else None,
            **fields,
        }
    )


def execution(id: str = "exec_1", **fields: Any) -> Execution:
    """A PENDING execution of `wf_1` by `acc_1`, due at once and unclaimed."""
    return Execution(
        **{
            "id": id,
            "workflow_id": "wf_1",
            "workflow_name": "Workflow wf_1",
            "workflow_owner_id": "acc_1",
            "owner_id": "acc_1",
            "revision": 1,
            "trigger_source": TriggerSource.OPEN_API,
            "status": ExecutionStatus.PENDING,
            "accepted_at": NOW,
            "total_steps": 1,
            "due_at": NOW,
            **fields,
        }
    )


def approval(id: str = "appr_1", **fields: Any) -> Approval:
    """A PENDING approval of `exec_1`, open for a day, with the default approvers."""
    created_at = fields.get("created_at", NOW)
    timeout_ms = fields.get("timeout_ms", DurationMs(86_400_000))
    return Approval(
        **{
            "id": id,
            "execution_id": "exec_1",
            "workflow_id": "wf_1",
            "workflow_owner_id": "acc_1",
            "owner_id": "acc_1",
            "step_name": "review",
            "status": ApprovalStatus.PENDING,
            "message": "Please review",
            "timeout_ms": timeout_ms,
            "created_at": created_at,
            "expires_at": EpochMs(created_at + timeout_ms),
            **fields,
        }
    )


def artifact(id: str = "art_1", **fields: Any) -> Artifact:
    """A text file that the step `work` of `exec_1` produced."""
    execution_id = fields.get("execution_id", "exec_1")
    return Artifact(
        **{
            "id": id,
            "execution_id": execution_id,
            "step_name": "work",
            "name": "report.txt",
            "storage_key": f"{execution_id}/{id}",
            "size": 6,
            "content_type": "text/plain",
            "sha256": "0" * 64,
            "previewable": True,
            "created_at": NOW,
            **fields,
        }
    )


def callback(id: str = "exec_1", **fields: Any) -> Callback:
    """The callback about the end of `exec_1`, due at once."""
    return Callback(
        **{
            "id": id,
            "url": "https://example.org/told",
            "key_id": "key_1",
            "created_at": NOW,
            "due_at": NOW,
            **fields,
        }
    )


def notice(id: str = "ntc_1", **fields: Any) -> Notice:
    """A mail to `ann@example.org` about `appr_1`, due at once."""
    return Notice(
        **{
            "id": id,
            "kind": NoticeKind.APPROVAL_OPENED,
            "channel": "mail",
            "to": "ann@example.org",
            "subject": "appr_1",
            "created_at": NOW,
            "due_at": NOW,
            **fields,
        }
    )


def webhook(id: str = "wh_1", **fields: Any) -> Webhook:
    """An active webhook of `acc_1` for `wf_1`, bound to `key_1`."""
    return Webhook(
        **{
            "id": id,
            "owner_id": "acc_1",
            "workflow_id": "wf_1",
            "name": "a webhook",
            "created_at": NOW,
            "updated_at": NOW,
            "api_key_id": "key_1",
            **fields,
        }
    )


def delivery(id: str = "dlv_1", **fields: Any) -> Delivery:
    """An accepted delivery to `wh_1`."""
    return Delivery(
        **{
            "id": id,
            "webhook_id": "wh_1",
            "at": NOW,
            "kind": DeliveryKind.SENDER,
            "status": 202,
            "authenticated": True,
            **fields,
        }
    )


def trigger(id: str = "trg_1", **fields: Any) -> Trigger:
    """A schedule of `wf_1`, every day at nine."""
    return Trigger(
        **{
            "id": id,
            "workflow_id": "wf_1",
            "owner_id": "acc_1",
            "spec": Schedule("0 9 * * *"),
            "created_at": NOW,
            **fields,
        }
    )


def timer(id: str = "trg_1@1", **fields: Any) -> Timer:
    """A timer of `trg_1`, due at once."""
    return Timer(**{"id": id, "trigger_id": "trg_1", "due_at": NOW, **fields})


def node(id: str = "worker_1", **fields: Any) -> Node:
    """A live process that takes executions."""
    about = {"id": id, "host": "a", "places": 8, "started_at": NOW, "seen_until": NOW, **fields}
    return Node(**about)


def signing_keys(*keys: str, **fields: Any) -> SigningKeys:
    """The keys that sign links. The first key signs now."""
    made = tuple(SigningKey(id_of(one.encode()), NOW, one) for one in keys or ("k" * 43,))
    return SigningKeys(**{"id": "all", "keys": made, **fields})


def people_groups(**fields: Any) -> PeopleGroups:
    """The groups of the server: the group `finance` with one member."""
    return PeopleGroups(**{"id": "all", "members": {"finance": ("ann@example.org",)}, **fields})


def replay(key: str = "once", **fields: Any) -> Replay:
    """The stored answer for the idempotency key *key*: `exec_1`."""
    return Replay(
        **{
            "scope": "key_1:wf_1",
            "key": key,
            "fingerprint": "0" * 64,
            "execution_id": "exec_1",
            "created_at": NOW,
            **fields,
        }
    )


def event(number: int = 1, execution_id: str = "exec_1", **fields: Any) -> Event:
    """Event *number* of `exec_1`."""
    return Event(
        **{
            "execution_id": execution_id,
            "number": number,
            "at": NOW,
            "kind": EventKind.EXECUTION_PENDING,
            **fields,
        }
    )


def audit_entry(id: str = "aud_1", **fields: Any) -> AuditEntry:
    """The audit entry of an admitted request."""
    return AuditEntry(
        **{"id": id, "at": NOW, "event": "request", "outcome": AuditOutcome.ALLOWED, **fields}
    )
