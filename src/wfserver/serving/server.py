"""The HTTP half of a server: the application in uvicorn, beside the running engine."""

import asyncio
import os
import socket
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from functools import partial
from importlib.util import find_spec
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import uvicorn
from attrs import define, evolve, field
from prometheus_client import disable_created_metrics

from adapters_http.app import Application, HttpConfig, create_app
from adapters_http.config import HealthCheck, ServingStage
from adapters_http.handlers.operations import own_metrics
from adapters_http.request import Context
from adapters_http.transport.connections import ConnectionLimits, Connections, forgive_lost_clients
from adapters_http.transport.uvicorn_protocol import protocol_with, server_config
from adapters_runtime.engine.dispatching import dispatching, open_dispatch
from adapters_runtime.engine.engine import Engine, new_node
from adapters_runtime.engine.journal import journalled
from adapters_runtime.engine.presence import NodePresence
from adapters_runtime.system import SystemClock
from wfcore.errors import InvalidInput, StoreUnavailable
from wfcore.installed import install
from wfcore.ports.notices import Notifier
from wfcore.ports.queue import DispatchQueue
from wfcore.ports.runtime import StepRunner
from wfcore.usecases.services import Services
from wfserver.compose import System
from wfserver.doctor.providers import missing_from
from wfserver.errors import CommandFailed
from wfserver.serving import authors
from wfserver.serving.engine import able_to, engine, new_prices, notifier_of, require_runner
from wfserver.serving.memory import settle_memory, trimming
from wfserver.serving.metrics import (
    GAUGES,
    CountedPrices,
    ServerMetrics,
    StoreGauges,
    counted_quotas,
)
from wfserver.serving.traces import Traces
from wfserver.settings.record import TRACES, Settings
from wfserver.settings.sharing import ENGINE, Role
from wfserver.settings.sign_on import sign_on_with

if TYPE_CHECKING:
    from wfserver.serving.processes import ServerProcess

_WITHDRAWAL_S = 1
_LAST_ANSWERS_S = 2
"""How long responses that have begun may go on after the drain."""

Ready = Callable[[], Coroutine[None, None, None]]


async def answer(
    system: System,
    runner: StepRunner,
    listeners: Sequence[socket.socket],
    ready: Ready,
    stop: asyncio.Event,
    process: "ServerProcess | None" = None,
) -> None:
    """
    Answer requests at *listeners* and run executions until *stop* is set; then *runner* is closed.

    *process*: this child among several. *ready* is awaited once requests are answered; an error in
    it ends the server. While running steps are drained, requests are still answered, except for
    requests that start something.
    """
    # Otherwise each metric has a second series. No other code uses this process.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    async with open_traces(system.settings) as traces:
        await _answer(system, runner, listeners, ready, stop, traces, process)


async def _answer(
    system: System,
    runner: StepRunner,
    listeners: Sequence[socket.socket],
    ready: Ready,
    stop: asyncio.Event,
    traces: Traces | None,
    process: "ServerProcess | None",
) -> None:
    metrics, standing = ServerMetrics(), StoreGauges(system.services)
    system = _counted(system, metrics, traces)
    notifier, settings = notifier_of(system), system.settings
    address = "{}:{}".format(*listeners[0].getsockname()[:2])
    async with (
        _dispatched(system) as (system, dispatch),
        _engine(system, runner, notifier, metrics, dispatch, traces, address) as working,
        metrics.watching_the_loop(),
    ):
        shutdown = _Shutdown(system, working)
        room = ConnectionLimits.of_process(
            settings.policy.places, settings.connections, settings.connections_each
        )
        protocol = protocol_with(room)
        http = HttpConfig(
            public_url=settings.public_url,
            trusted_proxies=settings.trusted_proxies,
            allowed_hosts=settings.allowed_hosts,
            cors_origins=settings.cors_origins,
            ready=shutdown.check_ready,
            checks=MachineChecks(settings).checks,
            gauges=lambda: _gauges(working, protocol.ledger, standing, dispatch),
            gauge_help=GAUGES,
            counted=metrics.registry,
            of_all=process.metrics.read if process else None,
            read_definition=partial(authors.definition_in, settings.steps.javascript),
            **authors.OFFERS,
            definition_warnings=lambda one: missing_from(one, settings.providers),
            stage=shutdown.stage,
            console=settings.console,
            agents=offers_agents(settings),
            probes_only=settings.role is Role.WORKER,
            login=system.login,
            mail=notifier if settings.mails_links else None,
            sign_on=sign_on_with(settings.sign_on, system.services.clock),
            tracing=traces,
        )
        forgive_lost_clients(asyncio.get_running_loop())
        app = create_app(system.services, http)
        config = server_config(
            app,
            host=settings.host,
            port=settings.port,
            timeout_graceful_shutdown=_LAST_ANSWERS_S,
            log_config=None,
            http=protocol,
        )
        async with _answering_processes(process, app), trimming(partial(_drop_caches, app.context)):
            await _UvicornServer(config, ready, stop, shutdown.leave).serve([*listeners])


