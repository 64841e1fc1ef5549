"""A step runner that calls functions keeps what is promised of any, and says its own well."""

import asyncio

import pytest

from wfcore.model.json import Json
from wfcore.model.workflow import Language
from wfcore.ports.runtime import StepRunner
from wfcore.testing.contracts import CallContract, RunnerContract
from wfcore.testing.contracts.steps import Lines, job, silent

from .loading import example

own = example("own_runner")


def command(*argv: str, **more):
    return job(language=Language.COMMAND, argv=argv, **more)


async def gives(call) -> Json:
    return {"n": [1, "ü"]}


async def gives_nothing(call) -> Json:
    return None


async def fails(call) -> Json:
    raise ValueError("no")


async def waits(call) -> Json:
    await call.say("waiting")
    await asyncio.Event().wait()


async def speaks(call) -> Json:
    await call.say("one")
    await call.say("two")


async def ticks(call) -> None:
    while True:
        await call.say("tick")
        append(call.context["variables"]["ticks"], "tick\n")
        await asyncio.sleep(0.01)


def append(path: str, text: str) -> None:
    with open(path, "a") as file:
        file.write(text)


DEEDS = {
    "gives": gives,
    "gives nothing": gives_nothing,
    "fails": fails,
    "waits": waits,
    "speaks": speaks,
    "ticks": ticks,
}


class TestFunctionsAreSteps(CallContract):
    @pytest.fixture
    def runner(self) -> StepRunner:
        return own.CoroutineRunner(DEEDS)

    @pytest.fixture
    def does(self):
        return lambda deed: command(deed, log=True)


class TestCoroutineRunner:
    """What the shipped contract says of languages and commands, and what is special here."""

    test_missing_interpreter = RunnerContract.test_missing_interpreter
    test_missing_command = RunnerContract.test_missing_command

    @pytest.fixture
    def ended(self) -> list[str]:
        """What functions did at their end."""
        return []

    @pytest.fixture
    def runner(self, ended: list[str]) -> StepRunner:
        async def echo(call) -> Json:
            await call.say("working")
            await asyncio.sleep(0)
            return {"arguments": list(call.arguments), "seen": call.context["variables"]}

        async def fail(call) -> Json:
            raise LookupError("no such order")

        async def time_out_by_itself(call) -> Json:
            raise TimeoutError("the bank did not answer")

        async def wait(call) -> Json:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("wait")

        functions = {"echo": echo, "fail": fail, "wait": wait, "bank": time_out_by_itself}
        return own.CoroutineRunner(functions)

    @pytest.fixture
    def runner_without_ruby(self, runner: StepRunner) -> StepRunner:
        return runner

    async def test_a_function_gets_arguments_and_context(self, runner: StepRunner) -> None:
        """Its value is the output; lines are said only to who wants them."""
        context = {"variables": {"n": 1}, "steps": {}, "execution": {}}
        end = await runner.run(command("echo", "a", "b c", context=context), silent)
        assert (end.error, end.output) == (None, {"arguments": ["a", "b c"], "seen": {"n": 1}})
        said = Lines()
        await runner.run(command("echo", context=context, log=True), said)
        assert said.calls == [("stdout", "working\n")]

    async def test_what_a_function_raises_is_the_failure_of_the_step(
        self, runner: StepRunner
    ) -> None:
        """Never an error of the runner; and a TimeoutError of the function's own is no timeout."""
        end = await runner.run(command("fail"), silent)
        assert (end.output, end.permanent, end.timed_out) == (None, False, False)
        assert end.error == "LookupError: no such order"
        assert not (await runner.run(command("bank"), silent)).timed_out

    async def test_timeout(self, runner: StepRunner, ended: list[str]) -> None:
        """A function that runs into its timeout is ended, and says so."""
        end = await runner.run(command("wait", timeout_ms=20), silent)
        assert (end.output, end.timed_out, ended) == (None, True, ["wait"])
        assert "0.02 s" in (end.error or "")

    async def test_cancel(self, runner: StepRunner, ended: list[str]) -> None:
        """A cancelled run raises when the function has ended."""
        running = asyncio.ensure_future(runner.run(command("wait"), silent))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert ended == ["wait"]

    async def test_a_listener_that_failed_once_is_not_forgotten(self) -> None:
        """Whatever the function makes of it: when nobody could listen, the caller learns why."""

        async def insists(call) -> Json:
            try:
                await call.say("hello")
            except ZeroDivisionError:
                return "never mind"
            return "heard"

        async def fail(stream: str, lines: str) -> None:
            raise ZeroDivisionError

        runner = own.CoroutineRunner({"insists": insists})
        with pytest.raises(ZeroDivisionError):
            await runner.run(command("insists", log=True), fail)

    async def test_functions_are_commands(self, runner: StepRunner) -> None:
        """No other language runs here."""
        states = runner.languages()
        assert [one for one in Language if states[one].available] == [Language.COMMAND]
