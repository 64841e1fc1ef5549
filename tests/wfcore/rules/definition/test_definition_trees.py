"""Steps that hold steps: how they are written, and what is said of mistakes in them."""

from typing import Any

import pytest

from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition
from wfcore.model.workflow import (
    Branch,
    ChildStep,
    Definition,
    DelayStep,
    Language,
    LoopStep,
    ParallelStep,
    Retry,
)
from wfcore.rules.definition.check import check_definition, language_problems

CODE = {"name": "fetch", "kind": "code", "language": "python", "source": "print(1)"}


def code(name: str, **fields: Any) -> dict[str, Any]:
    return {**CODE, "name": name, **fields}


def loop(*steps: Any, **fields: Any) -> dict[str, Any]:
    return {"name": "each", "kind": "loop", "items": [1], "as": "item", "steps": [*steps], **fields}


def parallel(**branches: Any) -> dict[str, Any]:
    written = [{"name": name, "steps": steps} for name, steps in branches.items()]
    return {"name": "both", "kind": "parallel", "branches": written}


def flow(*steps: Any, **fields: Any) -> dict[str, Any]:
    return {"name": "W", "steps": [*steps], **fields}


def child(**fields: Any) -> dict[str, Any]:
    return {"name": "sub", "kind": "workflow", "workflow": "Other", **fields}


def check(document: Any) -> Definition:
    return check_definition(document, MiniJinjaTemplates().problems)


def said(document: Any) -> list[str]:
    with pytest.raises(InvalidDefinition) as caught:
        check(document)
    return str(caught.value).splitlines()


def nested(depth: int) -> Any:
    """A delay with so many loops around it."""
    step: Any = {"name": "deep", "kind": "delay", "duration": "1s"}
    for level in range(depth):
        step = {**loop(step), "name": f"l{level}", "as": f"i{level}"}
    return flow(step)


def inside(depth: int) -> str:
    return "steps" + "[0].steps" * depth


