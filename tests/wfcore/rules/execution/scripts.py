"""
Scripts of what follows in an execution: facts in their order, and what is asked for between
them. What `rules.execution.proceed` does is held against the folding of such a script.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import count

from attrs import evolve

from tests.wfcore.rules.execution.walker import render
from wfcore.effects import Effect, OpenApproval, Outcome, StartStep
from wfcore.model.execution import Awaits, Execution, ExecutionStatus, StepResult, StepStatus
from wfcore.model.workflow import ApprovalStep, Branch, DelayStep, LoopStep, ParallelStep, Step
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.machine import Fact
from wfcore.rules.execution.open_approval import open_approval
from wfcore.rules.execution.proceed import proceed
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.runs import BOOM

BOOMED = f"template '{BOOM}': boom"
Script = Sequence[Fact | Effect]

code = builders.code_step
A, B, C = code("a"), code("b"), code("c")
NAP = DelayStep("nap", 5)
ASK = ApprovalStep("ask", "{{ who }}")


def both(*steps: Step, name: str = "both", **more: object) -> ParallelStep:
    """Each step in a branch of its own."""
    return ParallelStep(name, tuple(Branch(f"of_{step.name}", (step,)) for step in steps), **more)


def each(*steps: Step, items: object = (1, 2), **more: object) -> LoopStep:
    return LoopStep("each", items, "item", steps, **more)


def seeing(template, names, limit=0, inserted=None):
    """As in the walks; beside it, a template that gives the item of its round."""
    return names.get("item") if template == "{{ item }}" else render(template, names)


def of(results: Mapping[str, StepResult] | None = None, **fields: object) -> Execution:
    """An execution that a worker holds."""
    held = {"status": ExecutionStatus.RUNNING, "worker": "worker_1", "due_at": None, "events": 7}
    return builders.execution(**{"step_results": results or {}, **held, **fields})


def new_ids() -> Callable[[str], str]:
    """Numbered from 2."""
    numbers = count(2)
    return lambda prefix: f"{prefix}_{next(numbers)}"


def holds(items: object = None, until: int | None = None) -> StepResult:
    return builders.step_result(StepStatus.RUNNING, awaits=Awaits.STEPS, items=items, until=until)


DONE = builders.step_result(output="it")
RUNS = builders.step_result(StepStatus.RUNNING)
LOST = builders.step_result(StepStatus.INTERRUPTED)


def child(**more: object) -> StepResult:
    return builders.step_result(StepStatus.RUNNING, awaits=Awaits.CHILD, child_id="exec_9", **more)


def asked(step: ApprovalStep, key: str, message: object = "{{ who }}") -> OpenApproval:
    """The approval of *step*, whose message is the same on the wire and to people."""
    opened = open_approval(of(), step, key, "appr_2", NOW, lambda value: message)
    return OpenApproval(evolve(opened, question=opened.message))


def begins(*keys: str) -> list[Fact | Effect]:
    return [one for key in keys for one in (facts.StepBegun(key), StartStep(key, 1))]


def play(run: Execution, script: Script) -> Outcome[Execution]:
    """What comes out when the facts of *script* are folded one after another."""
    events, effects = [], []
    for one in script:
        if isinstance(one, Fact):
            outcome = advance(run, one, NOW)
            run = outcome.record
            events += outcome.events
            effects += outcome.effects
        else:
            effects.append(one)
    return Outcome(run, tuple(events), tuple(effects))


def follows(steps, run: Execution, script: Script, *first: Fact, **fields: object) -> None:
    """After *first* all of *script* happens, and nothing else."""
    definition = builders.definition(*steps, **fields)
    found = proceed(run, definition, NOW, seeing, new_ids(), *first)
    expected = play(run, (*first, *script))
    assert found.record == expected.record
    assert found.events == expected.events
    assert found.effects == expected.effects
