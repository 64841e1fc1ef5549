"""
Hypothesis strategies for definitions: checked trees whose templates only use what they can see.

`strategies_written` gives the documents that say them.
"""

from collections.abc import Callable
from typing import Any

from attrs import evolve, field, frozen
from hypothesis import strategies as st

from wfcore.model.workflow import (
    AiStep,
    ApprovalStep,
    Branch,
    ChildStep,
    CodeStep,
    Column,
    ColumnType,
    Definition,
    DelayStep,
    GroupSpec,
    Language,
    Links,
    LoopStep,
    OnInterrupt,
    ParallelStep,
    Retry,
    Step,
)
from wfcore.testing.strategies.ai import MODELS, budgets, interruptions, schemas
from wfcore.testing.strategies.triggers import concurrencies, trigger_specs
from wfcore.testing.strategies.values import texts, variables
from wfcore.testing.strategies.written import written
from wfcore.time import DAY, DurationMs

STEP_NAMES = ("fetch", "review_1", "Apply", "_last", "each-one", "Side", "z", "wait")
VARIABLE_NAMES = ("limit", "order_id", "_x", "region.code", "a-b")
REQUIREMENTS = ("numpy==2.1.0", "a-b[x,y]==1!2.0rc1+l.1", 'z==1 ; python_version < "3.13"')
NPM_PACKAGES = ("left-pad@1.3.0", "@scope/name@0.0.1-rc.1+build")
SCRIPTS = (Language.JAVASCRIPT, Language.TYPESCRIPT)
DEEPEST = 2
"""How many containers are around a step at most."""


def durations() -> st.SearchStrategy[DurationMs]:
    """Durations that a definition may name."""
    return st.integers(1, 365 * DAY).map(DurationMs)


def filled_texts() -> st.SearchStrategy[str]:
    """Text that is not blank."""
    return texts(1).filter(lambda text: bool(text.strip()))


def titles() -> st.SearchStrategy[str]:
    """Names of workflows: text that is not blank and that one line can show."""
    letters = st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"])
    return st.text(letters, min_size=1, max_size=12).filter(lambda text: bool(text.strip()))


def retries() -> st.SearchStrategy[Retry]:
    """Any `retry`."""
    return st.builds(Retry, st.integers(1, 100), durations(), st.floats(1, 100))


@frozen
class Scene:
    """
    A place in a definition: what templates can name there, how deep it is, and which names of
    steps are used already (one list for the whole definition).
    """

    declared: tuple[str, ...]
    before: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    depth: int = 0
    used: list[str] = field(factory=list)

    def new_name(self, draw: st.DrawFn) -> str:
        """A name that no step of the definition has."""
        free = [name for name in STEP_NAMES if name not in self.used]
        name = draw(st.sampled_from(free)) if free else f"s{len(self.used)}"
        self.used.append(name)
        return name

    def deeper(self, *loops: str) -> "Scene":
        return evolve(self, depth=self.depth + 1, loops=self.loops + loops)

    def after(self, step: Step) -> "Scene":
        """The place behind *step*."""
        return evolve(self, before=(*self.before, *seen_after(step)))

    def expressions(self) -> st.SearchStrategy[str]:
        """Templates over the names that are known here."""
        return st.sampled_from(
            [
                "{{ execution.id }}",
                '{{ "a" }}',
                *(f'{{{{ variables["{name}"] }}}}' for name in (*self.declared, *self.loops)),
                *(f'{{{{ steps["{name}"].output.rows | length > 0 }}}}' for name in self.before),
                *(f"{{{{ [{name}, loop.index] }}}}" for name in self.loops),
            ]
        )

    def conditions(self) -> st.SearchStrategy[str | None]:
        """What a `when` may be."""
        return st.none() | self.expressions()

    def templates(self) -> st.SearchStrategy[str]:
        """Text with templates in it, or without."""
        plain = st.sampled_from(("", "Review these", "ä ✓ }", "a\nb"))
        return st.lists(plain | self.expressions(), max_size=3).map("".join)


def seen_after(step: Step) -> tuple[str, ...]:
    """The names that are known behind *step*; what a loop holds is not."""
    if not isinstance(step, ParallelStep):
        return (step.name,)
    inside = [name for one in step.branches for each in one.steps for name in seen_after(each)]
    return (*inside, step.name)


