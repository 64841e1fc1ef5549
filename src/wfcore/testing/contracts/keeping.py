"""How the contracts put records into a store under test."""

from typing import Any

from wfcore.model.access import Account, ApiKey, Login, Session, Share
from wfcore.model.approval import Approval
from wfcore.model.artifact import Artifact
from wfcore.model.callback import Callback
from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution
from wfcore.model.replay import Replay
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.ports.store import Store, Unit

REPOSITORY = {
    Account: "accounts",
    ApiKey: "keys",
    Session: "sessions",
    Login: "logins",
    Workflow: "workflows",
    DefinitionSnapshot: "definitions",
    Share: "shares",
    Execution: "executions",
    Approval: "approvals",
    Artifact: "artifacts",
    Callback: "callbacks",
    Webhook: "webhooks",
    Trigger: "triggers",
    Timer: "timers",
    Replay: "replays",
    Event: "events",
    AuditEntry: "audit",
}
"""Where records of a type are kept."""


def collect(unit: Unit, *records: Any) -> None:
    """Put every record (append every log entry) into *unit*."""
    for record in records:
        repository = getattr(unit, REPOSITORY[type(record)])
        collecting = repository.append if hasattr(repository, "append") else repository.put
        collecting(record)


async def keep(store: Store, *records: Any) -> None:
    """Store every record in one unit."""
    async with store.unit() as unit:
        collect(unit, *records)
        await unit.commit()