def _answering_processes(
    process: "ServerProcess | None", app: Application
) -> AbstractAsyncContextManager[None]:
    if process is None:
        return nullcontext()
    return process.metrics.answering(partial(own_metrics, app.context))


async def _drop_caches(context: Context) -> None:
    """Drop the caches of the application, and the caches of the store if the store is available."""
    context.responses.clear()
    drop: Callable[[], Awaitable[None]] | None
    drop = getattr(context.services.store, "drop_caches", None)
    if drop is not None:
        with suppress(StoreUnavailable):
            await drop()


def require_servable(settings: Settings) -> None:
    """Raises the error with which a server would refuse *settings* at its start."""
    offers_agents(settings)
    sign_on_with(settings.sign_on, SystemClock())
    new_prices(settings)
    require_runner(settings.runner)


def offers_agents(settings: Settings) -> bool:
    """Whether there is `/mcp`. Raises `CommandFailed` if the extra `mcp` is not installed."""
    if settings.agents and find_spec("mcp") is None:
        raise CommandFailed(f"WFCORE_MCP needs an extra: {install('mcp')}")
    return settings.agents


@asynccontextmanager
async def open_traces(settings: Settings) -> AsyncIterator[Traces | None]:
    """
    The maker of spans; None: traces are off. Raises `InvalidInput` if the extra `otel` is not
    installed.
    """
    if not settings.traces or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        yield None
        return
    try:
        from wfserver.serving.otlp import otlp_spans
    except ImportError:
        raise InvalidInput(TRACES, f"needs the extra otel: {install('otel')}") from None
    async with otlp_spans() as spans:
        yield Traces(spans)


def _counted(system: System, metrics: ServerMetrics, traces: Traces | None) -> System:
    """*system* with a store whose commits are logged, counted and traced, and counted quotas."""
    services = system.services
    counters = counted_quotas(services.counters, metrics)
    if traces is None:
        store = journalled(services.store, metrics)
        return evolve(system, services=evolve(services, store=store, counters=counters))
    store = journalled(services.store, metrics, traces.changed)
    traced = evolve(services, store=store, counters=counters, tracing=traces.begin)
    return evolve(system, services=traced)


async def _gauges(
    working: Engine | None,
    ledger: Connections,
    standing: StoreGauges,
    dispatch: DispatchQueue | None,
) -> Mapping[str, float]:
    here = working.gauges() if working else {}
    queued = await dispatch.gauges() if dispatch else {}
    return {**here, **ledger.gauges(), **queued, **await standing.read()}


@define
class MachineChecks:
    """
    The checks of the machine by `wfcore doctor`, imported for the first page that shows them. They
    start interpreters and installers, about a second of CPU, so they run at most once a minute.
    """

    _settings: Settings
    _found: Sequence[HealthCheck] = ()
    _until: float = -inf
    _checking: asyncio.Lock = field(factory=asyncio.Lock)

    async def checks(self) -> Sequence[HealthCheck]:
        from wfserver.doctor.machine import of_the_machine

        async with self._checking:
            if monotonic() >= self._until:
                found = await asyncio.to_thread(of_the_machine, self._settings)
                self._found = [HealthCheck(one.name, one.ok, one.detail, one.cure) for one in found]
                self._until = monotonic() + CHECKED_FOR_S
            return self._found


