"""
The contract of a worker, as a test class to inherit from.

    class TestMyDispatcher(WorkerContract):
        @pytest.fixture
        def wakeup(self):
            return MyWakeups()      # the receiver of the use cases' hints

        @pytest.fixture
        def dispatch(self, wakeup):
            return lambda services, runner, worker: MyDispatcher(services, runner, wakeup, worker)

The contract runs on the store in memory with a clock that the suite sets, so leases end when the
suite says so. The contract needs pytest-asyncio in auto mode.
"""

import asyncio

import pytest

from wfcore.model.access import OPERATOR
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.execution import TriggerSource
from wfcore.ports.hints import Wakeup
from wfcore.ports.runtime import StepEnd
from wfcore.testing.contracts.awaited import Awaited
from wfcore.testing.contracts.worker_site import (
    PATIENCE_S,
    Dispatch,
    Site,
    at_work,
    names,
    until,
)
from wfcore.testing.contracts.worker_trees import BesideOneAnother
from wfcore.testing.fakes_running import HeldRunner
from wfcore.usecases.executions import executions, worker
from wfcore.usecases.upkeep import sweeping


class WorkerContract(Awaited, BesideOneAnother):
    """
    The promises of a worker.

    Subclasses provide the fixtures `wakeup`, which gets the hints of use cases, and `dispatch`, a
    function that makes a worker from services, a runner and the worker's name.
    """

    @pytest.fixture
    def site(self, wakeup: Wakeup) -> Site:
        return Site.made(wakeup)

    async def test_what_is_due_is_run_to_its_end(self, site: Site, dispatch: Dispatch) -> None:
        """Each step of a due execution starts as soon as possible, and once."""
        async with at_work(site, dispatch) as work:
            run_id = await site.start(steps=3)
            for step in ("s0", "s1", "s2"):
                await work.until_runs((run_id, step))
                work.runner.let_go(run_id, step)
            run = await site.until_status(run_id, S.COMPLETED)
        assert run.output == "done"
        assert names(work.runner.started) == [(run_id, "s0"), (run_id, "s1"), (run_id, "s2")]

    async def test_what_was_due_before_is_found(self, site: Site, dispatch: Dispatch) -> None:
        """A worker finds due executions in the store without a hint."""
        run_id = await site.start()
        async with at_work(site, dispatch) as work:
            await work.until_runs((run_id, "s0"))

    async def test_what_another_process_stored_is_found(
        self, site: Site, dispatch: Dispatch
    ) -> None:
        """A lost hint costs a delay, never work."""
        async with at_work(site, dispatch) as work:
            run_id = await site.deaf().start()
            await work.until_runs((run_id, "s0"))

    async def test_no_more_steps_run_than_there_are_places(
        self, site: Site, dispatch: Dispatch
    ) -> None:
        """An execution without a slot waits, and is claimed once a slot is free."""
        site = site.with_policy(places=3)
        async with at_work(site, dispatch) as work:
            ids = [await site.start(email=f"p{number}@example.org") for number in range(5)]
            for done in range(5):
                await until(lambda done=done: len(work.runner.started) == min(done + 3, 5))  # type: ignore[misc]
                assert len(work.runs) <= 3
                work.runner.let_go(*work.runs[0])
            for run_id in ids:
                await site.until_status(run_id, S.COMPLETED)

    async def test_a_flood_leaves_room_for_the_next_account(
        self, site: Site, dispatch: Dispatch
    ) -> None:
        """While one account floods the workers, another account's first step starts."""
        site = site.with_policy(places=4)
        async with at_work(site, dispatch) as work:
            await site.start(email="first@example.org")
            for _ in range(9):
                await site.start(email="flood@example.org")
            await until(lambda: len(work.runs) == 3)
            run_id = await site.start(email="calm@example.org")
            await until(lambda: (run_id, "s0") in work.runs)

    async def test_of_several_dispatchers_one_gets_each_execution(
        self, site: Site, dispatch: Dispatch
    ) -> None:
        """Several workers on one store start every step once."""
        runner = HeldRunner()
        async with at_work(site, dispatch, runner, "w1"), at_work(site, dispatch, runner, "w2"):
            ids = [await site.start(email=f"p{number}@example.org") for number in range(9)]
            await until(lambda: len(runner.started) == 9)
            for run_id in ids:
                runner.let_go(run_id, "s0")
            for run_id in ids:
                await site.until_status(run_id, S.COMPLETED)
        assert sorted(names(runner.started)) == sorted((run_id, "s0") for run_id in ids)

    async def test_a_cancelled_execution_stops(self, site: Site, dispatch: Dispatch) -> None:
        """A cancelled execution has its step ended and its slot freed."""
        site = site.with_policy(places=1)
        async with at_work(site, dispatch) as work:
            run_id = await site.start()
            await work.until_runs((run_id, "s0"))
            await executions.cancel_execution(site.services, OPERATOR, run_id)
            await work.until_runs()
            other = await site.start()
            await work.until_runs((other, "s0"))
        assert (await site.read(run_id)).status is S.CANCELLED

    async def test_a_cancel_from_elsewhere_is_noticed(self, site: Site, dispatch: Dispatch) -> None:
        """An execution that another process cancelled is stopped here without a hint. EX-7."""
        async with at_work(site, dispatch) as work:
            run_id = await site.start()
            await work.until_runs((run_id, "s0"))
            await executions.cancel_execution(site.deaf().services, OPERATOR, run_id)
            await work.until_runs()

    async def test_a_failure_is_recorded(self, site: Site, dispatch: Dispatch) -> None:
        """The execution reports the result that the runner returned for the attempt."""
        async with at_work(site, dispatch) as work:
            run_id = await site.start()
            await work.until_runs((run_id, "s0"))
            work.runner.let_go(run_id, "s0", StepEnd(error="no luck", permanent=True))
            run = await site.until_status(run_id, S.FAILED)
        assert "no luck" in (run.error or "")

    async def test_what_a_dead_worker_began_is_not_begun_again(
        self, site: Site, dispatch: Dispatch
    ) -> None:
        """An API execution is never resumed, however long the sweep continues. EX-14."""
        run_id = await site.start()
        (lease,) = await worker.claim(site.services, "dead", 1)
        assert len((await worker.begin(site.services, lease)).jobs) == 1
        async with at_work(site, dispatch) as work:
            await site.lose_lease(run_id)
            site.clock.advance(site.services.policy.grace_ms + 1)
            await sweeping.sweep(site.services)
            other = await site.start()
            await work.until_runs((other, "s0"))
        assert names(work.runner.started) == [(other, "s0")]
        assert (await site.read(run_id)).status is S.FAILED

    async def test_what_the_service_resumes_is_run_again(
        self, site: Site, dispatch: Dispatch
    ) -> None:
        """In a manual execution the interrupted step gets a second attempt. EX-12."""
        run_id = await site.start(source=TriggerSource.MANUAL)
        (lease,) = await worker.claim(site.services, "dead", 1)
        await worker.begin(site.services, lease)
        async with at_work(site, dispatch) as work:
            await site.lose_lease(run_id)
            await sweeping.sweep(site.services)
            await work.until_runs((run_id, "s0"))
        assert [job.attempt for job in work.runner.started] == [2]

    async def test_a_result_that_comes_too_late_is_dropped(
        self, site: Site, dispatch: Dispatch
    ) -> None:
        """A worker that has lost its lease changes nothing any more. EX-16."""
        async with at_work(site, dispatch) as work:
            run_id = await site.start()
            await work.until_runs((run_id, "s0"))
            await site.deaf().lose_lease(run_id)
            if work.runs:
                work.runner.let_go(run_id, "s0")
            await work.until_runs()
            await work.stop(PATIENCE_S)  # what it wants to store, it stores
        run = await site.read(run_id)
        assert run.status is S.INTERRUPTED
        assert run.step_results["s0"].output is None

    async def test_a_result_outlives_an_outage_of_the_store(
        self, site: Site, dispatch: Dispatch
    ) -> None:
        """While the store cannot write, a result is kept, and stored as soon as possible."""
        async with at_work(site, dispatch) as work:
            run_id = await site.start()
            await work.until_runs((run_id, "s0"))
            site.weather.refuses = 4
            work.runner.let_go(run_id, "s0")
            await site.until_status(run_id, S.COMPLETED)
        assert names(work.runner.started) == [(run_id, "s0")]

    async def test_stopping_lets_a_step_end(self, site: Site, dispatch: Dispatch) -> None:
        """
        A result within the drain time is stored; the next step is left to another worker. EX-15.
        """
        async with at_work(site, dispatch) as work:
            run_id = await site.start(steps=2)
            await work.until_runs((run_id, "s0"))
            stopping = asyncio.create_task(work.stop(PATIENCE_S))
            await asyncio.sleep(0)
            work.runner.let_go(run_id, "s0")
            await stopping
            run = await site.read(run_id)
        assert (run.status, run.worker, list(run.step_results)) == (S.RUNNING, None, ["s0"])
        assert len(await worker.claim(site.services, "another", 9)) == 1

    async def test_what_does_not_end_in_the_drain_is_interrupted(
        self, site: Site, dispatch: Dispatch
    ) -> None:
        """A step that outlasts the drain is ended, and its execution becomes INTERRUPTED. EX-11."""
        async with at_work(site, dispatch) as work:
            run_id = await site.start()
            await work.until_runs((run_id, "s0"))
            await work.stop(0)
            assert work.runs == []
            assert (await site.read(run_id)).status is S.INTERRUPTED

    async def test_who_stops_takes_nothing_more(self, site: Site, dispatch: Dispatch) -> None:
        """Executions that become due after `stop` began are left to other workers."""
        async with at_work(site, dispatch) as work:
            await work.stop(0)
            await site.start()
            for _ in range(20):
                await asyncio.sleep(0.001)
        assert work.runner.started == []
