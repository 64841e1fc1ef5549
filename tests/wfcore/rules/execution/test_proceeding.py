"""
From one fact to the next rest, told as a script: which facts follow from which, in their order,
and what is asked for between them. Record, events and effects are those of the script.
"""

from collections.abc import Mapping, Sequence

import pytest
from attrs import evolve

from wfcore.effects import StartChild, StartStep
from wfcore.model.execution import Execution
from wfcore.model.workflow import ChildStep, Retry, Step
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.machine import Fact
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.runs import BOOM, NO, YES
from wfcore.time import later

from .scripts import (
    ASK,
    BOOMED,
    DONE,
    LOST,
    NAP,
    RUNS,
    A,
    B,
    C,
    Script,
    asked,
    begins,
    both,
    child,
    code,
    each,
    follows,
    holds,
    of,
)

SOON = later(NOW, 1)
MILD = both(A, B, continue_on_error=True)
SLOW = both(A, NAP, timeout_ms=60_000)
INNER = both(A, B, name="inner", timeout_ms=60_000)
OUTER = both(INNER, C, name="outer")
SUB = ChildStep("sub", "other", {"n": 1}, timeout_ms=2_500)
AGAIN = ChildStep("sub", "other", retry=Retry(2, 1_000))
SLOWLY = "ran into its timeout of 60 s"
UP = later(NOW, 60_000)
AT_ONCE = facts.WakeAt(later(NOW, 5))
SKIPPED = code("a", when=NO)
BROKEN = code("a", when=BOOM)

