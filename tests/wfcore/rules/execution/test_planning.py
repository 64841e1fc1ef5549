"""What comes next, in each situation that a step can be in: the whole plan, and nothing else."""

from collections.abc import Mapping

import pytest

from wfcore.model.execution import Awaits, ReasonCode, StepResult, StepStatus
from wfcore.model.workflow import (
    ApprovalStep,
    Branch,
    ChildStep,
    DelayStep,
    LoopStep,
    ParallelStep,
    Step,
)
from wfcore.rules.execution.plan import (
    Begin,
    Break,
    Complete,
    Fail,
    Failure,
    Judge,
    Plan,
    Refuse,
    Skip,
    StepAt,
    earliest,
    output_of,
    plan,
    truthy,
)
from wfcore.rules.limits import DATA_RESULT, MAX_IN_FLIGHT
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.runs import BOOM, NO, YES
from wfcore.time import EpochMs, later

from .walker import render

SOON, LATER = later(NOW, 1), later(NOW, 2)
code = builders.code_step
A, B, C = code("a"), code("b"), code("c")
MILD = code("a", continue_on_error=True)
ASK = ApprovalStep("ask")
NAP = DelayStep("nap", 5)
SUB = ChildStep("sub", "other", timeout_ms=2_500)
BOTH = ParallelStep("both", (Branch("x", (A,)), Branch("y", (B,))))
NARROW = ParallelStep("both", (Branch("x", (A,)), Branch("y", (B,))), 1, 60_000)
INSIDE = ParallelStep("inside", BOTH.branches, 1, 60_000)
TOLERANT = ParallelStep("both", BOTH.branches, continue_on_error=True)
EACH = LoopStep("each", [], "item", (A, B))
WIDE = LoopStep("each", [], "item", (A, B), 2)
TOLD = LoopStep("each", [], "item", (code("a", when="{{ item }}"),), 9)

DONE = builders.step_result(output="it")
SKIPPED = builders.step_result(StepStatus.SKIPPED)
FAILED = builders.step_result(StepStatus.FAILED, error="no", reason=ReasonCode.STEP_FAILED)
LATE = builders.step_result(StepStatus.FAILED, error="no", reason=ReasonCode.TIMEOUT)
LOST = builders.step_result(StepStatus.INTERRUPTED)
RUNS = builders.step_result(StepStatus.RUNNING)


def asks(id: str = "appr_1") -> StepResult:
    return builders.step_result(StepStatus.AWAITING_APPROVAL, approval_id=id)


def again(at: EpochMs) -> StepResult:
    return builders.step_result(StepStatus.RUNNING, error="no", retry_at=at)


def waits(awaits: Awaits, until: EpochMs | None = None, **more: object) -> StepResult:
    return builders.step_result(StepStatus.RUNNING, awaits=awaits, until=until, **more)


def holds(items: object = None, until: EpochMs | None = None) -> StepResult:
    return waits(Awaits.STEPS, until, items=items)


def child(until: EpochMs | None = None, error: str | None = None) -> StepResult:
    return waits(Awaits.CHILD, until, child_id="exec_2", error=error)


def at(step: Step, prefix: str = "") -> StepAt:
    return StepAt(step, prefix)


def begins(*steps: Step, prefix: str = "") -> Plan:
    return Plan(tuple(Begin(StepAt(step, prefix)) for step in steps))


def breaks(*failure: object, through: tuple[StepAt, ...] = ()) -> Plan:
    return Plan((Break(Failure(*failure, through=through)),))


def beside(*steps: Step) -> ParallelStep:
    """Each in a branch of its own."""
    return ParallelStep("both", tuple(Branch(step.name, (step,)) for step in steps))