MISTAKES: list[tuple[Any, str]] = [
    (flow({"name": "a", "kind": "delay"}), "steps[0].duration: is required"),
    (
        flow({"name": "a", "kind": "delay", "duration": "1s", "timeout": "2s"}),
        "steps[0].timeout: unknown field; known: name, kind, when, continueOnError, onInterrupt, "
        "duration",
    ),
    (flow({**parallel(), "branches": []}), "steps[0].branches: must have at least 1 item"),
    (
        flow({**parallel(), "branches": [{"name": "a", "steps": []}]}),
        "steps[0].branches[0].steps: must have at least 1 item",
    ),
    (
        flow(
            {
                **parallel(),
                "branches": parallel(a=[code("x")])["branches"]
                + parallel(a=[code("y")])["branches"],
            }
        ),
        "steps[0].branches[1].name: repeats 'a' of steps[0].branches[0]",
    ),
    (
        flow({**parallel(a=[CODE]), "maxParallel": 0}),
        "steps[0].maxParallel: must be a whole number from 1 to 100",
    ),
    (
        flow(parallel(a=[code("x")], b=[code("y", when="{{ steps.x.output }}")])),
        "steps[0].branches[1].steps[0].when: unknown name steps.x; none is known here",
    ),
    (
        flow(code("x"), parallel(a=[code("x")])),
        "steps[1].branches[0].steps[0].name: repeats 'x' of steps[0]",
    ),
    (
        flow(parallel(a=[code("x", timeout=0)])),
        "steps[0].branches[0].steps[0].timeout: must be more than 0 and at most 365d",
    ),
    (
        flow({**loop(CODE), "as": "a-b"}),
        "steps[0].as: must be letters, digits and _, beginning with a letter or _",
    ),
    *(
        (
            flow({**loop(CODE), "as": name}),
            f"steps[0].as: {name!r} is taken by something that is known here; use another name",
        )
        for name in ("steps", "trigger", "state", "files", "payload")
    ),
    *(
        (
            flow({**loop(CODE), "as": word}),
            f"steps[0].as: {word!r} is a word of the language of templates; use another name",
        )
        for word in ("none", "true", "in", "not")
    ),
    (
        flow({**loop(CODE), "as": "limit"}, variables={"limit": {}}),
        "steps[0].as: 'limit' is taken by something that is known here; use another name",
    ),
    (
        flow(loop({**loop(CODE), "name": "inner"})),
        "steps[0].steps[0].as: 'item' is taken by something that is known here; use another name",
    ),
    (
        flow({**loop(CODE), "items": 5}),
        "steps[0].items: must be a template {{ … }} or a list, not a number",
    ),
    (
        flow({**loop(CODE), "items": [0] * 1_001}),
        "steps[0].items: has 1001 items; at most 1000",
    ),
    (
        flow({**loop(CODE), "items": ["{{ item }}"]}),
        "steps[0].items[0]: unknown name item; known: execution, state, steps, trigger, variables",
    ),
    (
        flow(loop(CODE), code("after", when="{{ steps.fetch.output }}")),
        "steps[1].when: unknown name steps.fetch; did you mean each?",
    ),
    (
        flow(loop(CODE), output="{{ item }}"),
        "output: unknown name item; known: execution, state, steps, trigger, variables",
    ),
    (
        flow(child(workflow="W")),
        "steps[0].workflow: names this workflow itself, which would start itself without end",
    ),
    (
        flow(child(workflow="{{ variables.x }}")),
        "steps[0].workflow: must be the name or id of a workflow; no template is applied here",
    ),
    (flow(child(inputs=[])), "steps[0].inputs: must be an object, not a list"),
    (
        flow(child(inputs={"a": ["{{ nope }}"]})),
        "steps[0].inputs.a[0]: unknown name nope; "
        "known: execution, state, steps, trigger, variables",
    ),
    (nested(8), f"{inside(8)}: is nested too deep: steps at more than 8 levels"),
    (
        flow(
            loop(*(code(f"s{n}") for n in range(300))),
            parallel(a=[code(f"t{n}") for n in range(300)]),
        ),
        "steps[1].branches[0].steps: has 300 steps, 602 with those before; at most 500",
    ),
]


@pytest.mark.parametrize(("document", "message"), MISTAKES)
def test_a_mistake_in_a_tree_is_said_like_this(document: Any, message: str) -> None:
    """Each of these mistakes is said with the path that leads to it through the tree. FL-9."""
    assert said(document) == [message]


WITHOUT: list[tuple[Any, list[str]]] = [
    ({"kind": "parallel"}, ["branches: is required"]),
    ({"kind": "loop"}, ["items: is required", "as: is required", "steps: is required"]),
    ({"kind": "workflow"}, ["workflow: is required"]),
    (
        {"kind": "parallel", "branches": [{"x": 1}, 3]},
        [
            "branches[0].x: unknown field; known: name, steps",
            "branches[0].name: is required",
            "branches[0].steps: is required",
            "branches[1]: must be an object, not a number",
        ],
    ),
    (
        {"kind": "parallel", "branches": [{}] * 101},
        ["branches: has 101 items; at most 100"],
    ),
    (
        {"kind": "loop", "items": "a {{ 1 }}", "as": "x", "steps": [CODE]},
        ["items: must be exactly one template {{ … }} with nothing around it"],
    ),
    ({"kind": "workflow", "workflow": " "}, ["workflow: must not be empty"]),
    ({"kind": "workflow", "workflow": 3}, ["workflow: must be text, not a number"]),
]


@pytest.mark.parametrize(("step", "messages"), WITHOUT)
def test_what_is_missing_is_told(step: dict[str, Any], messages: list[str]) -> None:
    """Each field that a step cannot do without, also of its branches. FL-1, FL-2, FL-6, FL-9."""
    assert said(flow({"name": "a", **step})) == [f"steps[0].{message}" for message in messages]


def test_what_is_as_large_as_allowed_is_a_definition() -> None:
    """FL-9: eight levels and five hundred steps are no mistake."""
    assert check(nested(7)).total_steps == 8
    assert check(flow(loop(*(code(f"s{n}") for n in range(499))))).total_steps == 500
    assert check(flow({**loop(CODE), "items": [0] * 1_000}))


