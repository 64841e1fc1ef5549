"""One attempt of an AI step: asked, checked, asked again, counted, ended."""

import asyncio
import sys
from decimal import Decimal
from typing import Any

import pytest

from adapters_runtime.ai import UNAVAILABLE
from adapters_runtime.ai.runner import AiStepRunner, pause_s
from wfcore.installed import install
from wfcore.model.execution import Usage
from wfcore.model.workflow import AiStep, Budget
from wfcore.ports.models import Finish, ModelReply
from wfcore.ports.runtime import AiJob, StepEnd
from wfcore.rules.backoff import Backoff
from wfcore.rules.execution.budget import Allowance
from wfcore.testing.contracts.steps import Lines, silent
from wfcore.testing.models import MODEL, FixedPrices, ScriptedModels
from wfcore.time import DurationMs

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
QUICK = Backoff(0.001, 0.002, tries=4)
ONCE = Usage(12, 3, "0.018")
TWICE = Usage(24, 6, "0.036")


def job(allowance: Allowance | None = None, log: bool = False, **step: Any) -> AiJob:
    asked = AiStep(
        "ask", **{"model": MODEL, "prompt": "p", "timeout_ms": DurationMs(20_000), **step}
    )
    return AiJob("exec_1", "wf_1", "ask", 1, 1, asked, "Be brief.", "Say it", allowance, log)


@pytest.fixture
def models() -> ScriptedModels:
    return ScriptedModels()


@pytest.fixture
def runner(models: ScriptedModels) -> AiStepRunner:
    return AiStepRunner(models, FixedPrices(), QUICK)


async def test_text(runner: AiStepRunner, models: ScriptedModels) -> None:
    """Without a schema the output is the answer's text; what it used is counted. AI-1, AI-7."""
    assert await runner.run(job(max_tokens=5, temperature=0.1), silent) == StepEnd(
        "hello", usage=ONCE
    )
    (question,) = models.questions
    assert (question.prompt, question.system) == ("Say it", "Be brief.")
    assert (question.max_tokens, question.temperature) == (5, 0.1)


async def test_json(runner: AiStepRunner, models: ScriptedModels) -> None:
    """With a schema the output is JSON of that shape. AI-1, AI-2."""
    models.says('{"n": 1}')
    assert await runner.run(job(schema=SCHEMA), silent) == StepEnd({"n": 1}, usage=ONCE)


