"""
The planner: what comes next in a definition, given what is known.

There is no stored position in a workflow, no program counter that a crash could lose and a
migration would have to convert. The position is computed: the definition says which steps there are
and in which order, the step results say what has become of each, and one walk over the tree of
steps finds everything that is possible now.

The walk goes through a sequence until its first open step, through branches and rounds beside one
another. It passes what has ended and does not look behind what has not. So a step begins only after
the steps before it (EX-3), and a sequence is nothing but the simplest tree. What the walk finds are
actions (begin, skip, complete, fail ...), and what the execution waits for if there are none.

Three properties are worth keeping:

- *Pure.* Definition, results, time and a deterministic `render` in; a `Plan` out. A worker that
  takes over after a crash computes the same plan, and a test needs no engine.
- *Confluent.* The plan depends on which steps have ended, not on the order in which they did.
  Whatever the order of branches and decisions, the same ends give the same result. FL-11.
- *Memoryless.* Whatever must be remembered (the items of a loop, the deadline of a container) is in
  the step result, written when the step began: a `when` or `items` that is rendered again later
  could give something else. `PlanMemory` only saves the walks of one turn from looking
  again at what has ended; without it the plan is the same. EX-33.

A failure runs outwards: it passes every container that it is in, up to one that says
`continueOnError`, and nothing else inside of that one moves any more (FL-4). That is why the walk
stops at the first `Failure`, and drops the actions found inside a container that fails.

The planner changes nothing and calls nobody. Its actions become facts in `rules.execution.proceed`,
and the tables say whether they are possible: a mistake here is refused there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from operator import itemgetter
from typing import Protocol, TypeAlias

from attrs import define, evolve, field, frozen

from wfcore.errors import TemplateFailed
from wfcore.model.execution import ENDED, Awaits, Execution, ReasonCode, StepResult, StepStatus
from wfcore.model.json import Json
from wfcore.model.workflow import (
    DataStep,
    Definition,
    DelayStep,
    LoopStep,
    ParallelStep,
    Step,
    SwitchStep,
    lists_of,
    needs_worker,
    walk,
)
from wfcore.rules.execution.scope import round_prefix, scope
from wfcore.rules.limits import DATA_RESULT, MAX_IN_FLIGHT, TEXT_RESULT
from wfcore.time import EpochMs


@frozen
class StepAt:
    """A step of the definition at its place in a run. `prefix`: the beginning of the keys there."""

    step: Step
    prefix: str = ""

    @property
    def key(self) -> str:
        return self.prefix + self.step.name

    def accounts_for(self, results: Mapping[str, StepResult]) -> int:
        """
        The number of steps that count as finished with this one: the step itself, and the inner
        steps that were not counted yet. FL-8.
        """
        if self.prefix:
            return 1
        counted = (results[name] for name in _held(self.step) if name in results)
        size = sum(1 for _ in walk((self.step,)))
        return size - sum(one.steps for one in counted if one.status in ENDED)


def _held(step: Step) -> tuple[str, ...]:
    """The names of the inner steps that have a result of their own; steps in loops have none."""
    if isinstance(step, LoopStep):
        return ()
    inside = (one for _, steps in lists_of(step) for one in steps)
    return tuple(name for one in inside for name in (one.name, *_held(one)))


@frozen
class Failure:
    """A step that failed for good. `through`: the containers that fail with it, innermost first."""

    key: str
    error: str
    timed_out: bool = False
    through: tuple[StepAt, ...] = ()


@frozen
class Begin:
    """Begin this step now, or begin it again if it has a result."""

    at: StepAt


@frozen
class Skip:
    """The step's `when` is false."""

    at: StepAt


@frozen
class Refuse:
    """The step cannot begin because its `when` could not be evaluated."""

    at: StepAt
    error: str


@frozen
class Complete:
    """Every step in the container has ended, or the delay is over."""

    at: StepAt
    output: Json


@frozen
class Judge:
    """
    An attempt failed in a way that no worker reports. Retry it, or (`permanent`) fail the step.
    """

    at: StepAt
    error: str
    timed_out: bool = False
    permanent: bool = False


@frozen
class Fail:
    """
    A step inside this container failed for good. With `continueOnError` the failure ends here.
    """

    at: StepAt
    cause: Failure


@frozen
class Break:
    """This failure ends the execution."""

    cause: Failure


