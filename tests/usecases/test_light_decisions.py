"""Decisions after which no worker is needed: what follows is in the same unit. EX-34."""

from collections.abc import Mapping

import pytest
from attrs import evolve

from postgres_server import emptied
from usecases.conftest import World, a_world, code, review
from usecases.test_data_and_switch import data
from usecases.test_light_starts import events_of
from usecases.test_notices import addresses, ensured, told
from usecases.test_trees import ask, both, decide, each, open_ones, read, started
from wfcore.errors import StoreUnavailable
from wfcore.model.approval import Approval
from wfcore.model.event import Event
from wfcore.model.execution import Execution
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.workflow import DelayStep, Step
from wfcore.usecases.approvals import approvals
from wfcore.usecases.executions import worker as running

__all__ = ["told"]

NAP = DelayStep("nap", 5)  # type: ignore[arg-type]
WAYS: Mapping[str, tuple[Step, ...]] = {
    "ends": (review(), data("a", 1), data("b", "{{ steps.a.output }}")),
    "fails": (review(), data("a", 1), each("{{ steps.a.output }}", data("b"))),
    "asks again": (review(), data("a", 1), ask("again")),
    "sleeps": (review(), NAP, data("a", 1)),
    "still waits": (both((review(),), (ask("other"),)), data("a", 1)),
}


Found = tuple[Execution, list[Event], dict[str, Approval]]


async def moved(world: World, alone: bool, *steps: Step) -> Found:
    """What an execution comes to after a yes, by itself or taken by a worker at once."""
    ann, id = await started(world, *steps)
    asked = (await open_ones(world, ann, id))["review"]
    with pytest.MonkeyPatch.context() as patch:
        if not alone:
            patch.setattr(approvals, "moved_alone", lambda moved, *_: moved)
        await decide(world, ann, asked)
    if not alone:
        (lease,) = await running.claim(world.services, "w1", 1)
        await running.begin(world.services, lease)
    found = evolve(await read(world, ann, id), version=0, fence=0)
    return found, await events_of(world, id), await open_ones(world, ann, id)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("url", ["memory:", None], ids=["memory", "sqlite"])
async def test_it_comes_to_what_a_worker_makes_of_it(way: str, url: str | None, tmp_path) -> None:
    """Record, events and approvals are the same, and nothing is left to claim. EX-34."""
    found = []
    for alone in (True, False):
        async with a_world(url, tmp_path / str(alone)) as world:
            found.append(_without_ids(await moved(world, alone, *WAYS[way])))
            assert not await running.claim(world.services, "w2", 5)
    assert found[0] == found[1]


def _without_ids(found: Found) -> str:
    """The entry of the audit log has taken the next id before, or takes it afterwards."""
    text = repr(found)
    for one in found[2].values():
        text = text.replace(one.id, one.step_name)
    return text


async def test_on_postgresql_too(database: str, tmp_path) -> None:
    """One statement stores the decision with all that follows from it. EX-34."""
    async with a_world(await emptied(database), tmp_path) as world:
        run, events, asked = await moved(world, True, *WAYS["asks again"])
        assert (run.status, [*asked]) == (S.AWAITING_APPROVAL, ["again"])
        assert [one.number for one in events] == list(range(1, run.events + 1))


async def test_one_commit_and_nobody_is_woken(world: World) -> None:
    """The decision and the end are one version of the record; only followers are told. EX-34."""
    ann, id = await started(world, review(), data("a", 1))
    (asked,) = (await open_ones(world, ann, id)).values()
    before = await read(world, ann, id)
    world.hints.told.clear()
    await decide(world, ann, asked)
    run = await read(world, ann, id)
    assert (run.status, run.output, run.version) == (S.COMPLETED, 1, before.version + 1)
    assert world.hints.told == [("events", id)]


async def test_what_starts_something_is_left_to_a_worker(world: World) -> None:
    """Where a step of it starts a process, a worker takes it as the decision left it. EX-34."""
    ann, id = await started(world, review(), data("a", 1), code("one"))
    (asked,) = (await open_ones(world, ann, id)).values()
    world.hints.told.clear()
    await decide(world, ann, asked)
    assert [name for name, *_ in world.hints.told] == ["events", "runner"]
    assert list((await read(world, ann, id)).step_results) == ["review"]
    _, (job,) = await world.take()
    assert job.step_name == "one"


async def test_a_lost_commit_leaves_the_question_open(world: World) -> None:
    """The decision and what follows are one fact: a store that fails knows neither. AP-6, EX-34."""
    ann, id = await started(world, review(), data("a", 1))
    (asked,) = (await open_ones(world, ann, id)).values()
    async with world.services.store.unit() as unit:
        kind = type(unit)

    async def fails(self: object) -> None:
        raise StoreUnavailable

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "commit", fails)
        with pytest.raises(StoreUnavailable):
            await decide(world, ann, asked)
    assert (await read(world, ann, id)).status is S.AWAITING_APPROVAL
    assert await open_ones(world, ann, id) == {"review": asked}


async def test_people_are_told_of_what_follows(told: World) -> None:
    """NT-3: of the next approval, and of a failure, as where a worker goes on."""
    for name, steps, kind in (
        ("asks", (review(), ask("again", approvers=("bob@example.org",))), "approval.opened"),
        (
            "fails",
            (review(), data("a", 1), each("{{ steps.a.output }}", data("b"))),
            "execution.failed",
        ),
    ):
        ann = await ensured(told, "ann@example.org")
        flow = await told.workflow(ann, *steps, name=name, notify_on_failure=("finance",))
        id = await told.start(ann, flow)
        (asked,) = (await open_ones(told, ann, id)).values()
        before = await addresses(told)
        await decide(told, ann, asked)
        (new,) = await addresses(told) - before
        assert new[0] == kind
