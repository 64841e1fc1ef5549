"""
The runner of AI steps. AI-1 to AI-4, AI-7.

The runner asks the model, checks the answer, asks once more if the answer does not fit, and counts
usage.

A step in flight when its worker died is INTERRUPTED like any other step. Its model is asked again
only if the execution is resumed, because the provider may have answered. Within an attempt a call
is retried only if the provider did nothing.
"""

import asyncio
from collections.abc import Sequence

from attrs import define, evolve

from adapters_runtime.ai import UNAVAILABLE, is_available, schemas
from adapters_runtime.ai.schemas import Misfit, Unfinished
from wfcore.model.execution import Usage
from wfcore.model.json import Json
from wfcore.ports.models import (
    AnswerLost,
    Finish,
    ModelBusy,
    ModelFailed,
    ModelRefused,
    ModelReply,
    ModelRequest,
    Models,
    NotAsked,
    Prices,
)
from wfcore.ports.runtime import AiJob, Job, Say, StepEnd, StepRunner
from wfcore.rules.backoff import Backoff, draw, lengthened
from wfcore.rules.execution.budget import NOTHING, Overrun, added, overrun
from wfcore.rules.numbers import cost_text

MOST_AT_ONCE = 32
BACKOFF = Backoff(first=0.5, longest=8.0, tries=4)
"""The waits in seconds. A provider may demand longer waits. AI-3."""
_REPEATED = 20_000
"""The most characters of an unfit answer that are repeated to the model."""


def pause_s(backoff: Backoff, tries: int, retry_after_s: float | None, seed: str) -> float:
    """The wait after *tries* calls, at least as long as the provider demands. AI-3."""
    drawn = draw(f"{seed}/{tries}")
    return max(backoff.wait(tries, drawn), lengthened(retry_after_s or 0.0, drawn))


class AiStepRunner:
    """The runner of AI steps over *models*, with at most *at_once* calls at a time."""

    def __init__(
        self,
        models: Models,
        prices: Prices,
        backoff: Backoff = BACKOFF,
        at_once: int = MOST_AT_ONCE,
    ) -> None:
        self.models = models
        self.prices = prices
        self.backoff = backoff
        self.places = asyncio.Semaphore(at_once)

    async def run(self, job: AiJob, say: Say) -> StepEnd:
        """Run one attempt to its end. No call continues afterwards, even after a cancellation."""
        if not is_available():  # checked before anything is paid for
            return StepEnd(error=UNAVAILABLE, permanent=True)
        timeout_s = job.step.timeout_ms / 1_000
        limit = asyncio.timeout(timeout_s)
        talk = _Talk(self, job, say, limit)
        try:
            async with limit:
                output = await talk.output()
                end = StepEnd(output, model=talk.model if job.step.fallback else None)
        except TimeoutError:
            if not limit.expired():
                raise
            end = StepEnd(error=f"ran into its timeout of {timeout_s:g} s", timed_out=True)
        except NotAsked as short:
            end = StepEnd(postponed=str(short)) if talk.usage is None else StepEnd(error=str(short))
        except ModelFailed as failure:
            end = StepEnd(error=str(failure), permanent=isinstance(failure, ModelRefused))
        return evolve(end, usage=talk.usage)


