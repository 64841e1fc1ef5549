"""A new execution, as it is stored before anybody is told of it. EX-1."""

from collections.abc import Mapping
from typing import Required, TypedDict

from wfcore.effects import Outcome, WakeRunner
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution, ExecutionStatus, StepResult, TriggerSource, evolve
from wfcore.model.json import JsonObject
from wfcore.model.workflow import CodeStep, Definition, Workflow
from wfcore.rules.execution.budget import total
from wfcore.rules.variables import bind
from wfcore.time import EpochMs


class Start(TypedDict, total=False):
    """
    How an execution comes about: fields of it that neither its workflow nor a rule decides.

    `variables`: the inputs. `secrets`: names of inputs that are secret in addition to those
    declared so. `step_results`, `put_aside`: what a redrive keeps. `root_source`: for a child, the
    trigger of the root of its family. EX-24.
    """

    owner_id: Required[str]
    trigger_source: Required[TriggerSource]
    variables: JsonObject
    secrets: tuple[str, ...]
    monitored: bool
    callback_url: str | None
    key_id: str | None
    webhook_id: str | None
    trigger_id: str | None
    chain_depth: int
    redrive_of: str | None
    step_results: Mapping[str, StepResult]
    put_aside: Mapping[str, StepResult]
    parent_id: str | None
    parent_step: str | None
    root_source: TriggerSource | None


NOTHING: JsonObject = {}


NETWORK = "network"
"""The capability of a worker that lets code use the network where its step says so."""


def capabilities_of(definition: Definition) -> tuple[str, ...]:
    """
    What a worker must be able to do to run every step, as words in alphabetical order:
    `language:python` and so on, and `NETWORK`. See `Store.claim`; decision 100.
    """
    code = [step for step in definition.walk() if isinstance(step, CodeStep)]
    words = {f"language:{step.language}" for step in code}
    return tuple(sorted(words | {NETWORK for step in code if step.network}))


def accept(
    workflow: Workflow,
    definition: Definition,
    start: Start,
    id: str,
    now: EpochMs,
    about: JsonObject = NOTHING,
) -> Outcome[Execution]:
    """
    A PENDING execution that is due at once and is bound to the definition's current revision.

    *about*: further data of its first event. Raises `InvalidInput` for inputs that violate the
    declarations.
    """
    run = Execution(
        id=id,
        workflow_id=workflow.id,
        workflow_name=workflow.name,
        workflow_owner_id=workflow.owner_id,
        revision=workflow.revision,
        status=ExecutionStatus.PENDING,
        accepted_at=now,
        total_steps=definition.total_steps,
        due_at=now,
        events=1,
        capabilities=capabilities_of(definition),
        **start,
    )
    kept = tuple(run.every_result)
    run = evolve(
        run,
        variables=bind(definition, run.variables),
        secrets=tuple(sorted(definition.secrets.union(run.secrets))),
        granted=total(kept) if kept else None,
    )
    data = {"workflowId": workflow.id, "triggerSource": run.trigger_source.value, **about}
    return Outcome(run, (Event(id, 1, now, EventKind.EXECUTION_PENDING, data),), (WakeRunner(),))
