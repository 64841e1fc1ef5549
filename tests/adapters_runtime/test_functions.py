"""Steps that are functions: coroutines that can be ended, and threads that can only be told."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from adapters_runtime.functions import FunctionRunner, current_call
from wfcore.errors import InvalidInput
from wfcore.model.json import Json
from wfcore.model.workflow import AiStep, Language
from wfcore.ports.runtime import AiJob, StepEnd, StepRunner
from wfcore.testing.contracts import CallContract, RunnerContract
from wfcore.testing.contracts.steps import Lines, job, silent

PATIENCE_S = 30


def command(*argv: str, **more: Any) -> Any:
    return job(language=Language.COMMAND, argv=argv, **more)


def gives() -> Json:
    return {"n": [1, "ü"]}


def gives_nothing() -> None:
    return None


def fails() -> None:
    raise ValueError("no")


def waits() -> None:
    current_call().say("waiting")
    assert current_call().over.wait(PATIENCE_S)


def speaks() -> None:
    current_call().say("one")
    current_call().say("two")


def tick() -> None:
    current_call().say("tick")
    variables: Any = current_call().context["variables"]
    with open(variables["ticks"], "a") as ticks:
        ticks.write("tick\n")


def ticks_until_told() -> None:
    while not current_call().over.wait(0.01):
        tick()


async def ticks_for_ever() -> None:
    while True:
        tick()
        await asyncio.sleep(0.01)


async def waits_for_ever() -> None:
    current_call().say("waiting")
    await asyncio.Event().wait()


def in_the_loop(function: Callable[[], Json]) -> Callable[[], Awaitable[Json]]:
    """The same as a coroutine function."""

    async def called() -> Json:
        return function()

    return called


DEEDS: dict[str, Any] = {
    "gives": gives,
    "gives nothing": gives_nothing,
    "fails": fails,
    "waits": waits,
    "speaks": speaks,
    "ticks": ticks_until_told,
}
COROUTINES = {name: in_the_loop(deed) for name, deed in DEEDS.items()}
COROUTINES |= {"waits": waits_for_ever, "ticks": ticks_for_ever}


class TestFunctionsAreSteps(CallContract):
    @pytest.fixture(params=[DEEDS, COROUTINES], ids=["threads", "coroutines"])
    async def runner(self, request: pytest.FixtureRequest) -> StepRunner:
        return FunctionRunner(named=request.param)

    @pytest.fixture
    def does(self) -> Callable[[str], Any]:
        return lambda deed: command(deed, log=True)

    test_missing_interpreter = RunnerContract.test_missing_interpreter
    test_missing_command = RunnerContract.test_missing_command

    @pytest.fixture
    def runner_without_ruby(self, runner: StepRunner) -> StepRunner:
        return runner


async def run(function: Any, *arguments: str, **more: Any) -> StepEnd:
    runner = FunctionRunner(named={"it": function})
    try:
        return await runner.run(command("it", *arguments, **more), silent)
    finally:
        await runner.close()


async def test_a_function_gets_its_arguments_and_may_ask_for_more() -> None:
    """Texts by position; variables, steps and what else there is by `current_call`."""
    context = {"variables": {"n": 1}, "steps": {}, "execution": {}}

    def seen(*given: str) -> Json:
        return {"given": given, "variables": current_call().context["variables"]}

    for function in (seen, in_the_loop_with(seen)):
        end = await run(function, "a", "b c", context=context)
        assert (end.error, end.output) == (None, {"given": ("a", "b c"), "variables": {"n": 1}})


def in_the_loop_with(function: Callable[..., Json]) -> Callable[..., Awaitable[Json]]:
    async def called(*given: str) -> Json:
        return function(*given)

    return called


async def test_what_a_plain_function_returns_may_be_awaited() -> None:
    """A lambda around a coroutine function, say."""
    end = await run(lambda: in_the_loop(gives)())
    assert end == StepEnd({"n": [1, "ü"]})


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LookupError("no such order"), "LookupError: no such order"),
        (TimeoutError("the bank did not answer"), "TimeoutError: the bank did not answer"),
        (SystemExit(3), "SystemExit: 3"),
        (StopIteration(1), "StopIteration: 1"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
    ],
)
async def test_whatever_a_function_raises_is_the_failure_of_its_step(
    error: BaseException, said: str
) -> None:
    """Never an error of the runner, and never a timeout that was none."""

    def fail() -> None:
        raise error

    end = await run(fail)
    assert said in (end.error or "")
    assert (end.output, end.permanent, end.timed_out) == (None, False, False)


async def test_a_coroutine_that_raises_cancelled_cancels_nobody() -> None:
    """Only who is cancelled from outside ends so."""

    async def fail() -> None:
        raise asyncio.CancelledError

    assert "CancelledError" in ((await run(fail)).error or "")


@pytest.mark.parametrize("value", [object(), {1: 2}, float("nan"), 2**64, "\ud800", ["x" * 2**20]])
async def test_what_is_no_json_is_refused_by_name(value: Any) -> None:
    """It fails its step, and never reaches the store."""
    end = await run(lambda: value)
    assert (end.error or "").startswith("what the function returned is no JSON: the result")
    assert end.output is None


async def test_a_function_sets_state_that_counts_once_it_has_returned() -> None:
    """From a thread or the event loop; what is no JSON is refused by name. SV-3."""

    def moves() -> Json:
        current_call().set_state(cursor="c7", count=1)
        current_call().set_state(count=2)
        return current_call().context["state"]

    def sets_no_json() -> None:
        current_call().set_state(cursor=object())  # type: ignore[arg-type]

    def fails_late() -> None:
        current_call().set_state(cursor="c8")
        raise ValueError("no")

    runner = FunctionRunner(moves, sets_no_json, fails_late, gives)
    moved = await runner.run(command("moves", context={"state": {"cursor": "c6"}}), silent)
    assert (moved.state, moved.output) == ({"cursor": "c7", "count": 2}, {"cursor": "c6"})
    wrong = await runner.run(command("sets_no_json"), silent)
    assert "what the function set as state is no JSON" in str(wrong.error)
    assert (await runner.run(command("fails_late"), silent)).state is None
    assert (await runner.run(command("gives"), silent)).state is None
    await runner.close()


async def test_a_coroutine_is_ended_at_its_timeout() -> None:
    """It is cancelled, and says so."""
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("wait")

    end = await run(wait, timeout_ms=20)
    assert (end.output, end.timed_out, ended) == (None, True, ["wait"])
    assert "0.02 s" in (end.error or "")


async def test_a_thread_is_told_of_its_timeout_and_waited_for() -> None:
    """Nothing of the attempt goes on when it is reported; what it gives back counts no more."""
    ended: list[str] = []

    def wait() -> str:
        assert current_call().over.wait(PATIENCE_S)
        ended.append("wait")
        return "too late"

    end = await run(wait, timeout_ms=20)
    assert (end.output, end.timed_out, ended) == (None, True, ["wait"])


async def test_a_thread_is_waited_for_however_often_the_step_is_cancelled() -> None:
    """Who cancels twice does not leave a payment half done."""
    began, may_end = threading.Event(), threading.Event()
    ended: list[bool] = []

    def pay() -> None:
        began.set()
        ended.append(may_end.wait(PATIENCE_S) and current_call().over.is_set())

    runner = FunctionRunner(pay)
    running = asyncio.ensure_future(runner.run(command("pay"), silent))
    assert await asyncio.to_thread(began.wait, PATIENCE_S)
    for _ in range(3):
        running.cancel()
        await asyncio.sleep(0)
    assert not running.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == [True]


async def test_a_step_that_waits_for_a_thread_has_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The timeout counts from when the function is called. One thread, and two steps at once."""
    first, go_on = threading.Event(), threading.Event()
    deadlines: list[float | None] = []
    reschedule = asyncio.Timeout.reschedule

    def noted(self: asyncio.Timeout, when: float | None) -> None:
        deadlines.append(when)
        reschedule(self, when)

    def block() -> None:
        first.set()
        assert go_on.wait(PATIENCE_S)

    monkeypatch.setattr(asyncio.Timeout, "reschedule", noted)
    runner = FunctionRunner(block, gives, threads=1)
    blocking = asyncio.ensure_future(runner.run(command("block"), silent))
    assert await asyncio.to_thread(first.wait, PATIENCE_S)
    waiting = asyncio.ensure_future(runner.run(command("gives"), silent))
    for _ in range(10):
        await asyncio.sleep(0)
    before = [when for when in deadlines if when is not None]
    go_on.set()
    assert (await blocking).error is None
    assert (await waiting).output == {"n": [1, "ü"]}
    after = [when for when in deadlines if when is not None]
    assert (len(before), len(after)) == (1, 2)