@pytest.mark.parametrize("library", ["genai_prices", "jsonschema_rs"])
async def test_without_the_extra_nothing_is_asked(
    runner: AiStepRunner, models: ScriptedModels, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    """Without the extra `ai` a step fails, says how to install it, and nothing is paid for."""
    monkeypatch.setitem(sys.modules, library, None)
    end = await runner.run(job(), silent)
    assert end == StepEnd(error=UNAVAILABLE, permanent=True)
    assert install("ai") in UNAVAILABLE
    assert models.questions == []


async def test_repaired(runner: AiStepRunner, models: ScriptedModels) -> None:
    """An answer that does not fit is asked for again, with what was wrong; both count. AI-2."""
    models.says('{"n": "one"}')
    models.says('{"n": 1}')
    assert await runner.run(job(schema=SCHEMA), silent) == StepEnd({"n": 1}, usage=TWICE)
    first, second = models.questions
    assert second.prompt.startswith(first.prompt)
    assert '{"n": "one"}' in second.prompt
    assert "['n']: " in second.prompt


async def test_repaired_once_only(runner: AiStepRunner, models: ScriptedModels) -> None:
    """A second answer that does not fit fails the step; both answers are counted. AI-2, AI-7."""
    for _ in range(3):
        models.says("no JSON at all")
    end = await runner.run(job(schema=SCHEMA), silent)
    assert "does not fit the schema, twice: it is no JSON" in (end.error or "")
    assert (len(models.questions), end.usage, end.permanent) == (2, TWICE, False)


async def test_what_does_not_end_is_not_asked_for_again(
    runner: AiStepRunner, models: ScriptedModels
) -> None:
    """Thoughts without an end fail the step with one call. AI-2."""
    models.says("<think>Let me see")
    end = await runner.run(job(schema=SCHEMA), silent)
    assert "within the model's thoughts" in (end.error or "")
    assert (len(models.questions), end.usage) == (1, ONCE)


async def test_a_cut_answer_is_none(runner: AiStepRunner, models: ScriptedModels) -> None:
    """Text that ran into maxTokens is not passed off as whole, nor asked for again. AI-1."""
    models.says("once upon a", Finish.LENGTH)
    end = await runner.run(job(max_tokens=5), silent)
    assert end.error == "the answer was cut at maxTokens (5); allow more, or ask for less"
    assert (end.permanent, end.usage, len(models.questions)) == (True, ONCE, 1)


async def test_a_declined_answer_is_none(runner: AiStepRunner, models: ScriptedModels) -> None:
    """A model that does not want to answer fails the step with its words. AI-1."""
    models.says("I cannot help with that", Finish.DECLINED)
    end = await runner.run(job(), silent)
    assert end.error == "the model declined to answer: I cannot help with that"
    assert end.permanent


async def test_busy_is_asked_again(runner: AiStepRunner, models: ScriptedModels) -> None:
    """What says that nothing was done is asked again, up to four times in all. AI-3."""
    for _ in range(3):
        models.is_busy()
    assert (await runner.run(job(), silent)).output == "hello"
    assert len(models.questions) == 4
    for _ in range(4):
        models.is_busy()
    end = await runner.run(job(), silent)
    assert (end.error, end.permanent, end.usage) == ("busy", False, None)
    assert len(models.questions) == 8


@pytest.mark.parametrize(("fail", "permanent"), [("refuses", True), ("breaks_off", False)])
async def test_nothing_else_is_asked_again(
    runner: AiStepRunner, models: ScriptedModels, fail: str, permanent: bool
) -> None:
    """What was refused, and what may have been worked on, is not asked again here. AI-3."""
    getattr(models, fail)()
    end = await runner.run(job(), silent)
    assert (end.error is not None, end.permanent) == (True, permanent)
    assert len(models.questions) == 1


async def test_a_wait_beyond_the_timeout(runner: AiStepRunner, models: ScriptedModels) -> None:
    """Where the provider asks for more time than the step has, it fails at once. AI-3."""
    models.is_busy(3_600)
    end = await runner.run(job(), silent)
    assert end.error == "busy; the step's timeout leaves no time to ask again"
    assert len(models.questions) == 1


async def test_a_hang_ends_at_the_timeout(runner: AiStepRunner, models: ScriptedModels) -> None:
    """The step's timeout bounds everything; what was used until then is counted. AI-4, AI-7."""
    models.says("no JSON")
    models.hangs()
    end = await runner.run(job(schema=SCHEMA, timeout_ms=DurationMs(200)), silent)
    assert (end.error, end.timed_out) == ("ran into its timeout of 0.2 s", True)
    assert (end.usage, models.calls) == (ONCE, 0)


async def test_cancel(runner: AiStepRunner, models: ScriptedModels) -> None:
    """A cancelled step raises, and nothing of it goes on. AI-4."""
    models.hangs()
    running = asyncio.ensure_future(runner.run(job(), silent))
    while not models.calls:  # noqa: ASYNC110 - the fake has no event
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert models.calls == 0


async def test_bounded(models: ScriptedModels) -> None:
    """No more calls at a time than the operator allows; the others wait their turn."""
    runner = AiStepRunner(models, FixedPrices(), QUICK, at_once=2)
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, models.calls)
            await asyncio.sleep(0)

    watching = asyncio.ensure_future(watch())
    ends = await asyncio.gather(*(runner.run(job(), silent) for _ in range(9)))
    watching.cancel()
    assert [end.output for end in ends] == ["hello"] * 9
    assert most == 2