YES_STEP, NO_STEP, BOOM_STEP = code("a", when=YES), code("a", when=NO), code("a", when=BOOM)
ROUND = code("a", when="{{ item }}")
SLOW = ("both", "ran into its timeout of 60 s", True)
OUTER = ParallelStep("outer", (Branch("x", (C,)), Branch("y", (TOLERANT,))))
INNER = LoopStep("inner", [], "it", (A,))
NESTED = LoopStep("each", [], "item", (INNER,))

SITUATIONS: Mapping[str, tuple[tuple[Step, ...], Mapping[str, StepResult], Plan]] = {
    "nothing has begun": ((A, B), {}, begins(A)),
    "the first completed": ((A, B), {"a": DONE}, begins(B)),
    "the first was skipped": ((A, B), {"a": SKIPPED}, begins(B)),
    "the first failed": ((A, B), {"a": FAILED}, breaks("a", "no")),
    "the first ran out of time": ((A, B), {"a": LATE}, breaks("a", "no", True)),
    "a failure is tolerated": ((MILD, B), {"a": FAILED}, begins(B)),
    "all is done": ((A, B), {"a": DONE, "b": SKIPPED}, Plan(done=True)),
    "the last failure is tolerated": ((MILD,), {"a": FAILED}, Plan(done=True)),
    "a process runs": ((A, B), {"a": RUNS}, Plan()),
    "two processes run": ((BOTH,), {"both": holds(), "a": RUNS, "b": RUNS}, Plan()),
    "an attempt is due": ((A, B), {"a": again(NOW)}, begins(A)),
    "an attempt is not due": ((A, B), {"a": again(SOON)}, Plan(until=SOON)),
    "an attempt was lost": ((A, B), {"a": LOST}, begins(A)),
    "people are asked": ((ASK, B), {"ask": asks()}, Plan(question=("ask", "appr_1"))),
    "people are asked twice": (
        (beside(ASK, ApprovalStep("b")),),
        {"both": holds(), "ask": asks(), "b": asks("appr_2")},
        Plan(question=("ask", "appr_1")),
    ),
    "when it is so": ((YES_STEP,), {}, begins(YES_STEP)),
    "when it is not so": ((NO_STEP,), {}, Plan((Skip(at(NO_STEP)),))),
    "when nobody can say": (
        (BOOM_STEP,),
        {},
        Plan((Refuse(at(BOOM_STEP), f"when: template '{BOOM}': boom"),)),
    ),
    "a delay goes on": ((NAP,), {"nap": waits(Awaits.TIME, SOON)}, Plan(until=SOON)),
    "a delay is over": (
        (NAP,),
        {"nap": waits(Awaits.TIME, NOW)},
        Plan((Complete(at(NAP), None),)),
    ),
    "two delays go on": (
        (beside(DelayStep("a", 1), DelayStep("b", 1)),),
        {"both": holds(), "a": waits(Awaits.TIME, SOON), "b": waits(Awaits.TIME, LATER)},
        Plan(until=SOON),
    ),
    "a delay and an attempt go on": (
        (beside(NAP, A, B),),
        {"both": holds(), "nap": waits(Awaits.TIME, SOON), "a": again(LATER), "b": again(LATER)},
        Plan(until=SOON),
    ),
    "a child goes on": ((SUB,), {"sub": child(SOON)}, Plan(outside=1, deadline=SOON)),
    "a child goes on as long as it likes": ((SUB,), {"sub": child()}, Plan(outside=1)),
    "two children go on": (
        (beside(ChildStep("a", "o"), ChildStep("b", "o")),),
        {"both": holds(None, LATER), "a": child(SOON), "b": child(LATER)},
        Plan(outside=2, deadline=SOON),
    ),
    "a child failed": (
        (SUB,),
        {"sub": child(NOW, "it failed")},
        Plan((Judge(at(SUB), "it failed"),)),
    ),
    "a child takes too long": (
        (SUB,),
        {"sub": child(NOW)},
        Plan((Judge(at(SUB), "ran into its timeout of 2.5 s", True),)),
    ),
    "a time that is up counts, whatever the step says by now": (
        (ChildStep("sub", "other"),),
        {"sub": child(NOW)},
        Plan((Judge(at(ChildStep("sub", "other")), "ran into its timeout of 0 s", True),)),
    ),
    "branches begin": ((BOTH,), {"both": holds()}, begins(A, B)),
    "no more branches begin than may": (
        (NARROW,),
        {"both": holds(None, SOON)},
        Plan((Begin(at(A)),), deadline=SOON),
    ),
    "a branch waits for its turn": (
        (NARROW,),
        {"both": holds(None, SOON), "a": again(LATER)},
        Plan(until=LATER, deadline=SOON),
    ),
    "a branch makes room": ((NARROW,), {"both": holds(), "a": DONE}, begins(B)),
    "a branch behind goes on": ((BOTH,), {"both": holds(), "a": DONE, "b": LOST}, begins(B)),
    "all branches are done": (
        (BOTH,),
        {"both": holds(), "a": DONE, "b": SKIPPED},
        Plan((Complete(at(BOTH), {"x": "it", "y": None}),)),
    ),
    "a branch failed": (
        (BOTH,),
        {"both": holds(), "a": RUNS, "b": FAILED},
        breaks("b", "no", through=(at(BOTH),)),
    ),
    "a branch ran out of time": (
        (beside(INSIDE),),
        {"both": holds(), "inside": holds(), "a": LATE},
        breaks("a", "no", True, through=(at(INSIDE), at(beside(INSIDE)))),
    ),
    "a failure that is tolerated stops what is beside it": (
        (OUTER,),
        {"outer": holds(), "both": holds(), "b": FAILED},
        Plan((Begin(at(C)), Fail(at(TOLERANT), Failure("b", "no", through=(at(TOLERANT),))))),
    ),
    "what is inside has more time": (
        (beside(INSIDE),),
        {"both": holds(None, SOON), "inside": holds(None, LATER), "a": RUNS},
        Plan(deadline=SOON),
    ),
    "branches take too long": ((NARROW,), {"both": holds(None, NOW), "a": RUNS}, breaks(*SLOW)),
    "a round begins": (
        (EACH,),
        {"each": holds([1, 2])},
        begins(A, prefix="each.0."),
    ),
    "two rounds begin": (
        (WIDE,),
        {"each": holds((1, 2, 3))},
        Plan((Begin(at(A, "each.0.")), Begin(at(A, "each.1.")))),
    ),
    "a round goes on, another begins": (
        (WIDE,),
        {"each": holds([1, 2, 3, 4]), "each.0.a": DONE, "each.0.b": DONE, "each.1.a": DONE},
        Plan((Begin(at(B, "each.1.")), Begin(at(A, "each.2.")))),
    ),
    "all rounds are done": (
        (EACH,),
        {"each": holds([1, 2]), **{f"each.{n}.{s}": DONE for n in (0, 1) for s in "ab"}},
        Plan((Complete(at(EACH), ["it", "it"]),)),
    ),
    "the last of a round is tolerated": (
        (LoopStep("each", [], "item", (B, MILD)),),
        {"each": holds([1]), "each.0.b": DONE, "each.0.a": FAILED},
        Plan((Complete(at(LoopStep("each", [], "item", (B, MILD))), ["it"]),)),
    ),
    "a round fails": (
        (EACH,),
        {"each": holds([1]), "each.0.a": DONE, "each.0.b": FAILED},
        breaks("each.0.b", "no", through=(at(EACH),)),
    ),
    "no rounds": ((EACH,), {"each": holds([])}, Plan((Complete(at(EACH), []),))),
    "items that were lost": ((EACH,), {"each": holds("text")}, Plan((Complete(at(EACH), []),))),
    "each round sees its item": (
        (TOLD,),
        {"each": holds([0, 1])},
        Plan((Skip(at(ROUND, "each.0.")), Begin(at(ROUND, "each.1.")))),
    ),
    "a loop in a loop": (
        (NESTED,),
        {
            "each": holds([1, 2]),
            "each.0.inner": DONE,
            "each.1.inner": holds([3, 4]),
            "each.1.inner.0.a": DONE,
        },
        begins(A, prefix="each.1.inner.1."),
    ),
}