@st.composite
def columns(draw: st.DrawFn, key: str) -> Column:
    """A column of that key."""
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
    """A group of that name with rows from a template, or written out."""
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
    """A code step that uses only what comes before it."""
    language = draw(st.sampled_from(Language))
    is_command = language is Language.COMMAND
    arguments = st.lists(scene.templates(), max_size=2)
    return CodeStep(
        name,
        language,
        source="" if is_command else draw(st.sampled_from(("exit", "{{ not a template", "é\n"))),
        command=("curl", *draw(arguments)) if is_command else (),
        timeout_ms=draw(durations()),
        network=draw(st.booleans()),
        requirements=tuple(draw(_some(REQUIREMENTS))) if language is Language.PYTHON else (),
        packages=tuple(sorted(draw(_some(NPM_PACKAGES)))) if language in SCRIPTS else (),
        when=draw(scene.conditions()),
        retry=draw(retries()),
        continue_on_error=draw(st.booleans()),
        on_interrupt=draw(interruptions()),
    )


def ai_steps(name: str, scene: Scene) -> st.SearchStrategy[Step]:
    """An AI step that uses only what comes before it."""
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
        **_common(scene),
    )


CHANNELS = st.lists(st.sampled_from(("mail", "finance_2")), max_size=2).map(tuple)


@st.composite
def approval_steps(draw: st.DrawFn, name: str, scene: Scene) -> ApprovalStep:
    """An approval step that uses only what comes before it."""
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
        notify=draw(st.none() | CHANNELS),
        when=draw(scene.conditions()),
        continue_on_error=draw(st.booleans()),
    )


def delay_steps(name: str, scene: Scene) -> st.SearchStrategy[Step]:
    """A pause."""
    return st.builds(DelayStep, st.just(name), durations(), **_common(scene))


def child_steps(name: str, scene: Scene) -> st.SearchStrategy[Step]:
    """An execution of another workflow with inputs from what is known."""
    given = st.dictionaries(st.sampled_from(VARIABLE_NAMES), scene.templates(), max_size=2)
    workflow = st.sampled_from(("Import orders", "wf_1"))
    timeouts = st.none() | durations()
    return st.builds(
        ChildStep, st.just(name), workflow, given, timeouts, retry=retries(), **_common(scene)
    )


@st.composite
def parallel_steps(draw: st.DrawFn, name: str, scene: Scene) -> ParallelStep:
    """Branches that do not see one another."""
    named = draw(st.lists(st.sampled_from(("left", "the right", "3")), min_size=1, unique=True))
    return ParallelStep(
        name,
        tuple(Branch(branch, draw(step_lists(scene.deeper()))) for branch in named),
        draw(st.none() | st.integers(1, 100)),
        draw(st.none() | durations()),
        **{field: draw(one) for field, one in _common(scene).items()},
    )


@st.composite
def loop_steps(draw: st.DrawFn, name: str, scene: Scene) -> LoopStep:
    """Rounds in which the item has a name."""
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
    """The fields that every kind has."""
    return {"when": scene.conditions(), "continue_on_error": st.booleans()}


@st.composite
def step_lists(draw: st.DrawFn, scene: Scene) -> tuple[Step, ...]:
    """One to three steps, each of which uses only what comes before it."""
    kinds: list[Callable[[str, Scene], st.SearchStrategy[Any]]]
    kinds = [code_steps, ai_steps, approval_steps, delay_steps, child_steps]
    if scene.depth < DEEPEST:
        kinds += [parallel_steps, loop_steps]
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, 3 if scene.depth == 0 else 2))):
        name = scene.new_name(draw)
        steps.append(draw(draw(st.sampled_from(kinds))(name, scene)))
        scene = scene.after(steps[-1])
    return tuple(steps)


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    """A checked definition; `steps_as_written` is what `written` says of it."""
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
        triggers=draw(trigger_specs()) if unattended else (),
        concurrency=draw(concurrencies(declared)),
        budget=draw(st.none() | budgets()),
        on_interrupt=draw(st.sampled_from(OnInterrupt)),
        notify_on_failure=draw(CHANNELS),
    )
    document = written(definition)
    return evolve(definition, steps_as_written=tuple(document["steps"]))
