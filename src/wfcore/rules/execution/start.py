"""A new execution, as it is stored before anybody is told of it. EX-1."""

from collections.abc import Mapping

from attrs import field, frozen

from wfcore.effects import Outcome, WakeRunner
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution, ExecutionStatus, StepResult, TriggerSource
from wfcore.model.json import JsonObject
from wfcore.model.workflow import Definition, Workflow
from wfcore.rules.execution.usage import total
from wfcore.rules.variables import bind
from wfcore.time import EpochMs


@frozen
class Start:
    """
    Who starts what, and how. `told`: further data of the first event. `secrets`: inputs that are
    secret in addition to those declared so. `root_source`: for a child, the trigger of the root of
    its family. EX-24.
    """

    owner_id: str
    source: TriggerSource
    inputs: JsonObject = field(factory=dict)
    monitored: bool = False
    key_id: str | None = None
    webhook_id: str | None = None
    callback_url: str | None = None
    redrive_of: str | None = None
    kept: Mapping[str, StepResult] = field(factory=dict)
    chain_depth: int = 0
    trigger_id: str | None = None
    told: JsonObject = field(factory=dict)
    parent_id: str | None = None
    parent_step: str | None = None
    secrets: frozenset[str] = frozenset()
    root_source: TriggerSource | None = None


def accept(
    workflow: Workflow, definition: Definition, start: Start, id: str, now: EpochMs
) -> Outcome[Execution]:
    """
    A PENDING execution that is due at once and is bound to the definition's current revision.

    Raises `InvalidInput` for inputs that violate the declarations.
    """
    variables = bind(definition, start.inputs)
    run = Execution(
        id=id,
        workflow_id=workflow.id,
        workflow_name=workflow.name,
        workflow_owner_id=workflow.owner_id,
        owner_id=start.owner_id,
        revision=workflow.revision,
        trigger_source=start.source,
        status=ExecutionStatus.PENDING,
        accepted_at=now,
        total_steps=definition.total_steps,
        variables=variables,
        step_results=start.kept,
        due_at=now,
        events=1,
        monitored=start.monitored,
        redrive_of=start.redrive_of,
        key_id=start.key_id,
        webhook_id=start.webhook_id,
        callback_url=start.callback_url,
        parent_id=start.parent_id,
        parent_step=start.parent_step,
        secrets=tuple(sorted(definition.secrets | start.secrets)),
        chain_depth=start.chain_depth,
        trigger_id=start.trigger_id,
        granted=total(start.kept.values()) if start.kept else None,
        root_source=start.root_source,
    )
    told = {"workflowId": workflow.id, "triggerSource": start.source.value, **start.told}
    return Outcome(run, (Event(id, 1, now, EventKind.EXECUTION_PENDING, told),), (WakeRunner(),))