@define
class _Talk:
    """
    One attempt, with up to two answers and their total usage. `number`: the place of the model that
    is asked now among the models of the step.
    """

    runner: AiStepRunner
    job: AiJob
    say: Say
    limit: asyncio.Timeout
    usage: Usage | None = None
    number: int = 0

    @property
    def model(self) -> str:
        """The model that is asked now, or answered last."""
        return self.job.step.models[self.number]

    async def output(self) -> Json:
        """The step's output. Raises `ModelFailed`."""
        step = self.job.step
        question = ModelRequest(
            step.model,
            self.job.prompt,
            self.job.system,
            step.max_tokens,
            step.temperature,
            step.schema,
            self.job.traceparent,
        )
        text = await self._text(question)
        if step.schema is None:
            return text
        try:
            return schemas.fitting(step.schema, text)
        except Unfinished as unfinished:
            raise AnswerLost(f"the answer does not fit the schema: {unfinished}") from None
        except Misfit as misfit:
            return await self._repaired(question, text, str(misfit))

    async def _require_price(self) -> None:
        """Raises `ModelRefused` if a limit on cost cannot be enforced for want of a price. BU-3."""
        held = self.job.allowance
        if held is None or held.budget.max_cost_usd is None:
            return
        model = self.model
        if await self.runner.prices.cost(model, ModelReply("", 0, 0)) is None:
            raise ModelRefused(
                f"the budget has maxCostUsd, and {model} has no known price: "
                "the operator can add one, or use maxTokens"
            )

    async def _repaired(self, question: ModelRequest, text: str, why: str) -> Json:
        """The output of a second answer, to the question with the first answer's faults. AI-2."""
        assert question.schema is not None
        unfit = f"the answer does not fit the schema: {why}"
        if (over := self._overrun()) is not None:
            raise ModelRefused(f"{unfit}; it is not asked for again: {over.why}")
        if self.job.log:
            await self.say("ai", f"{unfit}; asking again\n")
        again = evolve(question, prompt=_with_misfit(question.prompt, text, why))
        try:
            return schemas.fitting(question.schema, await self._text(again))
        except Misfit as misfit:
            raise AnswerLost(f"the answer does not fit the schema, twice: {misfit}") from None

    async def _text(self, question: ModelRequest) -> str:
        """The text of one answer, whose usage is counted. Raises `ModelFailed`, also if cut off."""
        answer = await self._first_answer(question)
        if answer.finish is Finish.LENGTH:
            limit = self.job.step.max_tokens
            cut = f"maxTokens ({limit})" if limit else "the model's limit of tokens"
            raise ModelRefused(f"the answer was cut at {cut}; allow more, or ask for less")
        return answer.text

    async def _first_answer(self, question: ModelRequest) -> ModelReply:
        """
        The answer of the first model, from the present one on, that neither fails nor declines.
        AI-11. Raises `ModelFailed` if none is left, or the budget is spent.
        """
        failures: list[ModelFailed] = []
        said: list[str] = []
        while True:
            try:
                return await self._willing_answer(evolve(question, model=self.model))
            except NotAsked:
                raise
            except ModelFailed as failure:
                failures.append(failure)
                said.append(f"{self.model}: {failure}")
            if self.number + 1 == len(self.job.step.models):
                raise _all_failed(failures, said)
            self.number += 1
            if (over := self._overrun()) is not None:
                raise ModelRefused(f"{'; '.join(said)}; {self.model} is not asked: {over.why}")
            if self.job.log:
                await self.say("ai", f"{said[-1]}; asking {self.model}\n")

    async def _willing_answer(self, question: ModelRequest) -> ModelReply:
        await self._require_price()
        answer = await self._answer(question)
        await self._count(answer)
        if answer.finish is Finish.DECLINED:
            raise ModelRefused(f"the model declined to answer: {answer.text[:300]}".rstrip(": "))
        return answer

    def _overrun(self) -> Overrun | None:
        """The reason why the budget allows no further call; None if it allows one. BU-1."""
        held = self.job.allowance
        return overrun(held.after(self.usage or NOTHING) if held else None)

    async def _answer(self, question: ModelRequest) -> ModelReply:
        """
        Ask until there is an answer, or tries or time are used up. AI-3.

        A shortage of this machine ends the attempt if nothing was used so far, and the attempt
        begins again later. EX-27.
        """
        for tries in range(1, self.runner.backoff.tries):
            try:
                return await self._ask(question)
            except ModelBusy as busy:
                if isinstance(busy, NotAsked) and self.usage is None:
                    raise
                await self._wait(tries, busy)
        return await self._ask(question)

    async def _ask(self, question: ModelRequest) -> ModelReply:
        async with self.runner.places:
            return await self.runner.models.ask(question)

    async def _wait(self, tries: int, busy: ModelBusy) -> None:
        job = self.job
        seed = f"{job.execution_id}/{job.step_name}/{job.attempt}"
        pause = pause_s(self.runner.backoff, tries, busy.retry_after_s, seed)
        ends = self.limit.when()
        if ends is not None and asyncio.get_running_loop().time() + pause >= ends:
            raise ModelBusy(f"{busy}; the step's timeout leaves no time to ask again")
        if job.log:
            await self.say("ai", f"{busy}; asking again in {pause:.1f} s\n")
        await asyncio.sleep(pause)

    async def _count(self, answer: ModelReply) -> None:
        """
        Add the usage of *answer*: first its tokens at an unknown cost, so that a timeout during the
        price lookup does not lose them.
        """
        model, before = self.model, self.usage or NOTHING
        used = Usage(answer.input_tokens, answer.output_tokens, None)
        self.usage = added(before, used)
        cost = await self.runner.prices.cost(model, answer)
        if cost is not None:
            used = evolve(used, cost_usd=cost_text(cost))
            self.usage = added(before, used)
        if self.job.log:
            price = f", {used.cost_usd} USD" if used.cost_usd is not None else ""
            counts = f"{used.input_tokens} input and {used.output_tokens} output tokens"
            await self.say("ai", f"{model}: {counts}{price}\n")


def _all_failed(failures: Sequence[ModelFailed], said: Sequence[str]) -> ModelFailed:
    """The failure of the step: of its only model, or of all; final if each of them is final."""
    if len(failures) == 1:
        return failures[0]
    final = all(isinstance(one, ModelRefused) for one in failures)
    return ModelRefused("; ".join(said)) if final else ModelFailed("; ".join(said))


def _with_misfit(prompt: str, text: str, why: str) -> str:
    shown = text if len(text) <= _REPEATED else f"{text[:_REPEATED]}…"
    return (
        f"{prompt}\n\nAn earlier answer was:\n{shown}\n\n"
        f"It does not fit the JSON Schema: {why}\nAnswer again, with JSON that fits."
    )


class StepRunners:
    """The `JobRunner` over one runner for each kind of step."""

    def __init__(self, code: StepRunner, ai: AiStepRunner) -> None:
        self._code = code
        self._ai = ai

    async def run(self, job: Job, say: Say) -> StepEnd:
        """Run one attempt to its end; see `JobRunner`."""
        if isinstance(job, AiJob):
            return await self._ai.run(job, say)
        return await self._code.run(job, say)
