"""One simulated world: played from a scenario, and checked at every change and at its end."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from attrs import evolve, field, frozen

from wfcore.errors import WfError
from wfcore.memory import Disk, MemoryCounters
from wfcore.memory.disk import Rows
from wfcore.memory.tables import ACCOUNTS, EXECUTIONS, NOTICES
from wfcore.model.execution import Execution
from wfcore.model.notice import Notice, NoticeStatus
from wfcore.model.workflow import Definition
from wfcore.ports.notices import Receipt
from wfcore.ports.store import Store
from wfcore.ports.system import Clock
from wfcore.testing.fakes import CountingTokens, PathTemplates, PlainPasswords
from wfcore.testing.simulator.calls import PortCall, SimSchedulingPoint, sleep
from wfcore.testing.simulator.expectations import Expectations
from wfcore.testing.simulator.extensions import (
    Invariant,
    NewStore,
    in_memory,
    no_invariant,
    with_invariant,
)
from wfcore.testing.simulator.fake_notifier import FakeNotifier
from wfcore.testing.simulator.faults import FaultKind, FaultSource, InjectedFault, RecordedFaults
from wfcore.testing.simulator.final_checks import unfinished, wrong
from wfcore.testing.simulator.generate_flows import MAIL, NOBODY
from wfcore.testing.simulator.invariants import Invariants
from wfcore.testing.simulator.node import SimNode
from wfcore.testing.simulator.ports import (
    EmptyFiles,
    SimCalendar,
    SimClock,
    SimIds,
    SimWakeup,
    WallClock,
)
from wfcore.testing.simulator.runner import StartedAttempts
from wfcore.testing.simulator.scenario import WorldScenario
from wfcore.testing.simulator.scheduler import Task, TurnOrder, Violation, WorldScheduler, at_once
from wfcore.testing.simulator.seed_data import (
    definition_of,
    seed_world,
    stop_schedules,
    use_up_quota,
)
from wfcore.testing.simulator.workload import SimClient
from wfcore.time import SECOND, DurationMs
from wfcore.usecases.notices.sending import settle_notice, take_notices
from wfcore.usecases.services import Policy, Services

POLICY = Policy(
    lease_ms=DurationMs(6 * SECOND),
    grace_ms=DurationMs(8 * SECOND),
    places=3,
    facts_at_once=5,
)
DISTURBING = frozenset(
    {FaultKind.FREEZE, FaultKind.STORE_DOWN, FaultKind.READ_ONLY, FaultKind.CLOCK_JUMP}
)
"""The faults that may keep a living worker from extending its leases, at any call."""
PATIENCE_MS = 240 * SECOND
"""
The time after the last fault in which all accepted work must come to rest, even if the wall clock
is wrong. EX-30.
"""


MOST_MAILS = 500
"""The most rounds of sending after a world's end, in which every notice is sent or given up."""


@frozen
class WorldResult:
    """The result of a world. `broken` None: every promise was kept."""

    scenario: WorldScenario
    broken: str | None
    executions: int
    virtual_ms: int
    turns: int
    expectations: Expectations
    trace: Sequence[str] = field(factory=tuple, repr=False)


