"""
The engine of a server, with the runners that the settings name.

This is not part of `compose`, so that commands that only read the store do not load the engine.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from adapters_runtime.ai.models import WireModels
from adapters_runtime.ai.prices import PriceList, read_prices
from adapters_runtime.ai.runner import AiStepRunner, StepRunners
from adapters_runtime.code.runner import CodeStepRunner, StepLimits
from adapters_runtime.engine.callbacks import HttpCallbackClient
from adapters_runtime.engine.engine import Engine
from wfcore.errors import InvalidInput
from wfcore.ports.callbacks import CallbackClient
from wfcore.ports.models import Prices
from wfcore.ports.notices import Notifier
from wfcore.ports.queue import DispatchQueue
from wfcore.ports.runtime import StepRunner
from wfcore.rules.execution.start import capabilities_with
from wfserver.compose import System
from wfserver.notices import new_notifier
from wfserver.serving.traces import TracedCallbacks, TracedModels, Traces
from wfserver.settings.isolation import step_isolation
from wfserver.settings.record import PRICES, Settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

RUNNERS = "wfcore.runners"


def new_prices(settings: Settings) -> Prices:
    """The prices of models. Raises `InvalidInput` for a file of prices that cannot be read."""
    own = read_prices(settings.prices, PRICES) if settings.prices else {}
    return PriceList(own, settings.providers)


def new_ai_runner(settings: Settings, prices: Prices | None = None) -> AiStepRunner:
    """The runner of AI steps, with *prices*. Raises `InvalidInput` as `new_prices` does."""
    models = WireModels(settings.providers)
    return AiStepRunner(models, prices or new_prices(settings), at_once=settings.ai_calls)


def new_runner(system: System, port: int | None = None) -> CodeStepRunner:
    """
    The runner of code steps of this process, with its folders in the data folder.

    *port*: the port of the server, which no step can reach.
    """

    def new_artifact_id() -> str:
        return system.services.ids.new("art", system.services.clock.now())

    settings = system.settings
    steps = settings.steps
    return CodeStepRunner(
        settings.data / "steps",
        system.services.files,
        new_artifact_id,
        StepLimits(
            memory=steps.memory, processes=steps.processes, disk=steps.disk, inodes=steps.files
        ),
        isolation=step_isolation(settings, port),
        environments=system.services.environments,
        warm=steps.warm,
        javascript=steps.javascript,
    )


def runner_of(system: System, port: int | None = None) -> StepRunner:
    """
    The runner of code steps: the system's own runner, the runner in the settings, or else
    `new_runner`.

    An entry point of the group `wfcore.runners` is called with the services, and returns a
    `StepRunner`. Raises `InvalidInput` for a name that no installed package offers.
    """
    if system.runner is not None:
        return system.runner
    offered = require_runner(system.settings.runner)
    if offered is None:
        return new_runner(system, port)
    made: StepRunner = offered.load()(system.services)
    return made


def require_runner(name: str | None) -> "EntryPoint | None":
    """The entry point of the runner *name*; None without a name. Raises `InvalidInput`."""
    if name is None:
        return None
    from importlib.metadata import entry_points

    offered = {one.name: one for one in entry_points(group=RUNNERS)}
    if name not in offered:
        there = ", ".join(sorted(offered)) or "none is"
        raise InvalidInput("WFCORE_RUNNER", f"no package offers {name!r}; installed: {there}")
    return offered[name]


def notifier_of(system: System) -> Notifier | None:
    """
    The notifier: the system's own notifier, or else a notifier for the channels of the settings.
    """
    settings = system.settings
    public, private = settings.public_url, settings.policy.private_callbacks
    return system.notifier or new_notifier(settings.notices, public, private, system.services)


async def able_to(settings: Settings, runner: StepRunner) -> tuple[frozenset[str], frozenset[str]]:
    """
    The capabilities of the executions that this server takes, and the capabilities that it has.

    If other servers share the store, this server leaves them executions that need a language
    missing here. A server that is alone takes everything: such a step fails at once with an
    explanation.
    """
    states = await asyncio.to_thread(runner.languages)
    lacking = [language for language, state in states.items() if not state.available]
    runtimes = {language: state.runtimes for language, state in states.items()}
    present = capabilities_with(settings.labels, lacking, runtimes)
    return present if settings.shared else capabilities_with(settings.labels), present


@asynccontextmanager
async def engine(
    system: System,
    runner: StepRunner,
    notifier: Notifier | None = None,
    able: Collection[str] | None = None,
    prices: Prices | None = None,
    dispatch: DispatchQueue | None = None,
    traces: Traces | None = None,
    present: Collection[str] | None = None,
    address: str = "",
) -> AsyncIterator[Engine]:
    """
    A running engine, with *runner* for code steps. *notifier* None: the result of `notifier_of`.
    *able*, *dispatch*, *present* and *address*: see `Engine`. *prices* None: the prices of the
    settings. *traces* makes spans of calls. On leaving, running steps are drained, then ended, and
    *runner* is closed.
    """
    settings = system.settings
    ai = new_ai_runner(settings, prices)
    client: CallbackClient = HttpCallbackClient(settings.policy.private_callbacks)
    if traces is not None:
        ai.models, client = TracedModels(ai.models, traces), TracedCallbacks(client, traces)
    working = Engine(
        system.services,
        StepRunners(runner, ai),
        client,
        notifier or notifier_of(system),
        drain_ms=settings.drain_ms,
        stalled_ms=settings.stalled_ms,
        able=able,
        dispatch=dispatch,
        present=present,
        address=address,
    )
    try:
        async with working:
            yield working
    finally:
        await runner.close()
