"""
Redrive: a new execution that goes on where an earlier one stopped, or from a step that is named.
EX-17, EX-35.

`plan_redrive` decides which results the new execution keeps, and says of every step what that
means: whoever starts a redrive sees beforehand what will run again, and how often it had begun.
One walk through the definition decides both. In each list of steps it keeps results up to the
first step that has to run; everything behind that step runs, too. A container in which something
has to run is entered: it begins anew with the finished steps of its branches and rounds.

The definition may be a newer one than that of the earlier execution. A step is the same if it has
the same name and kind in the same list of the same container; only the same step keeps its result.

An approval that goes back (`goto`) returns to an earlier step in its own list of steps. All steps
from that one up to the approval have ended, since a list goes on step by step. So no running step
is touched, and steps in other branches or rounds of a loop are not affected. AP-31.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import zip_longest

from attrs import frozen

from wfcore.errors import Conflict, InvalidInput, NotFound
from wfcore.model.execution import Awaits, Execution, ExecutionStatus, StepResult, StepStatus
from wfcore.model.json import JsonObject
from wfcore.model.workflow import (
    ApprovalStep,
    Definition,
    LoopStep,
    ParallelStep,
    Step,
    SwitchStep,
    lists_of,
)
from wfcore.rules.canonical import canonical, digest
from wfcore.rules.execution.nodes import (
    Results,
    Rounds,
    Steps,
    begun_rounds,
    nodes,
    prefixes_inside,
)
from wfcore.rules.execution.plan import StepAt, branches_of
from wfcore.rules.execution.scope import name_of, prefix_of
from wfcore.time import EpochMs, later

FROM = frozenset({ExecutionStatus.FAILED, ExecutionStatus.CANCELLED, ExecutionStatus.INTERRUPTED})
"""The states from which an execution goes on where it stopped."""
REDRIVEN = FROM | {ExecutionStatus.COMPLETED}
"""
The states from which an execution can be redriven; from COMPLETED only if the first step is named.
"""


class StepFate(StrEnum):
    """The effect of a redrive on a step."""

    KEPT = "kept"
    """The step's result is kept; the step does not run."""
    ASKED = "asked"
    """An approval that had been opened before, and is opened again."""
    AGAIN = "again"
    """The step had begun before, and runs again."""
    NEW = "new"
    """The step has never begun."""
    GONE = "gone"
    """The definition no longer has the step; its result is left behind."""


@frozen
class PlannedStep:
    """The fate of the step *key*; `begun`: how often it has begun in all earlier executions."""

    key: str
    fate: StepFate
    begun: int = 0


@frozen
class RedrivePlan:
    """
    `start`: the key of the first step that runs, None if only the end is left. `results`: the
    results that the new execution keeps. `changes`: the other differences between the definitions,
    a line each.
    """

    start: str | None
    results: Results
    steps: tuple[PlannedStep, ...]
    changes: tuple[str, ...] = ()

    def digest(self, inputs: JsonObject, id: str) -> str:
        """
        A SHA-256 that changes with everything that the plan says, with the inputs, and with the
        *id* of the redrive, which is another one once somebody else has redriven the execution.
        """
        steps = [[one.key, one.fate.value, one.begun] for one in self.steps]
        said = [self.start, steps, list(self.changes), inputs, id]
        return digest(canonical(said))


def plan_redrive(
    run: Execution,
    before: Definition,
    definition: Definition,
    now: EpochMs,
    *,
    start: str | None = None,
    same_inputs: bool = True,
    begun: Mapping[str, int] | None = None,
    changes: Sequence[str] = (),
) -> RedrivePlan:
    """
    The plan of a redrive of *run*, which had the definition *before*, with *definition*.

    *start*: a step outside of loops that runs, with everything behind it; None: the first step that
    has no result to keep. *same_inputs*: whether the redrive has the inputs of *run*; with other
    inputs approvals are asked again. *begun*: see `times_begun`; None: counted over *run* alone.
    *changes*: the other differences between the definitions. Raises `NotFound` if *run* is in a
    state that cannot be redriven, `InvalidInput` if *start* is no step outside of loops, `Conflict`
    if a step before *start* has no result to keep.
    """
    if run.status not in FROM and not (start and run.status is ExecutionStatus.COMPLETED):
        raise NotFound("Execution")
    way = () if start is None else _way_to(definition.steps, start)
    if start is not None and not way:
        raise InvalidInput("from", f"{start!r} is no step of the definition outside of loops")
    keeper = _Keeper(run.step_results, now, way, same_inputs)
    first = keeper.list(definition.steps, before.steps, "")
    kept = {key: keeper.kept[key] for key in run.step_results if key in keeper.kept}
    counts = times_begun([run]) if begun is None else begun
    steps = tuple(_fates(definition, before, run.step_results, kept, counts))
    return RedrivePlan(start or first, kept, steps, tuple(changes))


