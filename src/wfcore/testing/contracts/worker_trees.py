"""
The contract of a worker about several steps of one execution, which run and end independently.
"""

import asyncio

from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.execution import StepStatus
from wfcore.model.workflow import (
    ApprovalStep,
    Branch,
    DelayStep,
    LoopStep,
    ParallelStep,
    Step,
)
from wfcore.ports.runtime import StepEnd
from wfcore.testing.contracts.worker_site import Dispatch, Site, at_work, code, names, until
from wfcore.time import DurationMs

NO = StepEnd(error="no luck", permanent=True)


def both(*lists: tuple[Step, ...], tolerant: bool = False) -> ParallelStep:
    """A `parallel` step of these sequences."""
    branches = tuple(Branch(f"b{at}", steps) for at, steps in enumerate(lists))
    return ParallelStep("both", branches, continue_on_error=tolerant)


class BesideOneAnother:
    """The promises about parallel steps. Subclasses provide `site` and `dispatch`."""

    async def test_branches_run_at_the_same_time(self, site: Site, dispatch: Dispatch) -> None:
        """Branches start together and end in any order; the step after them waits for all. FL-1."""
        async with at_work(site, dispatch) as work:
            run_id = await site.start_of(both((code("a"),), (code("b"),)), code("last"))
            await work.until_runs((run_id, "a"), (run_id, "b"))
            work.runner.let_go(run_id, "b")
            await work.until_runs((run_id, "a"))
            work.runner.let_go(run_id, "a")
            await work.until_runs((run_id, "last"))
            work.runner.let_go(run_id, "last")
            await site.until_status(run_id, S.COMPLETED)
        assert len(work.runner.started) == 3

    async def test_rounds_start_as_others_end(self, site: Site, dispatch: Dispatch) -> None:
        """As many rounds run at a time as the loop allows. FL-3."""
        async with at_work(site, dispatch) as work:
            loop = LoopStep("each", [1, 2, 3], "item", (code("work"),), max_parallel=2)
            run_id = await site.start_of(loop)
            first, second, third = (f"each.{n}.work" for n in range(3))
            await work.until_runs((run_id, first), (run_id, second))
            work.runner.let_go(run_id, second)
            await work.until_runs((run_id, first), (run_id, third))

    async def test_a_failure_ends_what_runs_beside_it(self, site: Site, dispatch: Dispatch) -> None:
        """
        If a branch fails, the other processes are ended at once, and the execution is FAILED. FL-4.
        """
        async with at_work(site, dispatch) as work:
            run_id = await site.start_of(both((code("a"),), (code("b"),), (code("c"),)))
            await until(lambda: len(work.runs) == 3)
            work.runner.let_go(run_id, "b", NO)
            await work.until_runs()
            assert (await site.read(run_id)).status is S.FAILED

    async def test_a_failure_ends_no_more_than_it_must(
        self, site: Site, dispatch: Dispatch
    ) -> None:
        """A tolerated failure ends only the branches beside it, and the next step starts. FL-4."""
        async with at_work(site, dispatch) as work:
            inner = both((code("a"),), (code("b"),), tolerant=True)
            branches = Branch("x", (inner, code("next"))), Branch("y", (code("other"),))
            run_id = await site.start_of(ParallelStep("outer", branches))
            await until(lambda: len(work.runs) == 3)
            work.runner.let_go(run_id, "a", NO)
            await work.until_runs((run_id, "next"), (run_id, "other"))
        assert (await site.read(run_id)).step_results["b"].status is StepStatus.CANCELLED

    async def test_a_decision_is_carried_on_beside_a_process(
        self, site: Site, dispatch: Dispatch
    ) -> None:
        """The step after an approval starts while another step still runs. FL-10."""
        async with at_work(site, dispatch) as work:
            asks = (ApprovalStep("ask"), code("then"))
            run_id = await site.start_of(both((code("a"),), asks))
            await work.until_runs((run_id, "a"))
            await site.approve(run_id)
            await work.until_runs((run_id, "a"), (run_id, "then"))

    async def test_a_decision_from_elsewhere_is_carried_on(
        self, site: Site, dispatch: Dispatch
    ) -> None:
        """A decision that another process stored is found without a hint. FL-10."""
        async with at_work(site, dispatch) as work:
            asks = (ApprovalStep("ask"), code("then"))
            run_id = await site.start_of(both((code("a"),), asks))
            await work.until_runs((run_id, "a"))
            await site.deaf().approve(run_id)
            await work.until_runs((run_id, "a"), (run_id, "then"))

    async def test_a_delay_ends_beside_a_process(self, site: Site, dispatch: Dispatch) -> None:
        """The step after a delay starts when the delay is over, and not before. FL-5."""
        async with at_work(site, dispatch) as work:
            waits = (DelayStep("nap", DurationMs(60)), code("then"))
            run_id = await site.start_of(both((code("a"),), waits))
            await work.until_runs((run_id, "a"))
            site.clock.advance(59)
            work.runner.let_go(run_id, "a")
            await work.until_runs()
            site.clock.advance(1)
            await work.until_runs((run_id, "then"))
        assert names(work.runner.started) == [(run_id, "a"), (run_id, "then")]

    async def test_time_that_is_up_ends_a_process(self, site: Site, dispatch: Dispatch) -> None:
        """The timeout of a container ends its steps, even if these have time left. FL-7."""
        async with at_work(site, dispatch) as work:
            timed = ParallelStep("both", (Branch("x", (code("a"),)),), timeout_ms=DurationMs(60))
            run_id = await site.start_of(timed)
            await work.until_runs((run_id, "a"))
            site.clock.advance(60)
            await work.until_runs()
            run = await site.until_status(run_id, S.FAILED)
        assert run.error == "Step 'both' failed: ran into its timeout of 0.06 s"

    async def test_stopping_lets_all_steps_of_an_execution_end(
        self, site: Site, dispatch: Dispatch
    ) -> None:
        """
        Within the drain each result is kept; the next steps are left to another worker. EX-15.
        """
        async with at_work(site, dispatch) as work:
            run_id = await site.start_of(both((code("a"), code("c")), (code("b"),)))
            await until(lambda: len(work.runs) == 2)
            stopping = asyncio.create_task(work.stop(30))
            await asyncio.sleep(0)
            work.runner.let_go(run_id, "a")
            await work.until_runs((run_id, "b"))
            work.runner.let_go(run_id, "b")
            await stopping
            run = await site.read(run_id)
        assert (run.status, run.worker) == (S.RUNNING, None)
        assert "c" not in run.step_results
