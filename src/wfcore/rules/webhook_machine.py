"""The webhook machine: what disables a webhook, and what enables it. Spec: webhook states."""

from collections.abc import Mapping
from typing import TypeAlias

from attrs import frozen

from wfcore.machine import Machine, Row
from wfcore.model.webhook import DisabledReason
from wfcore.model.webhook import WebhookStatus as S


@frozen
class Disabled:
    """Its owner, or the operator, switched it off."""


@frozen
class PlanExceeded:
    """A downgrade left the account with more webhooks than its plan allows; this is a newer one."""


@frozen
class WorkflowDeleted:
    """There is nothing left to start."""


@frozen
class AccessLost:
    """Its owner may no longer EDIT the workflow."""


@frozen
class Enabled:
    """Its owner, the operator or an upgrade switched it on; plan and access allow it."""


Fact: TypeAlias = Disabled | PlanExceeded | WorkflowDeleted | AccessLost | Enabled

# fmt: off
WEBHOOK = Machine(
    name="webhook",
    initial=S.ACTIVE,
    final=frozenset(),
    rows=(
        Row(S.ACTIVE,   Disabled,        S.DISABLED, "WH-14"),
        Row(S.ACTIVE,   PlanExceeded,    S.DISABLED, "WH-5"),
        Row(S.ACTIVE,   WorkflowDeleted, S.DISABLED, "WH-10"),
        Row(S.ACTIVE,   AccessLost,      S.DISABLED, "WH-10"),
        Row(S.DISABLED, Disabled,        S.DISABLED, "WH-15"),
        Row(S.DISABLED, PlanExceeded,    S.DISABLED, "WH-15"),
        Row(S.DISABLED, WorkflowDeleted, S.DISABLED, "WH-15"),
        Row(S.DISABLED, AccessLost,      S.DISABLED, "WH-15"),
        Row(S.DISABLED, Enabled,         S.ACTIVE,   "WH-14"),
    ),
)
# fmt: on

BECAUSE: Mapping[DisabledReason, Fact] = {
    DisabledReason.MANUAL: Disabled(),
    DisabledReason.PLAN_LIMIT: PlanExceeded(),
    DisabledReason.WORKFLOW_DELETED: WorkflowDeleted(),
    DisabledReason.ACCESS_LOST: AccessLost(),
}
"""The fact behind each reason for which a webhook is disabled."""

REASON: Mapping[type, DisabledReason] = {type(fact): reason for reason, fact in BECAUSE.items()}
