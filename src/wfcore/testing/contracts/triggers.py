"""The promises of a store about triggers and their timers."""

import asyncio
from typing import Any

import pytest

from wfcore.errors import Stale
from wfcore.model.approval import ApprovalStatus
from wfcore.model.execution import (
    Execution,
    ExecutionStatus,
    StepResult,
    StepStatus,
    Usage,
    evolve,
)
from wfcore.model.page import PageRequest
from wfcore.model.trigger import Timer, Trigger
from wfcore.ports.records import HOURS, WEEK, Activity, LatestExecution
from wfcore.ports.store import Store
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.testing.contracts.keeping import keep
from wfcore.testing.contracts.lists import at, ids
from wfcore.time import DAY, HOUR, EpochMs


class TriggerContract:
    """The promises about triggers and timers. See `keeping.Handles` for the fixtures."""

    async def test_triggers_are_found_by_what_they_watch(self, store: Store) -> None:
        """
        Triggers are found by any of several keys, oldest first, with changes and deletions applied.
        """
        await keep(
            store,
            make.trigger("trg_b", watches="id:wf_9", created_at=at(2)),
            make.trigger("trg_a", watches="name:acc_1:x", created_at=at(1)),
            make.trigger("trg_c", watches="id:wf_8"),
            make.trigger("trg_d"),
        )
        keys = ("id:wf_9", "name:acc_1:x")
        async with store.view() as view:
            assert ids(await view.triggers.watching(keys)) == ["trg_a", "trg_b"]
            assert ids(await view.triggers.watching(("id:wf_7",))) == []
        async with store.unit() as unit:
            moved = make.trigger("trg_c", watches="id:wf_9", created_at=at(3), version=1)
            unit.put(moved)
            unit.delete(make.trigger("trg_b", version=1))
            assert ids(await unit.triggers.watching(keys)) == ["trg_a", "trg_c"]
            await unit.commit()
        async with store.view() as view:
            assert ids(await view.triggers.watching(keys)) == ["trg_a", "trg_c"]

    async def test_triggers_are_listed(self, store: Store) -> None:
        """
        The triggers of a workflow are listed oldest first; all triggers newest first and in pages.
        """
        await keep(
            store,
            make.trigger("trg_2", created_at=at(2)),
            make.trigger("trg_1", created_at=at(1)),
            make.trigger("trg_3", workflow_id="wf_2", created_at=at(3)),
        )
        async with store.view() as view:
            assert ids(await view.triggers.of_workflow("wf_1")) == ["trg_1", "trg_2"]
            both = await view.triggers.of_workflows(["wf_2", "wf_1", "wf_9"])
            assert ids(both) == ["trg_1", "trg_2", "trg_3"]
            page = await view.triggers.list(PageRequest(1, 2))
            assert (ids(page.rows), page.total) == (["trg_3", "trg_2"], 3)

    async def test_triggers_of_an_owner_are_listed(self, store: Store) -> None:
        """The triggers of an owner's workflows are listed newest first and in pages."""
        await keep(
            store,
            make.workflow("wf_1", name="a"),
            make.workflow("wf_2", name="b"),
            make.workflow("wf_3", owner_id="acc_2"),
            *(make.trigger(f"trg_{n}", workflow_id=f"wf_{n}", created_at=at(n)) for n in (1, 2, 3)),
        )
        async with store.view() as view:
            found = await view.triggers.of_owner("acc_1", PageRequest(1, 1))
            assert (ids(found.rows), found.total) == (["trg_2"], 2)
            assert ids(await view.triggers.of_owner("acc_2", PageRequest(1, 9))) == ["trg_3"]

    async def test_what_a_workflow_does_is_summed_up(self, store: Store) -> None:
        """
        The activity of a workflow contains its last execution, ends by the hour, open approvals and
        the next timer, as far as the account sees them. Workflows that are unknown or were not
        requested are left out.
        """
        failed, done = ExecutionStatus.FAILED, ExecutionStatus.COMPLETED
        theirs = {"workflow_id": "wf_1", "owner_id": "acc_2"}
        await keep(
            store,
            make.workflow("wf_1", name="a"),
            make.workflow("wf_2", name="b"),
            make.execution("e1", accepted_at=at(0), status=done, workflow_id="wf_1"),
            make.execution("e2", accepted_at=at(HOUR - 1), status=failed, workflow_id="wf_1"),
            make.execution("e3", accepted_at=at(HOUR), status=failed, **theirs),
            make.execution("e4", accepted_at=at(2 * HOUR), workflow_id="wf_1"),
            make.execution("e5", accepted_at=at(-1), status=done, workflow_id="wf_1"),
            make.execution("e6", accepted_at=at(24 * HOUR), status=done, **theirs),
            make.approval("a1", workflow_id="wf_1"),
            make.approval("a2", **theirs),
            make.approval("a3", workflow_id="wf_1", status=ApprovalStatus.APPROVED),
            make.trigger("trg_1", workflow_id="wf_1"),
            make.timer("t1", due_at=at(9)),
            make.timer("t2", due_at=at(8)),
        )
        rest = ((0, 0),) * 22
        every = Activity("e6", done, at(24 * HOUR), ((1, 1), (0, 1), *rest), 2, at(8))
        part = Activity("e6", done, at(24 * HOUR), ((0, 0), (0, 1), *rest), 1, at(8))
        async with store.view() as view:
            look = view.workflows.activity
            assert await look(["wf_1", "wf_9"], "acc_1", NOW) == {"wf_1": every}
            assert await look(["wf_1"], None, NOW) == {"wf_1": every}
            assert await look(["wf_1"], "acc_2", NOW) == {"wf_1": part}
            assert await look(["wf_2"], "acc_1", NOW) == {"wf_2": Activity(ends=((0, 0),) * 24)}
            assert await look([], "acc_1", NOW) == {}
            days = Activity("e6", done, at(24 * HOUR), ((1, 2), (1, 0)), 2, at(8))
            assert await look(["wf_1"], None, NOW, DAY, 2) == {"wf_1": days}

    async def test_the_latest_executions_of_each_workflow(self, store: Store) -> None:
        """
        The newest executions of each workflow come newest first, up to the limit, as far as the
        account sees them. A workflow without executions is left out.
        """
        done = ExecutionStatus.COMPLETED
        ended = {"status": done, "completed_at": at(9)}
        await keep(
            store,
            make.workflow("wf_1", name="a"),
            make.workflow("wf_2", name="b"),
            make.workflow("wf_3", name="c"),
            make.execution("e1", accepted_at=at(0), workflow_id="wf_1", **ended),
            make.execution("e2", accepted_at=at(2), workflow_id="wf_1", owner_id="acc_2"),
            make.execution("e3", accepted_at=at(1), workflow_id="wf_1", **ended),
            make.execution("e4", accepted_at=at(1), workflow_id="wf_2", **ended),
        )
        open = ExecutionStatus.PENDING
        e2 = LatestExecution("e2", open, at(2))
        e3, e4 = (LatestExecution(id, done, at(1), at(9)) for id in ("e3", "e4"))
        async with store.view() as view:
            latest = view.workflows.latest
            every = ["wf_1", "wf_2", "wf_3"]
            assert await latest(every, "acc_1", 2) == {"wf_1": [e2, e3], "wf_2": [e4]}
            assert await latest(["wf_1"], None, 1) == {"wf_1": [e2]}
            assert await latest(every, "acc_2", 2) == {"wf_1": [e2]}
            assert await latest([], "acc_1", 2) == {}

    async def test_durations_of_each_span(self, store: Store) -> None:
        """
        Each span has the durations of the newest executions that the account accepted in it and
        that completed, the shortest first, up to the limit.
        """
        done = ExecutionStatus.COMPLETED

        def took(id: str, begin: int, end: int, **fields: Any) -> Execution:
            known = {"status": done, **fields}
            return make.execution(id, accepted_at=at(begin), completed_at=at(end), **known)

        await keep(
            store,
            took("e1", 0, 9),
            took("e2", 1, 3),
            took("e3", 2, 7),
            took("e4", HOUR, HOUR + 4),
            took("e5", HOUR, HOUR + 1, status=ExecutionStatus.FAILED),
            took("e6", HOUR, HOUR + 1, owner_id="acc_2"),
            took("e7", 3 * HOUR, 3 * HOUR + 1),
            took("e8", -1, 1),
        )
        async with store.view() as view:
            found = await view.executions.durations("acc_1", NOW, HOUR, 3, 2)
            assert found == {0: [2, 5], 1: [4]}

    async def test_costs_of_a_week_are_summed_exactly(self, store: Store) -> None:
        """
        The costs of executions that ended within the week are summed with all digits. An execution
        with an unpriced step is only counted; an execution that ends later is added then.
        """
        week, late = at(HOUR * HOURS - WEEK), at(5)
        until = make.execution("e6", accepted_at=late, step_results=_spent(late, "0.25"))
        await keep(
            store,
            make.workflow("wf_1", name="a"),
            _costing("e1", week, "0.1", "0.000000000001"),
            _costing("e2", at(0), "5000000.000000000003"),
            _costing("e3", at(1), None, "7"),
            _costing("e4", EpochMs(week - 1), "1"),
            _costing("e5", at(2), "5000000", owner_id="acc_2"),
            until,
        )
        async with store.view() as view:
            (found,) = (await view.workflows.activity(["wf_1"], None, NOW)).values()
            assert (found.cost_usd, found.unpriced) == ("10000000.100000000004", 1)
            (found,) = (await view.workflows.activity(["wf_1"], "acc_2", NOW)).values()
            assert (found.cost_usd, found.unpriced) == ("5000000", 0)
        await keep(store, evolve(until, version=1, status=ExecutionStatus.FAILED))
        async with store.view() as view:
            (found,) = (await view.workflows.activity(["wf_1"], None, NOW)).values()
            assert (found.cost_usd, found.unpriced) == ("10000000.350000000004", 1)

    async def test_due_timers_come_oldest_first(self, store: Store) -> None:
        """
        `due` returns due timers, oldest first. `next_due` and `next_of` return the earliest
        instant: of all timers, and of one trigger.
        """
        await keep(
            store,
            make.timer("t3", due_at=at(3)),
            make.timer("t1", due_at=at(1), trigger_id="trg_2"),
            make.timer("t2", due_at=at(2)),
        )
        async with store.view() as view:
            assert ids(await view.timers.due(at(2), 9)) == ["t1", "t2"]
            assert ids(await view.timers.due(at(9), 2)) == ["t1", "t2"]
            assert await view.timers.next_due() == at(1)
            assert await view.timers.next_of("trg_1") == at(2)
            assert await view.timers.next_of("trg_9") is None

    async def test_a_store_without_timers_has_nothing_due(self, store: Store) -> None:
        """`next_due` is None if no timer is set."""
        async with store.view() as view:
            assert await view.timers.next_due() is None
            assert list(await view.timers.due(NOW, 9)) == []

    async def test_a_timer_is_consumed_once(self, store: Store, another: Store) -> None:
        """
        Of many units that delete the same timer exactly one commits; the others change nothing.
        """
        await keep(store, make.timer(due_at=NOW))

        async def consume(number: int) -> bool:
            async with (store, another)[number % 2].unit() as unit:
                timer = await unit.get(Timer, "trg_1@1")
                await asyncio.sleep(0)
                if timer is None:
                    return False
                unit.delete(timer)
                unit.put(make.execution(f"e{number}"))
                await asyncio.sleep(0)
                try:
                    await unit.commit()
                except Stale:
                    return False
                return True

        assert sum(await asyncio.gather(*(consume(number) for number in range(8)))) == 1
        async with store.view() as view:
            found = [await view.get(Execution, f"e{number}") for number in range(8)]
            assert sum(run is not None for run in found) == 1
            assert await view.get(Timer, "trg_1@1") is None

    async def test_a_timer_stands_for_one_thing_once(self, store: Store) -> None:
        """A second timer with the same id is stale while the first exists."""
        await keep(store, make.timer())
        with pytest.raises(Stale):
            await keep(store, make.timer(due_at=at(5)))

    async def test_deleting_a_trigger_takes_its_timers(self, store: Store) -> None:
        """
        Deleting a trigger compares the version and deletes the trigger's timers. Other timers stay.
        """
        await keep(
            store,
            make.trigger(),
            make.timer("a"),
            make.timer("b", due_at=at(9)),
            make.timer("other", trigger_id="trg_2"),
        )
        async with store.unit() as unit:
            unit.delete(make.trigger(version=7))
            with pytest.raises(Stale):
                await unit.commit()
        async with store.unit() as unit:
            unit.delete(make.trigger(version=1))
            assert await unit.get(Trigger, "trg_1") is None
            assert ids(await unit.timers.due(at(99), 9)) == ["other"]
            await unit.commit()
        async with store.view() as view:
            found = [await view.get(Timer, id) for id in ("a", "b", "other")]
        assert found == [None, None, Timer("other", "trg_2", EpochMs(NOW), version=1)]


def _spent(at: EpochMs, *costs: str | None) -> dict[str, StepResult]:
    """Results of steps that began at an instant, one for each cost."""
    done = StepStatus.COMPLETED
    return {f"s{n}": StepResult(done, at, usage=Usage(1, 1, one)) for n, one in enumerate(costs)}


def _costing(id: str, accepted: EpochMs, *costs: str | None, **fields: str) -> Execution:
    """An ended execution with a step for each of the costs."""
    return make.execution(
        id,
        workflow_id="wf_1",
        status=ExecutionStatus.COMPLETED,
        accepted_at=accepted,
        step_results=_spent(accepted, *costs),
        **fields,
    )