def bushy(depth: int, beside: int) -> Any:
    """So many loops around a delay; where *beside* levels are still to come, a loop before it."""
    tree = nested(depth)
    inner = tree["steps"][0]
    for _ in range(depth - beside - 1):
        inner = inner["steps"][0]
    inner["steps"].insert(0, {**loop(code("x")), "name": "beside", "as": "other"})
    return tree


@pytest.mark.parametrize("beside", range(2, 7))
def test_depth_is_counted_by_what_is_around(beside: int) -> None:
    """What stands before, however deep, makes no difference to what may follow. FL-9."""
    assert check(bushy(7, beside))
    place = inside(8 - beside)
    assert said(bushy(8, beside)) == [
        f"{place}[1].{'steps[0].' * (beside - 1)}steps: is nested too deep: "
        "steps at more than 8 levels"
    ]


def test_the_shortest_forms_have_their_defaults() -> None:
    """All branches at once, rounds one by one, no timeout, no retry. FL-2, FL-3, FL-6."""
    found = check(flow(parallel(a=[CODE]), loop(code("b")), child())).steps
    both, each, sub = found
    assert isinstance(both, ParallelStep)
    assert isinstance(each, LoopStep)
    assert isinstance(sub, ChildStep)
    assert (both.max_parallel, both.timeout_ms) == (None, None)
    assert (each.max_parallel, each.timeout_ms, each.variable) == (1, None, "item")
    assert (sub.inputs, sub.timeout_ms, sub.retry) == ({}, None, Retry())


def test_a_tree_is_walked_in_the_order_of_its_text() -> None:
    """Every step once, nested ones behind what holds them; each can be found by its name."""
    tree = check(flow(code("a"), parallel(x=[code("b")], y=[loop(code("c"))]), code("d")))
    assert [step.name for step in tree.walk()] == ["a", "both", "b", "each", "c", "d"]
    assert tree.total_steps == 6
    assert tree.step("c").name == "c"
    with pytest.raises(KeyError):
        tree.step("e")


def test_a_language_that_cannot_run_is_found_in_the_depth() -> None:
    """The cure is said with the path of the nested step."""
    tree = check(flow(parallel(x=[loop(code("c", language="lua"))])))
    [problem] = language_problems(tree, {(Language.LUA, None): "apt install lua5.4"})
    assert problem.path == "steps[0].branches[0].steps[0].steps[0].language"


def test_loop_names_are_known_inside() -> None:
    """The item by its name, as a variable, and the index. FL-2."""
    text = "{{ [item, variables.item, loop.index, steps.before.output] }}"
    step = {"name": "in", "kind": "manual_approval", "message": text}
    assert check(flow(code("before"), loop(step)))


def test_what_follows_branches_sees_their_steps() -> None:
    """FL-1: behind a `parallel` all of its branches have ended."""
    tree = flow(parallel(a=[code("x")], b=[code("y")]), output="{{ [steps.x, steps.y] }}")
    assert check(tree).steps[0] == ParallelStep(
        "both",
        (
            Branch("a", (check(flow(code("x"))).steps[0],)),
            Branch("b", (check(flow(code("y"))).steps[0],)),
        ),
    )


def test_items_are_given_by_one_template_or_a_list() -> None:
    """FL-2: the template stands alone, blanks around it go; a list may hold any values."""
    written = flow(loop(CODE, items=" {{ execution.id }}\n"), loop(code("b"), name="c", items=[{}]))
    one, two = check(written).steps
    assert isinstance(one, LoopStep)
    assert isinstance(two, LoopStep)
    assert (one.items, two.items) == ("{{ execution.id }}", [{}])


def test_a_delay_is_read() -> None:
    """FL-5: a length of time as people write it."""
    step = {"name": "nap", "kind": "delay", "duration": "1.5s"}
    assert check(flow(step)).steps == (DelayStep("nap", 1_500),)
