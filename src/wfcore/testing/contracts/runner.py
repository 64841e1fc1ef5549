"""
The contracts of a step runner, as test classes to inherit from.

`CallContract` is for any runner, whatever its steps are: the calls and the results.

    class TestMyRunner(CallContract):
        @pytest.fixture
        def runner(self): ...

        @pytest.fixture
        def does(self): ...     # if steps are not Python: a job for each of the `DEEDS`

`RunnerContract` contains `CallContract`, and is for a runner that starts processes.

    class TestMyRunner(RunnerContract):
        @pytest.fixture
        async def runner(self, files):
            runner = MyRunner(files, ...)
            yield runner
            await runner.close()

The fixture `files` provides the `ArtifactFiles` to which the runner stores artifacts;
`runner_without_ruby` provides a runner that cannot run Ruby. Both contracts need pytest-asyncio in
auto mode; `RunnerContract` also needs Linux's /proc, Python and Bash.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from attrs import evolve

from wfcore.model.workflow import Language
from wfcore.ports.runtime import StepEnd, StepJob, StepRunner
from wfcore.testing.contracts.awaited import Awaited
from wfcore.testing.contracts.runner_endings import EndingContract
from wfcore.testing.contracts.runner_leavings import LeavingContract
from wfcore.testing.contracts.runner_worlds import WorldContract
from wfcore.testing.contracts.steps import Lines, Ticks, job, silent
from wfcore.time import DurationMs

DEEDS: Mapping[str, str] = {
    "gives": 'print(\'{"n": [1, "ü"]}\')',
    "gives nothing": "",
    "fails": "raise SystemExit(3)",
    "waits": "import time; print('waiting', flush=True); time.sleep(600)",
    "speaks": "print('one', flush=True); print('two')",
    "ticks": """
import os, time
while True:
    print("tick", flush=True)
    try:
        with open(os.environ["WF_VAR_ticks"], "a") as ticks:
            ticks.write("tick\\n")
    except OSError:
        pass  # where steps may not write to it, only what they say is counted
    time.sleep(0.01)
""",
}
"""
The actions of steps in this contract, and the Python code of each. A step that ticks never ends:
about every 10 ms the step prints a line, and appends a line to the file named by the variable
`ticks`.
"""

Does = Callable[[str], StepJob]
"""
A function that makes a job for one of the `DEEDS`. The job asks for output lines if its step
speaks, waits or ticks.
"""

PATIENCE_S = 60
QUIET_S = 0.3
"""The seconds in which an ended step must stay quiet: many times the interval of ticks."""


class CallContract(Awaited):
    """
    The promises of any runner about calls and results.

    Subclasses provide a fixture `runner` and, unless their steps are Python, `does`, a function
    that makes a job for each of the `DEEDS`.
    """

    @pytest.fixture
    def does(self) -> Does:
        """A function that makes a job with Python code for each of the `DEEDS`."""
        return lambda deed: job(DEEDS[deed], log=deed in ("waits", "speaks", "ticks"))

    async def test_a_step_that_ends_well_gives_its_output(
        self, runner: StepRunner, does: Does
    ) -> None:
        """A step that succeeds has its output, and no field reports a failure."""
        end = await runner.run(does("gives"), silent)
        assert end == StepEnd({"n": [1, "ü"]})

    async def test_a_failure_is_an_end_and_no_exception(
        self, runner: StepRunner, does: Does
    ) -> None:
        """
        `run` never raises for a failure of the code: the result has an error message and no output.
        """
        end = await runner.run(does("fails"), silent)
        assert end.error
        assert (end.output, end.timed_out) == (None, False)

    async def test_a_step_runs_until_it_is_cancelled(self, runner: StepRunner, does: Does) -> None:
        """A cancelled `run` raises without delay."""
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

    @pytest.mark.parametrize("given_over", ["cancelled", "timed out", "nobody listens"])
    async def test_nothing_goes_on_when_a_step_is_over(
        self, runner: StepRunner, does: Does, given_over: str
    ) -> None:
        """A step does nothing more once `run` has returned or raised, for whatever reason."""
        with TemporaryDirectory() as folder:
            ticks = Ticks(Path(folder, "ticks"), fails=given_over == "nobody listens")
            asked = ticks.counted(does("ticks"))
            if given_over == "timed out":
                asked = evolve(asked, step=evolve(asked.step, timeout_ms=DurationMs(1_000)))
            running = asyncio.ensure_future(runner.run(asked, ticks))
            running.add_done_callback(lambda _: ticks.heard.set())
            async with asyncio.timeout(PATIENCE_S):
                await ticks.heard.wait()
                if given_over == "cancelled":
                    running.cancel()
                ended = await asyncio.gather(running, return_exceptions=True)
            said = ticks.count()
            await asyncio.sleep(QUIET_S)  # what must not happen announces itself by nothing
            more = ticks.count() - said
            assert more == 0, f"{given_over}, and the step ticked {more} times more"
            self._ended_as(given_over, ended[0])

    def _ended_as(self, over: str, ended: object) -> None:
        """Check the result of `run` for each way to end a step that never ends by itself."""
        match over:
            case "cancelled":
                assert isinstance(ended, asyncio.CancelledError)
            case "timed out":
                assert isinstance(ended, StepEnd)
                assert ended.timed_out
            case _:
                assert isinstance(ended, ZeroDivisionError)

    async def test_lines_are_told_whole_and_in_order(self, runner: StepRunner, does: Does) -> None:
        """Output arrives in whole lines with the name of its stream."""
        said = Lines()
        await runner.run(does("speaks"), said)
        assert said.of("stdout") == "one\ntwo\n"
        assert all(lines.endswith("\n") for _, lines in said.calls)

    async def test_the_listener_s_failure_is_the_caller_s(
        self, runner: StepRunner, does: Does
    ) -> None:
        """If the listener raises, the step is ended and the caller gets the exception."""

        async def fail(stream: str, lines: str) -> None:
            raise ZeroDivisionError

        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(ZeroDivisionError):
                await runner.run(does("waits"), fail)

    async def test_steps_that_run_at_once_do_not_mix(self, runner: StepRunner, does: Does) -> None:
        """Each step gets its own result."""
        deeds = ["gives", "fails", "gives nothing"] * 4
        ends = await asyncio.gather(*(runner.run(does(deed), silent) for deed in deeds))
        for deed, end in zip(deeds, ends, strict=True):
            assert (end.error is not None) == (deed == "fails")
            assert (end.output == {"n": [1, "ü"]}) == (deed == "gives")

    async def test_every_language_is_spoken_of(self, runner: StepRunner) -> None:
        """`languages` names every language, and how to install each one that cannot run here."""
        languages = runner.languages()
        assert set(languages) == set(Language)
        for language, state in languages.items():
            assert state.language is language
            assert state.available or state.cure

    async def test_closing_twice_is_fine(self, runner: StepRunner) -> None:
        """`close` may be called twice."""
        await runner.close()
        await runner.close()


class RunnerContract(CallContract, WorldContract, EndingContract, LeavingContract):
    """
    The promises of `StepRunner` for a runner that starts processes.

    Subclasses provide the fixtures `files`, an `ArtifactFiles`; `runner`, which stores artifacts to
    `files`; and `runner_without_ruby`, which finds no Ruby.
    """
