"""
Going back: which results are put aside when people ask for changes. AP-31.

An approval goes back to a step before it in its own list of steps. Everything from that step up to
the approval has ended, since a list goes on step by step; so nothing that runs is touched, and what
runs beside it, in other branches or rounds of a loop, is not concerned.
"""

from collections.abc import Mapping

from wfcore.model.execution import Execution
from wfcore.model.workflow import Definition, Step, lists_of
from wfcore.rules.execution.plan import StepAt
from wfcore.rules.execution.redrive import keys_inside
from wfcore.rules.execution.scope import name_of, prefix_of


def put_aside(definition: Definition, run: Execution, key: str, goto: str) -> tuple[str, ...]:
    """
    The keys of the steps that have a result from *goto* up to the approval *key*, with everything
    inside of them.
    """
    steps = _list_with(definition.steps, name_of(key))
    names = [step.name for step in steps]
    found: list[str] = []
    for step in steps[names.index(goto) : names.index(name_of(key)) + 1]:
        at = StepAt(step, prefix_of(key))
        if at.key in run.step_results:
            found += (at.key, *keys_inside(at, run.step_results))
    return tuple(found)


def revisions_of(run: Execution, key: str) -> int:
    """How often changes were asked for at that approval."""
    outputs = (one.output for one in run.rounds_of(key))
    return sum(isinstance(one, Mapping) and one.get("decision") == "revise" for one in outputs)


def _list_with(steps: tuple[Step, ...], name: str) -> tuple[Step, ...]:
    """The list of steps that holds the step *name*; empty if there is none."""
    if any(step.name == name for step in steps):
        return steps
    lists = (inside for step in steps for _, inside in lists_of(step))
    return next((found for one in lists if (found := _list_with(one, name))), ())