SCRIPTS: Mapping[str, tuple[Sequence[Step], Execution, tuple[Fact, ...], Script]] = {
    "a process begins": ((A, B), of(), (), begins("a")),
    "a process runs": ((A, B), of({"a": RUNS}), (), ()),
    "a look that is in vain is taken back": (
        (A,),
        of({"a": RUNS}, due_at=SOON),
        (),
        [facts.WakeAt(None)],
    ),
    "an interrupted attempt is made again": (
        (A,),
        of({"a": LOST}),
        (),
        [facts.StepBegun("a"), StartStep("a", 2)],
    ),
    "a skipped step": ((SKIPPED, B), of(), (), [facts.StepSkipped("a"), *begins("b")]),
    "a skipped container": (
        (both(A, each(B), when=NO), C),
        of(),
        (),
        [facts.StepSkipped("both", 4), *begins("c")],
    ),
    "a refused step": (
        (BROKEN,),
        of(),
        (),
        [
            facts.StepFailed("a", f"when: {BOOMED}", steps=0),
            facts.Failed(f"when: {BOOMED}", "a"),
        ],
    ),
    "a refused step that is tolerated": (
        (evolve(BROKEN, continue_on_error=True), B),
        of(),
        (),
        [facts.StepFailed("a", f"when: {BOOMED}", steps=1), *begins("b")],
    ),
    "a delay": (
        (NAP,),
        of(),
        (),
        [facts.DelayBegun("nap", later(NOW, 5)), facts.Suspended(later(NOW, 5))],
    ),
    "branches": (
        (SLOW,),
        of(),
        (),
        [
            facts.ContainerStarted("both", UP),
            facts.DelayBegun("nap", later(NOW, 5)),
            *begins("a"),
            AT_ONCE,
        ],
    ),
    "what ends goes first, what runs last": (
        (both(A, NAP, each(C), code("b", when=NO)),),
        of({"both": holds()}),
        (),
        [
            facts.StepSkipped("b"),
            facts.ContainerStarted("each", None, (1, 2)),
            facts.DelayBegun("nap", later(NOW, 5)),
            *begins("a", "each.0.c"),
            AT_ONCE,
        ],
    ),
    "rounds": (
        (each(C, timeout_ms=60_000),),
        of(),
        (),
        [facts.ContainerStarted("each", UP, (1, 2)), *begins("each.0.c"), facts.WakeAt(UP)],
    ),
    "no items": (
        (each(C, items=BOOM),),
        of(),
        (),
        [
            facts.StepFailed("each", f"items: {BOOMED}", steps=0),
            facts.Failed(f"items: {BOOMED}", "each"),
        ],
    ),
    "items that are none": (
        (each(C, items={"a": 1}),),
        of(),
        (),
        [
            facts.StepFailed("each", "items: must give a list", steps=0),
            facts.Failed("items: must give a list", "each"),
        ],
    ),
    "a child": (
        (SUB,),
        of(),
        (),
        [
            facts.ChildStarted("sub", "exec_2", later(NOW, 2_500)),
            StartChild("sub", "exec_2", "other", {"n": 1}),
            facts.Suspended(later(NOW, 2_500)),
        ],
    ),
    "a child as long as it takes": (
        (evolve(SUB, timeout_ms=None),),
        of(),
        (),
        [
            facts.ChildStarted("sub", "exec_2"),
            StartChild("sub", "exec_2", "other", {"n": 1}),
            facts.Suspended(None),
        ],
    ),
    "a child of a round": (
        (each(evolve(AGAIN, inputs={"x": "{{ item }}"})),),
        of({"each": holds((3, 4))}),
        (),
        [
            facts.ChildStarted("each.0.sub", "exec_2"),
            StartChild("each.0.sub", "exec_2", "other", {"x": 3}),
            facts.Suspended(None),
        ],
    ),
    "a child without inputs": (
        (evolve(SUB, inputs={"n": BOOM}),),
        of(),
        (),
        [
            facts.StepFailed("sub", f"inputs: {BOOMED}", steps=0),
            facts.Failed(f"inputs: {BOOMED}", "sub"),
        ],
    ),
    "a question": (
        (ASK,),
        of(),
        (),
        [
            facts.ApprovalOpened("ask", "appr_2"),
            asked(ASK, "ask"),
            facts.AwaitingApproval("appr_2", "ask"),
        ],
    ),
    "a question of a round with a timeout": (
        (each(evolve(ASK, message="{{ item }}"), timeout_ms=60_000),),
        of({"each": holds(("you", "me"), UP)}),
        (),
        [
            facts.ApprovalOpened("each.0.ask", "appr_2"),
            asked(ASK, "each.0.ask", "you"),
            facts.AwaitingApproval("appr_2", "each.0.ask", UP),
        ],
    ),
    "a question that cannot be put": (
        (evolve(ASK, message=BOOM),),
        of(),
        (),
        [facts.StepFailed("ask", BOOMED, steps=0), facts.Failed(BOOMED, "ask")],
    ),
    "a question beside a child": (
        (both(ASK, SUB),),
        of({"both": holds(), "sub": child(until=UP)}),
        (),
        [facts.ApprovalOpened("ask", "appr_2"), asked(ASK, "ask"), facts.Suspended(UP)],
    ),
    "a question beside a process": (
        (both(ASK, A),),
        of({"both": holds(None, UP), "a": RUNS}),
        (),
        [facts.ApprovalOpened("ask", "appr_2"), asked(ASK, "ask"), facts.WakeAt(UP)],
    ),
    "the end of the last step": (
        (A,),
        of({"a": RUNS}),
        (facts.StepDone("a", 5),),
        [facts.Finished(5)],
    ),
    "the end of the last branch": (
        (both(A, B),),
        of({"both": holds(), "a": RUNS, "b": DONE}),
        (facts.StepDone("a", 5),),
        [
            facts.StepDone("both", {"of_a": 5, "of_b": "it"}, 1),
            facts.Finished({"of_a": 5, "of_b": "it"}),
        ],
    ),
    "the end of what holds what holds steps": (
        (OUTER,),
        of({"outer": holds(), "inner": DONE, "a": DONE, "b": DONE, "c": RUNS}),
        (facts.StepDone("c", 5),),
        [
            facts.StepDone("outer", {"of_inner": "it", "of_c": 5}, 1),
            facts.Finished({"of_inner": "it", "of_c": 5}),
        ],
    ),
    "the end of the last round": (
        (each(A, B),),
        of({"each": holds((1,)), "each.0.a": DONE, "each.0.b": RUNS}),
        (facts.StepDone("each.0.b", 5),),
        [facts.StepDone("each", [5], 3), facts.Finished([5])],
    ),
    "the end of what a round holds": (
        (each(both(A, B)),),
        of({"each": holds((1, 2)), "each.0.both": holds(), "each.0.a": DONE, "each.0.b": RUNS}),
        (facts.StepDone("each.0.b", 5),),
        [
            facts.StepDone("each.0.both", {"of_a": "it", "of_b": 5}, 1),
            facts.ContainerStarted("each.1.both"),
            *begins("each.1.a", "each.1.b"),
        ],
    ),
    "a failure that is tolerated further out": (
        (both(evolve(MILD, name="mild"), C),),
        of({"both": holds(), "mild": holds(), "a": RUNS, "b": RUNS, "c": RUNS}),
        (facts.StepFailed("b", "no", steps=0),),
        [
            facts.StepsCancelled(("a",), "Step 'b' failed"),
            facts.StepFailed("mild", "Step 'b' failed: no", steps=3),
        ],
    ),
    "a failure in what is done with in part": (
        (MILD, C),
        of({"both": holds(), "a": DONE, "b": RUNS}),
        (facts.StepFailed("b", "no", steps=0),),
        [facts.StepFailed("both", "Step 'b' failed: no", steps=2), *begins("c")],
    ),
    "a late failure two levels in": (
        (evolve(OUTER, continue_on_error=True),),
        of({"outer": holds(), "inner": holds(), "a": RUNS, "b": RUNS, "c": RUNS}),
        (facts.StepFailed("b", "no", timed_out=True, steps=0),),
        [
            facts.StepsCancelled(("a", "c"), "Step 'b' failed"),
            facts.StepFailed("inner", "Step 'b' failed: no", True, 0),
            facts.StepFailed("outer", "Step 'b' failed: no", True, 5),
            facts.Finished(None),
        ],
    ),
    "a failure in one of two rounds": (
        (each(both(A, B), continue_on_error=True), C),
        of(
            {
                "each": holds((1, 2)),
                **{f"each.{n}.both": holds() for n in (0, 1)},
                "each.0.a": RUNS,
                "each.0.b": RUNS,
                "each.1.a": DONE,
                "each.1.b": RUNS,
            }
        ),
        (facts.StepFailed("each.0.b", "no", steps=0),),
        [
            facts.StepsCancelled(("each.0.a", "each.1.both", "each.1.b"), "Step 'each.0.b' failed"),
            facts.StepFailed("each.0.both", "Step 'each.0.b' failed: no", steps=0),
            facts.StepFailed("each", "Step 'each.0.b' failed: no", steps=4),
            *begins("c"),
        ],
    ),
    "a timeout that is tolerated": (
        (evolve(SLOW, continue_on_error=True), C),
        of({"both": holds(None, NOW), "a": RUNS}),
        (),
        [
            facts.StepsCancelled(("a",), "Step 'both' failed"),
            facts.StepFailed("both", SLOWLY, True, 3),
            *begins("c"),
        ],
    ),
    "a timeout": (
        (SLOW,),
        of({"both": holds(None, NOW), "a": RUNS}),
        (),
        [facts.StepFailed("both", SLOWLY, True, 0), facts.Failed(SLOWLY, "both", True)],
    ),
    "a timeout further in": (
        (OUTER,),
        of({"outer": holds(), "inner": holds(None, NOW), "a": RUNS, "c": RUNS}),
        (),
        [
            facts.StepFailed("inner", SLOWLY, True, 0),
            facts.StepFailed("outer", f"Step 'inner' failed: {SLOWLY}", True, 0),
            facts.Failed(SLOWLY, "inner", True),
        ],
    ),
    "a timeout further in that is tolerated": (
        (evolve(OUTER, continue_on_error=True), code("d")),
        of({"outer": holds(), "inner": holds(None, NOW), "a": RUNS, "c": DONE}),
        (),
        [
            facts.StepsCancelled(("a",), "Step 'inner' failed"),
            facts.StepFailed("inner", SLOWLY, True, 0),
            facts.StepFailed("outer", f"Step 'inner' failed: {SLOWLY}", True, 4),
            *begins("d"),
        ],
    ),
    "a child that failed": (
        (SUB,),
        of({"sub": child(error="it failed")}),
        (),
        [facts.StepFailed("sub", "it failed", steps=0), facts.Failed("it failed", "sub")],
    ),
    "a child that took too long": (
        (SUB,),
        of({"sub": child(until=NOW)}),
        (),
        [
            facts.StepFailed("sub", "ran into its timeout of 2.5 s", True, 0),
            facts.Failed("ran into its timeout of 2.5 s", "sub", True),
        ],
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_this_follows_and_nothing_else(name: str) -> None:
    """EX-3, EX-4, EX-8, EX-19, FL-1 to FL-8: one fact after another, up to the next rest."""
    steps, run, first, script = SCRIPTS[name]
    follows(steps, run, script, *first)


def test_an_output_that_cannot_be_computed_is_a_failure() -> None:
    """EX-8: computed when all has ended; where that fails, so does the execution, for no step."""
    output = {"output": YES, "has_output": True}
    follows((A,), of({"a": RUNS}), [facts.Finished(True)], facts.StepDone("a", 5), **output)
    broke = [facts.Failed(f"output: {BOOMED}")]
    boom = {**output, "output": BOOM}
    follows((A,), of({"a": RUNS}), broke, facts.StepDone("a", 5), **boom)
