"""The promises of a store about purging, trimming and returning space."""

from wfcore.model.access import Login, LoginLink, Session
from wfcore.model.approval import Approval
from wfcore.model.execution import Callback, Execution, ExecutionStatus, Replay, evolve
from wfcore.model.notice import Notice
from wfcore.model.page import PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.ports.store import Store
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.testing.contracts.lists import at, ids
from wfcore.time import HOUR, EpochMs


class UpkeepContract:
    """
    The promises about purging, trimming and returning space. See `keeping.Handles` for the
    fixtures.
    """

    async def test_purging_takes_all_that_belongs_to_an_execution(self, store: Store) -> None:
        """
        Purging an execution deletes its events, approvals, callback, notices and artifacts, and
        nothing of another execution.
        """
        for id in ("e1", "e2"):
            await keep(
                store,
                make.execution(id, step_results={"a": make.step_result()}),
                make.event(1, id),
                make.approval(f"appr_{id}", execution_id=id),
                make.artifact(f"art_{id}", execution_id=id),
                make.callback(id),
                make.notice(f"ntc_{id}", execution_id=id),
            )
        async with store.unit() as unit:
            unit.purge("e1")
            unit.purge("unknown")
            assert await unit.get(Execution, "e1") is None
            await unit.commit()
        async with store.view() as view:
            for id, left in (("e1", 0), ("e2", 1)):
                assert (await view.get(Execution, id) is not None) == bool(left)
                assert len(await view.events.of_execution(id, 0, 9)) == left
                assert len(await view.approvals.of_execution(id)) == left
                assert len(await view.artifacts.of_execution(id)) == left
                assert (await view.get(Approval, f"appr_{id}") is not None) == bool(left)
                assert (await view.get(Callback, id) is not None) == bool(left)
                assert (await view.get(Notice, f"ntc_{id}") is not None) == bool(left)

    async def test_trimming_takes_what_is_old_up_to_a_limit(self, store: Store) -> None:
        """Trimming deletes old records kind by kind, and returns the number of deleted records."""
        await keep(
            store,
            *(make.audit_entry(f"aud_{n}", at=at(n)) for n in range(5)),
            *(make.replay(f"k{n}", created_at=at(n)) for n in range(5)),
            *(make.session(f"s{n}", created_at=at(n)) for n in range(5)),
            *(make.login(f"l{n}", last_failure_at=at(n)) for n in range(5)),
            *(make.login_link(f"i{n}", created_at=at(n)) for n in range(5)),
            *(make.notice(f"n{n}", created_at=at(n), due_at=None) for n in range(5)),
            make.notice("due", created_at=at(0)),
        )
        async with store.unit() as unit:
            for n in range(5):
                unit.deliver(make.delivery(f"dlv_{n}", at=at(n)))
            await unit.commit()
        gone = [await store.trim(at(2), at(3), at(4), at(2), 4) for _ in range(6)]
        assert gone == [4, 4, 4, 4, 4, 1]
        async with store.view() as view:
            assert ids(await view.audit.list(EpochMs(0), None, 9)) == ["aud_2", "aud_3", "aud_4"]
            left = [await view.get(Replay, "key_1:wf_1", f"k{n}") for n in range(5)]
            sessions = [await view.get(Session, f"s{n}") for n in range(5)]
            logins = [await view.get(Login, f"l{n}") for n in range(5)]
            links = [await view.get(LoginLink, f"i{n}") for n in range(5)]
            notices = await view.notices.list((), PageRequest())
            assert ids(notices.rows) == ["n4", "n3", "n2", "due"]
            assert ids(await view.webhooks.deliveries("wh_1")) == ["dlv_4", "dlv_3", "dlv_2"]
        assert [replay is not None for replay in left] == [False] * 3 + [True] * 2
        assert [session is not None for session in sessions] == [False] * 4 + [True]
        assert [login is not None for login in logins] == [False] * 4 + [True]
        assert [link is not None for link in links] == [False] * 4 + [True]

    async def test_trimming_begins_with_the_oldest(self, store: Store) -> None:
        """A batch that does not contain all old records of a kind contains the oldest."""
        await keep(store, *(make.replay(f"k{n}", created_at=at(9 - n)) for n in range(4)))
        assert await store.trim(at(0), at(20), at(0), at(0), 3) == 3
        async with store.view() as view:
            left = [await view.get(Replay, "key_1:wf_1", f"k{n}") for n in range(4)]
        assert [replay is not None for replay in left] == [True, False, False, False]

    async def test_many_are_purged_at_once(self, store: Store) -> None:
        """
        A batch of executions is deleted with everything that belongs to them, and nothing else.
        """
        for id in ("e1", "e2", "e3"):
            await keep(store, make.execution(id), make.event(1, id), make.callback(id))
        async with store.unit() as unit:
            unit.purge("e1", "e3", "unknown")
            await unit.commit()
        async with store.view() as view:
            left = [await view.get(Execution, id) is not None for id in ("e1", "e2", "e3")]
            events = [len(await view.events.of_execution(id, 0, 9)) for id in ("e1", "e2", "e3")]
        assert (left, events) == ([False, True, False], [0, 1, 0])

    async def test_tallies_change_no_total(self, store: Store) -> None:
        """
        The total of a list is exact before and after ended executions are tallied, after one of
        them is deleted, after an open execution ends, and after an ended execution is stored late.
        """
        done = make.execution(status=ExecutionStatus.COMPLETED, completed_at=at(9))
        for n in range(4):
            await keep(store, evolve(done, id=f"e{n}", accepted_at=at(n - HOUR)))
        await keep(store, make.execution("open", accepted_at=at(5 - HOUR)))
        completed = ExecutionFilter(statuses=(ExecutionStatus.COMPLETED,))

        async def totals() -> list[int | None]:
            async with store.view() as view:
                return [
                    (await view.executions.list(where, PageRequest())).total
                    for where in (ExecutionFilter(), completed, ExecutionFilter(since=at(2 - HOUR)))
                ]

        assert await totals() == [5, 4, 3]
        while await store.tally(2):
            assert await totals() == [5, 4, 3]
        async with store.unit() as unit:
            unit.purge("e3")
            await unit.commit()
        assert await totals() == [4, 3, 2]
        async with store.unit() as unit:
            run = await unit.get(Execution, "open")
            assert run is not None
            unit.put(evolve(run, status=ExecutionStatus.COMPLETED, completed_at=at(9)))
            await unit.commit()
        assert await totals() == [4, 4, 2]
        await keep(store, evolve(done, id="late", accepted_at=at(-HOUR)))
        assert await totals() == [5, 5, 2]

    async def test_room_is_given_back_until_none_is_left(self, store: Store) -> None:
        """
        Each call of `release` returns at most its limit of space; stored records do not change.
        """
        for first in range(0, 60, 20):
            large = {"x": "x" * 200_000}
            names = [f"e{n}" for n in range(first, first + 20)]
            await keep(store, *(make.execution(id, variables=large) for id in names))
            async with store.unit() as unit:
                unit.purge(*names[:-1])
                await unit.commit()
        while gone := await store.release(1 << 20):
            assert 0 < gone <= 1 << 20
        async with store.view() as view:
            for id in ("e19", "e39", "e59"):
                kept = await view.get(Execution, id)
                assert kept is not None
                assert kept.variables == large

    async def test_a_store_answers_until_it_is_closed_twice(self, store: Store) -> None:
        """`ping` succeeds on a healthy store; `close` may be called twice."""
        await store.ping()
        await store.close()
        await store.close()
