"""Pictures of definitions: nothing overlaps, nothing is cut off, nothing breaks out of its text."""

from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given

from wfcore.model.workflow import (
    AiStep,
    ApprovalStep,
    Branch,
    Case,
    ChildStep,
    DataStep,
    DelayStep,
    LoopStep,
    MailStep,
    ParallelStep,
    Step,
    SwitchStep,
)
from wfcore.rules.definition.flow import (
    BOX_WIDTH,
    MARGIN,
    Box,
    Edge,
    Flow,
    Label,
    branches_of,
    kind_of,
    lay_out,
)
from wfcore.testing import builders as make
from wfcore.testing.strategies.definition import definitions
from wfcore.wire.drawing import mermaid, path, svg, text


def _apart(one: Box, other: Box) -> bool:
    beside = one.x + one.width <= other.x or other.x + other.width <= one.x
    return beside or one.y + one.height <= other.y or other.y + other.height <= one.y


def _holds(frame: Box, box: Box) -> bool:
    left, top = frame.x < box.x, frame.y < box.y
    right = box.x + box.width < frame.x + frame.width
    return left and top and right and box.y + box.height < frame.y + frame.height


def _boxes(steps: tuple[Step, ...]) -> int:
    """How many steps have a box: all but parallel ones and switches, which are a fork."""
    found = 0
    for step in steps:
        if isinstance(step, ParallelStep | SwitchStep):
            found += sum(_boxes(branch) for branch in branches_of(step))
        else:
            found += 1 + (_boxes(step.steps) if isinstance(step, LoopStep) else 0)
    return found


@given(definitions())
def test_boxes_lie_apart(definition):
    """Boxes overlap only where one is the frame around the other, and then holds it. DF-13."""
    flow = lay_out(definition.steps, definition.on_failure)
    assert len(flow.boxes) == _boxes((*definition.steps, *definition.on_failure))
    for one, other in combinations(flow.boxes, 2):
        if one.frame and one.name in other.inside:
            assert _holds(one, other)
        else:
            assert _apart(one, other), (one, other)


@given(definitions())
def test_the_picture_is_as_large_as_what_lies_in_it(definition):
    """Boxes, ends of lines and labels, with the same margin on every side. DF-13."""
    flow = lay_out(definition.steps, definition.on_failure)
    places = [(box.x, box.y) for box in flow.boxes]
    places += [(box.x + box.width, box.y + box.height) for box in flow.boxes]
    places += [(edge.x1, edge.y1) for edge in flow.edges]
    places += [(edge.x2, edge.y2) for edge in flow.edges]
    places += [(label.x, label.y) for label in flow.labels]
    across, down = [x for x, _ in places], [y for _, y in places]
    assert (min(across), min(down)) == pytest.approx((MARGIN, MARGIN))
    ends = flow.width - MARGIN, flow.height - MARGIN
    assert (max(across), max(down)) == pytest.approx(ends)
    assert all(edge.y1 <= edge.y2 for edge in flow.edges)


@given(definitions())
def test_the_svg_is_well_formed(definition):
    """Whatever steps are called, it is one tree: a ground, and each box a rectangle on it."""
    root = ElementTree.fromstring(svg(definition))
    ground, *rectangles = root.findall("{http://www.w3.org/2000/svg}rect")
    assert ground.attrib["width"] == ground.attrib["height"] == "100%"
    assert len(rectangles) == _boxes((*definition.steps, *definition.on_failure))


def test_the_picture_of_no_steps_is_an_empty_one():
    """As wide as a box, so that it can be shown beside others."""
    assert lay_out(()) == Flow(BOX_WIDTH + 2 * MARGIN, 2 * MARGIN, (), (), ())


@given(definitions())
def test_a_step_is_named_by_its_kind(definition):
    """The word of the document, and for code its language. DF-13."""
    words = {
        AiStep: "ai",
        ApprovalStep: "approval",
        DelayStep: "delay",
        MailStep: "mail",
        ChildStep: "workflow",
        ParallelStep: "parallel",
        LoopStep: "loop",
        DataStep: "data",
        SwitchStep: "switch",
    }
    for step in definition.steps:
        assert kind_of(step) == (words.get(type(step)) or step.language)


