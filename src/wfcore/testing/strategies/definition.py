"""
Hypothesis strategies for valid definitions, whose templates only use names in scope.

`strategies.written` gives the document for each definition.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import evolve, field, frozen
from hypothesis import strategies as st

from wfcore.model.execution import ExecutionStatus
from wfcore.model.json import JsonObject
from wfcore.model.trigger import Chain, Missed, Schedule, TriggerSpec
from wfcore.model.work import SCRIPTS
from wfcore.model.workflow import (
    AiStep,
    ApprovalStep,
    Assurance,
    Branch,
    Case,
    ChildStep,
    CodeStep,
    Column,
    ColumnType,
    Concurrency,
    DataStep,
    Definition,
    DelayStep,
    GroupSpec,
    Language,
    Links,
    Listen,
    LoopStep,
    MailStep,
    OnInterrupt,
    OnLimit,
    ParallelStep,
    Retry,
    Runtime,
    Step,
    SwitchStep,
)
from wfcore.rules.definition.flow import branches_of
from wfcore.rules.triggers.identity import identity
from wfcore.testing.strategies.ai import MODELS, budgets, interruptions, labels, schemas
from wfcore.testing.strategies.values import texts, variables
from wfcore.testing.strategies.written import written
from wfcore.time import DAY, DurationMs

STEP_NAMES = ("fetch", "review_1", "Apply", "_last", "each-one", "Side", "z", "wait")
VARIABLE_NAMES = ("limit", "order_id", "_x", "region.code", "a-b")
REQUIREMENTS = ("numpy==2.1.0", "a-b[x,y]==1!2.0rc1+l.1", 'z==1 ; python_version < "3.13"')
NPM_PACKAGES = ("left-pad@1.3.0", "@scope/name@0.0.1-rc.1+build")
DEEPEST = 2
"""The most containers around a step."""


def durations() -> st.SearchStrategy[DurationMs]:
    """Durations that a definition may contain."""
    return st.integers(1, 365 * DAY).map(DurationMs)


def titles() -> st.SearchStrategy[str]:
    """Names of workflows: non-blank text without line breaks."""
    letters = st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"])
    return st.text(letters, min_size=1, max_size=12).filter(lambda text: bool(text.strip()))


def retries() -> st.SearchStrategy[Retry]:
    """Any `retry`."""
    return st.builds(Retry, st.integers(1, 100), durations(), st.floats(1, 100))


@frozen
class Scene:
    """
    A place in a definition: the names that templates can use there, its depth, and the step names
    that are taken (one list for the whole definition). `sources`: the names that `files` can list.
    """

    declared: tuple[str, ...]
    before: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    depth: int = 0
    on_failure: bool = False
    used: list[str] = field(factory=list)

    def new_name(self, draw: st.DrawFn) -> str:
        """Draw a free step name, and take it."""
        free = [name for name in STEP_NAMES if name not in self.used]
        name = draw(st.sampled_from(free)) if free else f"s{len(self.used)}"
        self.used.append(name)
        return name

    def deeper(self, *loops: str) -> "Scene":
        return evolve(self, depth=self.depth + 1, loops=self.loops + loops)

    def once_it_fails(self) -> "Scene":
        """The scope at the beginning of `onFailure`."""
        return evolve(self, on_failure=True)

    def after(self, step: Step) -> "Scene":
        """The scope after *step*."""
        seen = tuple(_seen_after(step))
        return evolve(
            self,
            before=(*self.before, *(one.name for one in seen)),
            sources=(*self.sources, *(one.name for one in seen if isinstance(one, _SOURCES))),
        )

    def expressions(self) -> st.SearchStrategy[str]:
        """Templates over the names in scope."""
        return st.sampled_from(
            [
                "{{ execution.id }}",
                '{{ "a" }}',
                *(f'{{{{ variables["{name}"] }}}}' for name in (*self.declared, *self.loops)),
                *(f'{{{{ steps["{name}"].output.rows | length > 0 }}}}' for name in self.before),
                *(f"{{{{ [{name}, loop.index] }}}}" for name in self.loops),
                *(["{{ error | upper }}"] if self.on_failure else []),
            ]
        )

    def conditions(self) -> st.SearchStrategy[str | None]:
        """Values of a `when`: None or a template."""
        return st.none() | self.expressions()

    def templates(self) -> st.SearchStrategy[str]:
        """Text with or without templates."""
        plain = st.sampled_from(("", "Review these", "ä ✓ }", "a\nb"))
        return st.lists(plain | self.expressions(), max_size=3).map("".join)


_SOURCES = (CodeStep, ChildStep, ParallelStep, SwitchStep, LoopStep)


def seen_after(step: Step) -> tuple[str, ...]:
    """The names in scope after *step*, without the names of steps inside a loop."""
    return tuple(one.name for one in _seen_after(step))


def _seen_after(step: Step) -> Iterator[Step]:
    if isinstance(step, ParallelStep | SwitchStep):
        for branch in branches_of(step):
            for each in branch:
                yield from _seen_after(each)
    yield step


@st.composite
def columns(draw: st.DrawFn, key: str) -> Column:
    """A column with the key *key*."""
    type = draw(st.sampled_from(ColumnType))
    scalars = st.lists(st.integers(0, 9) | st.booleans() | st.just("x"), min_size=1, max_size=3)
    return Column(
        key,
        draw(texts()),
        type,
        editable=draw(st.booleans()),
        required=draw(st.booleans()),
        options=tuple(draw(scalars)) if type is ColumnType.ENUM else (),
    )


@st.composite
def group_specs(draw: st.DrawFn, name: str, scene: Scene) -> GroupSpec:
    """A group named *name*, whose rows come from a template or are literal."""
    keys = draw(st.lists(st.sampled_from(("id", "amount", "a note")), max_size=3, unique=True))
    row_key = draw(st.none() | st.sampled_from(keys or ["id"]))
    shown = tuple(draw(columns(key)) for key in keys)
    row = st.dictionaries(st.sampled_from(("id", "amount")), scene.templates())
    return GroupSpec(
        name,
        draw(texts()),
        draw(scene.expressions() | st.lists(row, max_size=2)),
        columns=shown if row_key else tuple(evolve(one, editable=True) for one in shown),
        row_key=row_key,
        allow_add=draw(st.booleans()),
    )


def _some(words: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(words), max_size=2, unique=True)


@st.composite
def code_steps(draw: st.DrawFn, name: str, scene: Scene) -> CodeStep:
    """A code step that uses only names from earlier steps."""
    language = draw(st.sampled_from(Language))
    is_command = language is Language.COMMAND
    arguments = st.lists(scene.templates(), max_size=2)
    network = draw(st.booleans())
    return CodeStep(
        name,
        language,
        source="" if is_command else draw(st.sampled_from(("exit", "{{ not a template", "é\n"))),
        command=("curl", *draw(arguments)) if is_command else (),
        timeout_ms=draw(durations()),
        network=network,
        listen=draw(st.none() | st.sampled_from(Listen)) if network else None,
        requirements=tuple(draw(_some(REQUIREMENTS))) if language is Language.PYTHON else (),
        runtime=draw(st.none() | st.sampled_from(Runtime)) if language in SCRIPTS else None,
        packages=tuple(sorted(draw(_some(NPM_PACKAGES)))) if language in SCRIPTS else (),
        files=tuple(draw(_some(scene.sources))) if scene.sources else (),
        when=draw(scene.conditions()),
        retry=draw(retries()),
        continue_on_error=draw(st.booleans()),
        on_interrupt=draw(interruptions()),
        labels=draw(labels()),
    )


def ai_steps(name: str, scene: Scene) -> st.SearchStrategy[Step]:
    """AI steps that use only names from earlier steps."""
    return st.builds(
        AiStep,
        st.just(name),
        st.sampled_from(MODELS),
        scene.templates().map(lambda text: f"Say {text}"),
        scene.templates(),
        st.none() | st.integers(1, 100_000),
        st.none() | st.floats(0, 2),
        st.none() | schemas(),
        durations(),
        retry=retries(),
        on_interrupt=interruptions(),
        labels=labels(),
        fallback=st.sampled_from(((), ("local:other",), ("local:other", "openai:gpt-5"))),
        **_common(scene),
    )


CHANNELS = st.lists(st.sampled_from(("mail", "finance_2")), max_size=2).map(tuple)


@st.composite
def approval_steps(draw: st.DrawFn, name: str, scene: Scene) -> ApprovalStep:
    """An approval step that uses only names from earlier steps."""
    names = draw(st.lists(st.sampled_from(("rows", "Refunds", "x y")), max_size=2, unique=True))
    approvers = draw(st.lists(st.sampled_from(("ann@example.org", "acc_1")), max_size=2))
    timeout = draw(durations())
    reminders = st.lists(st.integers(1, max(timeout - 1, 1)).map(DurationMs), max_size=2)
    return ApprovalStep(
        name,
        message=draw(scene.templates()),
        timeout_ms=timeout,
        approvers=tuple(approvers),
        groups=tuple(draw(group_specs(group, scene)) for group in names),
        required_approvals=draw(st.integers(1, len(set(approvers)) or 5)),
        allow_self_approval=draw(st.booleans()),
        reminders=tuple(draw(reminders) if timeout > 1 else ()),
        links=draw(st.sampled_from(Links)),
        assurance=draw(st.sampled_from(Assurance)),
        notify=draw(st.none() | CHANNELS),
        when=draw(scene.conditions()),
        continue_on_error=draw(st.booleans()),
    )


def delay_steps(name: str, scene: Scene) -> st.SearchStrategy[Step]:
    """Delay steps."""
    return st.builds(DelayStep, st.just(name), durations(), **_common(scene))


def mail_steps(name: str, scene: Scene) -> st.SearchStrategy[Step]:
    """Mail steps to templates, which every server admits as a definition."""
    to = st.lists(scene.expressions(), min_size=1, max_size=2).map(tuple)
    text = scene.templates().map(lambda written: f"To you: {written}")
    return st.builds(
        MailStep, st.just(name), to, text, text, timeout_ms=durations(), **_common(scene)
    )


def data_steps(name: str, scene: Scene) -> st.SearchStrategy[Step]:
    """Data steps with a value built from names in scope."""
    texts_in = scene.templates()
    numbers = st.integers(-(2**63), 2**63 - 1)
    values = texts_in | numbers | st.lists(texts_in, max_size=2) | st.none()
    return st.builds(DataStep, st.just(name), values, **_common(scene))


def child_steps(name: str, scene: Scene) -> st.SearchStrategy[Step]:
    """Steps that execute another workflow, with inputs from names in scope."""
    given = st.dictionaries(st.sampled_from(VARIABLE_NAMES), scene.templates(), max_size=2)
    workflow = st.sampled_from(("Import orders", "wf_1"))
    timeouts = st.none() | durations()
    return st.builds(
        ChildStep, st.just(name), workflow, given, timeouts, retry=retries(), **_common(scene)
    )


@st.composite
def parallel_steps(draw: st.DrawFn, name: str, scene: Scene) -> ParallelStep:
    """A parallel step whose branches do not use names of one another."""
    named = draw(st.lists(st.sampled_from(("left", "the right", "3")), min_size=1, unique=True))
    return ParallelStep(
        name,
        tuple(Branch(branch, draw(step_lists(scene.deeper()))) for branch in named),
        draw(st.none() | st.integers(1, 100)),
        draw(st.none() | durations()),
        **{field: draw(one) for field, one in _common(scene).items()},
    )


@st.composite
def switch_steps(draw: st.DrawFn, name: str, scene: Scene) -> SwitchStep:
    """A switch step whose cases do not use names of one another."""
    inside = step_lists(scene.deeper())
    return SwitchStep(
        name,
        tuple(
            Case(draw(scene.expressions()), draw(inside)) for _ in range(draw(st.integers(1, 2)))
        ),
        draw(st.just(()) | inside),
        draw(st.none() | durations()),
        **{field: draw(one) for field, one in _common(scene).items()},
    )


@st.composite
def loop_steps(draw: st.DrawFn, name: str, scene: Scene) -> LoopStep:
    """A loop step, in whose rounds the item has a name."""
    variable = f"item_{scene.depth}"
    return LoopStep(
        name,
        draw(scene.expressions() | st.lists(scene.templates(), max_size=2)),
        variable,
        draw(step_lists(scene.deeper(variable))),
        draw(st.integers(1, 1_000)),
        draw(st.none() | durations()),
        **{field: draw(one) for field, one in _common(scene).items()},
    )


def _common(scene: Scene) -> dict[str, st.SearchStrategy[Any]]:
    """The fields that every kind of step has."""
    return {"when": scene.conditions(), "continue_on_error": st.booleans()}


@st.composite
def step_lists(draw: st.DrawFn, scene: Scene) -> tuple[Step, ...]:
    """One to three steps, each of which uses only names from earlier steps."""
    kinds: list[Callable[[str, Scene], st.SearchStrategy[Any]]]
    kinds = [code_steps, ai_steps, delay_steps, mail_steps, data_steps, child_steps]
    kinds += [] if scene.on_failure else [approval_steps]
    if scene.depth < DEEPEST:
        kinds += [parallel_steps, loop_steps, switch_steps]
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, 3 if scene.depth == 0 else 2))):
        name = scene.new_name(draw)
        steps.append(draw(draw(st.sampled_from(kinds))(name, scene)))
        scene = scene.after(steps[-1])
    return tuple(steps)


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    """A checked definition, with the steps of its `written` document as `steps_as_written`."""
    declared = tuple(draw(st.lists(st.sampled_from(VARIABLE_NAMES), max_size=3, unique=True)))
    scene = Scene(declared)
    steps = draw(step_lists(scene))
    for step in steps:
        scene = scene.after(step)
    output = st.dictionaries(texts(), scene.templates(), max_size=2)
    has_output = draw(st.booleans())
    declarations = {name: draw(variables(name)) for name in declared}
    unattended = all(one.has_default or not one.required for one in declarations.values())
    definition = Definition(
        name=draw(titles()),
        steps=steps,
        steps_as_written=(),
        variables=declarations,
        output=draw(output) if has_output else None,
        has_output=has_output,
        description=draw(texts()),
        triggers=draw(trigger_specs(inputs_of_triggers(declared))) if unattended else (),
        reference=draw(st.none() | st.just("{{ trigger.kind }}")),
        concurrency=draw(concurrencies(declared)),
        budget=draw(st.none() | budgets()),
        on_interrupt=draw(st.sampled_from(OnInterrupt)),
        on_failure=draw(step_lists(scene.once_it_fails())) if draw(st.booleans()) else (),
        notify_on_failure=draw(CHANNELS),
    )
    document = written(definition)
    return evolve(definition, steps_as_written=tuple(document["steps"]))


def inputs_of_triggers(declared: Sequence[str]) -> st.SearchStrategy[JsonObject]:
    """Inputs for some of the variables, each a template over `trigger`."""
    if not declared:
        return NO_INPUTS
    value = st.sampled_from(("{{ trigger.scheduledAt }}", "{{ trigger.output }}"))
    return st.dictionaries(st.sampled_from(declared), value, max_size=2)


NO_INPUTS: st.SearchStrategy[JsonObject] = st.just({})


def schedules(inputs: st.SearchStrategy[JsonObject] = NO_INPUTS) -> st.SearchStrategy[Schedule]:
    """Schedules with a cron expression, a time zone and inputs."""
    crons = st.sampled_from(("0 9 * * 1-5", "*/5 * * * *", "30 2 1 * *"))
    zones = st.sampled_from(("UTC", "Europe/Berlin", "America/New_York"))
    missed, pause_after = st.none() | st.sampled_from(Missed), st.none() | st.just(3)
    return st.builds(Schedule, crons, zones, missed, pause_after, inputs)


def chains(inputs: st.SearchStrategy[JsonObject] = NO_INPUTS) -> st.SearchStrategy[Chain]:
    """Chains that follow other workflows."""
    names = st.sampled_from(("Import orders", "wf_1", "ä ✓"))
    ends = st.lists(st.sampled_from(ENDS), min_size=1, unique=True).map(tuple)
    most = st.none() | st.integers(1, 1_000_000)
    return st.builds(Chain, names, st.integers(0, 86_400), most, ends, inputs)


def trigger_specs(
    inputs: st.SearchStrategy[JsonObject] = NO_INPUTS,
) -> st.SearchStrategy[tuple[TriggerSpec, ...]]:
    """Distinct triggers of one workflow."""
    specs = schedules(inputs) | chains(inputs)
    return st.lists(specs, max_size=3, unique_by=identity).map(tuple)


ENDS = (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED)


def concurrencies(declared: Sequence[str]) -> st.SearchStrategy[Concurrency | None]:
    """A concurrency limit for all executions, or for each value of a variable; or None."""
    by_variable = (f'{{{{ variables["{name}"] }}}}' for name in declared)
    keys = st.sampled_from([None, "{{ 1 }}", *by_variable])
    return st.none() | st.builds(Concurrency, st.integers(1, 1_000), keys, st.sampled_from(OnLimit))
