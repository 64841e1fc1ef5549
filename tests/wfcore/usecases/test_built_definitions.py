"""A definition that a program builds is held to the rules of one that a person writes. DF-12."""

import json
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given

from adapters_runtime.cron import CronCalendar
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore import (
    AiStep,
    ApprovalStep,
    Branch,
    CodeStep,
    Definition,
    DelayStep,
    Language,
    LoopStep,
    ParallelStep,
    Variable,
    VariableType,
    apply_workflow,
    read_workflow,
)
from wfcore.errors import InvalidDefinition
from wfcore.model.access import Principal
from wfcore.model.workflow import Listen
from wfcore.rules.definition.check import check_definition
from wfcore.rules.definition.written import (
    check_built,
    document_of,
    read_definition,
    read_definition_json,
)
from wfcore.testing.builders import code_step
from wfcore.testing.strategies.definition import definitions
from wfcore.workflows import Schedule

from .conftest import World

TEMPLATES, CALENDAR = MiniJinjaTemplates().problems, CronCalendar().problems
ASK = ApprovalStep("ask")
DEEP: Any = []
for _ in range(100):
    DEEP = [DEEP]
ROUND: list[Any] = []
ROUND.append(ROUND)


def said(document: Any) -> str:
    """What the checker says of the text of a definition."""
    with pytest.raises(InvalidDefinition) as refused:
        check_definition(document, TEMPLATES, CALENDAR)
    return str(refused.value)


async def refusal(world: World, who: Principal, definition: Definition) -> str:
    services = evolve(world.services, templates=MiniJinjaTemplates())
    with pytest.raises(InvalidDefinition) as refused:
        await apply_workflow(services, who.account.id, definition)
    return str(refused.value)


CODE = {"kind": "code", "language": "python", "source": "print(1)"}


@pytest.mark.parametrize(
    ("steps", "written"),
    [
        ((code_step("a"), code_step("a")), [{"name": "a", **CODE}, {"name": "a", **CODE}]),
        ((code_step("a.b"),), [{"name": "a.b", **CODE}]),
        ((), []),
        ((code_step(""),), [{"name": "", **CODE}]),
        ((code_step("a", timeout_ms=-1),), [{"name": "a", **CODE, "timeout": -1}]),
        (
            (CodeStep("a", Language.PYTHON),),
            [{"name": "a", "kind": "code", "language": "python"}],
        ),
        (
            (ParallelStep("p", (Branch("x", (ASK,)), Branch("x", (ASK,)))),),
            [
                {
                    "name": "p",
                    "kind": "parallel",
                    "branches": [
                        {"name": "x", "steps": [{"name": "ask", "kind": "manual_approval"}]},
                        {"name": "x", "steps": [{"name": "ask", "kind": "manual_approval"}]},
                    ],
                }
            ],
        ),
        (
            (ApprovalStep("ask", "{{ steps.later.output }}"),),
            [
                {
                    "name": "ask",
                    "kind": "manual_approval",
                    "message": "{{ steps.later.output }}",
                }
            ],
        ),
    ],
)
async def test_what_the_checker_refuses_is_refused_in_its_words(
    world: World, steps: Any, written: Any
) -> None:
    """Two steps of one name, names with dots, none at all: as in a definition's text. DF-12."""
    ann = await world.account()
    told = await refusal(world, ann, Definition("flow", steps))
    assert told == said({"name": "flow", "steps": written})


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        (Definition("flow", (object(),)), "steps[0]: must be JSON, not object"),  # type: ignore[arg-type]
        (Definition("flow", ("work",)), "steps[0]: must be an object, not text"),  # type: ignore[arg-type]
        (Definition("", (ASK,)), "name: must not be empty"),
        (Definition("flow", (ASK,), output=float("nan")), "output: is no number"),
        (Definition("flow", (ASK,), output={1: 2}), "output: the key 1 must be text"),  # type: ignore[dict-item]
        (Definition("flow", (ASK,), output=2**70), "output: the number does not fit 64 bits"),
        (Definition("flow", (ASK,), output="\ud800"), "output: half a surrogate pair"),
        (Definition("flow", (ASK,), output=DEEP), "is nested deeper than 64"),
        (Definition("flow", (ASK,), output=ROUND), "is nested deeper than 64"),
        (Definition("flow", (ASK,), output=["x" * 1_000] * 400), "is over 256 KiB"),
        (
            Definition(
                "flow", (ASK,), variables={"a": Variable("a", VariableType.NUMBER, default="x")}
            ),
            "variables.a.default: must be of the declared type number",
        ),
        (Definition("flow", (ASK,), triggers=(Schedule("61 * * * *"),)), "triggers[0].cron: "),
        (Definition("flow", (LoopStep("l", [1], "loop", (ASK,)),)), "steps[0].as: 'loop' is taken"),
        (Definition("flow", (AiStep("a", "gpt", "hi"),)), "steps[0].model: must be provider:model"),
        (Definition("flow", (DelayStep("d", 0),)), "steps[0].duration: must be more than 0"),  # type: ignore[arg-type]
    ],
)
async def test_what_no_text_could_say_is_refused_by_path(
    world: World, definition: Definition, words: str
) -> None:
    """Values that are no JSON, or too much of it, never reach the store. DF-12."""
    assert words in await refusal(world, await world.account(), definition)


