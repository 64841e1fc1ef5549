"""The promises of a store about claims and leases."""

import asyncio
from typing import Any

import pytest
from attrs import evolve

from wfcore.errors import Stale
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.ports.store import Slots, Store
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.testing.contracts.keeping import Elapse, keep
from wfcore.testing.contracts.lists import at, ids
from wfcore.time import HOUR, DurationMs, later

LEASE = HOUR
"""A lease that does not end within a test."""
BRIEF = DurationMs(5)
"""A lease that ends while a test lets some time pass."""
OVER = BRIEF + 1
MANY = Slots(places=1_000)


async def read(store: Store, id: str) -> Execution:
    """Return the stored execution."""
    async with store.view() as view:
        run = await view.get(Execution, id)
    assert run is not None
    return run


async def claim(
    store: Store, worker: str = "w1", slots: Slots = MANY, limit: int = 100, **which: Any
) -> list[str]:
    """Return the ids that *worker* gets, in order."""
    return ids(await store.claim(worker, LEASE, slots, limit, **which))


async def abandoned(store: Store, limit: int = 9) -> list[str]:
    """Return the ids of executions whose worker is gone."""
    async with store.view() as view:
        return ids(await view.executions.abandoned(limit))


class ClaimContract:
    """The promises about claims and leases. See `keeping.Handles` for the fixtures."""

    async def test_a_claim_takes_what_is_due_and_says_what_it_stored(self, store: Store) -> None:
        """
        A claim takes unfinished, due, unclaimed executions, and returns them exactly as stored.
        """
        awaiting, failed = ExecutionStatus.AWAITING_APPROVAL, ExecutionStatus.FAILED
        result = {"a": make.step_result(output={"n": 1})}
        await keep(
            store,
            make.execution("late", due_at=later(store.now(), HOUR)),
            make.execution("idle", due_at=None),
            make.execution("held", worker="other"),
            make.execution("waits", status=awaiting, due_at=None),
            make.execution("broken", status=ExecutionStatus.INTERRUPTED),
            make.execution("failed", status=failed),
            make.execution("due", fence=4, step_results=result, variables={"x": 1}),
            make.execution("goes", status=ExecutionStatus.RUNNING, due_at=at(-5)),
            make.execution("asks", status=awaiting, due_at=at(-4)),
        )
        async with store.view() as view:
            assert await view.executions.next_due() == at(-5)
        taken = await store.claim("w1", LEASE, MANY, 10)
        assert ids(taken) == ["goes", "asks", "due"]
        due = taken[2]
        assert due == make.execution(
            "due",
            fence=5,
            version=2,
            worker="w1",
            due_at=None,
            step_results=result,
            variables={"x": 1},
        )
        assert await read(store, "due") == due
        assert await claim(store, "w2") == []

    async def test_of_many_workers_each_execution_goes_to_one(
        self, store: Store, another: Store
    ) -> None:
        """Racing claims never share an execution and leave none unclaimed."""
        await keep(store, *(make.execution(f"e{n}", owner_id=f"acc_{n % 3}") for n in range(40)))

        async def work(handle: Store, worker: str) -> list[str]:
            mine: list[str] = []
            while got := await claim(handle, worker, limit=3):
                mine += got
                await asyncio.sleep(0)
            return mine

        handles = (store, another) * 3
        workers = (work(handle, f"w{n}") for n, handle in enumerate(handles))
        shares = await asyncio.gather(*workers)
        everything = [id for share in shares for id in share]
        assert len(everything) == 40
        assert set(everything) == {f"e{n}" for n in range(40)}

    async def test_the_earliest_due_comes_first(self, store: Store) -> None:
        """Within an account executions are claimed in the order of their due times."""
        await keep(store, *(make.execution(f"e{n}", due_at=at(-n)) for n in (1, 3, 2)))
        assert await claim(store, limit=1) == ["e3"]
        assert await claim(store) == ["e2", "e1"]

    async def test_the_account_with_the_fewest_places_comes_first(self, store: Store) -> None:
        """A flood of one account does not delay another account's first execution."""
        flood = [make.execution(f"a{n}", owner_id="acc_a", due_at=at(n - 9)) for n in range(4)]
        calm = [make.execution(f"b{n}", owner_id="acc_b", due_at=at(n - 2)) for n in range(2)]
        await keep(store, *flood, *calm)
        assert await claim(store, limit=1) == ["a0"]
        assert await claim(store) == ["b0", "a1", "b1", "a2", "a3"]

    async def test_an_account_alone_takes_every_place(self, store: Store) -> None:
        """No slot is reserved while no other account has had work."""
        await keep(store, *(make.execution(f"a{n}", owner_id="acc_a") for n in range(9)))
        assert len(await claim(store, slots=Slots(places=8))) == 8

    @pytest.mark.parametrize("given_places", [2, 3, 8])
    async def test_a_flood_leaves_the_last_place(
        self, store: Store, another: Store, given_places: int
    ) -> None:
        """
        If another account has had work recently, on any worker, its next execution begins at once.
        """
        slots = Slots(given_places)
        await keep(store, make.execution("b0", owner_id="acc_b"))
        (done,) = await another.claim("w2", LEASE, slots, 9)
        await keep(store, evolve(done, worker=None, status=ExecutionStatus.COMPLETED))
        await keep(store, *(make.execution(f"a{n}", owner_id="acc_a") for n in range(9)))
        assert len(await claim(store, slots=slots)) == given_places - 1
        assert await claim(store, slots=slots) == []
        await keep(store, make.execution("b1", owner_id="acc_b"))
        assert await claim(store, slots=slots) == ["b1"]

    @pytest.mark.parametrize("given_places", [3, 8])
    async def test_two_floods_leave_the_last_place(self, store: Store, given_places: int) -> None:
        """A third account's first execution begins at once, however many other accounts flood."""
        floods = [make.execution(f"{a}{n}", owner_id=f"acc_{a}") for a in "ab" for n in range(9)]
        await keep(store, *floods)
        slots = Slots(given_places)
        assert len(await claim(store, slots=slots)) == given_places - 1
        await keep(store, make.execution("c0", owner_id="acc_c"))
        assert await claim(store, slots=slots) == ["c0"]

    async def test_what_was_given_long_ago_keeps_no_place(
        self, store: Store, elapse: Elapse
    ) -> None:
        """The last slot is reserved only for as long as `Slots.lately_ms` says."""
        await keep(store, make.execution("b0", owner_id="acc_b"))
        (done,) = await store.claim("w2", LEASE, MANY, 9)
        await keep(store, evolve(done, worker=None, status=ExecutionStatus.COMPLETED))
        await keep(store, *(make.execution(f"a{n}", owner_id="acc_a") for n in range(9)))
        assert len(await claim(store, slots=Slots(places=3, lately_ms=HOUR))) == 2
        await elapse(OVER)
        assert len(await claim(store, slots=Slots(places=3, lately_ms=BRIEF))) == 1

    async def test_accounts_take_turns_at_one_place(self, store: Store, elapse: Elapse) -> None:
        """
        The account served longest ago comes first, even if another account's flood has waited
        longer.
        """
        flood = [make.execution(f"a{n}", owner_id="acc_a", due_at=at(n - 9)) for n in range(5)]
        calm = [make.execution(f"b{n}", owner_id="acc_b", due_at=at(n - 2)) for n in range(2)]
        await keep(store, *flood, *calm)
        order: list[str] = []
        while got := await store.claim("w1", LEASE, Slots(places=1), 9):
            order += ids(got)
            await elapse(1)
            done = evolve(got[0], worker=None, status=ExecutionStatus.COMPLETED)
            await keep(store, done)
        assert order == ["a0", "b0", "a1", "b1", "a2", "a3", "a4"]

    async def test_releasing_frees_the_place(self, store: Store) -> None:
        """A put without a worker frees the slot, and a due execution can be claimed again."""
        await keep(store, make.execution("e1"), make.execution("e2"))
        slots = Slots(places=1)
        first = (await store.claim("w1", LEASE, slots, 9))[0]
        assert await claim(store, slots=slots) == []
        await keep(store, evolve(first, worker=None, due_at=NOW))
        again = await store.claim("w1", LEASE, slots, 9)
        assert [(run.id, run.fence) for run in again] == [("e1", 2)]

    async def test_a_write_from_before_the_claim_is_stale(self, store: Store) -> None:
        """A unit that read before a claim cannot write after the claim."""
        await keep(store, make.execution())
        old = await read(store, "exec_1")
        await claim(store)
        with pytest.raises(Stale):
            await keep(store, old)

    async def test_particular_executions_are_claimed(self, store: Store, another: Store) -> None:
        """
        A claim of `ids` takes the due and unclaimed executions of these ids, in order, each once.
        """
        await keep(
            store,
            make.execution("e1", due_at=at(-1)),
            make.execution("e2", due_at=at(-2)),
            make.execution("e3", due_at=at(-3)),
            make.execution("late", due_at=later(store.now(), HOUR)),
        )
        assert await claim(store, ids=["unknown"]) == []
        assert await claim(store, ids=[]) == []
        assert await claim(store, ids=["late", "e1", "e2"]) == ["e2", "e1"]
        assert await claim(another, "w2", ids=["e1", "e3"], limit=1) == ["e3"]
        assert await claim(store, ids=["e3"]) == []

    async def test_a_particular_execution_waits_in_its_group(self, store: Store) -> None:
        """
        Naming an execution does not let it overtake others in its group or take a reserved slot.
        """
        async with store.unit() as unit:
            unit.limit_group("wf_1", 1)
            await unit.commit()
        group = {"concurrency_group": "wf_1"}
        await keep(store, make.execution("e1", due_at=at(-1), **group))
        await keep(store, make.execution("e2", **group), make.execution("e3"))
        assert await claim(store, ids=["e2"]) == []
        assert await claim(store, ids=["e1", "e2"]) == ["e1"]
        assert await claim(store, slots=Slots(places=1), ids=["e3"]) == []

    async def test_a_worker_takes_what_it_is_able_to_do(self, store: Store) -> None:
        """
        An execution goes to a worker with all capabilities that the execution needs. None means
        every capability.
        """
        await keep(
            store,
            make.execution("any", due_at=at(-3)),
            make.execution("ruby", due_at=at(-2), capabilities=("language:ruby",)),
            make.execution("both", due_at=at(-1), capabilities=("language:ruby", "network")),
        )
        assert await claim(store, able=["language:python"], limit=1) == ["any"]
        assert await claim(store, able=[]) == []
        async with store.view() as view:
            assert await view.executions.next_due({"network"}) is None
            assert await view.executions.next_due({"network", "language:ruby"}) == at(-2)
        assert await claim(store, able={"network"}, ids=["ruby", "both"]) == []
        assert await claim(store, able=("language:ruby", "gpu")) == ["ruby"]
        assert await claim(store) == ["both"]

    async def test_of_racing_claims_of_one_execution_one_gets_it(
        self, store: Store, another: Store
    ) -> None:
        """An execution starts once even if a queue delivers its id to two machines."""
        await keep(store, *(make.execution(f"e{n}") for n in range(20)))
        handles = [(store, "w1"), (another, "w2"), (another, "w3"), (store, "w4")]
        for n in range(20):
            tries = (claim(handle, worker, ids=[f"e{n}"]) for handle, worker in handles)
            assert sorted(await asyncio.gather(*tries)) == [[], [], [], [f"e{n}"]]

    async def test_a_lease_that_is_over_is_abandoned(self, store: Store, elapse: Elapse) -> None:
        """
        Executions are abandoned once their lease has expired; an extended lease expires later.
        """
        await store.enlist("w1")
        await store.enlist("w2")
        await keep(store, *(make.execution(f"e{n}") for n in (1, 2, 3, 4)))
        await store.claim("w1", BRIEF, MANY, 2)
        await store.claim("w2", BRIEF, MANY, 1)
        assert await claim(store, "w2") == ["e4"]
        await elapse(OVER)
        assert await abandoned(store) == ["e1", "e2", "e3"]
        assert len(await abandoned(store, 2)) == 2
        everything = ("e1", "e2", "e3", "unknown")
        assert await store.extend("w1", everything, LEASE) == {"e1": None, "e2": None}
        assert await store.extend("w9", everything, LEASE) == {}
        assert await abandoned(store) == ["e3"]
        assert await store.extend("w1", ("e2",), BRIEF) == {"e2": None}
        await elapse(OVER)
        assert await abandoned(store) == ["e2", "e3"]

    async def test_somebody_is_elected_and_stays(
        self, store: Store, another: Store, elapse: Elapse
    ) -> None:
        """
        The elected worker is elected again; another worker may be elected once the lease has
        expired.
        """
        assert await store.elect("sweep", LEASE)
        assert await store.elect("sweep", BRIEF)
        await elapse(OVER)
        assert await another.elect("sweep", LEASE)

    async def test_handles_agree_about_the_time(self, store: Store, another: Store) -> None:
        """All handles of a store report the same time, which never goes back."""
        told = [handle.now() for handle in (store, another) * 5]
        assert told == sorted(told)

    async def test_a_lease_that_was_extended_in_time_keeps_its_execution(
        self, store: Store, another: Store, elapse: Elapse
    ) -> None:
        """
        A unit that saw the lease expired cannot take the execution once another handle has extended
        the lease.
        """
        await store.enlist("w1")
        await keep(store, make.execution("e1"), make.execution("e2"))
        await store.claim("w1", BRIEF, MANY, 2)
        await elapse(OVER)
        async with another.unit() as kept, another.unit() as gone, another.unit() as alike:
            for unit, id in ((kept, "e1"), (gone, "e2"), (alike, "e2")):
                run = await unit.get(Execution, id)
                assert run is not None
                unit.require_abandoned(run)
                unit.put(evolve(run, worker=None, due_at=NOW))
            assert await store.extend("w1", ("e1",), LEASE) == {"e1": None}
            await gone.commit()
            for unit in (kept, alike):
                with pytest.raises(Stale):
                    await unit.commit()
        assert (await read(store, "e1")).worker == "w1"
        assert (await read(store, "e2")).worker is None

    async def test_what_nobody_holds_is_not_abandoned(self, store: Store) -> None:
        """`require_abandoned` makes a unit stale if no worker holds the execution."""
        await keep(store, make.execution())
        async with store.unit() as unit:
            unit.require_abandoned(await read(store, "exec_1"))
            with pytest.raises(Stale):
                await unit.commit()

    async def test_a_lease_that_its_worker_does_not_name_runs_out(
        self, store: Store, elapse: Elapse
    ) -> None:
        """
        Only the leases that the worker names are extended, because the answer to a claim may be
        lost.
        """
        await store.enlist("w1")
        await keep(store, make.execution("e1"), make.execution("e2"))
        await store.claim("w1", BRIEF, MANY, 2)
        assert await store.extend("w1", ("e2",), LEASE) == {"e2": None}
        assert await store.extend("w1", (), LEASE) == {}
        await elapse(OVER)
        assert await abandoned(store) == ["e1"]

    async def test_what_is_held_and_due_is_told_to_its_holder(self, store: Store) -> None:
        """
        A `due_at` put while a worker holds the execution is returned when the lease is extended.
        """
        await keep(store, make.execution("e1"), make.execution("e2"))
        (first, _) = await store.claim("w1", LEASE, MANY, 2)
        await keep(store, evolve(first, due_at=at(7)))
        assert await store.extend("w1", ("e1", "e2"), LEASE) == {"e1": at(7), "e2": None}
        assert await claim(store, "w2") == []

    async def test_a_lease_outlives_puts_of_its_worker_only(
        self, store: Store, elapse: Elapse
    ) -> None:
        """A put that keeps the worker keeps the lease; a put without a worker ends the lease."""
        await store.enlist("w1")
        await keep(store, make.execution("e1"), make.execution("e2"), make.execution("e3"))
        for run in await store.claim("w1", LEASE, MANY, 3):
            await keep(store, evolve(run, status=ExecutionStatus.RUNNING))
        done = await read(store, "e2")
        await keep(store, evolve(done, worker=None, status=ExecutionStatus.COMPLETED))
        assert await abandoned(store) == []
        assert await store.extend("w1", ("e1", "e2", "e3"), BRIEF) == {"e1": None, "e3": None}
        await keep(store, evolve(await read(store, "e3"), resumes=1))
        await elapse(OVER)
        assert await abandoned(store) == ["e1", "e3"]
        assert await store.extend("w1", ("e1", "e3"), LEASE) == {"e1": None, "e3": None}
        await keep(store, evolve(await read(store, "e1"), worker=None))
        await keep(store, evolve(await read(store, "e1"), worker="w1"))
        assert await abandoned(store) == ["e1"]
