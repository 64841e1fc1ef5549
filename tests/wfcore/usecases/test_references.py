"""References: who gives them, how they are kept, and what is found by them. EX-38."""

import pytest

from wfcore.effects import Outcome
from wfcore.errors import InvalidInput, TemplateFailed
from wfcore.model.access import OPERATOR
from wfcore.model.json import Json, JsonObject
from wfcore.model.page import PageRequest
from wfcore.model.workflow import Variable, VariableType
from wfcore.ports.records import ExecutionFilter
from wfcore.rules.execution.reference import referred
from wfcore.testing import builders
from wfcore.usecases.executions import executions, redriving
from wfcore.usecases.executions.starting import start_execution

from .conftest import World, code, review

ORDER = "Order {{ variables.order }}"
VARIABLES = {"order": Variable("order"), "token": Variable("token", secret=True)}
VARIABLES["n"] = Variable("n", VariableType.NUMBER)


async def reference(world: World, id: str) -> str | None:
    return (await executions.read_execution(world.services, OPERATOR, id)).reference


@pytest.mark.parametrize(
    ("template", "inputs", "given", "expected"),
    [
        (None, {}, None, None),
        (ORDER, {"order": "7"}, None, "Order 7"),
        (ORDER, {"order": "7"}, "mine", "mine"),
        (ORDER, {"order": "7"}, " ", "Order 7"),
        ("{{ variables.order }}", {"order": ""}, None, None),
        ("{{ variables.n }}", {"n": 8}, None, "8"),
        ("{{ trigger.kind }}", {}, None, "open_api"),
        ("{{ trigger.webhookId }}", {}, None, None),
        ("{{ variables.order }}", {"order": "x" * 300}, None, "x" * 200),
        ("{{ variables.order }}", {"order": "a\nb"}, None, "a\N{REPLACEMENT CHARACTER}b"),
        ("of {{ variables.token }}", {"token": "hunter22"}, None, "of ***"),
        (None, {"token": "hunter22"}, "of hunter22", "of ***"),
    ],
)
async def test_a_reference_is_the_callers_or_the_definitions(
    world: World,
    template: str | None,
    inputs: dict[str, str],
    given: str | None,
    expected: str | None,
) -> None:
    """Evaluated as it is accepted, masked, in one line of at most 200 characters."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), variables=VARIABLES, reference=template)
    started = await start_execution(world.services, ann, flow, inputs, reference=given)
    assert await reference(world, started.execution_id) == expected


@pytest.mark.parametrize("given", ["x" * 201, "a\nb", "a\ud800"])
async def test_a_wrong_reference_is_refused(world: World, given: str) -> None:
    """It is not cut silently: its caller searches for what it has sent."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"))
    with pytest.raises(InvalidInput) as caught:
        await start_execution(world.services, ann, flow, {}, reference=given)
    assert caught.value.field == "reference"


async def test_a_template_without_a_value_is_refused(world: World) -> None:
    """The field is named, and nothing starts."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), variables=VARIABLES, reference=ORDER)
    with pytest.raises(InvalidInput) as caught:
        await start_execution(world.services, ann, flow, {})
    assert caught.value.field == "reference"


def test_the_words_about_a_wrong_template_show_no_secret() -> None:
    """SC-4."""

    def fails(template: Json, names: JsonObject) -> Json:
        raise TemplateFailed(str(template), f"of {list(names)}, token=hunter22")

    run = builders.execution(variables={"k": "hunter22"}, secrets=("k",))
    with pytest.raises(InvalidInput) as caught:
        referred(Outcome(run), ORDER, fails)
    assert caught.value.fix == f"template '{ORDER}': of ['variables', 'trigger'], token=***"


async def test_redrive_and_like_keep_it(world: World) -> None:
    """Unless a start like it gives another one."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), variables=VARIABLES, reference=ORDER)
    first = await start_execution(world.services, ann, flow, {"order": "7"}, reference="mine")
    lease, _ = await world.take()
    await world.finish(lease, "a", error="no")
    again = await redriving.redrive(world.services, ann, first.execution_id)
    like = {"like": first.execution_id}
    anew = await start_execution(world.services, ann, flow, {"order": "8"}, **like)
    other = await start_execution(world.services, ann, flow, {}, reference="other", **like)
    ids = (again.execution_id, anew.execution_id, other.execution_id)
    assert [await reference(world, id) for id in ids] == ["mine", "mine", "other"]


async def test_executions_are_found_by_exactly_their_reference(world: World) -> None:
    """Among those that the caller sees, and in their approvals."""
    ann, eve = await world.account(), await world.account("eve@example.org")
    flow = await world.workflow(ann, review(), reference=ORDER, variables=VARIABLES)
    for order in ("7", "77", "7"):
        await start_execution(world.services, ann, flow, {"order": order})
    for who, text, many in ((ann, "Order 7", 2), (ann, "order 7", 0), (eve, "Order 7", 0)):
        where = ExecutionFilter(reference=text)
        found = await executions.list_executions(world.services, who, PageRequest(), where)
        assert (len(found.rows), found.total) == (many, many)
    async with world.services.store.view() as view:
        (approval,) = await view.approvals.of_execution(
            (
                await executions.list_executions(
                    world.services, ann, PageRequest(), ExecutionFilter(reference="Order 77")
                )
            )
            .rows[0]
            .id
        )
    assert approval.reference == "Order 77"