async def test_lines(runner: AiStepRunner, models: ScriptedModels) -> None:
    """A step that is watched tells its calls: model, tokens, waits, and no prompt."""
    said = Lines()
    models.is_busy()
    models.says("no JSON")
    models.says('{"n": 1}')
    await runner.run(job(schema=SCHEMA, log=True), said)
    lines = said.of("ai").splitlines()
    assert lines[0].startswith("busy; asking again in ")
    assert lines[1] == f"{MODEL}: 12 input and 3 output tokens, 0.018 USD"
    assert lines[2].startswith("the answer does not fit the schema: ")
    assert len(lines) == 4
    assert "Say it" not in said.of("ai")


async def test_an_unknown_price(models: ScriptedModels) -> None:
    """A model without a known price costs null. AI-7."""
    runner = AiStepRunner(models, FixedPrices({}), QUICK)
    assert (await runner.run(job(), silent)).usage == Usage(12, 3, None)


async def test_an_unknown_price_under_a_budget(models: ScriptedModels) -> None:
    """With maxCostUsd a model of unknown price is not asked at all; with maxTokens it is. BU-3."""
    runner = AiStepRunner(models, FixedPrices({}), QUICK)
    end = await runner.run(job(Allowance(Budget("1"))), silent)
    assert "has no known price" in (end.error or "")
    assert (end.permanent, models.questions) == (True, [])
    assert (await runner.run(job(Allowance(Budget(None, 100))), silent)).output == "hello"


@pytest.mark.parametrize("budget", [Budget("0.018"), Budget(None, 15)])
async def test_no_repair_beyond_the_budget(
    runner: AiStepRunner, models: ScriptedModels, budget: Budget
) -> None:
    """The second question is a call like the first: beyond the budget it is not asked. BU-1."""
    models.says("no JSON")
    end = await runner.run(job(Allowance(budget), schema=SCHEMA), silent)
    assert "it is not asked for again: the budget is spent: 15 tokens" in (end.error or "")
    assert (len(models.questions), end.usage) == (1, ONCE)


@pytest.mark.parametrize("asked", [1, 2, 3, 9])
@pytest.mark.parametrize("retry_after_s", [None, 0.0, 30.0])
def test_waits(asked: int, retry_after_s: float | None) -> None:
    """No wait is shorter than asked for, nor much longer; the same seed waits the same. AI-3."""
    backoff = Backoff(0.5, 8)
    waits = [pause_s(backoff, asked, retry_after_s, f"exec_{n}") for n in range(50)]
    least = max(min(8, 0.5 * 2 ** (asked - 1)), retry_after_s or 0)
    assert all(least <= wait <= least * 1.25 for wait in waits)
    assert len(set(waits)) == 50
    assert waits == [pause_s(backoff, asked, retry_after_s, f"exec_{n}") for n in range(50)]


class SlowPrices:
    """Prices that take for ever to look up."""

    async def cost(self, model: str, answer: ModelReply) -> Decimal | None:
        return await asyncio.Event().wait() or None


async def test_a_slow_price_list_loses_no_tokens(models: ScriptedModels) -> None:
    """Where time is over before the price is known, the tokens are counted all the same. AI-7."""
    runner = AiStepRunner(models, SlowPrices(), QUICK)
    end = await runner.run(job(timeout_ms=DurationMs(100)), silent)
    assert (end.timed_out, end.usage) == (True, Usage(12, 3, None))


async def test_what_this_machine_lacks_postpones_the_attempt(
    runner: AiStepRunner, models: ScriptedModels
) -> None:
    """Nothing was asked: the attempt begins later, at once and without patience. EX-27."""
    models.lacks("no file descriptors")
    assert await runner.run(job(), silent) == StepEnd(postponed="no file descriptors")
    assert len(models.questions) == 1


async def test_what_was_used_is_not_forgotten_for_a_shortage(
    runner: AiStepRunner, models: ScriptedModels
) -> None:
    """After an answer that counts, the second question is asked again as of a busy one. EX-27."""
    models.says("no JSON")
    models.lacks("no file descriptors")
    models.says('{"n": 1}')
    assert await runner.run(job(schema=SCHEMA), silent) == StepEnd({"n": 1}, usage=TWICE)
    models.says("no JSON")
    for _ in range(QUICK.tries):
        models.lacks("no file descriptors")
    end = await runner.run(job(schema=SCHEMA), silent)
    assert end == StepEnd(error="no file descriptors", usage=ONCE)


