"""
Workflows and their definitions as a tree of steps.

The tree has one node type per kind of step. A new kind needs a class here, a row in
`rules.definition.steps` and a case where its steps begin; a kind that holds steps also needs a case
in `lists_of`.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

from attrs import field, frozen

from wfcore.model.json import Json, JsonObject
from wfcore.model.review import ApprovalStep as ApprovalStep
from wfcore.model.review import Assurance as Assurance
from wfcore.model.review import Column as Column
from wfcore.model.review import ColumnType as ColumnType
from wfcore.model.review import Escalation as Escalation
from wfcore.model.review import GroupSpec as GroupSpec
from wfcore.model.review import Links as Links
from wfcore.model.review import OnRevise as OnRevise
from wfcore.model.review import Stage as Stage
from wfcore.model.trigger import TriggerSpec
from wfcore.model.work import AiStep as AiStep
from wfcore.model.work import Budget as Budget
from wfcore.model.work import CodeStep as CodeStep
from wfcore.model.work import Concurrency as Concurrency
from wfcore.model.work import Language as Language
from wfcore.model.work import Listen as Listen
from wfcore.model.work import MailStep as MailStep
from wfcore.model.work import Needs as Needs
from wfcore.model.work import OnExceeded as OnExceeded
from wfcore.model.work import OnInterrupt as OnInterrupt
from wfcore.model.work import OnLimit as OnLimit
from wfcore.model.work import Retry as Retry
from wfcore.model.work import Runtime as Runtime
from wfcore.time import DurationMs, EpochMs


class VariableType(StrEnum):
    """The JSON type of a variable."""

    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    OBJECT = "object"
    ARRAY = "array"


@frozen
class Variable:
    """
    A declared variable. `default` counts only if `has_default` is true. `description` is for
    people.
    """

    name: str
    type: VariableType = VariableType.STRING
    required: bool = False
    has_default: bool = False
    default: Json = None
    secret: bool = False
    description: str = ""


@frozen
class DelayStep:
    """A pause of the given length. FL-5."""

    name: str
    duration_ms: DurationMs
    when: str | None = None
    continue_on_error: bool = False


@frozen
class DataStep:
    """A value, any JSON with templates, which becomes the step's output. FL-12."""

    name: str
    value: Json
    when: str | None = None
    continue_on_error: bool = False


@frozen
class ChildStep:
    """
    An execution of another workflow, given by name or id. `inputs` contain templates.

    `timeout_ms` limits one attempt. None: no limit.
    """

    name: str
    workflow: str
    inputs: JsonObject = field(factory=dict)
    timeout_ms: DurationMs | None = None
    when: str | None = None
    retry: Retry = Retry()
    continue_on_error: bool = False


@frozen
class Branch:
    """One of the sequences of a `ParallelStep`."""

    name: str
    steps: tuple["Step", ...]


@frozen
class ParallelStep:
    """Sequences that run concurrently, at most `max_parallel` sequences at a time (None: all)."""

    name: str
    branches: tuple[Branch, ...]
    max_parallel: int | None = None
    timeout_ms: DurationMs | None = None
    when: str | None = None
    continue_on_error: bool = False


@frozen
class LoopStep:
    """
    A sequence for each item, at most `max_parallel` rounds at a time.

    `items` is a template or a list; `variable` is the item's name inside the loop.
    """

    name: str
    items: Json
    variable: str
    steps: tuple["Step", ...]
    max_parallel: int = 1
    timeout_ms: DurationMs | None = None
    when: str | None = None
    continue_on_error: bool = False


@frozen
class Case:
    """One case of a `SwitchStep`: its steps run if `when`, a template, is true."""

    when: str
    steps: tuple["Step", ...]


@frozen
class SwitchStep:
    """
    The steps of the first case that is true, or else the steps of `otherwise` (`else` in a
    definition). FL-13.
    """

    name: str
    cases: tuple[Case, ...]
    otherwise: tuple["Step", ...] = ()
    timeout_ms: DurationMs | None = None
    when: str | None = None
    continue_on_error: bool = False

    @property
    def lists(self) -> tuple[tuple["Step", ...], ...]:
        """The steps of each case in order, then `otherwise`."""
        return (*(case.steps for case in self.cases), self.otherwise)


Step: TypeAlias = (
    CodeStep
    | AiStep
    | ApprovalStep
    | DelayStep
    | DataStep
    | MailStep
    | ChildStep
    | ParallelStep
    | LoopStep
    | SwitchStep
)


def needs_worker(step: Step) -> bool:
    """
    Whether a program or a model runs for the step, so that a worker must hold the execution
    throughout.
    """
    return isinstance(step, CodeStep | AiStep)


def lists_of(step: Step) -> Iterator[tuple[str, tuple[Step, ...]]]:
    """The lists of steps inside *step*, each with its path relative to *step*."""
    match step:
        case ParallelStep():
            for at, branch in enumerate(step.branches):
                yield f"branches[{at}].steps", branch.steps
        case LoopStep():
            yield "steps", step.steps
        case SwitchStep():
            for at, case in enumerate(step.cases):
                yield f"cases[{at}].steps", case.steps
            if step.otherwise:
                yield "else", step.otherwise