CHECKED_FOR_S = 60


@asynccontextmanager
async def _dispatched(system: System) -> AsyncIterator[tuple[System, DispatchQueue | None]]:
    """*system* and the queue of the settings, to which its services publish; None: no queue."""
    settings = system.settings
    if settings.engine is None:
        yield system, None
        return
    dispatch = open_dispatch(ENGINE, settings.engine, settings.policy.lease_ms / 3_000)
    async with dispatching(system.services, dispatch) as services:
        yield evolve(system, services=services), dispatch


@asynccontextmanager
async def _engine(
    system: System,
    runner: StepRunner,
    notifier: Notifier | None,
    metrics: ServerMetrics,
    dispatch: DispatchQueue | None,
    traces: Traces | None,
    address: str,
) -> AsyncIterator[Engine | None]:
    """A running engine; None if other servers do the work."""
    if system.settings.role is Role.API:
        async with _announced(system.services, address):
            yield None
        return
    able, present = await able_to(system.settings, runner)
    prices = CountedPrices(new_prices(system.settings), metrics)
    serves = "" if system.settings.role is Role.WORKER else address
    async with engine(
        system, runner, notifier, able, prices, dispatch, traces, present, serves
    ) as working:
        yield working


@asynccontextmanager
async def _announced(services: Services, address: str) -> AsyncIterator[None]:
    """Show this server to other servers and operators, although it takes no executions."""
    id = services.ids.new("api", services.clock.now())
    presence = NodePresence(services, new_node(services, id, 0, able=(), address=address))
    task = asyncio.create_task(presence.run(), name=presence.loop.name)
    try:
        yield
    finally:
        presence.loop.stop()
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(_WITHDRAWAL_S):
                await asyncio.wait([task])
                await presence.withdraw()
        task.cancel()


_PROBE_S = 2.0
"""How long the result of a probe of the store holds."""


class _Shutdown:
    """The stages of a server's stop, and its readiness."""

    def __init__(self, system: System, working: Engine | None) -> None:
        self._system = system
        self._working = working
        self._stage = ServingStage.SERVING
        self._written: tuple[float, StoreUnavailable | None] | None = None
        self._probing = asyncio.Lock()

    def stage(self) -> ServingStage:
        return self._stage

    async def check_ready(self) -> None:
        """Raises `StoreUnavailable`, `NotReady`. Writes a row at most every `_PROBE_S`."""
        async with self._probing:
            if self._written is None or monotonic() - self._written[0] >= _PROBE_S:
                trouble = None
                try:
                    await self._system.services.store.ping()
                except StoreUnavailable as error:
                    trouble = error
                self._written = monotonic(), trouble
        if self._written[1] is not None:
            raise self._written[1]
        if self._working is not None:
            self._working.check()

    async def leave(self) -> None:
        """Drain the engine, then end all long polls."""
        self._stage = ServingStage.DRAINING
        if self._working is not None:
            await self._working.drain()
        self._stage = ServingStage.ENDING
        self._system.services.wakeup.release()


class _UvicornServer(uvicorn.Server):
    """uvicorn that stops once *stop* is set, and awaits *ready* once it answers."""

    def __init__(
        self, config: uvicorn.Config, ready: Ready, stop: asyncio.Event, leave: Ready
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._stop = stop
        self._leave = leave

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone: uvicorn would end the process before the engine has drained."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        settle_memory()

    async def main_loop(self) -> None:
        """Serve until the stop, which is in order even if it comes before the server is ready."""
        announcing = asyncio.create_task(self._ready())
        announcing.add_done_callback(self._stop_after_error)
        leaving = asyncio.create_task(self._until_left())
        await super().main_loop()
        await leaving
        if not announcing.cancel():
            announcing.result()

    async def _until_left(self) -> None:
        try:
            await self._stop.wait()
            await self._leave()
        finally:
            self.should_exit = True

    def _stop_after_error(self, announcing: "asyncio.Task[None]") -> None:
        if not announcing.cancelled() and announcing.exception():
            self._stop.set()
