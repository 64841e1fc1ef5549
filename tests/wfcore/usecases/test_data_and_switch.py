"""Values and choices: steps for which nothing is started, on real stores. FL-12, FL-13."""

import pytest
from attrs import evolve

from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidDefinition
from wfcore.model.access import Principal
from wfcore.model.execution import Execution, StepStatus
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.json import Json
from wfcore.model.workflow import (
    ApprovalStep,
    Case,
    DataStep,
    LoopStep,
    Step,
    SwitchStep,
    Variable,
    VariableType,
)
from wfcore.usecases.executions import redriving
from wfcore.usecases.executions import worker as running
from wfcore.usecases.services import Policy
from wfcore.usecases.upkeep.sweeping import sweep

from .conftest import World, code
from .test_trees import decide, open_ones, read

BIG = "{{ variables.amount > 10 }}"
SMALL = "{{ variables.amount < 5 }}"


@pytest.fixture(name="world")
def with_templates(world: World) -> World:
    """Conditions that compare and compute, as users write them."""
    return evolve(world, services=evolve(world.services, templates=MiniJinjaTemplates()))


def data(name: str, value: Json = None, **more: object) -> DataStep:
    return DataStep(name, value, **more)  # type: ignore[arg-type]


async def begun(world: World, *steps: Step, **given: Json) -> tuple[Principal, Execution]:
    """The execution of *steps* with these values, as far as it goes by itself."""
    declared = {
        name: Variable(
            name,
            VariableType.NUMBER if isinstance(value, int) else VariableType.STRING,
            has_default=True,
            default=value,
            secret=name == "token",
        )
        for name, value in given.items()
    }
    ann = await world.account()
    id = await world.start(ann, await world.workflow(ann, *steps, variables=declared))
    await world.take()
    return ann, await read(world, ann, id)


async def test_a_value_is_an_output(world: World) -> None:
    """Templates anywhere in it are filled and keep their types; no worker runs. FL-12."""
    made = data("made", {"of": ["{{ variables.amount }}", "{{ variables.amount }} EUR"]})
    _, run = await begun(world, made, data("next", "{{ steps.made.output.of[0] + 1 }}"), amount=7)
    assert (run.status, run.output, run.completed_steps) == (S.COMPLETED, 8, 2)
    assert run.step_results["made"].output == {"of": [7, "7 EUR"]}
    assert [one.attempts for one in run.step_results.values()] == [1, 1]


async def test_a_secret_is_masked_in_a_value(world: World) -> None:
    """As in what a program prints. SC-1."""
    _, run = await begun(world, data("leak", ["{{ variables.token }}"]), token="hunter2-and-more")
    assert "hunter2" not in str(run.step_results)


async def test_a_value_that_cannot_be_filled_fails_its_step(world: World) -> None:
    """The error names the field; `continueOnError` holds as for other steps. FL-12."""
    bad = "{{ variables.amount / 0 }}"
    _, run = await begun(world, data("a", bad, continue_on_error=True), data("b", bad), amount=1)
    assert (run.status, *run.step_results) == (S.FAILED, "a", "b")
    assert all((one.error or "").startswith("value: ") for one in run.step_results.values())


@pytest.mark.parametrize(("amount", "chosen"), [(11, "ask"), (4, "wave"), (7, "log")])
async def test_the_first_case_that_holds(world: World, amount: int, chosen: str) -> None:
    """Its steps alone begin, or those of `else`; its last output is the switch's. FL-13."""
    late = Case("{{ variables.amount != 7 }}", (data("never"),))
    cases = (Case(BIG, (data("ask", "ask"),)), Case(SMALL, (data("wave", "wave"),)), late)
    switch = SwitchStep("size", cases, (data("log", "log"),))
    _, run = await begun(world, switch, data("after", "{{ steps.size.output }}"), amount=amount)
    assert (run.status, run.output) == (S.COMPLETED, chosen)
    assert set(run.step_results) == {"size", chosen, "after"}
    assert run.completed_steps == run.total_steps == 6


async def test_no_case_and_no_else(world: World) -> None:
    """Nothing is done and the output is null; what did not begin is seen as skipped. FL-13."""
    switch = SwitchStep("size", (Case(BIG, (data("ask"),)),))
    seen = data("seen", ["{{ steps.size.output }}", "{{ steps.ask.status }}"])
    _, run = await begun(world, switch, seen, amount=1)
    assert (run.status, run.output) == (S.COMPLETED, [None, "SKIPPED"])