Action: TypeAlias = Begin | Skip | Refuse | Complete | Judge | Fail | Break


@frozen
class Plan:
    """
    The actions to take now, and the events that the execution waits for once they are taken.

    `until`: when something continues by itself. `deadline`: when something that waits times out.
    `outside`: how many steps wait for an event outside: the end of a child, or of a mail.
    `question`: the first step that waits for a decision, and its approval. `done`: every step has
    ended.
    """

    actions: tuple[Action, ...] = ()
    done: bool = False
    until: EpochMs | None = None
    deadline: EpochMs | None = None
    outside: int = 0
    question: tuple[str, str] | None = None


class Render(Protocol):
    """`Templates.render`: a deterministic function, so that the planner stays deterministic."""

    def __call__(
        self,
        value: Json,
        names: Mapping[str, Json],
        limit: int = TEXT_RESULT,
        inserted: Callable[[str], str] | None = None,
        /,
    ) -> Json: ...


_Branch: TypeAlias = tuple[tuple[Step, ...], str]


@define
class PlanMemory:
    """The memory of the plans of one turn: by container, the branches that have not ended."""

    open: dict[str, "_OpenBranches"] = field(factory=dict)


@define
class _OpenBranches:
    """
    The branches or rounds of one container that have not ended. `numbered`: the branches that have
    begun, and the branches that begin next. `rest`: the branches that no walk has reached.
    """

    rest: Iterator[tuple[int, _Branch]]
    numbered: list[tuple[int, _Branch]] = field(factory=list)

    def current(
        self, most: int, begun: Callable[[_Branch], bool], ended: Callable[[_Branch], bool]
    ) -> list[_Branch]:
        """The branches that have not ended, at most *most* of them not begun. FL-3."""
        found = [one for one in self.numbered if not ended(one[1])]
        waiting = sum(not begun(branch) for _, branch in found)
        while waiting < most and (one := next(self.rest, None)) is not None:
            if not ended(one[1]):
                found.append(one)
                waiting += not begun(one[1])
        self.numbered = sorted(found, key=itemgetter(0))
        return [branch for _, branch in self.numbered]


def plan(
    definition: Definition,
    run: Execution,
    now: EpochMs,
    render: Render,
    memory: PlanMemory | None = None,
) -> Plan:
    """
    The next actions of *run*, or the events that it waits for. The same arguments give the same
    plan, which depends on the steps that have ended but not on their order. EX-3, DF-8, FL-1 to
    FL-8, FL-11, FL-13. For an execution that is going to fail, the plan covers its `onFailure`
    steps. EX-31.

    *memory*: the memory of earlier plans of the same turn.
    """
    walk = _PlanWalk(definition, run, now, render, memory or PlanMemory())
    way = walk.sequence(definition.on_failure if run.failing else definition.steps, "")
    if isinstance(way, Failure):
        return Plan((Break(way),))
    return Plan(
        _as_many_as_may_run(walk.actions, MAX_IN_FLIGHT - walk.in_flight),
        way is _Way.ENDED,
        walk.until,
        walk.deadline,
        walk.outside,
        walk.question,
    )


def _as_many_as_may_run(actions: Sequence[Action], free: int) -> tuple[Action, ...]:
    """
    The *actions* without the processes for which no slot is free; such actions are planned again
    later. FL-3.
    """
    kept: list[Action] = []
    for action in actions:
        starts = isinstance(action, Begin) and needs_worker(action.at.step)
        if not starts or free > 0:
            kept.append(action)
        free -= starts
    return tuple(kept)


class _Way(Enum):
    """The end of a walk through a sequence."""

    ENDED = 1
    OPEN = 2


_To: TypeAlias = _Way | Failure
_PAST = frozenset({StepStatus.COMPLETED, StepStatus.SKIPPED})
_UNFINISHED = frozenset({StepStatus.RUNNING, StepStatus.AWAITING_APPROVAL, StepStatus.INTERRUPTED})


