"""
Of any step runner, whatever it runs: how it is called and what it gives back.

    class TestMyRunner(CallContract):
        @pytest.fixture
        def runner(self): ...

        @pytest.fixture
        def does(self): ...     # where steps are no Python: a job for each of the `DEEDS`

Needs pytest-asyncio in auto mode.
"""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from wfcore.model.workflow import Language
from wfcore.ports.runtime import StepEnd, StepJob, StepRunner
from wfcore.testing.contracts.awaited import Awaited
from wfcore.testing.contracts.steps import Lines, job, silent

DEEDS: Mapping[str, str] = {
    "gives": 'print(\'{"n": [1, "ü"]}\')',
    "gives nothing": "",
    "fails": "raise SystemExit(3)",
    "waits": "import time; print('waiting', flush=True); time.sleep(600)",
    "speaks": "print('one', flush=True); print('two')",
}
"""What steps of this contract do, and how Python does it."""

Does = Callable[[str], StepJob]
"""A job whose step does that deed. Its lines are asked for where it speaks or waits."""

PATIENCE_S = 30


class CallContract(Awaited):
    """
    Subclasses give a fixture `runner`; and `does`, a function that makes a job of each of the
    `DEEDS`, unless its steps are Python.
    """

    @pytest.fixture
    def does(self) -> Does:
        """Python for every deed."""
        return lambda deed: job(DEEDS[deed], log=deed in ("waits", "speaks"))

    async def test_a_step_that_ends_well_gives_its_output(
        self, runner: StepRunner, does: Does
    ) -> None:
        """Output, and nothing that speaks of a failure."""
        end = await runner.run(does("gives"), silent)
        assert end == StepEnd({"n": [1, "ü"]})

    async def test_a_failure_is_an_end_and_no_exception(
        self, runner: StepRunner, does: Does
    ) -> None:
        """Never raises for what the code did: the error is in words, there is no output."""
        end = await runner.run(does("fails"), silent)
        assert end.error
        assert (end.output, end.timed_out) == (None, False)

    async def test_a_step_runs_until_it_is_cancelled(self, runner: StepRunner, does: Does) -> None:
        """Cancelled, `run` raises; nothing keeps it."""
        said = Lines()
        running = asyncio.ensure_future(runner.run(does("waits"), said))
        running.add_done_callback(lambda _: said.heard.set())
        async with asyncio.timeout(PATIENCE_S):
            await said.heard.wait()
            if running.done():
                pytest.fail(f"a step that waits has ended: {await running}")
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    async def test_lines_are_told_whole_and_in_order(self, runner: StepRunner, does: Does) -> None:
        """What a step says comes with the name of its stream."""
        said = Lines()
        await runner.run(does("speaks"), said)
        assert said.of("stdout") == "one\ntwo\n"
        assert all(lines.endswith("\n") for _, lines in said.calls)

    async def test_the_listener_s_failure_is_the_caller_s(
        self, runner: StepRunner, does: Does
    ) -> None:
        """When nobody can listen any more, the step ends and the caller learns why."""

        async def fail(stream: str, lines: str) -> None:
            raise ZeroDivisionError

        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(ZeroDivisionError):
                await runner.run(does("waits"), fail)

    async def test_steps_that_run_at_once_do_not_mix(self, runner: StepRunner, does: Does) -> None:
        """Each gets its own end."""
        deeds = ["gives", "fails", "gives nothing"] * 4
        ends = await asyncio.gather(*(runner.run(does(deed), silent) for deed in deeds))
        for deed, end in zip(deeds, ends, strict=True):
            assert (end.error is not None) == (deed == "fails")
            assert (end.output == {"n": [1, "ü"]}) == (deed == "gives")

    async def test_every_language_is_spoken_of(self, runner: StepRunner) -> None:
        """What can run here, and what to do about the rest."""
        languages = runner.languages()
        assert set(languages) == set(Language)
        for language, state in languages.items():
            assert state.language is language
            assert state.available or state.cure

    async def test_closing_twice_is_fine(self, runner: StepRunner) -> None:
        """`close` may be called twice."""
        await runner.close()
        await runner.close()