def seeing(template, names, limit=0, inserted=None):
    """As in the walks; beside it, a template that gives the item of its round."""
    return names["item"] if template == "{{ item }}" else render(template, names)


@pytest.mark.parametrize("name", SITUATIONS)
def test_this_comes_next(name: str) -> None:
    """EX-3, DF-8, FL-1 to FL-7: moves, and what is waited for, are exactly these."""
    steps, results, expected = SITUATIONS[name]
    run = builders.execution(step_results=results)
    assert plan(builders.definition(*steps), run, NOW, seeing) == expected


class Counting(dict):
    """Counts how often something is looked for in it."""

    asked = 0

    def get(self, *args):
        self.asked += 1
        return super().get(*args)


def test_rounds_that_have_not_begun_cost_nothing() -> None:
    """FL-3: of a thousand of them no more are looked at than of a dozen."""

    def asked(rounds: int) -> int:
        results = Counting({"each": holds([0] * rounds)})
        run = builders.execution(step_results=results)
        assert len(plan(builders.definition(WIDE), run, NOW, render).actions) == 2
        return results.asked

    assert asked(1_000) == asked(12)


def test_a_redriven_loop_looks_at_every_round() -> None:
    """FL-3: rounds that ended or began long before need not be the first ones."""
    loop = LoopStep("each", [], "item", (A, B))
    results = {"each": holds([1, 2, 3, 4]), "each.3.a": DONE}
    run = builders.execution(step_results=results, redrive_of="exec_0")
    found = plan(builders.definition(loop), run, NOW, render)
    assert found == begins(B, prefix="each.3.")


