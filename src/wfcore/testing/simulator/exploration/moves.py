"""
The moves of a world: everything that may happen next in a state.

A move is a step of the exploration: an answer to one waiting call, the beginning of a call, the
start or the end of an attempt, the next deadline, or a fault. Nothing else happens within a move.
"""

from collections.abc import Callable, Iterator

from attrs import evolve, frozen

from wfcore.memory.runs import waits
from wfcore.memory.tables import APPROVALS, EXECUTIONS, FINISHED, LEASES, TIMERS
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.trigger import Timer
from wfcore.rules.approval.machine import due_reminders, expired, next_reminder
from wfcore.testing.simulator.exploration.scopes import CRASH, FREEZE, HINT, JUMP, LOSE
from wfcore.testing.simulator.exploration.states import ExploredNode, OpenCall, OpenLease
from wfcore.testing.simulator.exploration.system import DUTIES, ExploredSystem
from wfcore.testing.simulator.world import POLICY


@frozen(eq=False)
class Move:
    """
    One move. `label` names the move within its state. `fault`: whether a fault happens. `make`
    carries it out on the present state.
    """

    label: str
    fault: bool
    make: Callable[[], None]


def moves_of(system: ExploredSystem) -> Iterator[Move]:
    """Every move that is possible in the present state of *system*."""
    working = [call for call in system.calls.values() if system.nodes[call.node].works]
    if fresh := next((call for call in working if call.fresh), None):
        yield from _answers(system, fresh)
        if system.left.get(FREEZE):
            yield Move(f"{fresh.node} freezes", True, lambda: _freeze(system, fresh.node))
        return
    for call in working:
        yield from _answers(system, call)
    for node in system.nodes.values():
        if node.works:
            yield from _work(system, node)
            yield from _requests(system, node)
        yield from _fates(system, node)
    if not working and (wait := _until_next_deadline(system)) is not None:
        yield Move(f"{wait} ms pass", False, lambda: _pass(system, wait))
    if system.left.get(JUMP):
        yield Move("clock jumps", True, lambda: _jump(system))


def _answers(system: ExploredSystem, call: OpenCall) -> Iterator[Move]:
    label = f"{call.name}: {call.pending.name}"
    yield Move(label, False, _stepping(system, call.name))
    if call.pending.writes and system.left.get(LOSE):
        yield Move(f"{label}, answer lost", True, _losing(system, call.name))


def _stepping(system: ExploredSystem, name: str) -> Callable[[], None]:
    return lambda: system.step(name)


def _losing(system: ExploredSystem, name: str) -> Callable[[], None]:
    def lose() -> None:
        call = system.calls[name]
        _spend(system, LOSE)
        if call.purpose == "claim":  # the leases that it does not know of run out
            system.nodes[call.node] = evolve(system.nodes[call.node], disturbed=True)
        system.step(name, lose=True)

    return lose


def _spend(system: ExploredSystem, fault: str) -> None:
    system.left[fault] -= 1
    if not system.left[fault]:
        del system.left[fault]


# What a process does by itself: claims, duties, steps, heartbeats.


def _work(system: ExploredSystem, node: ExploredNode) -> Iterator[Move]:
    open = {call.purpose for call in system.calls.values() if call.node == node.name}
    name, worker = node.name, node.worker
    if not node.retired:
        free = POLICY.places - len(node.leases)
        if "claim" not in open and free > 0 and _work_is_due(system, name):
            yield Move(f"{worker} claims", False, lambda: system.begin(name, "claim", free))
        if not open & DUTIES.keys():
            for duty in DUTIES:
                if _IS_DUE[duty](system, name):
                    yield Move(f"{worker}: {duty}", False, _beginning(system, name, duty))
    for held in node.leases.values():
        yield from _steps(system, node, held)
    if _has_news(system, node):
        yield Move(f"{worker}: heartbeat", False, lambda: system.heartbeat(name))


def _beginning(system: ExploredSystem, node: str, purpose: str) -> Callable[[], None]:
    return lambda: system.begin(node, purpose)