async def test_a_choice_is_made_once(world: World) -> None:
    """What changes while its steps wait does not change the case; a redrive stays in it. FL-13."""
    steps = (ApprovalStep("ask"), code("pay"))
    ann, run = await begun(
        world, SwitchStep("size", (Case(BIG, steps),), (data("log"),)), amount=20
    )
    assert run.status is S.AWAITING_APPROVAL
    await decide(world, ann, (await open_ones(world, ann, run.id))["ask"])
    lease, (job,) = await world.take()
    assert job.step_name == "pay"
    await world.finish(lease, "pay", error="no")
    again = await redriving.redrive(world.services, ann, run.id)
    _, (job,) = await world.take()
    anew = await read(world, ann, again.execution_id)
    assert (job.step_name, anew.step_results["size"].case) == ("pay", 0)


async def test_each_round_chooses(world: World) -> None:
    """In a loop a switch is one per round, and a case may use the item. FL-2, FL-13."""
    switch = SwitchStep("pick", (Case("{{ n > 1 }}", (data("many"),)),), (data("few"),))
    _, run = await begun(world, LoopStep("each", [1, 2], "n", (switch,)))
    assert {"each.0.few", "each.1.many"} <= set(run.step_results)
    assert not {"each.0.many", "each.1.few"} & set(run.step_results)
    assert run.status is S.COMPLETED


async def test_a_condition_that_fails_names_its_case(world: World) -> None:
    """A template that cannot be filled fails the switch, and no case begins. FL-13."""
    cases = (Case(BIG, (data("a"),)), Case("{{ variables.amount / 0 }}", (data("b"),)))
    _, run = await begun(world, SwitchStep("size", cases), amount=1)
    result = run.step_results["size"]
    assert result.status is StepStatus.FAILED
    assert (result.error or "").startswith("cases[1].when: ")


async def test_cases_do_not_see_one_another(world: World) -> None:
    """A step of another case is an unknown name when the workflow is applied. FL-13."""
    ann = await world.account()
    switch = SwitchStep(
        "s", (Case("{{ true }}", (data("a"),)),), (data("b", "{{ steps.a.output }}"),)
    )
    with pytest.raises(InvalidDefinition) as caught:
        await world.workflow(ann, switch)
    assert [one.path for one in caught.value.problems] == ["steps[0].else[0].value"]


async def test_long_work_is_done_in_turns(world: World) -> None:
    """EX-33: between two of them everybody else is served, and whoever is free goes on."""
    world = evolve(world, services=evolve(world.services, policy=Policy(facts_at_once=10)))
    ann = await world.account()
    long = LoopStep("each", list(range(20)), "item", (data("one", 1), data("two", 2)))
    id = await world.start(ann, await world.workflow(ann, long))
    run = await read(world, ann, id)
    assert (run.status, run.worker, len(run.step_results)) == (S.RUNNING, None, 10)
    assert run.due_at == world.services.store.now()
    world.clock.advance(1)
    other = await world.start(ann, await world.workflow(ann, data("short", 1)))
    turns = 1
    while (await read(world, ann, id)).status is S.RUNNING:
        leases = await running.claim(world.services, f"w{turns}", 5)
        for lease in leases:
            await running.begin(world.services, lease)
        turns += 1
    assert (await read(world, ann, other)).status is S.COMPLETED
    run = await read(world, ann, id)
    assert (run.output, len(run.step_results), turns) == ([2] * 20, 41, 5)
    async with world.services.store.view() as view:
        events = await view.events.of_execution(id, 0, 999)
    assert len(events) == 2 * 41 + 3 == run.events


async def test_a_worker_that_dies_between_two_turns_costs_nothing(world: World) -> None:
    """EX-33, EX-15: another one goes on; nothing is lost and nothing decided twice."""
    world = evolve(world, services=evolve(world.services, policy=Policy(facts_at_once=3)))
    ann = await world.account()
    steps = [data(f"d{number}", number) for number in range(7)]
    id = await world.start(ann, await world.workflow(ann, *steps))
    await running.claim(world.services, "w2", 1)  # and dies
    world.clock.advance(Policy().lease_ms + 1)
    await sweep(world.services)
    while (await read(world, ann, id)).status is S.RUNNING:
        await world.take("w3")
    run = await read(world, ann, id)
    assert (run.status, run.output) == (S.COMPLETED, 6)
    assert [one.attempts for one in run.step_results.values()] == [1] * 7
