"""
The facts of a start by a trigger, by their names in templates, and the inputs made from the facts.
EX-37, SH-12.
"""

from datetime import UTC, datetime, timedelta, tzinfo

from wfcore.errors import InvalidInput, TemplateFailed
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.json import Json, JsonObject
from wfcore.model.trigger import FOLLOWED, TRIGGER_NAMES, TriggerSpec
from wfcore.rules.auth.access import sees_execution
from wfcore.rules.execution.plan import Render
from wfcore.rules.masking import mask, secret_values
from wfcore.rules.paths import below
from wfcore.time import EpochMs

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def scheduled(at: EpochMs, zone: tzinfo) -> JsonObject:
    """The facts of a start by a schedule: its instant, also as ISO 8601 in *zone*."""
    moment = (_EPOCH + timedelta(milliseconds=at)).astimezone(zone)
    return {"scheduledFor": at, "scheduledAt": moment.isoformat(timespec="seconds")}


def followed(run: Execution, owner_id: str) -> JsonObject:
    """
    The facts of a start after the end of *run*. Only an owner who sees *run* gets `FOLLOWED`; the
    secrets of *run* are masked in its output. CH-7.
    """
    workflow = {"workflowId": run.workflow_id, "workflowName": run.workflow_name}
    if not sees_execution(run, owner_id):
        return workflow
    completed = run.status is ExecutionStatus.COMPLETED
    output = mask(run.output, secret_values(run)) if completed else None
    values = (run.id, run.status.value, output)
    return {**workflow, **dict(zip(FOLLOWED, values, strict=True))}


def inputs_of(
    spec: TriggerSpec, source: TriggerSource, facts: JsonObject, render: Render
) -> JsonObject:
    """
    The inputs of a start by a trigger, evaluated over the *facts* of the start and what *render*
    knows of `state`. Raises `InvalidInput`. SH-12.
    """
    names = {"trigger": {**dict.fromkeys(TRIGGER_NAMES), "kind": source.value, **facts}}
    made: dict[str, Json] = {}
    for name, value in spec.inputs.items():
        try:
            made[name] = render(value, names)
        except TemplateFailed as failed:
            raise InvalidInput(below("inputs", name), str(failed)) from None
    return made
