"""Which names are seen where: in a frame its own steps, the items around it, nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.model.execution import Awaits, StepStatus, TriggerSource
from wfcore.model.trigger import TRIGGER_NAMES
from wfcore.model.workflow import Branch, LoopStep, ParallelStep
from wfcore.rules.execution.scope import (
    keys_seen,
    name_of,
    prefix_of,
    round_prefix,
    scope,
    trigger_of,
)
from wfcore.testing import builders

code = builders.code_step
names = st.from_regex(r"[a-z_]+", fullmatch=True)

INNER = LoopStep("inner", [], "cell", (code("deep"),))
OUTER = LoopStep("outer", [], "row", (code("first"), INNER))
BOTH = ParallelStep("both", (Branch("x", (code("in_x"),)), Branch("y", (OUTER,))))
TREE = builders.definition(code("top"), BOTH, code("after"))


def loop(*items: object):
    return builders.step_result(StepStatus.RUNNING, awaits=Awaits.STEPS, items=list(items))


def done(output: object = None):
    return builders.step_result(output=output)


def seen(output: object, status: str = "COMPLETED"):
    return {"status": status, "output": output}


RESULTS = {
    "top": done(1),
    "both": loop(),
    "outer": loop("r0", "r1"),
    "outer.0.first": done("f0"),
    "outer.1.first": done("f1"),
    "outer.1.inner": loop("c0", "c1", "c2"),
    "outer.1.inner.0.deep": done("d0"),
    "outer.1.inner.2.deep": done("d2"),
}
RUN = builders.execution(variables={"v": 1, "cell": "mine"}, step_results=RESULTS)
ABOUT = {"id": "exec_1", "workflowId": "wf_1"}
AROUND = {"top": seen(1), "both": seen(None, "RUNNING"), "outer": seen(None, "RUNNING")}
IN_ROW = {**AROUND, "first": seen("f1"), "inner": seen(None, "RUNNING")}


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("", {"variables": {"v": 1, "cell": "mine"}, "steps": AROUND}),
        (
            "outer.0.",
            {
                "variables": {"v": 1, "cell": "mine", "row": "r0"},
                "steps": {**AROUND, "first": seen("f0")},
                "loop": {"index": 0},
                "row": "r0",
            },
        ),
        (
            "outer.1.inner.2.",
            {
                "variables": {"v": 1, "cell": "c2", "row": "r1"},
                "steps": {**IN_ROW, "deep": seen("d2")},
                "loop": {"index": 2},
                "row": "r1",
                "cell": "c2",
            },
        ),
        (
            "outer.1.inner.1.",
            {
                "variables": {"v": 1, "cell": "c1", "row": "r1"},
                "steps": IN_ROW,
                "loop": {"index": 1},
                "row": "r1",
                "cell": "c1",
            },
        ),
    ],
)
def test_a_frame_sees_itself_and_what_is_around_it(prefix: str, expected) -> None:
    """FL-2: of other rounds nothing; the innermost item goes over a variable of its name."""
    names = {"trigger": trigger_of(RUN), "state": {}}
    assert scope(TREE, RUN, prefix) == {**expected, **names, "execution": ABOUT}


def test_every_name_of_a_trigger_is_always_there() -> None:
    """EX-37: what does not apply is null; a redrive has the kind of what it redrives."""
    by_hook = builders.execution(trigger_source=TriggerSource.WEBHOOK, webhook_id="wh_1")
    nothing = dict.fromkeys(TRIGGER_NAMES)
    assert trigger_of(by_hook) == {**nothing, "kind": "webhook", "webhookId": "wh_1"}
    kept = {"kind": "schedule", "scheduledFor": 7}
    assert trigger_of(builders.execution(trigger=kept)) == {**nothing, **kept}


def test_items_never_hide_what_every_template_sees() -> None:
    """FL-2: a loop that calls its item `steps` has it among the variables only."""
    each = LoopStep("each", [], "steps", (code("a"),))
    run = builders.execution(step_results={"each": loop("it")})
    found = scope(builders.definition(each), run, "each.0.")
    assert found["steps"] == {"each": seen(None, "RUNNING")}
    assert found["variables"] == {"steps": "it"}


def test_what_was_never_begun_is_skipped_once_what_holds_it_has_ended() -> None:
    """FL-2: whatever depth it is at; while what holds it runs, it is unknown."""
    inside = ParallelStep("inside", (Branch("z", (code("deep"),)),))
    both = ParallelStep("both", (Branch("x", (code("a"),)), Branch("y", (inside,))))
    definition = builders.definition(both)
    never = {"status": "SKIPPED", "output": None}
    for status in StepStatus:
        result = builders.step_result(status)
        found = scope(definition, builders.execution(step_results={"both": result}))["steps"]
        over = status in (StepStatus.COMPLETED, StepStatus.SKIPPED, StepStatus.FAILED)
        rest = {"a": never, "inside": never, "deep": never} if over else {}
        assert found == {"both": seen(None, status.value), **rest}


def test_in_a_round_too_what_was_never_begun_is_skipped() -> None:
    """FL-2: what holds it is looked for in the same round."""
    both = ParallelStep("both", (Branch("x", (code("a"),)),))
    definition = builders.definition(LoopStep("each", [], "item", (both,)))
    skipped = builders.step_result(StepStatus.SKIPPED)
    run = builders.execution(step_results={"each": loop(1, 2), "each.0.both": skipped})
    assert scope(definition, run, "each.0.")["steps"]["a"] == seen(None, "SKIPPED")
    assert "a" not in scope(definition, run, "each.1.")["steps"]


def test_items_that_are_gone_are_null() -> None:
    """FL-2: a loop that has completed keeps none; it is rendered in no more."""
    run = builders.execution(step_results={"each": done()})
    each = LoopStep("each", [], "item", (code("a"),))
    assert scope(builders.definition(each), run, "each.0.")["item"] is None


@given(st.lists(st.tuples(names, st.integers(0, 999)), max_size=3), names)
def test_a_key_is_a_prefix_and_a_name(rounds: list[tuple[str, int]], name: str) -> None:
    """FL-2: `loop.<index>.<name>`, as deep as loops hold one another."""
    prefix = ""
    for loop_name, index in rounds:
        prefix = round_prefix(prefix + loop_name, index)
    assert prefix == "".join(f"{loop_name}.{index}." for loop_name, index in rounds)
    assert (prefix_of(prefix + name), name_of(prefix + name)) == (prefix, name)


def test_steps_are_found_in_the_innermost_frame_that_has_begun_them() -> None:
    """FL-2, AP-29: from within a round outwards; no round sees into another one."""
    row, other = round_prefix("outer", 1), round_prefix("outer", 0)
    cell = round_prefix(f"{row}inner", 0)
    begun = ("top", f"{row}first", f"{other}first", f"{cell}deep")
    run = builders.execution(step_results={key: done() for key in begun})
    asked = ("deep", "first", "top", "after")
    assert keys_seen(run, cell, asked) == (f"{cell}deep", f"{row}first", "top")
    assert keys_seen(run, row, asked) == (f"{row}first", "top")
    assert keys_seen(run, "", asked) == ("top",)