HOSTILE = '"]; click n0 "javascript:alert(1)" <img src=x>'


def test_names_stay_text():
    """A name is no markup in an SVG and no statement in a Mermaid chart."""
    definition = make.definition(make.code_step(HOSTILE), name=HOSTILE)
    assert "<img" not in svg(definition)
    (_, line, _) = mermaid(definition).split("\n")
    assert line.count('"') == 2
    assert "<img" not in line


def test_a_tree_as_text_and_as_mermaid():
    """Branches and rounds are indented; paths fork, and join in the step that follows."""
    loop = LoopStep("each", [1], "item", (make.code_step("one"),))
    branches = (Branch("a", (make.code_step("left"),)), Branch("b", (loop,)))
    last = make.code_step("told")
    definition = make.definition(
        ParallelStep("both", branches), make.code_step("last"), on_failure=(last,)
    )
    assert list(text(definition)) == [
        "both  parallel",
        "  a:",
        "    left  python",
        "  b:",
        "    each  loop",
        "      one  python",
        "last  python",
        "onFailure:",
        "  told  python",
    ]
    chart = mermaid(definition)
    assert '  subgraph onFailure\n    n4["told<br>python"]\n  end\n' in chart
    assert "  n0 --> n3\n" in chart
    assert "  n2 --> n3\n" in chart
    assert '  subgraph n1["each"]\n' in chart


def test_a_switch_as_text_and_as_mermaid():
    """Each case is told by its condition; a switch without `else` has a way past all of them."""
    yes = Case("{{ variables.big }}", (make.code_step("ask"),))
    steps = (SwitchStep("size", (yes,)), make.code_step("last"))
    definition = make.definition(*steps)
    assert list(text(definition)) == [
        "size  switch",
        "  {{ variables.big }}:",
        "    ask  python",
        "last  python",
    ]
    chart = mermaid(definition)
    assert '  n0{"size"}\n' in chart
    assert all(f"  {way}\n" in chart for way in ("n0 --> n1", "n1 --> n2", "n0 --> n2"))
    assert None in {edge.to for edge in lay_out(steps).edges}


def test_lines_bend_once():
    """Straight down in a column; to another one with a level piece."""
    flow = lay_out((ParallelStep("p", tuple(Branch(n, (make.code_step(n),)) for n in "abc")),))
    assert {path(edge).count("V") for edge in flow.edges} == {1, 2}


def test_where_everything_stands():
    """One picture in numbers: a fork around a loop and a column, between two steps. DF-13."""
    each = LoopStep("each", [], "item", (make.code_step("one"),))
    column = (make.code_step("left"), make.code_step("right"))
    fork = ParallelStep("both", (Branch("x", (each,)), Branch("y", column)))
    both = ("both",)
    assert lay_out((make.code_step("first"), fork, make.code_step("last"))) == Flow(
        430,
        366,
        (
            Box("first", "python", 127, 12, 176, 46),
            Box("each", "loop", 12, 138, 204, 102, frame=True, inside=both),
            Box("one", "python", 26, 180, 176, 46, inside=("both", "each")),
            Box("left", "python", 242, 138, 176, 46, inside=both),
            Box("right", "python", 242, 210, 176, 46, inside=both),
            Box("last", "python", 127, 308, 176, 46),
        ),
        (
            Edge(215, 58, 215, 84, "both"),
            Edge(215, 112, 114, 138, "each"),
            Edge(114, 240, 215, 282),
            Edge(215, 112, 330, 138, "left"),
            Edge(330, 184, 330, 210, "right"),
            Edge(330, 256, 215, 282),
            Edge(215, 282, 215, 308, "last"),
        ),
        (Label("both", 215, 84),),
    )


def test_a_fork_is_as_wide_as_its_branches_and_the_gaps_between():
    """DF-13."""
    for count in (1, 2, 5):
        fork = ParallelStep("p", tuple(Branch(n, (make.code_step(n),)) for n in "abcde"[:count]))
        assert lay_out((fork,)).width == 2 * MARGIN + count * BOX_WIDTH + (count - 1) * 26