def walk(steps: tuple[Step, ...], path: str = "steps") -> Iterator[tuple[str, Step]]:
    """Every step of a tree once, in the order of the text, with its path."""
    for at, step in enumerate(steps):
        here = f"{path}[{at}]"
        yield here, step
        for below, inside in lists_of(step):
            yield from walk(inside, f"{here}.{below}")


@frozen
class Named:
    """
    A step that templates can name in a frame. `inside`: the container around the step. `revises`:
    whether the step is an approval that may send the execution back. Templates of the steps to
    which it may send the execution back can use its name before the approval has begun. AP-32.
    """

    name: str
    inside: str | None = None
    revises: bool = False


ON_FAILURE = "onFailure."
"""A frame of `Definition.frames`; no step has a name with a dot."""


@frozen
class Definition:
    """
    A workflow definition: built from records, or made by `read_definition` from a mapping.

    `steps_as_written`: the steps as the API shows them. `apply_workflow` checks every definition
    and derives these steps. `on_interrupt` applies to steps that do not set it. `on_failure`: the
    steps that run once an execution is going to fail. EX-31. `approver_groups`: emails or account
    ids by the name of the group. AP-34. `notify_on_failure`: channels. `state`: the values of the
    workflow that outlive executions. SV-1.
    """

    name: str
    steps: tuple[Step, ...]
    steps_as_written: tuple[JsonObject, ...] = ()
    variables: Mapping[str, Variable] = field(factory=dict)
    output: Json = None
    has_output: bool = False
    description: str = ""
    triggers: tuple[TriggerSpec, ...] = ()
    concurrency: Concurrency | None = None
    reference: str | None = None
    budget: Budget | None = None
    on_interrupt: OnInterrupt = OnInterrupt.RESUME
    on_failure: tuple[Step, ...] = ()
    notify_on_failure: tuple[str, ...] = ()
    approver_groups: Mapping[str, tuple[str, ...]] = field(factory=dict)
    state: Mapping[str, Variable] = field(factory=dict)

    def walk(self) -> Iterator[Step]:
        """Every step once, in the order of the text; inner steps after their container."""
        return (step for _, step in self.located())

    def located(self) -> Iterator[tuple[str, Step]]:
        """Every step with its path, in the order of the text; the steps of `on_failure` last."""
        yield from walk(self.steps)
        yield from walk(self.on_failure, "onFailure")

    def step(self, name: str) -> Step:
        """The step of that name, at any depth. Raises `KeyError`."""
        return self._by_name[name]

    @cached_property
    def total_steps(self) -> int:
        """The number of steps. Containers count; the steps of `on_failure` do not."""
        return sum(1 for _ in walk(self.steps))

    @cached_property
    def _by_name(self) -> Mapping[str, Step]:
        return {step.name: step for step in self.walk()}

    @cached_property
    def frames(self) -> Mapping[str, tuple[Named, ...]]:
        """
        The frames of the definition: for each loop, by its name (`""`: outside every loop), the
        steps that see one another.

        A round of a loop is a frame of its own: its steps have results for each round. The steps of
        `on_failure` outside of loops are the frame `ON_FAILURE`.
        """
        found: dict[str, tuple[Named, ...]] = {}

        def read(steps: tuple[Step, ...], frame: list[Named], inside: str | None) -> None:
            for step in steps:
                revises = isinstance(step, ApprovalStep) and step.on_revise is not None
                frame.append(Named(step.name, inside, revises))
                if isinstance(step, LoopStep):
                    round: list[Named] = []
                    read(step.steps, round, None)
                    found[step.name] = tuple(round)
                    continue
                for _, nested in lists_of(step):
                    read(nested, frame, step.name)

        top: list[Named] = []
        last: list[Named] = []
        read(self.steps, top, None)
        read(self.on_failure, last, None)
        return {"": tuple(top), ON_FAILURE: tuple(last), **found}

    @cached_property
    def steps_read(self) -> frozenset[str]:
        """The names of the steps whose artifacts other steps read."""
        listed = (one.files for one in self.walk() if isinstance(one, CodeStep))
        sources = tuple(self.step(name) for names in listed for name in names)
        return frozenset(one.name for _, one in walk(sources))

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The names of the variables whose values are never shown."""
        return frozenset(name for name, variable in self.variables.items() if variable.secret)


@frozen
class Workflow:
    """A named definition of an owner. `revision` counts the applied definitions from 1."""

    id: str
    name: str
    owner_id: str
    revision: int
    created_at: EpochMs
    updated_at: EpochMs
    version: int = 0


@frozen
class WorkflowState:
    """
    The values of a workflow that outlive its executions, as far as somebody has set them.

    `secrets`: the names whose values only code steps receive. A name of an older definition may be
    missing in the present one, so the record says itself which values are secret. SV-6.
    """

    workflow_id: str
    values: JsonObject = field(factory=dict, repr=False)
    secrets: tuple[str, ...] = ()
    version: int = 0


@frozen
class DefinitionSnapshot:
    """
    An applied definition. Snapshots never change, because executions refer to them. `source`: the
    author's text, unchanged; empty if a program built the definition. `tests`: the text of the
    scenarios that the author keeps beside it. `applied_by`: the account that applied it.
    """

    workflow_id: str
    revision: int
    definition: Definition
    source: str = field(default="", repr=False)
    tests: str = field(default="", repr=False)
    applied_at: EpochMs = EpochMs(0)
    applied_by: str = ""
    version: int = 0
