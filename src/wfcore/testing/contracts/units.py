"""
The promises of a store about units: compare-and-set, all or nothing, reading one's own writes.
"""

import asyncio
from typing import Any

import pytest
from attrs import evolve

from wfcore.errors import Stale
from wfcore.model.access import Permission, Session, Share
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution, Replay
from wfcore.model.page import PageRequest
from wfcore.model.webhook import Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow, WorkflowState
from wfcore.ports.records import ApprovalFilter, ExecutionFilter
from wfcore.ports.store import Store, Unit
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.testing.contracts import samples
from wfcore.testing.contracts.keeping import collect, keep
from wfcore.time import DAY, EpochMs

PAGE = PageRequest()


async def stored(unit: Unit | Any, record: Any) -> Any:
    """The stored record with the same key as *record*."""
    return await unit.get(type(record), *samples.identity(record))


class UnitContract:
    """The promises about units. See `keeping.Handles` for the fixtures."""

    @pytest.mark.parametrize("given_record", samples.RECORDS, ids=lambda r: type(r).__name__)
    async def test_a_record_comes_back_as_it_was_one_version_higher(
        self, store: Store, given_record: Any
    ) -> None:
        """A record that was put is read back equal, with version 1."""
        await keep(store, given_record)
        async with store.view() as view:
            assert await stored(view, given_record) == evolve(given_record, version=1)

    @pytest.mark.parametrize("given_record", samples.RECORDS, ids=lambda r: type(r).__name__)
    async def test_a_missing_record_is_none(self, store: Store, given_record: Any) -> None:
        """Reading a key that was never stored returns None."""
        async with store.view() as view:
            assert await stored(view, given_record) is None

    @pytest.mark.parametrize("given_record", samples.RECORDS, ids=lambda r: type(r).__name__)
    async def test_a_new_record_must_be_new(self, store: Store, given_record: Any) -> None:
        """A put of version 0 is stale if the record exists."""
        await keep(store, given_record)
        with pytest.raises(Stale):
            await keep(store, given_record)

    @pytest.mark.parametrize("given_record", samples.CHANGING, ids=lambda r: type(r).__name__)
    async def test_a_lost_update_is_stale(
        self, store: Store, another: Store, given_record: Any
    ) -> None:
        """Of two units that read the same version, the second to commit is stale."""
        await keep(store, given_record)
        async with store.unit() as slow, another.unit() as fast:
            seen_by_slow = await stored(slow, given_record)
            collect(fast, await stored(fast, given_record))
            await fast.commit()
            collect(slow, seen_by_slow)
            with pytest.raises(Stale):
                await slow.commit()
        async with store.view() as view:
            assert (await stored(view, given_record)).version == 2

    @pytest.mark.parametrize("given_record", samples.CHANGING, ids=lambda r: type(r).__name__)
    async def test_a_version_that_never_was_is_stale(self, store: Store, given_record: Any) -> None:
        """A put of a later version is stale if the record does not exist."""
        with pytest.raises(Stale):
            await keep(store, evolve(given_record, version=3))

    @pytest.mark.parametrize("given_record", samples.CHANGING, ids=lambda r: type(r).__name__)
    async def test_a_unit_reads_its_own_writes_and_may_write_twice(
        self, store: Store, given_record: Any
    ) -> None:
        """
        After a put, the unit reads the next version, and the next put starts from that version.
        """
        async with store.unit() as unit:
            for version in (1, 2, 3):
                collect(unit, await stored(unit, given_record) or given_record)
                assert await stored(unit, given_record) == evolve(given_record, version=version)
            await unit.commit()
        async with store.view() as view:
            assert await stored(view, given_record) == evolve(given_record, version=3)

    async def test_results_may_begin_anew_and_be_written_again(self, store: Store) -> None:
        """Results in another order replace the stored results, also twice in a unit."""
        result = make.step_result()
        run = make.execution(step_results={"one": result, "two": result})
        await keep(store, run)
        async with store.unit() as unit:
            for attempts in (2, 3):
                again = evolve(result, attempts=attempts)
                now = await stored(unit, run)
                collect(unit, evolve(now, step_results={"two": again, "one": again}))
            await unit.commit()
        async with store.view() as view:
            found = (await stored(view, run)).step_results
        assert [(name, one.attempts) for name, one in found.items()] == [("two", 3), ("one", 3)]

    @pytest.mark.parametrize("given_record", samples.RECORDS, ids=lambda r: type(r).__name__)
    async def test_nothing_is_visible_without_commit(self, store: Store, given_record: Any) -> None:
        """A unit that ends without a commit changes nothing."""
        async with store.unit() as unit:
            collect(unit, given_record)
            async with store.view() as view:
                assert await stored(view, given_record) is None
        async with store.view() as view:
            assert await stored(view, given_record) is None

    @pytest.mark.parametrize("given_record", samples.RECORDS, ids=lambda r: type(r).__name__)
    async def test_another_handle_reads_nothing_of_an_open_unit(
        self, store: Store, another: Store, given_record: Any
    ) -> None:
        """No view or unit of another handle sees a write before its commit."""
        async with store.unit() as unit:
            collect(unit, given_record)
            await stored(unit, given_record)  # which may send the write to the database
            async with another.view() as view, another.unit() as beside:
                assert await stored(view, given_record) is None
                assert await stored(beside, given_record) is None
            await unit.commit()
        async with another.view() as view:
            assert await stored(view, given_record) is not None

    async def test_another_handle_lists_nothing_of_an_open_unit(
        self, store: Store, another: Store
    ) -> None:
        """Another handle sees the rows and deletions of a unit only after the unit is committed."""
        await keep(store, make.execution("exec_old"), make.session())
        async with store.unit() as unit:
            collect(unit, make.execution("exec_new"), make.event(1, "exec_new"))
            unit.purge("exec_old")
            unit.discard(Session, "session_1")
            unit.tally("wh_1", "2023-11-14", 202, NOW)
            assert (await unit.executions.list(ExecutionFilter(), PAGE)).total == 1
            async with another.view() as view:
                found = await view.executions.list(ExecutionFilter(), PAGE)
                assert [run.id for run in found.rows] == ["exec_old"]
                assert list(await view.events.of_execution("exec_new", 0, 9)) == []
                assert list(await view.webhooks.tallies("wh_1")) == []
                assert await view.get(Session, "session_1") is not None
            await unit.commit()
        async with another.view() as view:
            found = await view.executions.list(ExecutionFilter(), PAGE)
            assert [run.id for run in found.rows] == ["exec_new"]

    async def test_a_stale_record_takes_the_whole_unit_down(self, store: Store) -> None:
        """
        No write of a stale unit becomes visible, whether collected before or after the stale
        record.
        """
        await keep(store, make.workflow())
        async with store.unit() as unit:
            collect(unit, make.execution(), make.workflow(), make.event(1), make.audit_entry())
            unit.tally("wh_1", "2023-11-14", 202, NOW)
            with pytest.raises(Stale):
                await unit.commit()
        async with store.view() as view:
            assert await view.get(Execution, "exec_1") is None
            assert list(await view.events.of_execution("exec_1", 0, 10)) == []
            assert list(await view.audit.list(EpochMs(0), None, 10)) == []
            assert list(await view.webhooks.tallies("wh_1")) == []

    async def test_a_refused_unit_does_not_harm_the_others(self, store: Store) -> None:
        """A unit that commits at the same time as a stale unit is stored."""
        await keep(store, make.workflow())
        tries = [keep(store, make.execution(f"exec_{n}")) for n in range(10)]
        tries.insert(5, keep(store, make.execution("exec_lost"), make.workflow()))
        ends = await asyncio.gather(*tries, return_exceptions=True)
        assert [type(end) for end in ends if end is not None] == [Stale]
        async with store.view() as view:
            found = await view.executions.list(ExecutionFilter(), PAGE)
        assert {run.id for run in found.rows} == {f"exec_{n}" for n in range(10)}

    async def test_lists_in_a_unit_show_its_own_writes(self, store: Store) -> None:
        """Lists and lookups inside a unit see the puts and deletions of the unit."""
        await keep(store, make.session(), make.approval(), make.account())
        async with store.unit() as unit:
            collect(unit, make.approval("appr_2"), make.event(1), make.key(), make.artifact())
            collect(unit, evolve(make.account(), version=1, email="new@example.org"))
            collect(unit, make.workflow(), make.share("wf_1", "acc_9"), make.webhook())
            unit.tally("wh_1", "2023-11-14", 202, NOW)
            unit.discard(Session, "session_1")
            runs = await unit.approvals.of_execution("exec_1")
            assert [approval.id for approval in runs] == ["appr_2", "appr_1"]
            assert [e.number for e in await unit.events.of_execution("exec_1", 0, 9)] == [1]
            assert [k.id for k in await unit.keys.of_account("acc_1")] == ["key_1"]
            assert len(await unit.artifacts.of_execution("exec_1")) == 1
            assert await unit.accounts.by_email("acc_1@example.org") is None
            assert await unit.accounts.by_email("new@example.org") is not None
            assert await unit.workflows.by_name("acc_1", "Workflow wf_1") is not None
            assert (await unit.workflows.visible_to("acc_9", PAGE)).total == 1
            assert (await unit.webhooks.of_owner("acc_1", PAGE)).total == 1
            assert [t.count for t in await unit.webhooks.tallies("wh_1")] == [1]
            assert await unit.get(Session, "session_1") is None
        async with store.view() as view:
            assert (await view.approvals.list(ApprovalFilter(), PAGE)).total == 1

    @pytest.mark.parametrize("given_rounds", [1, 25])
    async def test_of_racing_units_one_wins(
        self, store: Store, another: Store, given_rounds: int
    ) -> None:
        """However reads, writes and commits interleave, no update is lost."""
        await keep(store, make.execution(events=0))

        async def bump(number: int) -> bool:
            async with (store, another)[number % 2].unit() as unit:
                run = await unit.get(Execution, "exec_1")
                assert run is not None
                for _ in range(number % 3):
                    await asyncio.sleep(0)
                unit.put(evolve(run, events=run.events + 1))
                for _ in range(number % 2):
                    await asyncio.sleep(0)
                try:
                    await unit.commit()
                except Stale:
                    return False
                return True

        won = 0
        for _ in range(given_rounds):
            ends = await asyncio.gather(*(bump(number) for number in range(8)))
            assert any(ends)
            won += sum(ends)
        async with store.view() as view:
            run = await view.get(Execution, "exec_1")
        assert run is not None
        assert (run.events, run.version) == (won, won + 1)

    async def test_a_cancelled_commit_is_all_or_nothing(self, store: Store) -> None:
        """A cancelled commit is done completely or not at all."""
        for number in range(30):
            id = f"exec_{number}"
            task = asyncio.ensure_future(
                keep(store, make.execution(id), make.event(1, id), make.event(2, id))
            )
            for _ in range(number % 6):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        for number in range(30):  # some may still be on their way: then the log is read too early
            async with store.view() as view:
                log = await view.events.of_execution(f"exec_{number}", 0, 9)
                run = await view.get(Execution, f"exec_{number}")
            async with store.view() as view:
                if run is not None:
                    log = await view.events.of_execution(run.id, 0, 9)
            assert len(log) == (0 if run is None else 2)

    async def test_step_results_change_one_by_one(self, store: Store) -> None:
        """Step results keep their order and content, whichever of them a unit changes."""
        first = {"a": make.step_result(output={"n": 1}), "b": make.step_result(output="x")}
        await keep(store, make.execution(step_results=first))
        states: list[dict[str, Any]] = [
            {**first, "c": make.step_result(output=[1])},
            {**first, "b": make.step_result(output=None), "c": make.step_result()},
            {"c": make.step_result(), "a": first["a"]},
            {},
            {"z": make.step_result(output="z"), **first},
        ]
        for results in states:
            async with store.unit() as unit:
                run = await unit.get(Execution, "exec_1")
                assert run is not None
                unit.put(evolve(run, step_results=results))
                await unit.commit()
            async with store.view() as view:
                run = await view.get(Execution, "exec_1")
                assert run is not None
                assert list(run.step_results.items()) == list(results.items())

    @pytest.mark.parametrize("given_record", samples.RECORDS, ids=lambda r: type(r).__name__)
    async def test_of_racing_puts_of_a_new_record_one_wins(
        self, store: Store, another: Store, given_record: Any
    ) -> None:
        """A new record is stored once, however many handles put the record at the same time."""
        tries = (keep(handle, given_record) for handle in (store, another) * 4)
        ends = await asyncio.gather(*tries, return_exceptions=True)
        assert sorted(type(end).__name__ for end in ends) == ["NoneType"] + ["Stale"] * 7
        async with another.view() as view:
            assert await stored(view, given_record) == evolve(given_record, version=1)

    async def test_of_racing_records_with_one_name_one_wins(
        self, store: Store, another: Store
    ) -> None:
        """
        A unique value stays unique if several units put it at the same time, through any handle.
        """
        for number in range(10):
            tries = [
                keep(handle, make.account(f"acc_{number}_{n}", email=f"{number}@example.org"))
                for n, handle in enumerate((store, another) * 3)
            ]
            ends = await asyncio.gather(*tries, return_exceptions=True)
            assert sorted(type(end).__name__ for end in ends) == ["NoneType"] + ["Stale"] * 5

    async def test_an_email_is_unique(self, store: Store) -> None:
        """A second account with the same email is stale; a change of the first account is not."""
        await keep(store, make.account("acc_1", email="ann@example.org"))
        with pytest.raises(Stale):
            await keep(store, make.account("acc_2", email="ann@example.org"))
        await keep(store, make.account("acc_1", email="ann@example.org", version=1))
        async with store.view() as view:
            found = await view.accounts.by_email("Ann@Example.org")
            assert found is not None
            assert (found.id, found.version) == ("acc_1", 2)

    async def test_a_workflow_name_is_unique_for_its_owner(self, store: Store) -> None:
        """
        A second workflow of the same name is stale for the same owner and allowed for another.
        """
        await keep(store, make.workflow("wf_1", name="Refunds"))
        with pytest.raises(Stale):
            await keep(store, make.workflow("wf_2", name="Refunds"))
        await keep(store, make.workflow("wf_3", name="Refunds", owner_id="acc_2"))
        async with store.view() as view:
            found = await view.workflows.by_name("acc_2", "Refunds")
            assert found is not None
            assert found.id == "wf_3"
            assert await view.workflows.by_name("acc_3", "Refunds") is None

    async def test_deleting_a_workflow_takes_shares_and_state_and_leaves_definitions(
        self, store: Store
    ) -> None:
        """
        Deleting a workflow compares the version and deletes its shares and its state. The snapshots
        stay.
        """
        await keep(store, make.workflow(), make.share(), make.workflow_state(), make.snapshot())
        async with store.unit() as unit:
            unit.delete(make.workflow(version=7))
            with pytest.raises(Stale):
                await unit.commit()
        async with store.unit() as unit:
            unit.delete(make.workflow(version=1))
            assert await unit.get(Workflow, "wf_1") is None
            await unit.commit()
        async with store.view() as view:
            assert await view.get(Workflow, "wf_1") is None
            assert await view.get(Share, "wf_1", "acc_2") is None
            assert await view.get(WorkflowState, "wf_1") is None
            assert list(await view.shares.of_workflow("wf_1")) == []
            assert await view.get(DefinitionSnapshot, "wf_1", 1) is not None

    async def test_a_share_that_was_given_again_is_the_new_one(self, store: Store) -> None:
        """A share that was deleted and stored under the same key has the new content."""
        await keep(store, make.share(permission=Permission.EDIT))
        async with store.view() as view:
            assert await view.get(Share, "wf_1", "acc_2") is not None
        async with store.unit() as unit:
            unit.discard(Share, "wf_1", "acc_2")
            assert await unit.get(Share, "wf_1", "acc_2") is None
            await unit.commit()
        await keep(store, make.share(permission=Permission.VIEW))
        async with store.view() as view:
            share = await view.get(Share, "wf_1", "acc_2")
            assert share is not None
            assert share.permission is Permission.VIEW

    async def test_deleting_a_webhook_takes_its_tallies(self, store: Store) -> None:
        """Deleting a webhook compares the version, and deletes its counts and deliveries, too."""
        await keep(store, make.webhook())
        async with store.unit() as unit:
            unit.tally("wh_1", "2023-11-14", 202, NOW)
            unit.deliver(make.delivery())
            unit.deliver(make.delivery("dlv_2", webhook_id="wh_2"))
            await unit.commit()
        async with store.unit() as unit:
            unit.delete(make.webhook(version=2))
            with pytest.raises(Stale):
                await unit.commit()
        async with store.unit() as unit:
            unit.delete(make.webhook(version=1))
            await unit.commit()
        async with store.view() as view:
            assert await view.get(Webhook, "wh_1") is None
            assert list(await view.webhooks.tallies("wh_1")) == []
            assert list(await view.webhooks.deliveries("wh_1")) == []
            assert list(await view.webhooks.deliveries("wh_2")) != []

    async def test_an_event_number_is_given_once(self, store: Store) -> None:
        """An event with an existing number makes the unit stale. The log is returned in order."""
        await keep(store, make.event(1), make.event(2), make.event(1, "exec_2"))
        with pytest.raises(Stale):
            await keep(store, make.event(3), make.event(2))
        await keep(store, make.event(3, data={"step": "a", "n": [1, None, "ü"]}))
        async with store.view() as view:
            log = await view.events.of_execution("exec_1", 0, 10)
            assert [event.number for event in log] == [1, 2, 3]
            assert log[2] == make.event(3, data={"step": "a", "n": [1, None, "ü"]})
            tail = await view.events.of_execution("exec_1", 1, 1)
            assert [event.number for event in tail] == [2]

    async def test_output_lines_are_numbered_apart_from_events(self, store: Store) -> None:
        """
        Output lines come in order, may have the numbers of events, and are deleted with the
        execution.
        """
        await keep(store, make.execution(), make.event(1), make.event(2))
        lines = [make.event(number, kind=EventKind.STEP_LOG) for number in (1, 5)]
        for line in (lines[1], lines[0], make.event(5, "exec_2", kind=EventKind.STEP_LOG)):
            async with store.unit() as unit:
                unit.log(line)
                assert len(await unit.logs.of_execution(line.execution_id, 4, 9)) <= 1
                await unit.commit()
        async with store.unit() as again:
            again.log(lines[0])
            with pytest.raises(Stale):
                await again.commit()
        async with store.view() as view:
            assert list(await view.logs.of_execution("exec_1", 0, 9)) == lines
            assert list(await view.logs.of_execution("exec_1", 1, 1)) == lines[1:]
            assert len(await view.events.of_execution("exec_1", 0, 9)) == 2
        async with store.unit() as unit:
            unit.purge("exec_1")
            await unit.commit()
        async with store.view() as view:
            assert not await view.logs.of_execution("exec_1", 0, 9)
            assert await view.logs.of_execution("exec_2", 0, 9)

    async def test_an_old_idempotency_record_may_be_replaced(self, store: Store) -> None:
        """
        A new idempotency record replaces a record older than a day; a more recent record stays.
        """
        await keep(store, make.replay())
        with pytest.raises(Stale):
            await keep(store, make.replay(created_at=NOW + DAY - 1, execution_id="exec_2"))
        await keep(store, make.replay(created_at=NOW + DAY + 1, execution_id="exec_2"))
        async with store.view() as view:
            found = await view.get(Replay, "key_1:wf_1", "once")
            assert found is not None
            assert (found.execution_id, found.version) == ("exec_2", 1)