class _PlanWalk:
    """One walk through the definition, and its findings. The walk does not outlive `plan`."""

    def __init__(
        self, definition: Definition, run: Execution, now: EpochMs, render: Render, past: PlanMemory
    ) -> None:
        self._definition = definition
        self._run = run
        self._results = run.step_results
        self._now = now
        self._render = render
        self._memory = past
        self.actions: list[Action] = []
        self.in_flight = 0
        self.until: EpochMs | None = None
        self.deadline: EpochMs | None = None
        self.outside = 0
        self.question: tuple[str, str] | None = None

    def sequence(self, steps: tuple[Step, ...], prefix: str) -> _To:
        """Walk through steps one after another, as far as the first open one."""
        for step in steps:
            result = self._results.get(prefix + step.name)
            if result is not None and result.status in _PAST:
                continue
            way = self._step(StepAt(step, prefix), result)
            if way is not _Way.ENDED:
                return way
        return _Way.ENDED

    def _step(self, at: StepAt, result: StepResult | None) -> _To:
        if result is None:
            return self._enter(at)
        match result.status:
            case StepStatus.RUNNING:
                return self._running(at, result)
            case StepStatus.FAILED if at.step.continue_on_error:
                return _Way.ENDED
            case StepStatus.FAILED:
                return Failure(at.key, result.error or "", result.reason is ReasonCode.TIMEOUT)
            case StepStatus.INTERRUPTED:
                return self._move(Begin(at))
            case StepStatus.AWAITING_APPROVAL:
                self.question = self.question or (at.key, result.approval_id or "")
        return _Way.OPEN

    def _enter(self, at: StepAt) -> _To:
        """Begin the step unless its `when` is false. A `when` that fails, fails the step. DF-8."""
        if at.step.when is None:
            return self._move(Begin(at))
        try:
            wanted = self._render(at.step.when, scope(self._definition, self._run, at.prefix))
        except TemplateFailed as failed:
            return self._move(Refuse(at, f"when: {failed}"))
        return self._move(Begin(at) if truthy(wanted) else Skip(at))

    def _running(self, at: StepAt, result: StepResult) -> _To:
        if result.retry_at is not None:
            if result.retry_at <= self._now:
                return self._move(Begin(at))
            self.until = earliest(self.until, result.retry_at)
            return _Way.OPEN
        match result.awaits:
            case Awaits.STEPS:
                return self._container(at, result)
            case Awaits.TIME:
                return self._delay(at, result)
            case Awaits.CHILD:
                return self._child(at, result)
            case Awaits.MAIL:
                return self._mail(at, result)
        self.in_flight += 1
        return _Way.OPEN

    def _delay(self, at: StepAt, result: StepResult) -> _To:
        if self._is_over(result):
            return self._move(Complete(at, None))
        self.until = earliest(self.until, result.until)
        return _Way.OPEN

    def _child(self, at: StepAt, result: StepResult) -> _To:
        if result.error is not None:
            interrupted = result.reason is ReasonCode.INTERRUPTED
            return self._move(Judge(at, result.error, permanent=interrupted))
        if self._is_over(result):
            return self._move(Judge(at, timed_out(at.step), timed_out=True))
        self.outside += 1
        self.deadline = earliest(self.deadline, result.until)
        return _Way.OPEN

    def _mail(self, at: StepAt, result: StepResult) -> _To:
        if self._is_over(result):
            return self._move(Judge(at, timed_out(at.step), timed_out=True))
        self.outside += 1
        self.deadline = earliest(self.deadline, result.until)
        return _Way.OPEN

    def _container(self, at: StepAt, result: StepResult) -> _To:
        """
        Walk through the steps inside. If a step inside fails for good, the other steps stand still.
        FL-4.
        """
        before = len(self.actions)
        if self._is_over(result):
            way: _To = Failure(at.key, timed_out(at.step), timed_out=True)
        else:
            self.deadline = earliest(self.deadline, result.until)
            way = self._inside(at, result)
            if isinstance(way, Failure):
                way = evolve(way, through=(*way.through, at))
        if isinstance(way, Failure) and at.step.continue_on_error:
            del self.actions[before:]
            return self._move(Fail(at, way))
        return way

    def _inside(self, at: StepAt, result: StepResult) -> _To:
        """Continue the open branches, and begin as many more branches as may run. FL-3."""
        branches = self._open_branches(at, result)
        free = most_at_once(at.step) - sum(map(self._has_begun, branches))
        for branch in branches:
            begun = self._has_begun(branch)
            free -= not begun
            if begun or free >= 0:
                way = self.sequence(*branch)
                if isinstance(way, Failure):
                    return way
        if branches:
            return _Way.OPEN
        return self._move(Complete(at, self._output(at, result)))

    def _open_branches(self, at: StepAt, result: StepResult) -> list[_Branch]:
        """
        The branches or rounds that have not ended, up to the last branch that may begin now.
        Branches begin in order. After a redrive any branch may already have begun; branches that
        have begun come first.
        """
        found = self._memory.open.get(at.key)
        if found is None:
            every: Iterable[tuple[int, _Branch]] = enumerate(branches_of(at, result))
            if self._run.redrive_of is not None:
                every = sorted(every, key=lambda one: not self._has_begun(one[1]))
            found = self._memory.open[at.key] = _OpenBranches(iter(every))
        return found.current(most_at_once(at.step), self._has_begun, self._has_ended)

    def _has_begun(self, branch: _Branch) -> bool:
        steps, prefix = branch
        return prefix + steps[0].name in self._results

    def _has_ended(self, branch: _Branch) -> bool:
        """Whether the last step of the branch has ended; then all steps before it have."""
        steps, prefix = branch
        last = self._results.get(prefix + steps[-1].name)
        if last is None:
            return False
        tolerated = last.status is StepStatus.FAILED and steps[-1].continue_on_error
        return last.status in _PAST or tolerated

    def _output(self, at: StepAt, result: StepResult) -> Json:
        results = self._results
        if isinstance(at.step, ParallelStep):
            branches = at.step.branches
            return {one.name: last_output(one.steps, at.prefix, results) for one in branches}
        if isinstance(at.step, SwitchStep):
            chosen = (step for steps, _ in branches_of(at, result) for step in steps)
            return last_output(tuple(chosen), at.prefix, results)
        return [last_output(steps, prefix, results) for steps, prefix in branches_of(at, result)]

    def _is_over(self, result: StepResult) -> bool:
        return result.until is not None and result.until <= self._now

    def _move(self, action: Action) -> _To:
        self.actions.append(action)
        return _Way.OPEN


