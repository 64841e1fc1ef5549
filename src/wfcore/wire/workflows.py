"""Workflows, definitions and their triggers on the wire."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from attrs import define, field

from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.json import JsonObject
from wfcore.model.trigger import (
    Refusal,
    Schedule,
    TriggerKind,
    TriggerRow,
    TriggerSpec,
    TriggerState,
)
from wfcore.model.workflow import (
    Concurrency,
    Definition,
    OnLimit,
    Variable,
    VariableType,
    Workflow,
)
from wfcore.rules.definition.written import document_of, masked_document
from wfcore.rules.masking import MASK
from wfcore.rules.state import StateRow
from wfcore.wire.common import ABSENT, ListPage

WrittenStep: TypeAlias = Annotated[JsonObject, "WrittenStep", "A step as definitions write it"]


@define(eq=False)
class WorkflowTriggerView:
    """
    A trigger. `definition` is what the workflow's definition says of it; `reason` says in words
    why it is not ACTIVE. `lastRefusal`: why it started nothing the last time it did not;
    `lastRefusalDetail`: the mistake, if its inputs were wrong.
    `lastResult`: how the execution `lastExecutionId` ended; `failures`: how many starts failed in a
    row. `pausedBy`: the account that paused it; absent if its failures did.
    """

    id: str
    kind: TriggerKind
    definition: Mapping[str, Any]
    state: TriggerState
    reason: str | None
    next_run_at: int | None
    last_run_at: int | None
    runs: int
    last_refusal: Refusal | None
    last_refusal_detail: str | None
    last_refused_at: int | None
    failures: int
    last_result: ExecutionStatus | None = field(default=None, metadata=ABSENT)
    last_execution_id: str | None = field(default=None, metadata=ABSENT)
    paused_at: int | None = field(default=None, metadata=ABSENT)
    paused_by: str | None = field(default=None, metadata=ABSENT)


@define(eq=False)
class ConcurrencyView:
    """How many executions may run at once, of all or of each value of `key`."""

    limit: int
    key: str | None
    on_limit: OnLimit


@define(eq=False)
class VariableView:
    """A declared variable; the default of a secret one is masked."""

    name: str
    type: VariableType
    required: bool
    secret: bool
    default: Any


@define(eq=False)
class WorkflowView:
    """
    A workflow. `workflow`: the steps as written; `triggers`: what starts it by itself;
    `definition`: all that was applied, left out in lists.
    """

    id: str
    name: str
    owner_id: str
    workflow: Sequence[WrittenStep]
    description: str
    variables: Sequence[VariableView]
    triggers: Sequence[WorkflowTriggerView]
    concurrency: ConcurrencyView | None
    version: int
    created_at: int
    updated_at: int
    on_failure: Sequence[WrittenStep] | None = field(default=None, metadata=ABSENT)
    definition: Mapping[str, Any] | None = field(default=None, metadata=ABSENT)


@define(eq=False)
class WorkflowStateView:
    """
    The values of a workflow that outlive its executions. `state`: by name, the default where nobody
    has set a value; `secrets`: the secret names, and whether each has a value.
    """

    workflow_id: str
    state: JsonObject
    secrets: Mapping[str, bool]


@define(eq=False)
class DefinitionView:
    """
    The definition that an execution runs by, whatever the workflow says since; `definition`: all
    that was applied.
    """

    execution_id: str
    workflow_id: str
    workflow_version: int
    workflow: Sequence[WrittenStep]
    description: str
    variables: Sequence[VariableView]
    definition: Mapping[str, Any]
    on_failure: Sequence[WrittenStep] | None = field(default=None, metadata=ABSENT)


@define(eq=False, kw_only=True)
class WorkflowPage(ListPage):
    items: Sequence[WorkflowView]


def trigger_view(shown: TriggerRow) -> WorkflowTriggerView:
    """A trigger and its state."""
    trigger, standing = shown.trigger, shown.standing
    return WorkflowTriggerView(
        id=trigger.id,
        kind=trigger.kind,
        definition=_written(trigger.spec),
        state=standing.state,
        reason=standing.why,
        next_run_at=standing.next_at,
        last_run_at=trigger.last_run_at,
        runs=trigger.runs,
        last_refusal=trigger.refusal,
        last_refusal_detail=trigger.refusal_detail,
        last_refused_at=trigger.refused_at,
        last_result=trigger.last_result,
        last_execution_id=trigger.last_execution_id,
        failures=trigger.failures,
        paused_at=trigger.pause.at if trigger.pause else None,
        paused_by=trigger.pause.by if trigger.pause else None,
    )


def _written(spec: TriggerSpec) -> dict[str, Any]:
    """A trigger as definitions write it, including defaults."""
    if isinstance(spec, Schedule):
        return {
            "kind": TriggerKind.SCHEDULE,
            "cron": spec.cron,
            "timezone": spec.timezone,
            "missed": spec.missed,
            **({"pauseAfter": spec.pause_after} if spec.pause_after else {}),
            **({"inputs": spec.inputs} if spec.inputs else {}),
        }
    return {
        "kind": TriggerKind.DELAYED_COMPLETION,
        "workflow": spec.workflow,
        "on": spec.on,
        "delaySeconds": spec.delay_seconds,
        "maxRuns": spec.max_runs,
        **({"inputs": spec.inputs} if spec.inputs else {}),
    }


def concurrency_view(concurrency: Concurrency | None) -> ConcurrencyView | None:
    """The limit, if there is one."""
    if concurrency is None:
        return None
    return ConcurrencyView(concurrency.limit, concurrency.key, concurrency.on_limit)


def workflow_view(
    workflow: Workflow,
    definition: Definition,
    triggers: Sequence[TriggerRow] = (),
    *,
    whole: bool = True,
) -> WorkflowView:
    """A workflow with its current definition; *whole*: with all that was applied."""
    return WorkflowView(
        id=workflow.id,
        name=workflow.name,
        owner_id=workflow.owner_id,
        workflow=definition.steps_as_written,
        description=definition.description,
        variables=[_variable(one) for one in definition.variables.values()],
        triggers=[trigger_view(one) for one in triggers],
        concurrency=concurrency_view(definition.concurrency),
        version=workflow.revision,
        created_at=workflow.created_at,
        updated_at=workflow.updated_at,
        on_failure=written_on_failure(definition),
        definition=masked_document(definition) if whole else None,
    )


def state_view(workflow_id: str, rows: Sequence[StateRow]) -> WorkflowStateView:
    """The state of a workflow, of secret names without the values."""
    return WorkflowStateView(
        workflow_id,
        {one.declared.name: one.value for one in rows if not one.is_secret},
        {one.declared.name: one.is_set for one in rows if one.is_secret},
    )


def written_on_failure(definition: Definition) -> Sequence[WrittenStep] | None:
    """The steps of `onFailure` as definitions write them."""
    if not definition.on_failure:
        return None
    written: Any = document_of(definition)["onFailure"]
    return tuple(written)


def _variable(one: Variable) -> VariableView:
    default = MASK if one.secret and one.has_default else one.default
    return VariableView(one.name, one.type, one.required, one.secret, default)


def definition_view(run: Execution, definition: Definition) -> DefinitionView:
    """The definition of an execution; default values of secret variables are masked."""
    return DefinitionView(
        run.id,
        run.workflow_id,
        run.revision,
        definition.steps_as_written,
        definition.description,
        [_variable(one) for one in definition.variables.values()],
        masked_document(definition),
        written_on_failure(definition),
    )