def times_begun(line: Sequence[Execution]) -> Mapping[str, int]:
    """
    How often each step has begun, by key. *line*: an execution, then the execution that it
    redrives, and so on. A result that a redrive kept counts for the earlier execution.
    """
    counts: Counter[str] = Counter()
    for run, older in zip_longest(line, line[1:]):
        known = set(_ends(older)) if older else set()
        for key, result in _every_result(run):
            if (key, result.started_at, result.completed_at) not in known:
                counts[key] += result.tries
    return counts


def _ends(run: Execution) -> Iterator[tuple[str, EpochMs, EpochMs]]:
    """Key, start and end of each result that has ended: by these a kept result is recognised."""
    for key, result in _every_result(run):
        if result.completed_at is not None:
            yield key, result.started_at, result.completed_at


def _every_result(run: Execution) -> Iterator[tuple[str, StepResult]]:
    """The results of all rounds, by the key of the step."""
    yield from run.step_results.items()
    yield from ((key.partition("/")[2], result) for key, result in run.put_aside.items())


class _Keeper:
    """One walk through a definition: the results that are `kept`."""

    def __init__(
        self, results: Results, now: EpochMs, way: Sequence[str], same_inputs: bool
    ) -> None:
        self._results = results
        self._now = now
        self._way = way
        self._same_inputs = same_inputs
        self._reached = False
        self._rounds = begun_rounds(results)
        self.kept: dict[str, StepResult] = {}

    def list(self, steps: Steps, before: Steps, prefix: str) -> str | None:
        """
        Keep the results of the finished steps of a list. Returns the key of the first step of the
        list that has to run; None if no step has to. *before*: the same list in the earlier
        definition.
        """
        twins = {step.name: step for step in before}
        for step in steps:
            at = StepAt(step, prefix)
            if not self._whole(at, twins.get(step.name)):
                self._require_reached(steps, step)
                return at.key
        return None

    def _require_reached(self, steps: Steps, stop: Step) -> None:
        """Raises `Conflict` if the walk ends at *stop*, and the start is behind or inside of it."""
        names = [step.name for step in steps]
        behind = names[names.index(stop.name) :]
        if any(name in self._way for name in behind) and not self._reached:
            raise Conflict(f"{stop.name} has no result to keep, and {self._way[-1]} needs it")

    def _whole(self, at: StepAt, twin: Step | None) -> bool:
        """
        Keep the step's result, or the finished results inside of the step. Returns whether the
        whole result is kept.
        """
        result = self._results.get(at.key)
        if self._way[-1:] == (at.step.name,):
            self._reached = True
            return False
        if result is None or type(at.step) is not type(twin):
            return False
        if self._stays(at, twin, result):
            self.kept |= {key: self._results[key] for key in _keys(at, self._results, self._rounds)}
            return True
        self._enter(at, twin, result)
        return False

    def _stays(self, at: StepAt, twin: Step | None, result: StepResult) -> bool:
        """Whether the step's result is kept as it is, with all results inside of the step."""
        if not _finished(result, at.step.continue_on_error) or at.step.name in self._way:
            return False
        asked = any(
            self._is_asked(*one) for one in _approvals(at, twin, self._results, self._rounds)
        )
        return not asked and _same_inside(at.step, twin)

    def _is_asked(self, at: StepAt, twin: Step | None) -> bool:
        decided = self._results[at.key].status is StepStatus.COMPLETED
        return decided and not (self._same_inputs and at.step == twin)

    def _enter(self, at: StepAt, twin: Step | None, result: StepResult) -> None:
        """Keep the finished steps of a container that has to go on. The container begins anew."""
        anew = _anew(at.step, twin, result, self._now)
        if anew is not None:
            self.kept[at.key] = anew
            for steps, prefix in branches_of(at, anew):
                self.list(steps, _list_before(at.step, steps, twin), prefix)


def _anew(step: Step, twin: Step | None, result: StepResult, now: EpochMs) -> StepResult | None:
    """
    The result of a container that begins now, with its items or its case; None if the container has
    to begin as if it had never begun.
    """
    if not isinstance(step, ParallelStep | LoopStep | SwitchStep) or not result.tries:
        return None
    case = result.case
    if isinstance(step, LoopStep):
        same = isinstance(twin, LoopStep) and (twin.items, twin.variable) == (
            step.items,
            step.variable,
        )
        if not same or not isinstance(result.items, list | tuple):
            return None
    if isinstance(step, SwitchStep):
        assert isinstance(twin, SwitchStep)
        case = _case_now(step, twin, case)
        if case is None:
            return None
    return StepResult(
        StepStatus.RUNNING,
        now,
        awaits=Awaits.STEPS,
        until=None if step.timeout_ms is None else later(now, step.timeout_ms),
        items=result.items,
        case=case,
        rounds=result.rounds,
    )


