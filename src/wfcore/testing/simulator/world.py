"""One simulated world: played from a recipe, judged at every moment and at its end."""

from collections.abc import Sequence

from attrs import evolve, field, frozen

from wfcore.errors import WfError
from wfcore.instants import SECOND, DurationMs, EpochMs
from wfcore.memory import Disk, MemoryCounters, MemoryStore
from wfcore.memory.tables import ACCOUNTS, DEFINITIONS, EXECUTIONS, WEBHOOKS, WORKFLOWS
from wfcore.model.access import Plan, Principal
from wfcore.model.workflow import Definition
from wfcore.testing import builders as make
from wfcore.testing.fakes import CountingTokens, PathTemplates, PlainPasswords
from wfcore.testing.simulator.asks import Call, DriverGate, sleep
from wfcore.testing.simulator.chance import Chance, Fault, Kind, Replayed
from wfcore.testing.simulator.clients import Client
from wfcore.testing.simulator.driver import Driver, Task, Violation
from wfcore.testing.simulator.flows import definition_of
from wfcore.testing.simulator.judge import Judge
from wfcore.testing.simulator.node import Node
from wfcore.testing.simulator.ports import BIRTH, NoFiles, SimClock, SimIds, SimWakeup, WallClock
from wfcore.testing.simulator.promises import Promises
from wfcore.testing.simulator.recipe import Recipe
from wfcore.testing.simulator.runner import Ledger
from wfcore.testing.simulator.verdict import PLAN, rests, wrong
from wfcore.usecases.services import Policy, Services

POLICY = Policy(
    lease_ms=DurationMs(6 * SECOND),
    grace_ms=DurationMs(8 * SECOND),
    places=3,
)
PATIENCE_MS = 240 * SECOND
"""How long after the last fault everything that was accepted may take to come to rest."""


@frozen
class Played:
    """What came of a world. `broken` None: every promise was kept."""

    recipe: Recipe
    broken: str | None
    executions: int
    virtual_ms: int
    turns: int
    promises: Promises
    trace: Sequence[str] = field(factory=tuple, repr=False)


