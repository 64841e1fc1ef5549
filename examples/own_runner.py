"""
A step runner of your own: steps call coroutines of this program by name, nothing is spawned.

`wfcore.FunctionRunner` does this and more; this one shows what a runner promises.

A definition says `language: command` and `command: [charge, "{{ variables.order }}"]`; the
first word names the function, the others are its arguments.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from attrs import define, frozen

from wfcore import (
    CodeStep,
    Definition,
    Engine,
    Json,
    Language,
    Principal,
    Variable,
    apply_workflow,
    ensure_account,
    in_memory,
    read_events,
    start_execution,
    wait_for_rest,
)
from wfcore.ports import AiJob, Job, LanguageState, Say, StepEnd, StepJob

SECOND = 1_000


@frozen
class Call:
    """What a function is given: its arguments, the step's context, and a way to say something."""

    arguments: tuple[str, ...]
    context: Mapping[str, Json]
    say: Callable[[str], Awaitable[None]]


Function: TypeAlias = Callable[[Call], Awaitable[Json]]
"""Async, because a coroutine can be ended at its timeout; a thread cannot."""


@frozen
class CoroutineRunner:
    """Satisfies `wfcore.JobRunner` over functions of this process."""

    functions: Mapping[str, Function]

    async def run(self, job: Job, say: Say) -> StepEnd:
        """One attempt. Whatever the function does wrong is the step's failure, never ours."""
        if isinstance(job, AiJob):
            return StepEnd(error="no AI steps here", permanent=True)
        if job.step.language is not Language.COMMAND:
            cure = self.languages()[job.step.language].cure
            return StepEnd(error=f"{job.step.language} cannot run here: {cure}", permanent=True)
        function = self.functions.get(job.argv[0])
        if function is None:
            known = ", ".join(self.functions)
            error = f"there is no function {job.argv[0]!r}; there are {known}"
            return StepEnd(error=error, permanent=True)
        return await self._called(function, job, say)

    async def _called(self, function: Function, job: StepJob, say: Say) -> StepEnd:
        heard = Heard(say if job.log else _nobody)
        call = Call(job.argv[1:], job.context, heard.line)
        seconds = job.step.timeout_ms / SECOND
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                end = StepEnd(await function(call))
        except Exception as error:
            end = StepEnd(error=f"{type(error).__name__}: {error}")
            if limit.expired():
                end = StepEnd(error=f"timed out after {seconds} s", timed_out=True)
        if heard.failure is not None:
            raise heard.failure  # the listener's, and none of the step's
        return end

    def languages(self) -> Mapping[Language, LanguageState]:
        """Functions only."""
        cure = "use language: command with the name of a function"
        return {
            language: LanguageState(language, language is Language.COMMAND, cure=cure)
            for language in Language
        }

    async def close(self) -> None:
        """Nothing outlives its step."""


@define
class Heard:
    """Passes lines on, and keeps what went wrong with whoever listens."""

    say: Say
    failure: Exception | None = None

    async def line(self, text: str) -> None:
        """One line of the step's output."""
        try:
            await self.say("stdout", f"{text}\n")
        except Exception as failure:
            self.failure = failure
            raise


async def _nobody(stream: str, lines: str) -> None:
    """Nobody wants to hear it."""


# How it is used


async def charge(call: Call) -> Json:
    """Something that this program can do."""
    await call.say(f"charging {call.arguments[0]}")
    return {"order": call.arguments[0], "charged": True}


DEFINITION = Definition(
    "Charge",
    (CodeStep("pay", Language.COMMAND, command=("charge", "{{ variables.order }}")),),
    variables={"order": Variable("order")},
)


async def main() -> None:
    services = in_memory()
    async with Engine(services, CoroutineRunner({"charge": charge})):
        ann = Principal(await ensure_account(services, "ann@example.org"))
        workflow = await apply_workflow(services, ann.account.id, DEFINITION)
        inputs: dict[str, Json] = {"order": "A-7"}
        started = await start_execution(services, ann, workflow.id, inputs, monitored=True)
        run = await wait_for_rest(services, ann, started.execution_id, 30 * SECOND)
        _, events = await read_events(services, ann, run.id, 0)
        print([event.data["text"] for event in events if event.kind == "step.log"])
        print(run.status, run.output)


if __name__ == "__main__":
    asyncio.run(main())