class World:
    """The parts that nodes and clients share: `Surroundings`, `ClientWorld`, `WorldFacts`."""

    def __init__(
        self,
        scenario: WorldScenario,
        chance: FaultSource,
        trace: list[str] | None,
        watch: Invariant,
        store: NewStore,
    ) -> None:
        order = TurnOrder(scenario.order, scenario.levels)
        self.scheduler = WorldScheduler(chance, order, scenario.tick, trace)
        self.scheduler.abrupt = self
        self.judge = Invariants(POLICY.places, self)
        self.disk = Disk(durable=scenario.durable, watch=with_invariant(self.judge, watch))
        self._new_store = store
        self.judge.tables = self.disk.tables
        self.counters = MemoryCounters(SimSchedulingPoint(store=True))
        self.machine = WallClock(self.scheduler)
        self._machines = {
            f"n{number + 1}": WallClock(self.scheduler, ahead)
            for number, ahead in enumerate(scenario.skews)
        }
        self._farthest = max(0, *scenario.skews) if scenario.skews else 0
        self.ended: set[str] = set()
        self.ledger = StartedAttempts()
        self.expectations = Expectations()
        self.workflow_ids: Sequence[str] = ()
        self.webhook_ids: Sequence[str] = ()
        flows = repr(scenario.flows)
        mails = f"'{MAIL}'" in flows
        self.services = self._services(mails)
        told, key = mails or "'notify'" in flows, self.services.signing_key
        self.post = FakeNotifier(scenario.seed, key, self.judge.closed) if told else None
        self.nodes = [SimNode(f"n{number + 1}", self) for number in range(scenario.nodes)]
        self._recipe = scenario
        self._clients = len(scenario.acts)
        self._names: dict[str, str] = {}
        self._patience_until: int | None = None
        self._down_until = 0
        self._read_only_until = 0
        self._disturbed_until = 0

    @property
    def accounts(self) -> Rows:
        """The stored accounts by id."""
        return self.disk.tables[ACCOUNTS.name]

    def machine_of(self, node: str) -> WallClock:
        """The clocks of the machine that runs the node named *node*."""
        return self._machines.get(node, self.machine)

    def store_of(self, clock: Clock) -> Store:
        """A handle on the one store, for a process with *clock*."""
        if self._machines:
            clock = SimClock(self.machine)
        gate = SimSchedulingPoint(store=True)
        return self._new_store(gate, self.disk, now=clock.service_now, ended=self.ended)

    def _services(self, mails: bool) -> Services:
        clock = SimClock(self.machine)
        return Services(
            store=self.store_of(clock),
            counters=self.counters,
            files=EmptyFiles(),
            clock=clock,
            ids=SimIds(),
            tokens=CountingTokens(),
            passwords=PlainPasswords(),
            templates=PathTemplates(),
            wakeup=SimWakeup(lambda hint: 0, lambda id: None, lambda id: None),
            signing_key=b"k" * 32,
            policy=evolve(POLICY, channels=frozenset({"mail"})) if mails else POLICY,
            calendar=SimCalendar(),
        )

    def play(self) -> None:
        """Play the world to its end and check the result. Raises `Violation`."""
        things = seed_world(self.disk, self.services, self._recipe.flows)
        self.workflow_ids, self.webhook_ids = things.workflow_ids, things.webhook_ids
        self.expectations.admitted.update(use_up_quota(self.counters))
        for node in self.nodes:
            node.start()
        for act in self._recipe.acts:
            self.scheduler.spawn(act.label, SimClient(self, act).act(), None, self._client_ended)
        self.scheduler.run(self._over)
        for found in wrong(self.disk.tables, self.expectations, self.ledger):
            raise Violation(found)
        if self.post is not None:
            self._send_the_rest(self.post)
            for found in self.post.wrong(self.disk.tables, self._latest()):
                raise Violation(found)

    def _send_the_rest(self, post: FakeNotifier) -> None:
        """
        Send the remaining notices when due. Raises `Violation` for a notice that stays unsent.
        """
        post.calm = True
        notices: Mapping[Any, Notice] = self.disk.tables[NOTICES.name]
        for _ in range(MOST_MAILS):
            due = [one for one in notices.values() if one.status is NoticeStatus.DUE]
            instants = [one.due_at for one in due if one.due_at is not None]
            if len(instants) < len(due):
                raise Violation(f"never told: {due[0].id} is due at no time")
            if not due:
                return
            self.scheduler.now += max(min(instants) - self.services.store.now(), 0)
            begun = self.scheduler.turns
            for sending in at_once(cast(Any, take_notices(self.services, 50))):
                post.take(sending, begun)
                at_once(cast(Any, settle_notice(self.services, sending, Receipt("taken"))))
        raise Violation(f"never told: {due[0].id} after {due[0].attempts} attempts")

    def _client_ended(self, result: object, refusal: WfError | None) -> None:
        if refusal is not None:
            raise Violation(f"defect: a client ended with {refusal!r}")
        self._clients -= 1

    def _over(self) -> bool:
        """
        Whether the world is over; called before time passes. Ends all faults once the storm is
        over.
        """
        if self._patience_until is None:
            if self._clients == 0 and self.scheduler.now >= self._recipe.storm:
                self._calm()
            return False
        stuck = tuple(unfinished(self.disk.tables, self.ledger))
        if stuck and self.scheduler.now > self._patience_until:
            raise Violation(f"no end: {', '.join(stuck)}")
        return not stuck

    def _calm(self) -> None:
        """End all faults and schedules. Dead processes come back; wrong clocks stay wrong."""
        self.scheduler.say("calm")
        stop_schedules(self.disk)
        self._patience_until = self.scheduler.now + PATIENCE_MS
        self.scheduler.chance.calm()

    def acts(self, worker: str) -> bool:
        """Whether the current task belongs to *worker*."""
        task = self.scheduler.current
        return task is not None and task.label.startswith(f"{worker}/")

    def lives(self, worker: str) -> bool:
        """Whether the process of *worker* exists, even if that process cannot work."""
        return any(node.up and node.worker == worker for node in self.nodes)

    def lease_time(self) -> int:
        """
        The latest instant at which a lease may have ended by now, before a clock was set back.
        """
        return self.machine.wall() if self._machines else self._latest()

    def _latest(self) -> int:
        """The latest instant that a clock of this world may show now."""
        return self.machine.wall() - self.machine.jumped + self._farthest

    def lost(self, worker: str) -> bool:
        """Whether *worker* may rightly count as lost: dead, or cut off for a while."""
        if self.scheduler.now < self._disturbed_until:
            return True
        return not any(
            node.up and node.worker == worker and not node.engine.stopping for node in self.nodes
        )

    @property
    def turn(self) -> int:
        """The number of the scheduler's turn."""
        return self.scheduler.turns

    def revised(self, flow: int) -> Definition:
        """The flow's definition with another description."""
        definition = definition_of(self._recipe.flows[flow])
        return evolve(definition, description=f"revised at {self.scheduler.now}")

    async def stop(self, node: SimNode, drain_ms: int, down_ms: int) -> None:
        """End a process in good order and start it again."""
        self.scheduler.say(f"{node.worker}: SIGTERM")
        worker = node.worker
        await node.stop(drain_ms)
        if node.worker == worker:
            self._start_later(node, down_ms)

    def went_down(self, worker: str) -> None:
        """
        Note that the process of *worker* has ended. With `locks`, the store learns it at once.
        """
        self.scheduler.say(f"{worker}: down")
        if self._recipe.locks:
            self.ended.add(worker)

    def name_of(self, execution_id: str) -> str:
        """
        The name of the tasks of an execution: its tag, which stays the same when other executions
        are left out, or its id if another execution has that tag.
        """
        if execution_id not in self._names:
            run: Execution = self.disk.tables[EXECUTIONS.name][execution_id]
            tag = str(run.variables.get("tag", ""))
            taken = not tag or tag == NOBODY or tag in self._names.values()
            self._names[execution_id] = execution_id if taken else tag
        return self._names[execution_id]

    def refuses(self, call: PortCall) -> bool:
        """Whether the store cannot carry out *call* now."""
        now = self.scheduler.now
        return now < self._down_until or (call.writes and now < self._read_only_until)

    def strike(self, fault: InjectedFault, task: Task) -> None:
        """Apply *fault*, which hit a call of *task*."""
        now, amount = self.scheduler.now, fault.amount
        match fault.kind:
            case FaultKind.CRASH | FaultKind.CRASH_AFTER:
                assert isinstance(task.group, SimNode)
                self._crash(task.group, amount)
            case FaultKind.POWER_CUT:
                self.disk.power_cut()
                for node in self.nodes:
                    self._crash(node, amount)
            case FaultKind.STORE_DOWN:
                self._down_until = now + amount
            case FaultKind.READ_ONLY:
                self._read_only_until = now + amount
            case FaultKind.FREEZE:
                assert isinstance(task.group, SimNode)
                task.group.frozen_until = now + amount
            case FaultKind.CLOCK_JUMP:
                machine = self._jumping(task)
                machine.jumped += amount
                self._farthest = max(self._farthest, machine.jumped)
            case FaultKind.WAKE:
                for node in self.nodes:
                    node.wake()
            case _:
                raise AssertionError(fault)

    def disturbed(self, fault: InjectedFault, call: PortCall) -> None:
        """
        Note how long leases may run out because of *fault*: during the fault, and for a while
        after.
        """
        if call.name != "extend" and fault.kind not in DISTURBING:
            return
        if fault.kind is FaultKind.CLOCK_JUMP and self._machines:
            return  # no lease depends on a clock that jumps
        over = self.scheduler.now + abs(fault.amount) + 2 * POLICY.lease_ms
        self._disturbed_until = max(self._disturbed_until, over)

    def _jumping(self, task: Task) -> WallClock:
        """
        The clock that jumps: the clock of the node whose call the fault hit, or of the first node.
        """
        if isinstance(task.group, SimNode):
            return self.machine_of(task.group.name)
        return self.machine_of(self.nodes[0].name)

    def _crash(self, node: SimNode, down_ms: int) -> None:
        if node.up:
            node.crash()
            self._start_later(node, down_ms)

    def _start_later(self, node: SimNode, down_ms: int) -> None:
        async def start() -> None:
            await sleep(down_ms)
            self.scheduler.say(f"{node.name}: starts")
            node.start()

        self.scheduler.spawn(f"{node.name} starts", start())


def play(
    scenario: WorldScenario,
    chance: FaultSource | None = None,
    *,
    traced: bool = False,
    watch: Invariant = no_invariant,
    store: NewStore = in_memory,
) -> WorldResult:
    """
    Play *scenario* with the faults of *chance*, or with the recorded faults of *scenario*. The same
    scenario gives the same trace.

    *watch* sees every change of the store; *store* makes the store. See `extensions`.

    A defect (any exception that is no refusal) is a violation, too.
    """
    trace: list[str] | None = [] if traced else None
    decided = chance or RecordedFaults(scenario.faults)
    world = World(scenario, decided, trace, watch, store)
    broken: str | None = None
    try:
        world.play()
    except Violation as found:
        broken = str(found)
    except Exception as defect:  # whatever it is, it is the code's under simulation
        broken = f"defect: {defect!r}"
    world.scheduler.say(f"broken: {broken}" if broken else "every promise was kept")
    world.scheduler.trace = None
    world.scheduler.close()
    return WorldResult(
        scenario,
        broken,
        len(world.disk.tables[EXECUTIONS.name]),
        world.scheduler.now,
        world.scheduler.turns,
        world.expectations,
        tuple(trace or ()),
    )