class World:
    """Everything that nodes and clients share. Satisfies what they ask of it."""

    def __init__(self, recipe: Recipe, chance: Chance, trace: list[str] | None) -> None:
        self.driver = Driver(chance, recipe.tick, trace)
        self.driver.abrupt = self
        self.judge = Judge(POLICY.places)
        self.disk = Disk(durable=recipe.durable, watch=self.judge)
        self.judge.tables = self.disk.tables
        self.store = MemoryStore(DriverGate(store=True), self.disk)
        self.machine = WallClock(self.driver)
        self.ledger = Ledger()
        self.promises = Promises()
        self.who = Principal(make.account("acc_1", plan=PLAN, created_at=EpochMs(BIRTH)))
        self.workflow_ids = [f"wf_{number}" for number in range(len(recipe.flows))]
        self.webhook_ids = [f"wh_{number}" for number in range(len(recipe.flows))]
        self.services = self._services()
        self.nodes = [Node(f"n{number + 1}", self) for number in range(recipe.nodes)]
        self._recipe = recipe
        self._clients = len(recipe.acts)
        self._calm_since: int | None = None
        self._down_until = 0
        self._read_only_until = 0

    def _services(self) -> Services:
        return Services(
            store=self.store,
            counters=MemoryCounters(DriverGate(store=True)),
            files=NoFiles(),
            clock=SimClock(self.machine),
            ids=SimIds(),
            tokens=CountingTokens(),
            passwords=PlainPasswords(),
            templates=PathTemplates(),
            wakeup=SimWakeup(lambda hint: 0, lambda id: None, lambda id: None),
            signing_key=b"k" * 32,
            policy=POLICY,
        )

    def play(self) -> None:
        """Let it happen. Raises `Violation`."""
        self._furnish()
        for node in self.nodes:
            node.start()
        for number, act in enumerate(self._recipe.acts):
            label = f"{act.verb}{number}"
            self.driver.spawn(label, Client(self, act, label).act(), None, self._client_ended)
        self.driver.run(self._over)
        for found in wrong(self.disk.tables, self.promises, self.ledger):
            raise Violation(found)

    def _furnish(self) -> None:
        """What was there before anybody came."""
        tables = self.disk.tables
        tables[ACCOUNTS.name][self.who.account.id] = evolve(self.who.account, version=1)
        for number, flow in enumerate(self._recipe.flows):
            workflow = make.workflow(self.workflow_ids[number], name=str(flow["name"]), version=1)
            tables[WORKFLOWS.name][workflow.id] = workflow
            snapshot = make.snapshot(workflow.id, definition=definition_of(flow), version=1)
            tables[DEFINITIONS.name][workflow.id, 1] = snapshot
            hook = make.webhook(
                self.webhook_ids[number], workflow_id=workflow.id, owner_id="acc_hooks", version=1
            )
            tables[WEBHOOKS.name][hook.id] = hook
        owner = make.account("acc_hooks", plan=Plan.ENTERPRISE, version=1)
        tables[ACCOUNTS.name][owner.id] = owner

    def _client_ended(self, result: object, refusal: WfError | None) -> None:
        if refusal is not None:
            raise Violation(f"defect: a client ended with {refusal!r}")
        self._clients -= 1

    def _over(self) -> bool:
        """Asked whenever time is about to pass: first the calm after the storm, then the end."""
        if self._calm_since is None:
            if self._clients == 0:
                self._calm()
            return False
        runs = self.disk.tables[EXECUTIONS.name].values()
        if all(map(rests, runs)) and not self.ledger.running:
            return True
        if self.driver.now - self._calm_since > PATIENCE_MS:
            stuck = [f"{r.id} is {r.status} held by {r.worker}" for r in runs if not rests(r)]
            said = ", ".join(stuck or map(str, sorted(self.ledger.running)))
            raise Violation(f"{'no end' if stuck else 'still runs'}: {said}")
        return False

    def _calm(self) -> None:
        """Nothing goes wrong any more; whoever is down comes back."""
        self.driver.say("calm")
        self._calm_since = self.driver.now
        self.driver.chance.calm()

    def revised(self, flow: int) -> Definition:
        """The flow's definition with another description."""
        definition = definition_of(self._recipe.flows[flow])
        return evolve(definition, description=f"revised at {self.driver.now}")

    async def stop(self, node: Node, drain_ms: int, down_ms: int) -> None:
        """End a process in good order and start it again."""
        self.driver.say(f"{node.worker}: SIGTERM")
        worker = node.worker
        await node.stop(drain_ms)
        if node.worker == worker:
            self._start_later(node, down_ms)

    def went_down(self, worker: str) -> None:
        """A process is no more; where there are locks, the store can tell."""
        self.driver.say(f"{worker}: down")
        if self._recipe.locks:
            self.store.ended.add(worker)

    def refuses(self, call: Call) -> bool:
        """Whether the store cannot carry out *call* now."""
        now = self.driver.now
        return now < self._down_until or (call.writes and now < self._read_only_until)

    def strike(self, fault: Fault, task: Task) -> None:
        """Let *fault* happen; it met *task*."""
        now, amount = self.driver.now, fault.amount
        match fault.kind:
            case Kind.CRASH | Kind.CRASH_AFTER:
                assert isinstance(task.group, Node)
                self._crash(task.group, amount)
            case Kind.POWER_CUT:
                self.disk.power_cut()
                for node in self.nodes:
                    self._crash(node, amount)
            case Kind.STORE_DOWN:
                self._down_until = now + amount
            case Kind.READ_ONLY:
                self._read_only_until = now + amount
            case Kind.FREEZE:
                assert isinstance(task.group, Node)
                task.group.frozen_until = now + amount
            case Kind.CLOCK_JUMP:
                self.machine.jumped += amount
            case Kind.WAKE:
                for node in self.nodes:
                    node.wake()
            case _:
                raise AssertionError(fault)

    def _crash(self, node: Node, down_ms: int) -> None:
        if node.up:
            node.crash()
            self._start_later(node, down_ms)

    def _start_later(self, node: Node, down_ms: int) -> None:
        async def start() -> None:
            await sleep(down_ms)
            self.driver.say(f"{node.name}: starts")
            node.start()

        self.driver.spawn(f"{node.name} starts", start())


def play(recipe: Recipe, chance: Chance | None = None, *, traced: bool = False) -> Played:
    """
    Play *recipe*: by *chance*, or as it was decided before. The same recipe, the same trace.

    A defect (anything that is raised and is no refusal) is a violation too.
    """
    trace: list[str] | None = [] if traced else None
    decided = chance or Replayed(recipe.turns or (), recipe.faults)
    world = World(recipe, decided, trace)
    broken: str | None = None
    try:
        world.play()
    except Violation as found:
        broken = str(found)
    except Exception as defect:  # whatever it is, it is the code's under simulation
        broken = f"defect: {defect!r}"
    world.driver.say(f"broken: {broken}" if broken else "every promise was kept")
    return Played(
        recipe,
        broken,
        len(world.disk.tables[EXECUTIONS.name]),
        world.driver.now,
        world.driver.turns,
        world.promises,
        tuple(trace or ()),
    )