@pytest.mark.parametrize("flying", [0, 4, MAX_IN_FLIGHT - 1, MAX_IN_FLIGHT])
def test_processes_begin_while_there_is_room(flying: int) -> None:
    """FL-3: what needs no process begins however many run, wherever it stands."""
    steps = [code(f"s{n}") for n in range(MAX_IN_FLIGHT + 2)] + [NAP]
    both = ParallelStep("both", tuple(Branch(step.name, (step,)) for step in steps))
    results = {step.name: RUNS for step in steps[:flying]} | {"both": holds()}
    run = builders.execution(step_results=results)
    found = plan(builders.definition(both), run, NOW, render)
    expected = (*steps[flying:MAX_IN_FLIGHT], NAP)
    assert found == Plan(tuple(Begin(at(step)) for step in expected))


def test_the_output_is_the_definition_s_or_that_of_the_last_step_that_completed() -> None:
    """EX-8: skipped and tolerated steps give none."""
    run = builders.execution(step_results={"a": DONE, "b": SKIPPED, "c": FAILED})
    assert output_of(builders.definition(A, B, C), run, render) == "it"
    assert output_of(builders.definition(B, C), run, render) is None
    said = builders.definition(A, output="{{ all }}", has_output=True)
    names = output_of(said, run, lambda template, names, most: (template, names["steps"], most))
    seen = {"a": {"status": "COMPLETED", "output": "it"}}
    assert names == ("{{ all }}", seen, DATA_RESULT)


@pytest.mark.parametrize("value", [False, None, 0, 0.0, "", [], {}])
def test_what_counts_as_no(value) -> None:
    """DF-8: false, null, 0 and what is empty; everything else is yes."""
    assert not truthy(value)
    assert truthy([value])


def test_the_earlier_of_two_instants() -> None:
    """FL-5: one that is missing never comes first."""
    assert earliest(None, None) is None
    assert earliest(NOW, None) == earliest(None, NOW) == NOW
    assert earliest(NOW, SOON) == earliest(SOON, NOW) == NOW