def _steps(system: ExploredSystem, node: ExploredNode, held: OpenLease) -> Iterator[Move]:
    name, worker = node.name, node.worker
    for step in held.steps:
        label = f"{worker}/{held.id}/{step.job.step_name}.{step.job.attempt}"

        def start(step: object = step) -> None:
            system.start_step(name, held, step)  # type: ignore[arg-type]

        def end(job: object = step.job) -> None:
            system.unit(name, held, "complete", job)

        if not step.running:
            yield Move(f"{label} starts", False, start)
        elif not held.busy and not held.next:
            yield Move(f"{label} ends", False, end)
    if held.busy:
        return
    if held.next:
        yield Move(
            f"{worker}: {held.next[0]} {held.id}",
            False,
            lambda: system.unit(name, held, *held.next),
        )
        return
    if not held.steps:
        return

    def look() -> None:
        system.unit(name, evolve(held, look_at=None), "go on", held.met)

    due = held.look_at is not None and held.look_at <= system.clock(name).service_now()
    if due:
        yield Move(f"{worker} looks at {held.id}", False, look)
    elif system.left.get(HINT):

        def hinted() -> None:
            _spend(system, HINT)
            look()

        yield Move(f"{worker} looks at {held.id} for nothing", True, hinted)


def _has_news(system: ExploredSystem, node: ExploredNode) -> bool:
    """Whether a heartbeat would bring the process anything new."""
    if not node.leases:
        return False
    runs, now = system.table(EXECUTIONS.name), system.clock(node.name).service_now()
    for held in node.leases.values():
        run: Execution = runs[held.id]
        if run.worker != node.worker and held.steps:
            return True
        known = held.look_at is not None and held.look_at <= now
        if held.steps and run.due_at is not None and run.due_at <= now and not known:
            return True
    return False


def _work_is_due(system: ExploredSystem, node: str) -> bool:
    now = system.clock(node).service_now()
    runs: Iterator[Execution] = iter(system.table(EXECUTIONS.name).values())
    return any(waits(run) and (run.due_at or 0) <= now for run in runs)


def _lost_work_is_due(system: ExploredSystem, node: str) -> bool:
    now, leases = system.clock(node).service_now(), system.table(LEASES.name)
    runs: Iterator[Execution] = iter(system.table(EXECUTIONS.name).values())
    return any(
        run.worker is not None
        and run.status not in FINISHED
        and (leases.get(run.id, 0) < now or run.worker in system.ended)
        for run in runs
    )


def _expiry_is_due(system: ExploredSystem, node: str) -> bool:
    now = system.clock(node).deadline_now()
    return any(expired(one, now) for one in _open_approvals(system))


def _reminder_is_due(system: ExploredSystem, node: str) -> bool:
    now = system.clock(node).deadline_now()
    return any(
        due_reminders(one, now) or (one.escalate_at is not None and one.escalate_at <= now)
        for one in _open_approvals(system)
    )


def _grace_is_due(system: ExploredSystem, node: str) -> bool:
    now = system.clock(node).service_now()
    runs: Iterator[Execution] = iter(system.table(EXECUTIONS.name).values())
    return any(
        run.status is ExecutionStatus.INTERRUPTED and run.due_at is not None and run.due_at <= now
        for run in runs
    )


def _timer_is_due(system: ExploredSystem, node: str) -> bool:
    now = system.clock(node).service_now()
    timers: Iterator[Timer] = iter(system.table(TIMERS.name).values())
    return any(timer.due_at <= now for timer in timers)


def _open_approvals(system: ExploredSystem) -> Iterator[Approval]:
    found: Iterator[Approval] = iter(system.table(APPROVALS.name).values())
    return (one for one in found if one.status is ApprovalStatus.PENDING)


_IS_DUE: dict[str, Callable[[ExploredSystem, str], bool]] = {
    "recover": _lost_work_is_due,
    "expire": _expiry_is_due,
    "remind": _reminder_is_due,
    "end graces": _grace_is_due,
    "fire": _timer_is_due,
}
"""
Whether a duty has anything to do. A duty without work is left out, because it would change nothing.
"""


