"""
A recipe: Temporal in the place of the queue. One workflow for each execution; rows stay the truth.

The workflow `Run` holds an id and a timer, and no state of the execution: it waits until that is
due, has one activity handed to a worker of ours, and waits again. The activity ends once the engine
has let go of the execution. It has one attempt: whether something is tried again is decided by the
rows, and a worker that died shows as an activity that stopped its heartbeat.

    pip install temporalio
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from functools import partial

from attrs import define, field, frozen
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ActivityError
from temporalio.service import RPCError
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from wfcore.ports import DueExecution

QUEUE = "wfcore"
IDLE = timedelta(minutes=10)
"""How long a workflow waits for the next signal before it ends; the next one starts another."""
LONGEST = timedelta(days=30)
"""Of one activity: an execution may be held for as long as its longest step."""
LOOK_S = 1.0
WAIT_S = 0.5


@workflow.defn
class Run:
    """What is due of one execution, one after the other."""

    def __init__(self) -> None:
        self._due: list[int] = []

    @workflow.signal
    def due(self, in_ms: int) -> None:
        """It is, or will be, due."""
        self._due.append(in_ms)

    @workflow.run
    async def run(self, execution_id: str, keep_s: float) -> None:
        """Until nothing has been due for a while."""
        while True:
            with suppress(TimeoutError):
                await workflow.wait_condition(lambda: bool(self._due), timeout=IDLE)
            if not self._due:
                return
            tries, in_ms = 0, self._due.pop(0)
            while in_ms >= 0:
                tries += 1
                await workflow.sleep(timedelta(milliseconds=in_ms))
                in_ms = await self._handled(execution_id, tries, keep_s)

    async def _handled(self, execution_id: str, tries: int, keep_s: float) -> int:
        """In how many ms it is to be handed out again; below 0: not at all."""
        try:
            again_ms: int = await workflow.execute_activity(
                "handle",
                args=[execution_id, tries],
                result_type=int,
                start_to_close_timeout=LONGEST,
                heartbeat_timeout=timedelta(seconds=3 * keep_s),
                retry_policy=RetryPolicy(maximum_attempts=1),
            )
            return again_ms
        except ActivityError:
            return 0


@frozen
class Handled:
    """Satisfies `wfcore.DueDelivery`: its activity waits until `again_ms` is known."""

    execution_id: str
    tries: int
    again_ms: "asyncio.Future[int]"
    beat: Callable[[], None]

    async def keep(self) -> None:
        """Temporal hears that the worker is alive."""
        self.beat()

    async def settle(self) -> None:
        """The activity ends."""
        self._answer(-1)

    async def put_back(self, in_ms: int) -> None:
        """The activity ends, and the workflow hands it out again."""
        self._answer(in_ms)

    def _answer(self, again_ms: int) -> None:
        if not self.again_ms.done():
            self.again_ms.set_result(again_ms)


@define(eq=False)
class TemporalDispatch:
    """A `wfcore.DispatchQueue`. *places*: how many activities this process holds at most."""

    address: str
    keep_s: float = 5.0
    places: int = 8
    up: bool = False
    _client: Client | None = None
    _wanted: asyncio.Event = field(factory=asyncio.Event)
    _come: "asyncio.Queue[Handled]" = field(factory=asyncio.Queue)

    async def run(self, changed: Callable[[], None]) -> None:
        """Connect; poll for activities once somebody wants them."""
        try:
            while self._client is None:
                with suppress(RPCError, RuntimeError):
                    self._client = await Client.connect(self.address)
                await asyncio.sleep(0 if self._client else LOOK_S)
            self.up = True
            changed()
            await self._wanted.wait()
            await Worker(
                self._client,
                task_queue=QUEUE,
                workflows=[Run],
                activities=[self.handle],
                max_concurrent_activities=self.places,
            ).run()
        finally:
            self.up, self._client = False, None

    async def tell(self, due: Collection[DueExecution]) -> bool:
        """Signal the workflow of each execution, which starts with the signal if there is none."""
        if self._client is None:
            return False
        try:
            await asyncio.gather(*(self._signal(self._client, one) for one in due))
        except RPCError:
            return False
        return True

    async def _signal(self, client: Client, one: DueExecution) -> None:
        await client.start_workflow(
            Run.run,
            args=[one.execution_id, self.keep_s],
            id=one.execution_id,
            task_queue=QUEUE,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            start_signal="due",
            start_signal_args=[one.in_ms],
        )

    @activity.defn(name="handle")
    async def handle(self, execution_id: str, tries: int) -> int:
        """Hand it to the engine of this process, and wait until that lets go of it."""
        again: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        beat = partial(copy_context().run, activity.heartbeat)  # it is asked for by other tasks
        self._come.put_nowait(Handled(execution_id, tries, again, beat))
        return await again

    async def take(self, limit: int, able: Collection[str] | None = None) -> Sequence[Handled]:
        """What activities hold. For pools, poll a task queue for each label of *able*."""
        found: list[Handled] = []
        if limit:
            self._wanted.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(WAIT_S):
                    found.append(await self._come.get())
        while not self._come.empty():
            found.append(self._come.get_nowait())
        return found

    async def gauges(self) -> Mapping[str, float]:
        """Whether it is up; the backlog is Temporal's to show."""
        return {"wfcore_dispatch_up": float(self.up)}
