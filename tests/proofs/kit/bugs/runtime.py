"""Bugs in what runs: worker, hints, clock, ids, passwords, templates, runners."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any
from unittest import mock

from attrs import evolve

from adapters_runtime.engine import wakeups
from adapters_runtime.engine.wakeups import Wakeups
from adapters_runtime.engine.worker import Worker
from adapters_runtime.expressions import templates
from adapters_runtime.expressions.scope import as_text
from adapters_runtime.expressions.templates import MiniJinjaTemplates
from adapters_runtime.system import SystemClock, SystemIds
from tests.proofs.kit.bugs.catching import Bug, patched, promise
from wfcore.model.execution import Execution, ExecutionStatus, StepStatus
from wfcore.ports.models import ModelReply
from wfcore.ports.runtime import StepEnd
from wfcore.rules.execution import interruption
from wfcore.testing.contracts import (
    CallContract,
    ClockContract,
    IdsContract,
    PasswordsContract,
    PricesContract,
    TemplatesContract,
    WakeupContract,
    WorkerContract,
)
from wfcore.testing.contracts.steps import job
from wfcore.testing.contracts.worker_site import Site
from wfcore.testing.fakes import PlainPasswords
from wfcore.testing.fakes_running import ScriptedRunner
from wfcore.testing.models import MODEL, FixedPrices
from wfcore.usecases.executions import worker as running

RUNNING = StepStatus.RUNNING
INIT: Any = Worker.__init__


class TurnedClock(SystemClock):
    """The clock of the system, on a machine whose time is turned by hand."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_700_000_000_000, 5_000
        super().__init__()

    def _wall(self) -> int:
        return self.wall

    def _steady(self) -> int:
        return self.steady

    def advance(self, by_ms: int) -> None:
        self.wall, self.steady = self.wall + by_ms, self.steady + by_ms

    def jump(self, by_ms: int) -> None:
        self.wall += by_ms


def dispatching(test: str) -> Callable[[], None]:
    return promise(
        WorkerContract, test, wakeup=Wakeups, site=lambda wakeup: Site.made(wakeup),
        dispatch=lambda: Worker,
    )  # fmt: skip


def looks_at_hints_alone(self: Worker, services: Any, *given: Any) -> None:
    policy = evolve(services.policy, poll_ms=600_000)
    INIT(self, evolve(services, policy=policy), *given)


async def claims_without_end(services: Any, worker: str, limit: int, **which: Any) -> Any:
    policy = evolve(services.policy, places=99)
    return await CLAIM(evolve(services, policy=policy), worker, 99, **which)


CLAIM = running.claim


class KnownPrices(PricesContract):
    known, unknown = MODEL, "scripted:other"


async def free(self: Any, model: str, answer: ModelReply) -> Decimal:
    return Decimal(0)


async def gives_up(self: Any, write: Any) -> Any:
    """A store that is away for a moment costs the result."""
    return await write()


async def nothing(*_: Any) -> None: ...


async def any_fence(unit: Any, lease: Any) -> Any:
    """Whoever comes back late may write all the same, as if nothing had been."""
    run = await unit.get(Execution, lease.execution_id)
    going = {name: evolve(one, status=RUNNING) for name, one in run.step_results.items()}
    return evolve(run, status=ExecutionStatus.RUNNING, step_results=going)


def wakes_one(self: Any, execution_id: str) -> None:
    for grown in list(self._followers.get(execution_id, ()))[:1]:
        grown.set()


def repeats(self: Any, prefix: str, now: int) -> str:
    """Ids by the clock alone."""
    return f"{prefix}_{now:011x}000{'0' * 12}"


async def fits_anyway(self: Any, password: str, hashed: str | None) -> bool:
    return hashed is None or hashed == await self.hash(password)


def always_text(self: Any, scope: Any) -> Any:
    return as_text(WHOLE(self, scope))


WHOLE = templates._Template.value


async def fails(asked: Any, say: Any) -> StepEnd:
    """A step that ends badly."""
    return StepEnd(error="status 3")


async def raises(self: Any, asked: Any, say: Any) -> StepEnd:
    """What the code did is thrown at the caller."""
    raise AssertionError((await self.script(asked, say)).error)


async def ticks(asked: Any, say: Any) -> StepEnd:
    """A step without an end of its own."""
    with suppress(TimeoutError):
        async with asyncio.timeout(asked.step.timeout_ms / 1_000):
            while True:
                await say("stdout", "tick\n")
                await asyncio.sleep(0.01)
    return StepEnd(error="took too long", timed_out=True)


LEFT: list[Any] = []
"""Steps that nobody ended; the loop's end is theirs."""