def branches_of(at: StepAt, result: StepResult) -> Iterator[tuple[tuple[Step, ...], str]]:
    """The sequences of a container that has begun, with the prefix of their keys."""
    match at.step:
        case ParallelStep(branches=branches):
            for branch in branches:
                yield branch.steps, at.prefix
        case SwitchStep(lists=lists) if result.case is not None and lists[result.case]:
            yield lists[result.case], at.prefix
        case LoopStep(steps=steps) if isinstance(result.items, list | tuple):
            for index in range(len(result.items)):
                yield steps, round_prefix(at.key, index)


def most_at_once(step: Step) -> int:
    """How many branches or rounds may be open at once. FL-3."""
    if isinstance(step, ParallelStep):
        return step.max_parallel or len(step.branches)
    return step.max_parallel if isinstance(step, LoopStep) else 1


def unfinished(at: StepAt, results: Mapping[str, StepResult]) -> Iterator[str]:
    """The keys of all steps in a container that have begun and not ended."""
    for steps, prefix in branches_of(at, results[at.key]):
        for step in steps:
            inner = StepAt(step, prefix)
            result = results.get(inner.key)
            if result is not None and result.status in _UNFINISHED:
                yield inner.key
                yield from unfinished(inner, results)


def last_output(steps: tuple[Step, ...], prefix: str, results: Mapping[str, StepResult]) -> Json:
    """The output of the last step that completed; null if no step has completed."""
    for step in reversed(steps):
        result = results.get(prefix + step.name)
        if result is not None and result.status is StepStatus.COMPLETED:
            return result.output
    return None


def output_of(definition: Definition, run: Execution, render: Render) -> Json:
    """
    The execution's output: the output that the definition names, otherwise the output of the last
    completed step.

    Raises `TemplateFailed`.
    """
    if definition.has_output:
        return render(definition.output, scope(definition, run), DATA_RESULT)
    return last_output(definition.steps, "", run.step_results)


def truthy(value: Json) -> bool:
    """
    Whether a value counts as true in `when`: every value does, except false, null, 0 and empty
    values.
    """
    return bool(value)


def timed_out(step: Step) -> str:
    """The error of a step that timed out, worded as for a code step. FL-7."""
    length = 0 if isinstance(step, DelayStep | DataStep) else (step.timeout_ms or 0) / 1_000
    return f"ran into its timeout of {length:g} s"


def earliest(one: EpochMs | None, other: EpochMs | None) -> EpochMs | None:
    """The earlier of two instants, either of which may be missing."""
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
