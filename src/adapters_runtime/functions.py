"""
Steps that are functions of this program: nothing is spawned, nothing is installed.

    def pay(order: str) -> dict[str, object]:
        current_call().say(f"paying {order}")
        return {"order": order, "paid": True}

    runner = FunctionRunner(pay)

A step says `language: command` and `command: [pay, "{{ variables.order }}"]`: the first word names
the function, the others are its arguments, as text. What it returns, which must be JSON, is the
output of the step; what it raises is the step's failure.

**Coroutine functions** run in the event loop, and are cancelled at their timeout or when their
execution is cancelled.

**Plain functions** run in threads, *threads* at a time, and a thread cannot be ended from outside.
At its timeout, or when its execution is cancelled, such a function is only told so: `over` of its
`current_call()` is set, which one that takes long should look at. Until it returns, the step keeps
its place and its lease, so that nothing else of it begins meanwhile; what it gives back counts no
more. One that never returns keeps its thread, and its process, until that is killed; its step is
INTERRUPTED then.

A function has this process's memory, files and rights: nothing here contains it. Run what strangers
write with `CodeStepRunner` instead.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from attrs import evolve, field, frozen

from wfcore.errors import InvalidInput
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Language
from wfcore.ports.runtime import AiJob, Job, LanguageState, Say, StepEnd, StepJob
from wfcore.rules.definition.values import known_or
from wfcore.rules.definition.written import json_problems
from wfcore.rules.limits import MIB
from wfcore.time import SECOND

Function: TypeAlias = Callable[..., Any]
"""Takes texts, and gives JSON or something that is awaited for it."""


@frozen(eq=False)
class FunctionCall:
    """
    The attempt that a function runs for. `say` tells a line of the step's output, from any
    thread; `over` is set when nobody waits for the outcome any more.
    """

    job: StepJob = field(repr=False)
    say: Callable[[str], None]
    over: threading.Event = field(factory=threading.Event)

    @property
    def context(self) -> JsonObject:
        """`variables`, `steps` and `execution`, as templates see them."""
        return self.job.context


_current: ContextVar[FunctionCall] = ContextVar("wfcore_call")


def current_call() -> FunctionCall:
    """The call of the function that asks. Raises `LookupError` outside of a step."""
    try:
        return _current.get()
    except LookupError:
        raise LookupError("there is no call here: only a function that is a step has one") from None


class _Outcome(NamedTuple):
    """How a function ended, as a value: some exceptions do not pass through futures."""

    value: Any
    error: BaseException | None


class FunctionRunner:
    """
    Satisfies `JobRunner` and `StepRunner` over functions by their names; `named` are those that
    have another one, or none.

    Raises `InvalidInput` for a function without a name, and for two of one name.
    """

    def __init__(
        self, *functions: Function, named: Mapping[str, Function] | None = None, threads: int = 32
    ) -> None:
        self._functions = dict(named or {})
        for function in functions:
            name = getattr(function, "__name__", "<none>")
            if not name.isidentifier():
                raise InvalidInput("functions", f"{function!r} has no name; use named={{…}}")
            if name in self._functions:
                raise InvalidInput("functions", f"two are called {name}; use named={{…}}")
            self._functions[name] = function
        self._threads = ThreadPoolExecutor(threads, "wfcore-step")
        self._free = asyncio.Semaphore(threads)

    async def run(self, job: Job, say: Say) -> StepEnd:
        """One attempt. Whatever the function does wrong is the step's failure, never ours."""
        if (why_not := self._why_not(job)) is not None or not isinstance(job, StepJob):
            return StepEnd(error=why_not, permanent=True)
        function = self._functions[job.argv[0]]
        heard = _Heard(say, job.log)
        calling = asyncio.create_task(self._called(function, FunctionCall(job, heard.put)))
        telling = asyncio.create_task(heard.tell())
        try:
            await asyncio.wait((calling, telling), return_when=asyncio.FIRST_COMPLETED)
            if not telling.done():  # else its failure is the caller's
                heard.put(None)
            await telling
            return evolve(calling.result(), lines=tuple(heard.kept))
        finally:
            telling.cancel()
            calling.cancel()
            await _until(calling)
            await _until(telling)

    def languages(self) -> Mapping[Language, LanguageState]:
        """Functions only."""
        cure = "use language: command with the name of a function"
        return {
            language: LanguageState(language, language is Language.COMMAND, cure=cure)
            for language in Language
        }

    async def close(self) -> None:
        """No further step begins. Threads that still run end with their functions."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _why_not(self, job: Job) -> str | None:
        if isinstance(job, AiJob):
            return "functions answer no questions to models: AI steps need a runner of their own"
        if job.step.language is not Language.COMMAND:
            cure = self.languages()[job.step.language].cure
            return f"{job.step.language} cannot run here: {cure}"
        if job.argv[0] in self._functions:
            return None
        return f"there is no function {job.argv[0]!r}; {known_or(job.argv[0], self._functions)}"

    async def _called(self, function: Function, call: FunctionCall) -> StepEnd:
        """FunctionCall it, in the time that the step has from when it begins."""
        _current.set(call)
        limit_s = call.job.step.timeout_ms / SECOND
        limit = asyncio.timeout(None)
        try:
            async with self._free, limit:
                limit.reschedule(asyncio.get_running_loop().time() + limit_s)
                return _as_end(await self._result(partial(function, *call.job.argv[1:]), call))
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return StepEnd(error="CancelledError: raised by the function itself")
        except (Exception, SystemExit) as error:
            if limit.expired():
                return StepEnd(error=f"timed out after {limit_s:g} s", timed_out=True)
            return StepEnd(error=_in_words(error))
        finally:
            call.over.set()

    async def _result(self, function: "partial[Any]", call: FunctionCall) -> Any:
        if inspect.iscoroutinefunction(function.func):
            return await function()
        value, error = await self._in_thread(function, call)
        if error is not None:
            raise RuntimeError(_in_words(error)) if _is_odd(error) else error
        return await value if inspect.isawaitable(value) else value

    async def _in_thread(self, function: "partial[Any]", call: FunctionCall) -> _Outcome:
        """Run *function* to its end in a thread; cancelled, it is told, and waited for."""

        def run() -> _Outcome:
            try:
                return _Outcome(function(), None)
            except BaseException as error:
                return _Outcome(None, error)

        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        working = self._threads.submit(copy_context().run, run)
        working.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set_result, None))
        try:
            await asyncio.wait((ended,))
        except asyncio.CancelledError:
            call.over.set()
            await _until(ended)
            raise
        return working.result()


class _Heard:
    """Lines of one step, told in order where somebody listens, else kept, up to 1 MiB. EX-28."""

    def __init__(self, say: Say, listens: bool) -> None:
        self._say = say
        self._listens = listens
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self.kept: list[tuple[str, str]] = []
        self._room = MIB

    def put(self, text: str | None) -> None:
        """A line, or (None) the end of them. From any thread."""
        if threading.get_ident() == self._thread:
            self._lines.put_nowait(text)
        else:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, text)

    async def tell(self) -> None:
        """Pass on what comes, until its end. Raises what the listener raises."""
        while (text := await self._lines.get()) is not None:
            line = f"{text}\n"
            if self._listens:
                await self._say("stdout", line)
            elif (room := self._room - len(line)) >= 0:
                self._room = room
                self.kept.append(("stdout", line))


def _as_end(value: Any) -> StepEnd:
    problems = [str(one) for one in json_problems(value, "the result", MIB)]
    if problems:
        return StepEnd(error=f"what the function returned is no JSON: {problems[0]}")
    output: Json = value
    return StepEnd(output)


def _in_words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _is_odd(error: BaseException) -> bool:
    """Whether *error*, raised in a coroutine, would mean something else there."""
    return not isinstance(error, Exception) or isinstance(error, StopIteration | StopAsyncIteration)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _until(ended: "asyncio.Future[Any]") -> None:
    """Wait until it has, however often whoever waits is cancelled meanwhile."""
    while not ended.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait((ended,))
