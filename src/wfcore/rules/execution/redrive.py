"""
Repeated work: the results that stay, and those that are put aside.

A redrive is a new execution that begins where an earlier one stopped and keeps the results of the
steps before. EX-17.

An approval that goes back (`goto`) returns to an earlier step in its own list of steps. All steps
from that one up to the approval have ended, since a list goes on step by step. So no running step
is touched, and steps in other branches or rounds of a loop are not affected. AP-31.
"""

from collections.abc import Iterator, Mapping

from wfcore.errors import NotFound
from wfcore.model.execution import Awaits, Execution, ExecutionStatus, StepResult, StepStatus
from wfcore.model.workflow import Definition, LoopStep, ParallelStep, Step, SwitchStep, lists_of
from wfcore.rules.execution.plan import StepAt, branches_of
from wfcore.rules.execution.scope import name_of, prefix_of
from wfcore.time import EpochMs, later

FROM = frozenset({ExecutionStatus.FAILED, ExecutionStatus.CANCELLED, ExecutionStatus.INTERRUPTED})

Results = Mapping[str, StepResult]


def kept_results(run: Execution, definition: Definition, now: EpochMs) -> Results:
    """
    The results of the finished steps before the first unfinished one. If that one is a container:
    also the finished steps in each of its branches and rounds. The container itself begins *now*
    and continues with them; a loop keeps its items, and a switch its case.

    Raises `NotFound` if *run* is in a state that cannot be redriven.
    """
    if run.status not in FROM:
        raise NotFound("Execution")
    kept = dict(_kept(definition.steps, "", run.step_results, now))
    return {key: kept[key] for key in run.step_results if key in kept}


def _kept(
    steps: tuple[Step, ...], prefix: str, results: Results, now: EpochMs
) -> Iterator[tuple[str, StepResult]]:
    for step in steps:
        at = StepAt(step, prefix)
        result = results.get(at.key)
        if result is None:
            return
        if not _finished(result, step.continue_on_error):
            yield from _entered(at, result, results, now)
            return
        yield at.key, result
        yield from ((key, results[key]) for key in keys_inside(at, results))


def _finished(result: StepResult, tolerated: bool) -> bool:
    if result.status is StepStatus.FAILED:
        return tolerated
    return result.status in (StepStatus.COMPLETED, StepStatus.SKIPPED)


def _entered(
    at: StepAt, result: StepResult, results: Results, now: EpochMs
) -> Iterator[tuple[str, StepResult]]:
    """The kept results of an unfinished container: its own, and those of its finished steps."""
    step = at.step
    if not isinstance(step, ParallelStep | LoopStep | SwitchStep) or not result.tries:
        return
    until = None if step.timeout_ms is None else later(now, step.timeout_ms)
    anew = StepResult(
        StepStatus.RUNNING,
        now,
        awaits=Awaits.STEPS,
        until=until,
        items=result.items,
        case=result.case,
        rounds=result.rounds,
    )
    yield at.key, anew
    for steps, prefix in branches_of(at, result):
        yield from _kept(steps, prefix, results, now)


def keys_inside(at: StepAt, results: Results) -> Iterator[str]:
    """Keys of all steps inside a step."""
    if isinstance(at.step, LoopStep):
        yield from (key for key in results if key.startswith(f"{at.key}."))
        return
    for _, steps in lists_of(at.step):
        for step in steps:
            inner = StepAt(step, at.prefix)
            if inner.key in results:
                yield inner.key
            yield from keys_inside(inner, results)


def put_aside(definition: Definition, run: Execution, key: str, goto: str) -> tuple[str, ...]:
    """
    The keys of the steps that have a result from *goto* up to the approval *key*, their inner steps
    included.
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
    """The number of times that people asked for changes at that approval."""
    outputs = (one.output for one in run.rounds_of(key))
    return sum(isinstance(one, Mapping) and one.get("decision") == "revise" for one in outputs)


def _list_with(steps: tuple[Step, ...], name: str) -> tuple[Step, ...]:
    """The list of steps that holds the step *name*; empty if there is none."""
    if any(step.name == name for step in steps):
        return steps
    lists = (inside for step in steps for _, inside in lists_of(step))
    return next((found for one in lists if (found := _list_with(one, name))), ())
