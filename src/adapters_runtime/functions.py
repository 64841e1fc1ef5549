"""
The runner of steps that are functions of this program, without processes or packages.

    def pay(order: str) -> dict[str, object]:
        current_call().say(f"paying {order}")
        return {"order": order, "paid": True}

    runner = FunctionRunner(pay)

A step has `language: command` and `command: [pay, "{{ variables.order }}"]`: the first word names
the function, the other words are its arguments, as text. The result of the function, which must be
JSON, is the output of the step; an exception is the step's failure.

**Coroutine functions** run in the event loop, and are cancelled at their timeout or when their
execution is cancelled.

**Plain functions** run in threads, *threads* at a time, and a thread cannot be ended from outside.
At the timeout, or when the execution is cancelled, `over` of the function's `current_call()` is
set; a function that takes long should check it. Until the function returns, the step keeps its
place and its lease, so that no further step of the execution begins; the late result is ignored. A
function that never returns keeps its thread, and its process, until the process is killed; the step
is INTERRUPTED then.

A function has this process's memory, files and rights, without any confinement. Run the code of
strangers with `CodeStepRunner` instead.
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

from adapters_runtime.tasks import is_cancelled
from wfcore.errors import InvalidInput
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Language
from wfcore.ports.runtime import AiJob, Job, LanguageState, Say, StepEnd, StepJob
from wfcore.rules.definition.values import known_or
from wfcore.rules.json_values import json_problems
from wfcore.rules.limits import MIB
from wfcore.time import SECOND

Function: TypeAlias = Callable[..., Any]
"""A function of texts that returns JSON, or an awaitable with JSON."""


@frozen(eq=False)
class FunctionCall:
    """
    The attempt that a function runs for.

    `say` adds a line to the step's output, from any thread. `over` is set when the result no longer
    counts. `written`: the state that the function has set.
    """

    job: StepJob = field(repr=False)
    say: Callable[[str], None]
    over: threading.Event = field(factory=threading.Event)
    written: dict[str, Json] = field(factory=dict, repr=False)

    @property
    def context(self) -> JsonObject:
        """The `variables`, `steps`, `state`, `trigger` and `execution` of templates."""
        return self.job.context

    def set_state(self, **values: Json) -> None:
        """Set *values* of the workflow's state. They count once the function has returned. SV-3."""
        self.written.update(values)


_current: ContextVar[FunctionCall] = ContextVar("wfcore_call")


def current_call() -> FunctionCall:
    """The call of the calling function. Raises `LookupError` outside of a step."""
    try:
        return _current.get()
    except LookupError:
        raise LookupError("there is no call here: only a function that is a step has one") from None


class _Result(NamedTuple):
    """The result or the exception of a function. Some exceptions cannot pass through futures."""

    value: Any
    error: BaseException | None


class FunctionRunner:
    """
    The `JobRunner` and `StepRunner` over functions by their names. `named` are functions under
    other names than their own.

    Raises `InvalidInput` for a function without a name, and for two functions with one name.
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
        """Run one attempt. Any exception of the function is the step's failure, never ours."""
        if (why_not := self._why_not(job)) is not None or not isinstance(job, StepJob):
            return StepEnd(error=why_not, permanent=True)
        function = self._functions[job.argv[0]]
        output = _LineQueue(say, job.log)
        calling = asyncio.create_task(self._call(function, FunctionCall(job, output.put)))
        logging = asyncio.create_task(output.forward())
        try:
            await asyncio.wait((calling, logging), return_when=asyncio.FIRST_COMPLETED)
            if not logging.done():  # otherwise its error is raised below
                output.put(None)
            await logging
            return evolve(calling.result(), lines=tuple(output.kept))
        finally:
            logging.cancel()
            calling.cancel()
            await _until_done(calling)
            await _until_done(logging)

    def languages(self) -> Mapping[Language, LanguageState]:
        """The state of each language: only `command`, for functions, is available."""
        cure = "use language: command with the name of a function"
        return {
            language: LanguageState(language, language is Language.COMMAND, cure=cure)
            for language in Language
        }

    async def close(self) -> None:
        """Start no further step. Threads that still run end with their functions."""
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

    async def _call(self, function: Function, call: FunctionCall) -> StepEnd:
        """Call *function*. The step's timeout counts from the start of the function."""
        _current.set(call)
        limit_s = call.job.step.timeout_ms / SECOND
        limit = asyncio.timeout(None)
        try:
            async with self._free, limit:
                limit.reschedule(asyncio.get_running_loop().time() + limit_s)
                value = await self._result(partial(function, *call.job.argv[1:]), call)
                return _as_end(value, call.written)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            return StepEnd(error="CancelledError: raised by the function itself")
        except (Exception, SystemExit) as error:
            if limit.expired():
                return StepEnd(error=f"timed out after {limit_s:g} s", timed_out=True)
            return StepEnd(error=_message(error))
        finally:
            call.over.set()

    async def _result(self, function: "partial[Any]", call: FunctionCall) -> Any:
        if inspect.iscoroutinefunction(function.func):
            return await function()
        value, error = await self._in_thread(function, call)
        if error is not None:
            raise RuntimeError(_message(error)) if _is_special(error) else error
        return await value if inspect.isawaitable(value) else value

    async def _in_thread(self, function: "partial[Any]", call: FunctionCall) -> _Result:
        """Run *function* in a thread. If cancelled, set `over`, and still wait for its end."""

        def run() -> _Result:
            try:
                return _Result(function(), None)
            except BaseException as error:
                return _Result(None, error)

        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        working = self._threads.submit(copy_context().run, run)
        working.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set_result, None))
        try:
            await asyncio.wait((ended,))
        except asyncio.CancelledError:
            call.over.set()
            await _until_done(ended)
            raise
        return working.result()


class _LineQueue:
    """
    The output lines of one step, in order.

    The lines are passed to *say* if *is_logged*. Otherwise the lines are kept for the step's end,
    up to 1 MiB. EX-28.
    """

    def __init__(self, say: Say, is_logged: bool) -> None:
        self._say = say
        self._is_logged = is_logged
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self.kept: list[tuple[str, str]] = []
        self._room = MIB

    def put(self, text: str | None) -> None:
        """Add a line, or with None the end of all lines. Callable from any thread."""
        if threading.get_ident() == self._thread:
            self._lines.put_nowait(text)
        else:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, text)

    async def forward(self) -> None:
        """Pass on or keep lines until their end. Raises the errors of *say*."""
        while (text := await self._lines.get()) is not None:
            line = f"{text}\n"
            if self._is_logged:
                await self._say("stdout", line)
            elif (room := self._room - len(line)) >= 0:
                self._room = room
                self.kept.append(("stdout", line))


def _as_end(value: Any, state: JsonObject) -> StepEnd:
    if problem := _no_json(value, "the result"):
        return StepEnd(error=f"what the function returned is no JSON: {problem}")
    if problem := _no_json(state, "the state"):
        return StepEnd(error=f"what the function set as state is no JSON: {problem}")
    return StepEnd(value, state=dict(state) or None)


def _no_json(value: Any, name: str) -> str | None:
    return next((str(one) for one in json_problems(value, name, MIB)), None)


def _message(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _is_special(error: BaseException) -> bool:
    """Whether *error* has a special meaning when raised in a coroutine."""
    return not isinstance(error, Exception) or isinstance(error, StopIteration | StopAsyncIteration)


async def _until_done(future: "asyncio.Future[Any]") -> None:
    """Wait until *future* is done, even if the caller is cancelled meanwhile."""
    while not future.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait((future,))
