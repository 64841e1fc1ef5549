"""
A new execution, as it is stored before anybody knows of it. EX-1, EX-34.

If no worker is needed at first, the first turn is decided before the execution is stored: one
record, written once, instead of one that a worker takes, decodes and writes again. Decision 200.
"""

from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from typing import Required, TypedDict

from wfcore.effects import Outcome, SendMail, StartChild, StartStep, WakeRunner
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution, ExecutionStatus, StepResult, TriggerSource, evolve
from wfcore.model.json import JsonObject
from wfcore.model.trace import Trace
from wfcore.model.work import SCRIPTS
from wfcore.model.workflow import (
    AiStep,
    ApprovalStep,
    ChildStep,
    CodeStep,
    Definition,
    DelayStep,
    Language,
    MailStep,
    Runtime,
    Step,
    Workflow,
    needs_worker,
    walk,
)
from wfcore.rules.approval.people import People
from wfcore.rules.execution.budget import total
from wfcore.rules.execution.fold_steps import held
from wfcore.rules.execution.machine import Claimed
from wfcore.rules.execution.plan import Render
from wfcore.rules.execution.proceed import NewId, proceed
from wfcore.rules.ids import caused_id
from wfcore.rules.variables import bind, check_secrets
from wfcore.time import EpochMs


def id_for(cause: str) -> str:
    """
    The id of the one execution that *cause* starts. A second start makes a record with the same id,
    which a store refuses. EX-17, SH-11.
    """
    return caused_id("exec", sha256(cause.encode()).hexdigest()[:26], cause)


class Start(TypedDict, total=False):
    """
    The origin of an execution: the fields that neither its workflow nor a rule decides.

    `variables`: the inputs. `secrets`: names of inputs that are secret in addition to the inputs
    declared secret. `trigger`: as in `Execution`. `step_results`, `put_aside`: the results that a
    redrive keeps. `root_source`: for a child, the trigger of the root of its family. EX-24.
    """

    owner_id: Required[str]
    trigger_source: Required[TriggerSource]
    variables: JsonObject
    trigger: JsonObject
    secrets: tuple[str, ...]
    monitored: bool
    callback_url: str | None
    key_id: str | None
    webhook_id: str | None
    trigger_id: str | None
    chain_depth: int
    redrive_of: str | None
    reference: str | None
    step_results: Mapping[str, StepResult]
    put_aside: Mapping[str, StepResult]
    parent_id: str | None
    parent_step: str | None
    root_source: TriggerSource | None
    request_id: str | None
    trace: Trace | None


NOTHING: JsonObject = {}


NETWORK = "network"
"""The capability of a worker that lets code use the network if the step allows it."""


def language_word(language: Language, runtime: Runtime | None = None) -> str:
    """
    The capability of a worker that has an interpreter of *language*, or this *runtime* of several.
    """
    return f"language:{language}:{runtime}" if runtime else f"language:{language}"


def label_word(label: str) -> str:
    """The capability of a worker that carries *label*."""
    return f"label:{label}"


def capabilities_of(definition: Definition) -> tuple[str, ...]:
    """
    The capabilities that a worker needs to run every step, in alphabetical order: languages,
    labels, and `NETWORK`. See `Store.claim`; decision 100.
    """
    steps = [step for step in definition.walk() if isinstance(step, CodeStep | AiStep)]
    code = [step for step in steps if isinstance(step, CodeStep)]
    words = {language_word(step.language, step.runtime) for step in code}
    words |= {label_word(label) for step in steps for label in step.labels}
    return tuple(sorted(words | {NETWORK for step in code if step.network}))


def capabilities_with(
    labels: Iterable[str],
    lacking: Collection[Language] = (),
    runtimes: Mapping[Language, Collection[Runtime]] | None = None,
) -> frozenset[str]:
    """
    The capabilities of a worker with these labels, without the languages that it lacks. *runtimes*:
    the runtimes that steps may name on that worker, by language; None: any runtime.
    """
    words = {language_word(one) for one in Language if one not in lacking}
    for language in SCRIPTS:
        named = Runtime if runtimes is None else runtimes.get(language, ())
        words |= {language_word(language, one) for one in named}
    return frozenset(words | {label_word(one) for one in labels} | {NETWORK})


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
    held_already = held(definition, {**run.put_aside, **run.step_results})
    variables = bind(definition, run.variables)
    secrets = definition.secrets.union(run.secrets)
    check_secrets(variables, secrets)
    run = evolve(
        run,
        variables=variables,
        secrets=tuple(sorted(secrets)),
        granted=total(kept) if kept else None,
        outputs_size=held_already,
    )
    data = {"workflowId": workflow.id, "triggerSource": run.trigger_source.value, **about}
    return Outcome(run, (Event(id, 1, now, EventKind.EXECUTION_PENDING, data),), (WakeRunner(),))


def begun_alone(
    accepted: Outcome[Execution],
    definition: Definition,
    now: EpochMs,
    render: Render,
    new_id: NewId,
    most: int,
    people: People | None = None,
) -> Outcome[Execution]:
    """
    An accepted execution after its first turn, if that turn starts nothing: with the events and
    effects that it would have if a worker had taken it at once. Otherwise *accepted* unchanged,
    which a worker takes. EX-34.

    An execution with a concurrency group waits for its place, which a claim decides. Raises
    `UnreadPeople`, as `proceed` does.
    """
    run = accepted.record
    if run.concurrency_group is not None or not _rest_alone(definition.steps):
        return accepted
    turn = proceed(run, definition, now, render, new_id, Claimed(), most=most, people=people)
    if any(isinstance(effect, StartStep | StartChild | SendMail) for effect in turn.effects):
        return accepted
    return Outcome(turn.record, accepted.events + turn.events, turn.effects)


def _rest_alone(steps: Iterable[Step]) -> bool:
    """
    Whether the steps end, or wait for somebody or an instant, before one of them starts anything.
    """
    for step in steps:
        inside = (inner for _, inner in walk((step,)))
        if any(needs_worker(one) or isinstance(one, ChildStep | MailStep) for one in inside):
            return False
        if isinstance(step, ApprovalStep | DelayStep):
            return True
    return True