async def test_the_written_form_is_derived(world: World) -> None:
    """Whoever reads a workflow sees the steps of a definition that a program built. DF-12."""
    ann = await world.account()
    built = Definition("flow", (ASK, code_step(timeout_ms=5_000)), variables={"a": Variable("b")})
    workflow = await apply_workflow(world.services, ann.account.id, built)
    found = (await read_workflow(world.services, ann, workflow.id)).definition
    assert found.steps == built.steps
    assert found.variables == {"a": Variable("a")}
    assert found.steps_as_written == (
        {"name": "ask", "kind": "manual_approval"},
        {"name": "work", **CODE, "timeout": 5_000},
    )
    again = await apply_workflow(world.services, ann.account.id, built)
    assert again.revision == workflow.revision


@pytest.mark.parametrize(("listen", "written"), [(Listen.LOOPBACK, True), (Listen.ANY, "any")])
async def test_where_a_step_listens_is_written_as_it_is_read(
    world: World, listen: Listen, written: bool | str
) -> None:
    """The loopback address is `true` in a document. DF-12, CS-20."""
    ann = await world.account()
    built = Definition("flow", (code_step(network=True, listen=listen),))
    workflow = await apply_workflow(world.services, ann.account.id, built)
    found = (await read_workflow(world.services, ann, workflow.id)).definition
    assert found.steps == built.steps
    assert found.steps_as_written[0]["listen"] == written


async def test_a_written_form_that_says_something_else_is_replaced(world: World) -> None:
    """What is shown is what runs. DF-12."""
    ann = await world.account()
    for shown in ({"name": "other", **CODE}, {"name": "ask"}, {}):
        built = Definition("flow", (ASK,), (shown,))
        workflow = await apply_workflow(world.services, ann.account.id, built)
        found = (await read_workflow(world.services, ann, workflow.id)).definition
        assert found.steps_as_written == ({"name": "ask", "kind": "manual_approval"},)


async def test_a_written_form_stays_as_its_author_wrote_it(world: World) -> None:
    """`30s` is not turned into 30000, as long as the steps say the same."""
    ann = await world.account()
    step = {"kind": "code", "name": "a", "timeout": "30s", "language": "bash", "source": ":"}
    definition = read_definition({"name": "flow", "steps": [step]})
    workflow = await apply_workflow(world.services, ann.account.id, definition)
    found = (await read_workflow(world.services, ann, workflow.id)).definition
    assert found == definition
    assert found.steps_as_written == (step,)


@given(definitions())
def test_every_definition_is_its_document(definition: Definition) -> None:
    """Written out and read again, from records alone or with what was written, it is the same."""
    document = document_of(definition)
    bare = evolve(definition, steps_as_written=())
    assert check_definition(document, TEMPLATES, CALENDAR) == evolve(
        bare,
        steps_as_written=tuple(document["steps"]),  # type: ignore[arg-type]
    )
    assert check_built(definition, TEMPLATES, CALENDAR) == definition
    assert read_definition(document) == read_definition_json(json.dumps(document))


async def test_what_no_document_holds_is_kept(world: World) -> None:
    """Locks of packages, and TypeScript without its types, belong to their step wherever it is."""
    typed = code_step("ts", language=Language.TYPESCRIPT, source="let a: 1", javascript="let a")
    inside = evolve(typed, name="inside")
    built = Definition("flow", (typed, LoopStep("l", [1], "x", (inside,))))
    read = check_built(built, TEMPLATES, CALENDAR)
    assert read.steps == built.steps


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "wf.json: line 1: the text is not JSON: "),
        ('{"name": "a",\n "steps": }', "wf.json: line 2: the text is not JSON"),
        (b"\xff", "wf.json: the text is not UTF-8"),
        ("[" * 100_000, "is nested deeper than 64"),
        ('"' + "x" * 300_000 + '"', "definition: is over 256 KiB"),
        ("[]", "wf.json: definition: must be an object, not a list"),
        ('{"name": "a", "name": "b", "steps": []}', "wf.json: name: repeats a key of this object"),
        ('{"name": "a", "steps": [{"name": NaN}]}', "wf.json: steps[0].name: is no number"),
        (
            '{"name": "a", "steps": [{}], "step": 1}',
            "wf.json: step: unknown field; did you mean steps",
        ),
    ],
)
def test_mistakes_in_json_are_told_by_line_or_path(text: str | bytes, words: str) -> None:
    """Where text is no JSON the line is named, else the field. DF-12."""
    with pytest.raises(InvalidDefinition) as refused:
        read_definition_json(text, "wf.json")
    assert words in str(refused.value)


def test_json_is_read_like_the_same_yaml() -> None:
    """With a byte order mark, too; templates and schedules are looked at where it is applied."""
    step = {"name": "ask", "kind": "manual_approval", "message": "{{ what.ever }}"}
    document = {
        "name": "flow",
        "steps": [step],
        "triggers": [{"kind": "SCHEDULE", "cron": "0 6 * * *"}],
    }
    text = "\ufeff" + json.dumps(document)
    assert read_definition_json(text.encode()) == read_definition(document)
