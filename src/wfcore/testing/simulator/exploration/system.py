"""
The explored system: the real rules, use cases and store, put into any state and moved by one move.

`load` makes a state the present one, a method makes one move, `saved` returns the state after it.
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, cast

from attrs import evolve

from wfcore.errors import LeaseLost, StoreUnavailable, WfError
from wfcore.memory import Disk, MemoryCounters
from wfcore.memory.disk import Rows
from wfcore.memory.tables import APPROVALS, ROWS
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.execution import TriggerSource
from wfcore.ports.runtime import Job
from wfcore.rules.approval.machine import Approve, Reject
from wfcore.testing.fakes import PathTemplates, PlainPasswords
from wfcore.testing.simulator.calls import PortCall, Request, SimSchedulingPoint
from wfcore.testing.simulator.exploration.recorded import (
    RecordedClock,
    RecordedHints,
    RecordedIds,
    Recorder,
)
from wfcore.testing.simulator.exploration.scopes import Scope
from wfcore.testing.simulator.exploration.states import (
    ExploredNode,
    OpenCall,
    OpenLease,
    OpenStep,
    PendingRequest,
    PortAnswer,
    WorldState,
)
from wfcore.testing.simulator.extensions import Invariant, NewStore, with_invariant
from wfcore.testing.simulator.invariants import Invariants
from wfcore.testing.simulator.ports import EmptyFiles, SimCalendar, SimClock, WallClock
from wfcore.testing.simulator.runner import end_of
from wfcore.testing.simulator.scenario import Act
from wfcore.testing.simulator.scheduler import LOST, Violation, at_once
from wfcore.testing.simulator.seed_data import PEOPLE, seed_world
from wfcore.testing.simulator.world import POLICY
from wfcore.usecases.approvals import deciding, expiry
from wfcore.usecases.executions import executions, starting
from wfcore.usecases.executions import worker as running
from wfcore.usecases.executions.idempotency import Idempotency
from wfcore.usecases.executions.worker import LastStored, Lease, Work
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import at_once as raise_failures
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows import firing

Calling = Coroutine[Request, Any, Any]
DUTIES: dict[str, Callable[..., Any]] = {
    "recover": lambda services: sweeping.recover(services, raise_failures),
    "expire": lambda services: expiry.expire_due(services, raise_failures),
    "remind": lambda services: expiry.remind_due(services, raise_failures),
    "end graces": lambda services: sweeping.end_graces(services, raise_failures),
    "fire": lambda services: firing.fire_due(services, raise_failures),
}
"""The duties of a sweep. The duties share nothing, so a sweep is its duties one after another."""
UNITS = ("begin", "go on", "complete")
Say = Callable[[str], None]


class NotConstant(Exception):
    """A move changed tables that were assumed to be constant: `args[0]`."""


class ExploredSystem:
    """
    One world in its present state. Implements `WorldFacts`. *constants*: the tables that are
    assumed never to change; see `search`.
    """

    def __init__(
        self, scope: Scope, watch: Invariant, store: NewStore, constants: frozenset[str]
    ) -> None:
        self.scope = scope
        self.constants = frozenset[str]()
        self.say: Say | None = None
        self.now = 0
        self.recorder = Recorder()
        self.machine = WallClock(cast(Any, self))
        self.judge = Invariants(POLICY.places, self)
        self.disk = Disk(watch=with_invariant(self._judged, watch))
        self.ended: set[str] = set()
        self.ids = RecordedIds(self.recorder)
        self._clocks = {name: SimClock(self.machine) for name in scope.nodes}
        self._stores = {
            name: store(
                SimSchedulingPoint(store=True),
                self.disk,
                now=RecordedClock(self.recorder, clock).service_now,
                ended=self.ended,
            )
            for name, clock in self._clocks.items()
        }
        self._counters = MemoryCounters(SimSchedulingPoint(store=True))
        self._acting = ""
        self._load_tables({name: {} for name in ROWS})
        self.workflow_ids: Sequence[str] = ()
        self._first = self._initial()
        self.constants = constants

    # The state: loaded and saved.

    @property
    def first(self) -> WorldState:
        """The state in which every path begins, without the moves of `Scope.before`."""
        return self._first

    def _initial(self) -> WorldState:
        first = self.scope.nodes[0]
        self.recorder.begin(())
        services = self.services(first)
        self.workflow_ids = seed_world(self.disk, services, self.scope.flows).workflow_ids
        answers = set[tuple[str, str, str]]()
        for act in self.scope.started:
            started = at_once(self._start(services, act))
            answers.add(("started", str(act.what["tag"]), started.execution_id))
        return WorldState(
            tables=self.disk.tables,
            now=0,
            jumped=0,
            nodes={name: ExploredNode(name) for name in self.scope.nodes},
            calls={},
            left={fault: n for fault, n in self.scope.faults.items() if n},
            acts=tuple(range(len(self.scope.acts))),
            answers=frozenset(answers),
            started=frozenset(),
            ended=frozenset(),
            ids=dict(self.ids.counts),
        )

    def load(self, state: WorldState) -> None:
        """Make *state* the present state."""
        self._load_tables(state.tables)
        self.now = state.now
        self.machine.jumped = state.jumped
        clocks = [one.clock for one in state.nodes.values() if one.clock is not None]
        self.machine.known = max(clocks, key=lambda known: known.hold_until, default=None)
        self.nodes = dict(state.nodes)
        self.calls = dict(state.calls)
        self.left = dict(state.left)
        self.open_acts = state.acts
        self.answers = state.answers
        self.started = state.started
        self.ended.clear()
        self.ended.update(state.ended)
        self.ids.counts = Counter(state.ids)
        for name, clock in self._clocks.items():
            clock.restart(self.nodes[name].clock)
        self._acting = ""

    def _load_tables(self, tables: Any) -> None:
        copies = {name: dict(rows) for name, rows in tables.items()}
        self.disk.tables = cast(Any, copies)
        self.judge.tables = copies
        self.judge.closed.clear()

    def saved(self) -> WorldState:
        """The present state."""
        if self.scope.faults.get("clock jump"):
            for name, node in self.nodes.items():
                self._clocks[name].service_now()
                self.nodes[name] = evolve(node, clock=self._clocks[name].known)
        return WorldState(
            self.disk.tables,
            self.now,
            self.machine.jumped,
            self.nodes,
            self.calls,
            self.left,
            self.open_acts,
            self.answers,
            self.started,
            frozenset(self.ended),
            self.ids.counts,
        )

    def table(self, name: str) -> Rows:
        """The rows of a table."""
        return self.disk.tables[name]

    def clock(self, node: str) -> SimClock:
        """The clock of a process."""
        return self._clocks[node]

    # What the invariants ask: `WorldFacts`.

    def acts(self, worker: str) -> bool:
        """Whether the present move is one of *worker*."""
        return self._acting == worker

    def lives(self, worker: str) -> bool:
        """Whether the process of *worker* exists."""
        return any(one.up and one.worker == worker for one in self.nodes.values())

    def lost(self, worker: str) -> bool:
        """Whether *worker* may rightly count as lost."""
        return not any(
            one.works and one.worker == worker and not one.disturbed for one in self.nodes.values()
        )

    def lease_time(self) -> int:
        """The latest instant at which a lease may have ended by now."""
        return self.machine.wall() - min(self.machine.jumped, 0)

    @property
    def turn(self) -> int:
        """The present instant: the explorer has no turns."""
        return self.now

    def _judged(self, tables: Any, changes: Any) -> None:
        if wrong := self.constants.intersection(changes):
            raise NotConstant(wrong)
        self.judge(tables, changes)

    # Calls: begun, continued by one answer, ended.

    def services(self, node: str) -> Services:
        """The services of a process, without anything that an earlier call left in memory."""
        return Services(
            store=self._stores[node],
            counters=self._counters,
            files=EmptyFiles(),
            clock=RecordedClock(self.recorder, self._clocks[node]),
            ids=self.ids,
            tokens=self.ids,
            passwords=PlainPasswords(),
            templates=PathTemplates(),
            wakeup=RecordedHints(self.recorder),
            signing_key=b"k" * 32,
            policy=POLICY,
            calendar=SimCalendar(),
        )

    def begin(self, node: str, purpose: str, *about: Any, name: str = "") -> None:
        """Begin a use case in a process and run it up to its first request."""
        worker = self.nodes[node].worker
        call = OpenCall(f"{worker}/{name or purpose}", node, purpose, about)
        self._acting = worker
        self.recorder.begin(())
        coroutine, lease = self._made(call)
        self._until_next(call, coroutine, lease, lambda: coroutine.send(None))

    def step(self, name: str, *, lose: bool = False) -> None:
        """Answer the request of a call, and run the call up to the next one."""
        call = self.calls[name]
        self._acting = self.nodes[call.node].worker
        self.recorder.begin(call.tape)
        coroutine, lease = self._made(call)
        ask = self.recorder.replayed(coroutine)
        assert isinstance(ask, PortCall), "an explored call must not wait"
        answer = self.recorder.perform(ask)
        if self.say is not None:
            end = f" -> {answer.refusal!r}" if answer.refusal else ""
            self.say(f"  {ask.name} {ask.about}{end}")
        if lose:
            answer = PortAnswer(refusal=answer.refusal or LOST)
        self.recorder.note(answer)
        self._until_next(call, coroutine, lease, lambda: self.recorder.send(coroutine, answer))

    def _made(self, call: OpenCall) -> tuple[Calling, Lease | None]:
        """The coroutine of a call, and the lease under which it works."""
        services = self.services(call.node)
        if call.purpose not in UNITS:
            return self._use_case(services, call), None
        id, fence, last, *more = call.about
        lease = Lease(self.nodes[call.node].worker, id, fence, LastStored(last))
        unit: Any
        if call.purpose == "begin":
            unit = running.begin(services, lease)
        elif call.purpose == "go on":
            unit = running.go_on(services, lease, *more)
        else:
            job: Job = more[0]
            end = end_of(job, lease.worker)
            unit = running.complete_step(
                services, lease, job.step_name, end, attempt=job.attempt, postponed=job.postponed
            )
        return unit, lease

    def _use_case(self, services: Services, call: OpenCall) -> Calling:
        found: Any
        if call.purpose == "claim":
            found = running.claim(services, self.nodes[call.node].worker, *call.about)
        elif call.purpose in DUTIES:
            found = DUTIES[call.purpose](services)
        else:
            found = self._act(services, self.scope.acts[call.about[0]], *call.about[1:])
        return cast("Calling", found)

    def _until_next(
        self,
        call: OpenCall,
        coroutine: Calling,
        lease: Lease | None,
        resume: Callable[[], Request],
    ) -> None:
        """
        Run a call up to its next request. Requests that only read constants are answered at once,
        if the call then makes another request and does nothing else.
        """
        recorder = self.recorder
        try:
            ask = resume()
            while (mark := self._eager(ask)) is not None:
                answer = recorder.perform(cast(PortCall, ask))
                recorder.note(answer)
                try:
                    after = recorder.send(coroutine, answer)
                except (StopIteration, WfError):
                    recorder.quiet = False
                if not recorder.quiet:
                    self._take_back(mark)
                    break
                ask = after
        except StopIteration as end:
            self._ended(call, lease, end.value, None)
            return
        except WfError as refusal:
            self._ended(call, lease, None, refusal)
            return
        coroutine.close()
        assert isinstance(ask, PortCall), "an explored call must not wait"
        pending = PendingRequest(ask.name, ask.writes)
        self.calls[call.name] = evolve(call, tape=tuple(recorder.tape), pending=pending)
        self._heed(call)

    def _eager(self, ask: Request) -> tuple[int, int, Counter[str]] | None:
        """The present place in the record, if *ask* only reads what nothing changes."""
        if not isinstance(ask, PortCall) or ask.writes or ask.name not in self.constants:
            return None
        self.recorder.quiet = True
        return len(self.recorder.tape), len(self.recorder.hints), Counter(self.ids.counts)

    def _take_back(self, mark: tuple[int, int, Counter[str]]) -> None:
        """Forget what was recorded since *mark*: the request stays open."""
        tape, hints, self.ids.counts = mark
        del self.recorder.tape[tape:]
        del self.recorder.hints[hints:]

    def _heed(self, call: OpenCall) -> None:
        """Pass the hints of a call to the worker of the process."""
        for kind, execution_id in tuple(self.recorder.hints):
            if kind == "stop":
                self.stop_steps(call.node, execution_id, current=call.name)
            else:
                self.look(call.node, execution_id)

    def _ended(
        self, call: OpenCall, lease: Lease | None, result: Any, refusal: WfError | None
    ) -> None:
        self.calls.pop(call.name, None)
        self._heed(call)
        unheard = isinstance(refusal, StoreUnavailable)
        if lease is not None:
            if unheard:
                self._repeat(call, lease)
            else:
                self._unit_ended(call, lease, result, refusal)
        elif call.purpose == "claim":
            for taken in result or ():
                self._take(call.node, taken)
        elif call.purpose not in DUTIES and not unheard:
            self._answered(call, result, refusal)
        if (
            refusal is not None
            and not unheard
            and (call.purpose in DUTIES or call.purpose == "claim")
        ):
            raise Violation(f"defect: {call.name} ended with {refusal!r}")

    # The worker: `simulator.worker` as data.

    def _take(self, node: str, lease: Lease) -> None:
        self.stop_steps(node, lease.execution_id)
        held = OpenLease(lease.execution_id, lease.fence, lease.last.run, next=("begin",))
        self._hold(node, held)

    def unit(self, node: str, held: OpenLease, purpose: str, *more: Any) -> None:
        """Begin a unit of work on a held execution."""
        self._hold(node, evolve(held, next=(), busy=True))
        about = held.id, held.fence, held.last, *more
        name = f"{held.id}:{held.fence} {purpose}"
        if more and isinstance(more[0], Job):
            name += f" {more[0].step_name}.{more[0].attempt}"
        self.begin(node, purpose, *about, name=name)

    def _repeat(self, call: OpenCall, lease: Lease) -> None:
        """Repeat the unit of a call whose answer was lost."""
        held = self.nodes[call.node].leases.get(lease.execution_id)
        if held is not None and held.fence == lease.fence:
            again = call.purpose, *call.about[3:]
            self._hold(call.node, evolve(held, last=lease.last.run, next=again, busy=False))

    def _unit_ended(
        self, call: OpenCall, lease: Lease, work: Work | None, refusal: WfError | None
    ) -> None:
        if refusal is not None and not isinstance(refusal, LeaseLost):
            raise Violation(f"defect: {call.name} ended with {refusal!r}")
        held = self.nodes[call.node].leases.get(lease.execution_id)
        if held is None or held.fence != lease.fence:
            return
        held = evolve(held, last=lease.last.run, busy=False)
        steps = {step.key: step for step in held.steps}
        if call.purpose == "complete":
            job: Job = call.about[3]
            steps.pop((job.step_name, job.attempt), None)
        if work is None:
            self._hold(call.node, evolve(held, steps=()))
            return
        steps = {key: step for key, step in steps.items() if key[0] in work.in_flight}
        new = {(job.step_name, job.attempt): OpenStep(job) for job in work.jobs}
        steps |= {key: step for key, step in new.items() if key not in held.met}
        met = held.met.union(new)
        held = evolve(held, steps=tuple(steps.values()), met=met, look_at=work.due_at)
        self._hold(call.node, held)

    def _hold(self, node: str, held: OpenLease) -> None:
        """Keep *held* with its process, or release it if nothing is left to do."""
        leases = {**self.nodes[node].leases, held.id: held}
        if not (held.busy or held.steps or held.next):
            del leases[held.id]
        self.nodes[node] = evolve(self.nodes[node], leases=leases)

    def stop_steps(self, node: str, execution_id: str, current: str = "") -> None:
        """
        End the steps of an execution that other processes have moved, and the units that record the
        ends.
        """
        held = self.nodes[node].leases.get(execution_id)
        if held is None:
            return
        mine = f"{self.nodes[node].worker}/{held.id}:{held.fence} "
        for name in [name for name in self.calls if name.startswith(f"{mine}complete ")]:
            if name != current:
                del self.calls[name]
        busy = current.startswith(mine) or any(name.startswith(mine) for name in self.calls)
        next = () if held.next[:1] == ("complete",) else held.next
        self._hold(node, evolve(held, steps=(), busy=busy, next=next))

    def look(self, node: str, execution_id: str) -> None:
        """Let the worker continue a held execution as soon as no unit of the execution is open."""
        held = self.nodes[node].leases.get(execution_id)
        if held is not None and held.steps:
            self._hold(node, evolve(held, look_at=0))

    def heartbeat(self, node: str) -> None:
        """Extend the leases of a process, and act on the result."""
        leases = self.nodes[node].leases
        if not leases:
            return
        self.recorder.begin(())
        beat: Any = running.heartbeat(self.services(node), self.nodes[node].worker, list(leases))
        self._acting = self.nodes[node].worker
        kept = at_once(beat)
        now = self._clocks[node].service_now()
        for id in tuple(leases):
            if id not in kept:
                self.stop_steps(node, id)
            elif kept[id] is not None and kept[id] <= now:
                self.look(node, id)

    def start_step(self, node: str, held: OpenLease, step: OpenStep) -> None:
        """Start an attempt. Raises `Violation` if it is not recorded, or started before."""
        attempt = held.id, *step.key
        self.judge.started(step.job)
        if attempt in self.started:
            raise Violation(f"started twice: {attempt}")
        self.started |= {attempt}
        steps = tuple(evolve(s, running=True) if s is step else s for s in held.steps)
        self._hold(node, evolve(held, steps=steps))

    # Clients.

    def _act(self, services: Services, act: Act, *target: str) -> Calling:
        who = PEOPLE[int(str(act.what.get("by", 0)))]
        found: Any
        if act.verb == "start":
            return self._start(services, act)
        if act.verb == "cancel":
            found = executions.cancel_execution(services, who, target[0])
        else:
            decision = Reject() if act.what.get("how") == "reject" else Approve()
            asked = deciding.Decide(target[0], decision, DecisionSource.API, act.label)
            found = deciding.decide_approval(services, who, asked)
        return cast("Calling", found)

    def _start(self, services: Services, act: Act) -> Calling:
        tag, flow = str(act.what["tag"]), int(str(act.what.get("flow", 0)))
        source = TriggerSource(str(act.what.get("source", TriggerSource.OPEN_API.value)))
        once = Idempotency(tag, "f" * 64) if act.what.get("keyed") else None
        found: Any = starting.start_execution(
            services,
            PEOPLE[0],
            self.workflow_ids[flow],
            {"tag": tag},
            source=source,
            idempotency=once,
        )
        return cast("Calling", found)

    def target(self, act: Act) -> str | None:
        """
        The object of an act: an execution, an approval, or nothing for a start; None: it does not
        exist yet.
        """
        if act.verb == "start":
            return ""
        if act.verb == "cancel":
            tag = str(act.what.get("tag", "t0"))
            known = [id for kind, name, id in self.answers if (kind, name) == ("started", tag)]
            return known[0] if known else None
        asked: Iterator[Approval] = iter(self.table(APPROVALS.name).values())
        open = (one.id for one in asked if one.status is ApprovalStatus.PENDING)
        return next(open, None)

    def _answered(self, call: OpenCall, result: Any, refusal: WfError | None) -> None:
        """Record the answer to a client. Raises `Violation` if it contradicts an earlier answer."""
        if refusal is not None:
            return
        act = self.scope.acts[call.about[0]]
        if act.verb == "start":
            answer = "started", str(act.what["tag"]), result.execution_id
        elif act.verb == "cancel":
            answer = "cancelled", "", result.id
        else:
            answer = "decided", result.status.value, result.id
        kind, name, id = answer
        for known in self.answers:
            if kind == known[0] == "started" and name == known[1] and id != known[2]:
                raise Violation(f"another answer: {name} was {known[2]}, is {id}")
            if kind == known[0] == "decided" and id == known[2]:
                raise Violation(f"decided twice: {id}")
        self.answers |= {answer}
