"""
The promises of a store about concurrency groups: the limit is kept, in order, and no slot is lost.
"""

import asyncio
from typing import Any

import pytest
from attrs import evolve

from wfcore.errors import Stale
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.ports.store import Slots, Store
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.testing.contracts.claims import LEASE, MANY, claim, read
from wfcore.testing.contracts.keeping import keep
from wfcore.testing.contracts.lists import at

HOLDING = (
    ExecutionStatus.RUNNING,
    ExecutionStatus.AWAITING_APPROVAL,
    ExecutionStatus.INTERRUPTED,
    ExecutionStatus.PENDING,
)
ENDED = (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED)


def waiting(id: str, group: str = "wf_1", **fields: Any) -> Execution:
    """An execution that was never claimed."""
    return make.execution(id, concurrency_group=group, **fields)


async def limit(store: Store, at_once: int | None, workflow_id: str = "wf_1") -> None:
    """Set the limit of a workflow."""
    async with store.unit() as unit:
        unit.limit_group(workflow_id, at_once)
        await unit.commit()


async def end(store: Store, id: str, **fields: Any) -> None:
    """Let an execution end."""
    done = {"status": ExecutionStatus.COMPLETED, "worker": None, "due_at": None}
    await keep(store, evolve(await read(store, id), **{**done, "completed_at": NOW, **fields}))