# What clients do.


def _requests(system: ExploredSystem, node: ExploredNode) -> Iterator[Move]:
    for number in system.open_acts:
        act = system.scope.acts[number]
        at = system.scope.nodes[act.node]
        target = system.target(act)
        if at == node.name and target is not None:

            def begin(number: int = number, target: str = target) -> None:
                system.open_acts = tuple(other for other in system.open_acts if other != number)
                about = (number, target) if target else (number,)
                system.begin(node.name, "act", *about, name=system.scope.acts[number].label)

            yield Move(act.label, False, begin)


# What happens to processes, and time.


def _fates(system: ExploredSystem, node: ExploredNode) -> Iterator[Move]:
    name = node.name
    if not node.up:
        again = ExploredNode(name, node.starts + 1, retired=node.retired, clock=node.clock)
        yield Move(f"{name} starts", False, lambda: system.nodes.update({name: again}))
        return
    if node.frozen:
        thawed = evolve(node, frozen=False)
        yield Move(f"{name} thaws", False, lambda: system.nodes.update({name: thawed}))
    busy = bool(node.leases) or any(call.node == name for call in system.calls.values())
    if busy and system.left.get(CRASH):
        yield Move(f"{name} dies", True, lambda: _crash(system, name))
    if busy and not node.frozen and system.left.get(FREEZE):
        yield Move(f"{name} freezes", True, lambda: _freeze(system, name))


def _crash(system: ExploredSystem, name: str) -> None:
    _spend(system, CRASH)
    node = system.nodes[name]
    if system.scope.locks:
        system.ended.add(node.worker)
    system.nodes[name] = ExploredNode(
        name, node.starts, up=False, retired=node.retired, clock=node.clock
    )
    system.calls = {key: call for key, call in system.calls.items() if call.node != name}


def _freeze(system: ExploredSystem, name: str) -> None:
    _spend(system, FREEZE)
    system.nodes[name] = evolve(system.nodes[name], frozen=True, disturbed=True)


def _jump(system: ExploredSystem) -> None:
    _spend(system, JUMP)
    system.machine.jumped += system.scope.jump_ms
    for name, node in system.nodes.items():
        system.nodes[name] = evolve(node, disturbed=True)


def _pass(system: ExploredSystem, ms: int) -> None:
    """Let time pass until the next deadline. Working processes extend their leases meanwhile."""
    system.now += ms
    for name, node in system.nodes.items():
        if node.works:
            system.heartbeat(name)


def _until_next_deadline(system: ExploredSystem) -> int | None:
    """The ms until the next instant at which anything becomes due; None if nothing will be due."""
    clock = system.clock(system.scope.nodes[0])
    now, deadline = clock.service_now(), clock.deadline_now()
    waits = [at - now for at in _instants_of_work(system) if at > now]
    waits += [at - deadline for at in _instants_of_people(system) if at > deadline]
    if clock.known.hold_until > system.now:
        waits.append(clock.known.hold_until - system.now)
    return min(waits, default=None)


def _instants_of_work(system: ExploredSystem) -> Iterator[int]:
    extended = {
        (node.worker, id) for node in system.nodes.values() if node.works for id in node.leases
    }
    leases = system.table(LEASES.name)
    for run in system.table(EXECUTIONS.name).values():
        if run.due_at is not None:
            yield run.due_at
        if run.worker is not None and (run.worker, run.id) not in extended:
            yield leases.get(run.id, 0) + 1  # a lease is over after its last ms
    for timer in system.table(TIMERS.name).values():
        yield timer.due_at


def _instants_of_people(system: ExploredSystem) -> Iterator[int]:
    for one in _open_approvals(system):
        yield one.expires_at
        if one.escalate_at is not None:
            yield one.escalate_at
        if (at := next_reminder(one)) is not None:
            yield at