async def test_lines_that_nobody_listens_to_are_kept() -> None:
    """They come with the end, up to 1 MiB. EX-28."""
    assert (await run(speaks)).lines == (("stdout", "one\n"), ("stdout", "two\n"))
    lines = (
        await run(lambda: [current_call().say("x" * 400_000) for _ in range(5)] and None)
    ).lines
    assert len(lines) == 2
    said = Lines()
    end = await FunctionRunner(speaks).run(command("speaks", log=True), said)
    assert (said.of("stdout"), end.lines) == ("one\ntwo\n", ())


async def test_a_listener_that_failed_ends_the_function() -> None:
    """When nobody can listen any more, the function is told, and the caller learns why."""
    ended: list[bool] = []

    def insists() -> None:
        current_call().say("hello")
        ended.append(current_call().over.wait(PATIENCE_S))

    async def fail(stream: str, lines: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await FunctionRunner(insists).run(command("insists", log=True), fail)
    assert ended == [True]


async def test_what_is_no_function_here_is_said_with_what_there_is() -> None:
    """Unknown names, other languages and AI steps fail for good."""
    runner = FunctionRunner(gives, fails)
    end = await runner.run(command("give"), silent)
    assert (end.permanent, end.error) == (
        True,
        "there is no function 'give'; did you mean gives? known: gives, fails",
    )
    asked = AiJob("e", "w", "ask", 1, 1, AiStep("ask", "a:b", "hi"), "", "hi")
    assert (await runner.run(asked, silent)).permanent


def test_functions_have_names_that_differ() -> None:
    """A lambda, or two of one name, are refused where the runner is made."""
    for functions in ((lambda: None,), (gives, gives)):
        with pytest.raises(InvalidInput, match="named="):
            FunctionRunner(*functions)
    with pytest.raises(LookupError):
        current_call()