async def leaves_it_running(self: Any, asked: Any, say: Any) -> StepEnd:
    """Who is cancelled ends, and the step goes on."""
    LEFT.append(asyncio.ensure_future(self.script(asked, say)))
    return await asyncio.shield(LEFT[-1])


async def returns_early(self: Any, asked: Any, say: Any) -> StepEnd:
    """At its timeout the step is said to be over, and goes on."""
    longer = evolve(asked, step=evolve(asked.step, timeout_ms=60_000))
    try:
        async with asyncio.timeout(asked.step.timeout_ms / 1_000):
            return await leaves_it_running(self, longer, say)
    except TimeoutError:
        return StepEnd(error="took too long", timed_out=True)


@contextmanager
def sleepers() -> Iterator[None]:
    """Of several followers one is woken, and the others do not look by themselves."""
    with (
        mock.patch.object(wakeups, "POLL_MS", 600_000),
        mock.patch.object(Wakeups, "events", wakes_one),
    ):
        yield


BUGS = (
    Bug(
        "more steps run than there are places",
        patched(running, "claim", claims_without_end),
        dispatching("test_no_more_steps_run_than_there_are_places"),
    ),
    Bug(
        "an interrupted step is requeued after a restart",
        patched(interruption, "obstacle", lambda run, definition: None),
        dispatching("test_what_a_dead_worker_began_is_not_begun_again"),
    ),
    Bug(
        "a cancel does not reach the step",
        patched(Worker, "_stop_steps", lambda *_: None),
        dispatching("test_a_cancelled_execution_stops"),
    ),
    Bug(
        "a result is lost with the store's answer",
        patched(Worker, "_stored", gives_up),
        dispatching("test_a_result_outlives_an_outage_of_the_store"),
    ),
    Bug(
        "a late result overwrites",
        patched(running, "_leased", any_fence),
        dispatching("test_a_result_that_comes_too_late_is_dropped"),
    ),
    Bug(
        "nobody looks without a hint",
        patched(Worker, "__init__", looks_at_hints_alone),
        dispatching("test_what_another_process_stored_is_found"),
    ),
    Bug(
        "what is ended in the drain is not handed back",
        patched(running, "hand_back", nothing),
        dispatching("test_what_does_not_end_in_the_drain_is_interrupted"),
    ),
    Bug(
        "one follower is woken, the others sleep on",
        sleepers,
        promise(WakeupContract, "test_every_follower_is_woken", wakeup=Wakeups),
    ),
    Bug(
        "work goes by the wall clock",
        patched(SystemClock, "service_now", SystemClock.now),
        promise(
            ClockContract,
            "test_work_goes_on_while_the_clock_is_behind",
            clock=TurnedClock,
            turn=lambda clock: clock,
        ),
    ),
    Bug(
        "deadlines jump with the clock",
        patched(SystemClock, "deadline_now", SystemClock.now),
        promise(
            ClockContract,
            "test_a_jump_does_not_move_deadlines_for_five_minutes",
            clock=TurnedClock,
            turn=lambda clock: clock,
        ),
    ),
    Bug(
        "an id comes twice",
        patched(SystemIds, "new", repeats),
        promise(IdsContract, "test_no_id_comes_twice", new_ids=lambda: SystemIds),
    ),
    Bug(
        "an account without password lets everybody in",
        patched(PlainPasswords, "verify", fits_anyway),
        promise(PasswordsContract, "test_nothing_fits_no_hash", passwords=PlainPasswords),
    ),
    Bug(
        "a whole template loses its type",
        patched(templates._Template, "value", always_text),
        promise(
            TemplatesContract,
            "test_a_whole_template_keeps_the_type",
            templates=MiniJinjaTemplates,
        ),
    ),
    Bug(
        "what nobody has a price for costs nothing",
        patched(FixedPrices, "cost", free),
        promise(KnownPrices, "test_an_unknown_price_is_none", prices=FixedPrices),
    ),
    Bug(
        "a failed step is an exception",
        patched(ScriptedRunner, "run", raises),
        promise(
            CallContract,
            "test_a_failure_is_an_end_and_no_exception",
            runner=lambda: ScriptedRunner(fails),
            does=lambda: job,
        ),
    ),
    *(
        Bug(
            name,
            patched(ScriptedRunner, "run", bug),
            promise(
                CallContract,
                "test_nothing_goes_on_when_a_step_is_over",
                runner=lambda: ScriptedRunner(ticks),
                does=lambda: job,
            ),
        )
        for name, bug in {
            "a cancelled step goes on": leaves_it_running,
            "a step goes on after its timeout": returns_early,
        }.items()
    ),
)
