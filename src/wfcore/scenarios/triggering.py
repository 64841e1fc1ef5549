"""Starts by a trigger whose facts a scenario gives. DF-11, SH-12."""

from wfcore.errors import InvalidInput
from wfcore.model.execution import TriggerSource
from wfcore.model.json import JsonObject
from wfcore.model.trigger import Chain, Schedule, TriggerSpec
from wfcore.model.workflow import Definition, Workflow
from wfcore.rules.execution.plan import Render
from wfcore.rules.execution.start import Start
from wfcore.rules.triggers.facts import inputs_of
from wfcore.usecases.executions.starting import accept_start
from wfcore.usecases.services import Services
from wfcore.usecases.state import state_of, with_state

OWN = (TriggerSource.SCHEDULE, TriggerSource.DELAYED_COMPLETION)
"""The kinds of starts that a definition's own triggers make."""


async def start_by_facts(
    services: Services,
    definition: Definition,
    workflow_id: str,
    facts: JsonObject,
    given: JsonObject,
) -> str:
    """
    Start the workflow as the trigger with these *facts* would, and return the id of the execution.
    The inputs are those of the definition's own trigger that fits the facts, then those *given*.
    Raises the refusals of the service, and `InvalidInput` if no trigger fits.
    """
    source = TriggerSource(str(facts["kind"]))
    now = services.store.now()
    async with services.store.unit() as unit:
        workflow = await unit.get(Workflow, workflow_id)
        assert workflow is not None
        state = await state_of(unit, workflow_id, definition)
        render = with_state(services.templates.render, state)
        made = _inputs(definition, source, facts, render) if source in OWN else {}
        start = Start(
            owner_id=workflow.owner_id,
            trigger_source=source,
            variables={**made, **given},
            trigger=facts,
        )
        return (await accept_start(services, unit, workflow, start, now, None)).execution_id


def _inputs(
    definition: Definition, source: TriggerSource, facts: JsonObject, render: Render
) -> JsonObject:
    for spec in definition.triggers:
        if _fits(spec, source, facts):
            return inputs_of(spec, source, facts, render)
    raise InvalidInput("given.trigger", "no trigger of the definition fits it")


def _fits(spec: TriggerSpec, source: TriggerSource, facts: JsonObject) -> bool:
    """Whether the trigger makes such starts. What the facts do not tell fits."""
    if isinstance(spec, Schedule):
        return source is TriggerSource.SCHEDULE
    assert isinstance(spec, Chain)
    names = {facts[name] for name in ("workflowName", "workflowId") if name in facts}
    ended = facts.get("status") in (None, *spec.on)
    return (
        source is TriggerSource.DELAYED_COMPLETION
        and ended
        and (not names or spec.workflow in names)
    )
