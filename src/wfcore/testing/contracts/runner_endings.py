"""The contract of a step runner about the end of steps: complete, and without survivors."""

import asyncio

import pytest

from wfcore.model.workflow import Language
from wfcore.ports.runtime import StepRunner
from wfcore.testing.contracts.steps import Lines, alive, job, silent

# Orphans in sessions of their own, deaf to polite signals, holding stdout open.
_LEAVE_DAEMONS = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
for _ in range(30):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()
print("ready", flush=True)
"""
_WAIT = "time.sleep(600)"


class EndingContract:
    """The promises about exit status, limits, timeout and cancellation."""

    async def test_exit_status(self, runner: StepRunner) -> None:
        """
        A status other than 0 fails the step. The error contains the status and the end of stderr.
        """
        source = "import sys; print('seen', file=sys.stderr); sys.exit(3)"
        end = await runner.run(job(source), silent)
        assert (end.output, end.timed_out, end.permanent) == (None, False, False)
        assert "status 3" in (end.error or "")
        assert "seen" in (end.error or "")

    async def test_long_stderr(self, runner: StepRunner) -> None:
        """The error of a step with a long stderr contains only the end of stderr."""
        source = "import sys; sys.stderr.write('x' * 300_000 + 'the end'); sys.exit(1)"
        error = (await runner.run(job(source), silent)).error or ""
        assert error.endswith("the end")
        assert len(error) < 3_000

    async def test_signal(self, runner: StepRunner) -> None:
        """The error of a step killed by a signal names the signal."""
        end = await runner.run(job("import os; os.kill(os.getpid(), 11)"), silent)
        assert "SIGSEGV" in (end.error or "")

    async def test_much_stdout(self, runner: StepRunner) -> None:
        """1 MiB of stdout is allowed."""
        end = await runner.run(job("print('x' * 1_048_576, end='')"), silent)
        assert end.error is None
        assert end.output == "x" * 1_048_576

    async def test_too_much_stdout(self, runner: StepRunner) -> None:
        """More than 1 MiB of stdout fails the step immediately and permanently."""
        asked = job("while True: print('x' * 1000)")
        end = await runner.run(asked, silent)
        assert (end.output, end.permanent, end.timed_out) == (None, True, False)
        assert "stdout" in (end.error or "")
        assert alive(asked.execution_id) == []

    async def test_missing_interpreter(self, runner_without_ruby: StepRunner) -> None:
        """A language that cannot run is a permanent error that says what to install."""
        end = await runner_without_ruby.run(job("puts 1", Language.RUBY), silent)
        cure = runner_without_ruby.languages()[Language.RUBY].cure
        assert end.permanent
        assert cure
        assert cure in (end.error or "")

    async def test_missing_command(self, runner: StepRunner) -> None:
        """A missing command is a permanent error that names the command."""
        end = await runner.run(
            job(language=Language.COMMAND, argv=("no-such-program", "x")), silent
        )
        assert end.permanent
        assert "no-such-program" in (end.error or "")

    async def test_unpassable_variable(self, runner: StepRunner) -> None:
        """A value that cannot be passed to a process is an error that names the variable."""
        for value in ("x" * 200_000, "a\0b"):
            end = await runner.run(job("print(1)", environment={"WF_VAR_big": value}), silent)
            assert end.permanent
            assert "WF_VAR_big" in (end.error or "")

    async def test_too_large_environment(self, runner: StepRunner) -> None:
        """
        If the variables are too large in total, the largest are only in the context file. Secrets
        are never in the context file: secrets that are too large fail the step with an error that
        names one. CS-3.
        """
        values = {f"WF_VAR_v{number}": "x" * (90_000 + number) for number in range(80)}
        source = "import json, os; print(json.dumps(sorted(os.environ)))"
        end = await runner.run(job(source, environment={**values, "WF_VAR_w": "y"}), silent)
        assert (end.error, end.permanent) == (None, False)
        assert "WF_VAR_w" in str(end.output)
        assert "WF_VAR_v79" not in str(end.output)
        secrets = {f"WF_SECRET_v{number}": "x" * (90_000 + number) for number in range(80)}
        end = await runner.run(job("print(1)", environment={**secrets, "WF_VAR_w": "y"}), silent)
        assert end.permanent
        assert "WF_SECRET_v79" in (end.error or "")

    async def test_timeout(self, runner: StepRunner) -> None:
        """
        A step that reaches its timeout is reported as timed out, and all its processes are dead.
        """
        asked = job(_LEAVE_DAEMONS + _WAIT, timeout_ms=700)
        end = await runner.run(asked, silent)
        assert (end.output, end.timed_out) == (None, True)
        assert "0.7 s" in (end.error or "")
        assert alive(asked.execution_id) == []

    async def test_daemons_end_with_the_step(self, runner: StepRunner) -> None:
        """Processes that a step left running are killed at its end, and do not delay its end."""
        asked = job(_LEAVE_DAEMONS)
        end = await runner.run(asked, silent)
        assert (end.output, end.error) == ("ready", None)
        assert alive(asked.execution_id) == []

    @pytest.mark.parametrize("given_times", [1, 4])
    async def test_cancel(self, runner: StepRunner, given_times: int) -> None:
        """
        A cancelled run raises once all its processes are dead, however often the run is cancelled.
        """
        said = Lines()
        asked = job(_LEAVE_DAEMONS + _WAIT, log=True)
        running = asyncio.ensure_future(runner.run(asked, said))
        async with asyncio.timeout(60):
            await said.heard.wait()
        daemons = alive(asked.execution_id)
        assert daemons
        for _ in range(given_times):
            running.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await running
        assert alive(asked.execution_id, among=daemons) == []
        assert alive(asked.execution_id) == []

    async def test_cancel_at_any_moment(self, runner: StepRunner) -> None:
        """Whenever a run is cancelled, no process of the step is alive afterwards."""
        for turns in range(0, 60, 3):
            asked = job("sleep 600", Language.BASH)
            running = asyncio.ensure_future(runner.run(asked, silent))
            for _ in range(turns):
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert alive(asked.execution_id) == []

    async def test_failing_listener(self, runner: StepRunner) -> None:
        """If the listener raises, the step is ended and the caller gets the exception."""
        asked = job(_LEAVE_DAEMONS + _WAIT, log=True)

        async def fail(stream: str, lines: str) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await runner.run(asked, fail)
        assert alive(asked.execution_id) == []

    async def test_many_at_once(self, runner: StepRunner) -> None:
        """Concurrent steps do not mix."""
        jobs = [job(f"echo {number}", Language.BASH) for number in range(20)]
        ends = await asyncio.gather(*(runner.run(asked, silent) for asked in jobs))
        assert [end.output for end in ends] == list(range(20))