class ConcurrencyContract:
    """The promises about concurrency groups. See `keeping.Handles` for the fixtures."""

    async def test_no_more_are_taken_than_the_limit_allows(self, store: Store) -> None:
        """
        The earliest executions are taken first; each end admits the next one, whichever worker
        claims.
        """
        await limit(store, 2)
        await keep(store, *(waiting(f"e{n}", due_at=at(-n)) for n in range(5)))
        assert await claim(store, "w1") == ["e4", "e3"]
        assert await claim(store, "w2") == []
        await end(store, "e3")
        assert await claim(store, "w2") == ["e2"]
        assert await claim(store, "w1") == []
        await end(store, "e4")
        await end(store, "e2")
        assert await claim(store, "w3") == ["e1", "e0"]

    async def test_equal_due_times_go_by_id(self, store: Store) -> None:
        """Executions of one group that were accepted in the same millisecond are ordered by id."""
        await limit(store, 1)
        await keep(store, *(waiting(f"e{n}") for n in (2, 1, 3)))
        assert await claim(store) == ["e1"]

    @pytest.mark.parametrize("given_status", HOLDING)
    async def test_what_was_taken_holds_its_place_until_it_ends(
        self, store: Store, given_status: ExecutionStatus
    ) -> None:
        """A claimed execution keeps its slot until its end, whatever its status."""
        await limit(store, 1)
        await keep(store, waiting("e1", due_at=at(-1)), waiting("e2"))
        assert await claim(store) == ["e1"]
        mine = evolve(await read(store, "e1"), status=given_status, worker=None)
        await keep(store, mine)
        assert await claim(store) == []
        await keep(store, evolve(mine, version=mine.version + 1, due_at=NOW))
        taken = [] if given_status is ExecutionStatus.INTERRUPTED else ["e1"]
        assert await claim(store, "w2") == taken
        assert await claim(store, "w3") == []

    @pytest.mark.parametrize("given_status", ENDED)
    async def test_every_end_gives_the_place_back(
        self, store: Store, given_status: ExecutionStatus
    ) -> None:
        """However an execution ends, claimed or still waiting, the next execution is admitted."""
        await limit(store, 1)
        await keep(store, *(waiting(f"e{n}", due_at=at(n - 9)) for n in (1, 2, 3, 4)))
        assert await claim(store) == ["e1"]
        await end(store, "e1", status=given_status)
        await end(store, "e2", status=given_status)
        assert await claim(store) == ["e3"]
        await end(store, "e4", status=given_status)
        await end(store, "e3", status=given_status)
        assert await claim(store) == []

    async def test_groups_do_not_wait_for_one_another(self, store: Store) -> None:
        """
        A full group blocks neither other groups nor executions without a group, of any account.
        """
        await limit(store, 1)
        await limit(store, 1, "wf_2")
        await keep(
            store,
            *(waiting(f"a{n}", due_at=at(n - 99)) for n in range(5)),
            waiting("b0", "wf_1:b", due_at=at(-3)),
            waiting("b1", "wf_1:b", due_at=at(-2)),
            waiting("c0", "wf_2", workflow_id="wf_2", due_at=at(-1)),
            make.execution("free"),
            make.execution("other", owner_id="acc_2", due_at=at(-4)),
        )
        assert sorted(await claim(store)) == ["a0", "b0", "c0", "free", "other"]
        assert await claim(store) == []
        await end(store, "b0")
        assert await claim(store) == ["b1"]

    async def test_a_group_is_shared_by_accounts(self, store: Store) -> None:
        """Executions of several accounts in one group are counted together, in one order."""
        await limit(store, 1)
        await keep(
            store,
            waiting("a1", owner_id="acc_a", due_at=at(-3)),
            waiting("b1", owner_id="acc_b", due_at=at(-2)),
            waiting("a2", owner_id="acc_a", due_at=at(-1)),
        )
        for id in ("a1", "b1", "a2"):
            assert await claim(store) == [id]
            await end(store, id)

    async def test_another_limit_holds_from_then_on(self, store: Store) -> None:
        """A raised limit admits more executions, a lowered limit none, and a removed limit all."""
        await limit(store, 1)
        await keep(store, *(waiting(f"e{n}", due_at=at(n - 99)) for n in range(9)))
        assert await claim(store) == ["e0"]
        await limit(store, 3)
        assert await claim(store, limit=1) == ["e1"]
        await limit(store, 1)
        assert await claim(store) == []
        await end(store, "e0")
        assert await claim(store) == []
        await end(store, "e1")
        assert await claim(store) == ["e2"]
        await limit(store, None)
        assert len(await claim(store)) == 6

    async def test_a_group_without_a_limit_is_open(self, store: Store) -> None:
        """If no limit was ever set, every execution is admitted."""
        await keep(store, *(waiting(f"e{n}") for n in range(3)))
        assert len(await claim(store)) == 3

    async def test_racing_workers_keep_the_limit(self, store: Store, another: Store) -> None:
        """Many workers that claim and end executions never exceed the limit."""
        await limit(store, 3)
        await keep(store, *(waiting(f"e{n:02}", owner_id=f"acc_{n % 4}") for n in range(40)))
        held: set[str] = set()
        order: list[str] = []

        async def work(handle: Store, worker: str) -> None:
            while len(order) < 40:
                taken = await handle.claim(worker, LEASE, Slots(places=2), 2)
                held.update(run.id for run in taken)
                order.extend(run.id for run in taken)
                assert len(held) <= 3
                await asyncio.sleep(0)
                for run in taken:
                    held.discard(run.id)
                    await end(handle, run.id)

        both = (store, another)
        async with asyncio.timeout(60):
            await asyncio.gather(*(work(both[n % 2], f"w{n}") for n in range(5)))
        assert sorted(order) == [f"e{n:02}" for n in range(40)]

    async def test_counting_sees_what_has_not_ended(self, store: Store) -> None:
        """
        A count contains all unfinished executions of a group, and how many of them were claimed.
        """
        await keep(store, waiting("e1"), waiting("e2"), waiting("e3"), waiting("x", "other"))
        await store.claim("w1", LEASE, MANY, 1)
        async with store.view() as view:
            assert await view.groups.unfinished("wf_1") == 3
            assert await view.groups.held("wf_1") == 1
            assert await view.groups.unfinished("nobody") == 0
        async with store.unit() as unit:
            unit.put(
                evolve(await read(store, "e2"), status=ENDED[0], completed_at=NOW, due_at=None)
            )
            assert await unit.groups.unfinished("wf_1") == 2
            await unit.commit()
        async with store.view() as view:
            assert await view.groups.unfinished("wf_1") == 2

    async def test_of_racing_units_as_many_commit_as_there_is_room(
        self, store: Store, another: Store
    ) -> None:
        """
        Of racing units that each saw room, as many commit as the limit allows. Each unit beyond the
        limit is stale and changes nothing.
        """

        async def start(number: int) -> bool:
            async with (store, another)[number % 2].unit() as unit:
                room = await unit.groups.unfinished("wf_1") < 3
                await asyncio.sleep(0)
                if not room:
                    return False
                unit.require_room("wf_1", 3)
                unit.put(waiting(f"e{number}"))
                await asyncio.sleep(0)
                try:
                    await unit.commit()
                except Stale:
                    return False
                return True

        assert sum(await asyncio.gather(*(start(number) for number in range(9)))) == 3
        async with store.view() as view:
            assert await view.groups.unfinished("wf_1") == 3
        assert len(await claim(store)) == 3

    async def test_room_that_the_same_unit_makes_counts(self, store: Store) -> None:
        """If a unit ends one execution and starts another, the freed slot counts."""
        await keep(store, waiting("old"))
        async with store.unit() as unit:
            old = await unit.get(Execution, "old")
            assert old is not None
            ended = evolve(old, status=ENDED[1], completed_at=NOW, due_at=None)
            unit.put(ended)
            unit.require_room("wf_1", 1)
            unit.put(waiting("new"))
            await unit.commit()
        async with store.unit() as unit:
            unit.require_room("wf_1", 1)
            unit.put(waiting("third"))
            with pytest.raises(Stale):
                await unit.commit()