def _case_now(step: SwitchStep, twin: SwitchStep, case: int | None) -> int | None:
    """The case with the same first step as *case* of *twin*; None if there is no such case."""
    if case is None or step == twin:
        return case
    first = [one.name for one in twin.lists[case][:1]]
    found = (n for n, steps in enumerate(step.lists) if [one.name for one in steps[:1]] == first)
    return next(found, None)


def _list_before(step: Step, steps: Steps, twin: Step | None) -> Steps:
    """The list of *twin* that corresponds to the list *steps* of *step*; empty if there is none."""
    match step, twin:
        case ParallelStep(), ParallelStep():
            name = next(one.name for one in step.branches if one.steps == steps)
            return next((one.steps for one in twin.branches if one.name == name), ())
        case LoopStep(), LoopStep():
            return twin.steps
        case SwitchStep(), SwitchStep():
            same = (one for one in twin.lists if one[:1] and one[0].name == steps[0].name)
            return next(same, ())
    return ()


def _way_to(steps: Steps, name: str) -> tuple[str, ...]:
    """The names of the containers around a step, outermost first, and its own; empty if none."""
    for step in steps:
        if step.name == name:
            return (name,)
        if not isinstance(step, LoopStep):
            for _, inside in lists_of(step):
                if way := _way_to(inside, name):
                    return (step.name, *way)
    return ()


def _finished(result: StepResult, tolerated: bool) -> bool:
    if result.status is StepStatus.FAILED:
        return tolerated
    return result.status in (StepStatus.COMPLETED, StepStatus.SKIPPED)


def _same_inside(step: Step, twin: Step | None) -> bool:
    """Whether *step* and *twin* hold the same steps, by name and kind, in the same lists."""
    return step == twin or (twin is not None and _shape(step) == _shape(twin))


def _shape(step: Step) -> object:
    names = [one.name for one in step.branches] if isinstance(step, ParallelStep) else []
    lists = [[_shape(one) for one in inside] for _, inside in lists_of(step)]
    return step.name, type(step), names, lists


def _approvals(
    at: StepAt, twin: Step | None, results: Results, rounds: Rounds
) -> Iterator[tuple[StepAt, Step | None]]:
    """Each approval that has a result, with its twin: the step itself, or steps inside of it."""
    if isinstance(at.step, ApprovalStep):
        if at.key in results:
            yield at, twin
        return
    inside = [one for _, steps in lists_of(at.step) for one in steps]
    twins = {} if twin is None else {one.name: one for _, s in lists_of(twin) for one in s}
    for prefix in prefixes_inside(at, rounds):
        for step in inside:
            yield from _approvals(StepAt(step, prefix), twins.get(step.name), results, rounds)


def _keys(at: StepAt, results: Results, rounds: Rounds) -> Iterator[str]:
    """The keys of the results of a step and of all steps inside of it."""
    return (one.key for one in nodes((at.step,), at.prefix, rounds) if one.key in results)


def _fates(
    definition: Definition,
    before: Definition,
    results: Results,
    kept: Results,
    begun: Mapping[str, int],
) -> Iterator[PlannedStep]:
    """
    The fate of each step, in the order of the text, rounds by number; then the steps that are gone.
    """
    listed, rounds = set[str](), begun_rounds(results)
    for at in nodes(definition.steps, "", rounds):
        listed.add(at.key)
        count = begun.get(at.key, 0)
        if at.key in kept and kept[at.key].awaits is None:
            fate = StepFate.KEPT
        elif not count:
            fate = StepFate.NEW
        else:
            fate = StepFate.ASKED if isinstance(at.step, ApprovalStep) else StepFate.AGAIN
        yield PlannedStep(at.key, fate, count)
    for at in nodes(before.steps, "", rounds):
        if at.key in results and at.key not in listed:
            yield PlannedStep(at.key, StepFate.GONE, begun.get(at.key, 0))


def put_aside(definition: Definition, run: Execution, key: str, goto: str) -> tuple[str, ...]:
    """
    The keys of the steps that have a result from *goto* up to the approval *key*, their inner steps
    included.
    """
    steps = _list_with(definition.steps, name_of(key))
    names = [step.name for step in steps]
    results, rounds = run.step_results, begun_rounds(run.step_results)
    return tuple(
        found
        for step in steps[names.index(goto) : names.index(name_of(key)) + 1]
        for found in _keys(StepAt(step, prefix_of(key)), results, rounds)
    )


def revisions_of(run: Execution, key: str) -> int:
    """The number of times that people asked for changes at the approval *key*."""
    outputs = (one.output for one in run.rounds_of(key))
    return sum(isinstance(one, Mapping) and one.get("decision") == "revise" for one in outputs)


def _list_with(steps: tuple[Step, ...], name: str) -> tuple[Step, ...]:
    """The list of steps that holds the step *name*; empty if there is none."""
    if any(step.name == name for step in steps):
        return steps
    lists = (inside for step in steps for _, inside in lists_of(step))
    return next((found for one in lists if (found := _list_with(one, name))), ())
