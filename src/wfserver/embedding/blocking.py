"""
Use cases for programs without an event loop: scripts, threads, WSGI applications.

    with wfcore.sync.on_sqlite("orders", FunctionRunner(pay)) as do:
        account = do(wfcore.ensure_account, "ann@example.org")

An event loop runs in a thread of its own, with an engine if a runner is given. Any number of
threads may call `do` at once; each call waits for its own use case only.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar, Unpack

from adapters_runtime.engine.engine import Engine
from wfcore.ports.runtime import JobRunner
from wfcore.usecases.services import ServiceParts, Services
from wfserver.embedding import ready

P = ParamSpec("P")
T = TypeVar("T")


class Handle:
    """
    Carries out use cases of `services`: `do(use_case, …)` returns its result, or raises its error.
    """

    def __init__(self, services: Services, loop: asyncio.AbstractEventLoop) -> None:
        self.services = services
        self._loop = loop
        self._thread, self._process = threading.get_ident(), os.getpid()

    def __call__(
        self,
        use_case: Callable[Concatenate[Services, P], Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """
        Carry out *use_case* with the `services` and the arguments.

        Raises `RuntimeError` in a coroutine of this handle's own loop (the loop would wait for
        itself), in a process that was forked off, and after the handle is closed.
        """
        if threading.get_ident() == self._thread:
            raise RuntimeError(
                "this is the event loop of this wfcore.sync handle: await the use case instead"
            )
        if os.getpid() != self._process:
            raise RuntimeError(
                "this wfcore.sync handle was opened before a fork: open one in each process"
            )

        async def called() -> T:
            return await use_case(self.services, *args, **kwargs)

        if not self._loop.is_running():
            raise RuntimeError("this wfcore.sync handle is closed")
        waiting = asyncio.run_coroutine_threadsafe(called(), self._loop)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()
            raise


@contextmanager
def in_memory(runner: JobRunner | None = None, **parts: Unpack[ServiceParts]) -> Iterator[Handle]:
    """A `Handle` on `wfcore.in_memory(…)`, with an engine for *runner*."""
    with _open(lambda: nullcontext(ready.in_memory(**parts)), runner) as handle:
        yield handle


@contextmanager
def on_sqlite(
    folder: str | Path, runner: JobRunner | None = None, **parts: Unpack[ServiceParts]
) -> Iterator[Handle]:
    """A `Handle` on `wfcore.on_sqlite(…)`, with an engine for *runner*."""
    with _open(lambda: ready.on_sqlite(folder, **parts), runner) as handle:
        yield handle


@contextmanager
def _open(
    make: Callable[[], AbstractAsyncContextManager[Services]], runner: JobRunner | None
) -> Iterator[Handle]:
    """A `Handle` and its thread with an event loop, which does not keep the process alive."""
    opened: Future[tuple[Handle, asyncio.Event]] = Future()
    ended: Future[None] = Future()

    async def serve() -> None:
        async with AsyncExitStack() as stack:
            services = await stack.enter_async_context(make())
            if runner is not None:
                await stack.enter_async_context(Engine(services, runner))
            leave = asyncio.Event()
            opened.set_result((Handle(services, asyncio.get_running_loop()), leave))
            await leave.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
            ended.set_result(None)
        except BaseException as error:
            (ended if opened.done() else opened).set_exception(error)

    threading.Thread(target=run, name="wfcore", daemon=True).start()
    handle, leave = opened.result()
    try:
        yield handle
    finally:
        handle._loop.call_soon_threadsafe(leave.set)
        ended.result()