OTHER, THIRD = "scripted:other", "scripted:third"
PRICED = FixedPrices({MODEL: ("0.001", "0.002"), OTHER: ("0.01", "0.02")})


async def test_the_next_model_is_asked(models: ScriptedModels) -> None:
    """AI-11: after a refusal; the end says which model answered, at its own price."""
    models.refuses()
    lines = Lines()
    asked = job(fallback=(OTHER,), log=True)
    end = await AiStepRunner(models, PRICED, QUICK).run(asked, lines)
    assert end == StepEnd("hello", usage=Usage(12, 3, "0.18"), model=OTHER)
    assert [one.model for one in models.questions] == [MODEL, OTHER]
    assert f"{MODEL}: refused; asking {OTHER}" in lines.of("ai")


@pytest.mark.parametrize("fails", ["is_busy", "breaks_off", "declines"])
async def test_any_failure_of_a_provider_is_one(models: ScriptedModels, fails: str) -> None:
    """AI-11: busy to the last request, a lost answer, a model that declines; all usage counts."""
    if fails == "declines":
        models.says("No.", Finish.DECLINED)
    for _ in range(4 if fails == "is_busy" else 1):
        if fails != "declines":
            getattr(models, fails)()
    end = await AiStepRunner(models, PRICED, QUICK).run(job(fallback=(OTHER,)), silent)
    used = Usage(24, 6, "0.198") if fails == "declines" else Usage(12, 3, "0.18")
    assert (end.output, end.model, end.usage) == ("hello", OTHER, used)


async def test_a_model_that_is_not_asked_may_have_another(models: ScriptedModels) -> None:
    """AI-11, BU-3: a model without a price is passed by under maxCostUsd."""
    allowance = Allowance(Budget(max_cost_usd="1"))
    asked = job(allowance, model=THIRD, fallback=(OTHER,))
    end = await AiStepRunner(models, PRICED, QUICK).run(asked, silent)
    assert (end.output, end.model) == ("hello", OTHER)
    assert [one.model for one in models.questions] == [OTHER]


async def test_no_other_model_beyond_the_budget(models: ScriptedModels) -> None:
    """AI-11, BU-1: what a declined answer used counts before the next model is asked."""
    models.says("No.", Finish.DECLINED)
    asked = job(Allowance(Budget(max_tokens=15)), fallback=(OTHER,))
    end = await AiStepRunner(models, PRICED, QUICK).run(asked, silent)
    assert f"{OTHER} is not asked: the budget is spent" in (end.error or "")
    assert (end.permanent, len(models.questions)) == (True, 1)


@pytest.mark.parametrize(("last", "permanent"), [("refuses", True), ("breaks_off", False)])
async def test_if_none_answers_each_reason_is_told(
    models: ScriptedModels, last: str, permanent: bool
) -> None:
    """AI-11: the error names each model; it is final if every one of them was."""
    models.refuses()
    getattr(models, last)()
    end = await AiStepRunner(models, PRICED, QUICK).run(job(fallback=(OTHER,)), silent)
    assert (end.error or "").startswith(f"{MODEL}: refused; {OTHER}: ")
    assert (end.permanent, end.model) == (permanent, None)


async def test_an_unfit_or_cut_answer_is_no_failure_of_the_provider(
    models: ScriptedModels,
) -> None:
    """AI-11, AI-2: the same model repairs its answer, and a cut one fails the step."""
    models.says("no JSON")
    models.says("once upon", Finish.LENGTH)
    end = await AiStepRunner(models, PRICED, QUICK).run(
        job(fallback=(OTHER,), schema=SCHEMA), silent
    )
    assert "was cut" in (end.error or "")
    assert [one.model for one in models.questions] == [MODEL, MODEL]
