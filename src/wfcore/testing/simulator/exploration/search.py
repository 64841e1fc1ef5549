"""
The search: every state that a small world can reach, each visited once.

**A step of the exploration** is a *move* (`moves`): one waiting call gets the answer to its request
and runs to its next request; a call begins; an attempt starts or ends; a client acts; time passes
to the next deadline; a process starts; or a fault happens, as long as the scope has any left. What
runs in a move are the real use cases on the real store in memory. Requests are the only points at
which others can come between, because the core awaits only ports.

**States.** Tables are copied. A coroutine cannot be copied, but it is a function of the answers
that it has had, so a call is stored as these answers (`recorded`) and is rebuilt from them for its
next move. Memory of a process outside of calls (leases, running steps) is data (`states`). Two
states with one key (`keys`) allow the same continuations, so the second is not visited again. The
search goes breadth first: the first path to a violation is a shortest one.

**Reduction.** A request that only reads a table that nothing changes is answered within the move
that leads to it: such a read commutes with every move of every other call, and a crash makes it
undone, so {the read} is a persistent set. The read waits for a move of its own if the call then
uses a clock, an id or a hint, or ends, since that does not commute. Which tables nothing changes is
assumed of all at first. A change of such a table disproves it, and the search begins again without
that table, so that the assumption is proved in the end. In the same way, a call that has begun and
asked for nothing yet has read at most its clock, and no time passes, so its first request follows
at once. Duties with nothing to do are not begun: they change nothing.

**Time** passes only while no call of a working process is open, and then to the next deadline.
Working processes extend their leases meanwhile. A call that is open over a deadline belongs to a
process that is *frozen*, which is a fault that a scope counts. So every lateness is explored, and
is always a fault, never an accident.

**Promises.** Every change of a table and every start of an attempt is checked by the invariants of
the simulator; every state at rest by its final checks. A state is at rest if no call is open and
all accepted work has ended or waits for a person. Liveness: from every state a state at rest can be
reached without a further fault; this is computed backwards over the graph of moves. Under any
scheduler that gives every process its turn, everything that was accepted then comes to an end.

**Not covered**: anything outside the scope; stores other than the given one; a failed write that
changed nothing (it is a retry); notices; the counts of quotas; and the asyncio tasks of the real
worker, of which `system` and `moves` hold a model: claims, heartbeats, units of work one at a time
for a lease, and steps.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence

from attrs import evolve, frozen

from wfcore.memory.tables import ROWS
from wfcore.model.approval import ApprovalStatus
from wfcore.testing.simulator.expectations import Expectations
from wfcore.testing.simulator.exploration.keys import StateKeys
from wfcore.testing.simulator.exploration.moves import Move, moves_of
from wfcore.testing.simulator.exploration.scopes import Scope
from wfcore.testing.simulator.exploration.states import WorldState
from wfcore.testing.simulator.exploration.system import ExploredSystem, NotConstant
from wfcore.testing.simulator.extensions import Invariant, NewStore, in_memory, no_invariant
from wfcore.testing.simulator.final_checks import unfinished, wrong
from wfcore.testing.simulator.runner import StartedAttempts
from wfcore.testing.simulator.scheduler import Violation

MOST_STATES = 1_000_000
NO_END = "no end: no continuation without a fault brings all accepted work to rest"
Progress = Callable[[int, int], None]
"""A function that gets the number of states and of moves so far."""


@frozen
class Exploration:
    """
    The result of an exploration. `states`: the number of different states; `moves`: the number of
    moves between them; `depth`: the number of moves to the farthest state; `ends`: the number of
    states at rest. `complete`: all states were visited. `broken` None: every promise was kept;
    otherwise `path` is a shortest path to the violation, as the labels of its moves. `constants`:
    the tables that nothing changed. The same moves follow only from the same constants.
    """

    scope: Scope
    states: int
    moves: int
    depth: int
    ends: int
    complete: bool
    broken: str | None = None
    path: tuple[str, ...] = ()
    constants: frozenset[str] = frozenset()


@frozen
class ReplayedPath:
    """The replay of a path. `trace`: each move with its requests, in words."""

    broken: str | None
    trace: tuple[str, ...]


def explore(
    scope: Scope,
    *,
    most: int = MOST_STATES,
    reduced: bool = True,
    watch: Invariant = no_invariant,
    store: NewStore = in_memory,
    progress: Progress | None = None,
) -> Exploration:
    """
    Explore *scope* until a promise is broken, every state is visited, or *most* states are known.

    *reduced* False: every request is a move of its own, to measure the reduction. *watch* sees
    every change of the store; *store* makes the store, whose handles must keep all of their state
    in the disk. See `extensions`.
    """
    constants = frozenset(ROWS) if reduced else frozenset[str]()
    while True:
        system = ExploredSystem(scope, watch, store, constants)
        try:
            return _Search(system, most, progress).run()
        except NotConstant as found:
            constants -= found.args[0]


def replay_path(
    scope: Scope,
    path: Sequence[str],
    constants: Collection[str],
    *,
    watch: Invariant = no_invariant,
    store: NewStore = in_memory,
) -> ReplayedPath:
    """
    Replay the *path* of an `Exploration`, with its *constants*. Raises `ValueError` if a move is
    not possible, or changes a constant.
    """
    system = ExploredSystem(scope, watch, store, frozenset(constants))
    try:
        return _replayed(system, path)
    except NotConstant as found:
        raise ValueError(f"a move changes {', '.join(sorted(found.args[0]))}") from None


class _Graph:
    """The visited states by number: how each was reached, and which states lead to it."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self.parents: list[tuple[int, str]] = []
        self.depths: list[int] = []
        self.before: list[list[int]] = []
        self.ends: set[int] = set()

    def add(self, key: bytes, parent: int, label: str) -> int:
        """Add a state; return its number."""
        number = len(self.parents)
        self.numbers[key] = number
        self.parents.append((parent, label))
        self.depths.append(self.depths[parent] + 1 if number else 0)
        self.before.append([])
        return number

    def path(self, number: int) -> tuple[str, ...]:
        """The labels of the moves to a state."""
        labels: list[str] = []
        while number:
            number, label = self.parents[number]
            labels.append(label)
        return tuple(reversed(labels))

    def without_end(self) -> int | None:
        """The first state from which no state at rest can be reached without a fault."""
        good = set(self.ends)
        waiting = list(good)
        while waiting:
            for number in self.before[waiting.pop()]:
                if number not in good:
                    good.add(number)
                    waiting.append(number)
        return next((number for number in range(len(self.parents)) if number not in good), None)


class _Search:
    """One search through the states of *system*, from *first* or from the scope's own beginning."""

    def __init__(
        self,
        system: ExploredSystem,
        most: int,
        progress: Progress | None = None,
        first: WorldState | None = None,
    ) -> None:
        self._system = system
        self._most = most
        self._progress = progress
        self._keys = StateKeys(system.constants, first or system.first)
        self._graph = _Graph()
        self._moves = 0
        self._first = first
        self._waiting: deque[tuple[int, WorldState]] = deque()

    def run(self) -> Exploration:
        """Visit every state."""
        try:
            first = self._first or _prepared(self._system)
        except Violation as found:
            return self._result(str(found), self._system.scope.before)
        self._visit(first, 0, "")
        while self._waiting and len(self._graph.parents) < self._most:
            number, state = self._waiting.popleft()
            self._system.load(state)
            for move in tuple(moves_of(self._system)):
                try:
                    self._try(move, state, number)
                except Violation as found:
                    return self._result(str(found), (*self._graph.path(number), move.label))
            if self._progress is not None:
                self._progress(len(self._graph.parents), self._moves)
        if not self._waiting and (lost := self._graph.without_end()) is not None:
            return self._result(NO_END, self._graph.path(lost))
        return self._result()

    def _try(self, move: Move, state: WorldState, number: int) -> None:
        self._moves += 1
        self._system.load(state)
        after = _made(self._system, move)
        key = self._keys.of(after)
        known = self._graph.numbers.get(key)
        if known is None:
            known = self._visit(after, number, move.label, key)
        if not move.fault:
            self._graph.before[known].append(number)

    def _visit(self, state: WorldState, parent: int, label: str, key: bytes = b"") -> int:
        number = self._graph.add(key or self._keys.of(state), parent, label)
        self._system.load(state)
        if _is_at_rest(self._system):
            _check_rest(self._system)
            self._graph.ends.add(number)
        self._waiting.append((number, state))
        return number

    def _result(self, broken: str | None = None, path: tuple[str, ...] = ()) -> Exploration:
        graph = self._graph
        complete = broken is None and not self._waiting
        before = (
            () if broken is None or path == self._system.scope.before else self._system.scope.before
        )
        return Exploration(
            self._system.scope,
            len(graph.parents),
            self._moves,
            max(graph.depths, default=0),
            len(graph.ends),
            complete,
            broken,
            (*before, *path),
            self._system.constants,
        )


def _made(system: ExploredSystem, move: Move) -> WorldState:
    """The state after *move*. Raises `Violation`, also for a defect."""
    try:
        move.make()
        return system.saved()
    except (Violation, NotConstant):
        raise
    except Exception as defect:  # whatever it is, it is the code's under exploration
        raise Violation(f"defect: {defect!r}") from defect


def _prepared(system: ExploredSystem) -> WorldState:
    """The state after the moves of `Scope.before`. Raises `Violation`, `ValueError`."""
    state = _gone(system, system.first, system.scope.before)
    retired = {
        name: evolve(node, retired=name in system.scope.retired)
        for name, node in state.nodes.items()
    }
    return evolve(state, nodes=retired)


def _gone(system: ExploredSystem, state: WorldState, path: Sequence[str]) -> WorldState:
    """The state after *path*. Raises `Violation`, and `ValueError` for an impossible move."""
    for label in path:
        after = _one_move(system, state, label)
        if after is None:
            possible = ", ".join(move.label for move in moves_of(system))
            raise ValueError(f"{label!r} is not possible here; possible: {possible}")
        while after is not None:
            state = after
            after = _one_move(system, state, label) if label.endswith("*") else None
    return state


def _one_move(system: ExploredSystem, state: WorldState, label: str) -> WorldState | None:
    """The state after the move *label*; None if that move is not possible."""
    system.load(state)
    for move in moves_of(system):
        whole = label.removesuffix("*")
        if move.label == label or (whole != label and move.label.startswith(whole)):
            break
    else:
        return None
    if system.say is not None:
        system.say(move.label)
    system.load(state)
    after = _made(system, move)
    system.load(after)
    if _is_at_rest(system):
        _check_rest(system)
    return after


def _replayed(system: ExploredSystem, path: Sequence[str]) -> ReplayedPath:
    trace: list[str] = []
    system.say = lambda text: trace.append(f"{system.now:>9,}  {text}")
    broken: str | None = None
    try:
        before = len(system.scope.before)
        state = _gone(system, _prepared(system), path[before:])
        system.say = None
        calm = _Search(system, MOST_STATES, None, evolve(state, left={})).run()
        broken = None if calm.ends else NO_END
    except Violation as found:
        broken = str(found)
    end = f"broken: {broken}" if broken else "every promise was kept"
    return ReplayedPath(broken, (*trace, f"{system.now:>9,}  {end}"))


def _is_at_rest(system: ExploredSystem) -> bool:
    return not system.calls and next(_unfinished(system), None) is None


def _unfinished(system: ExploredSystem) -> Iterator[str]:
    return unfinished(system.disk.tables, _ledger(system))


def _check_rest(system: ExploredSystem) -> None:
    """Raise `Violation` for a promise that a state at rest breaks."""
    expectations = Expectations()
    for kind, name, id in system.answers:
        match kind:
            case "started":
                expectations.started[name] = id
            case "decided":
                expectations.decided[id] = ApprovalStatus(name)
            case _:
                expectations.cancelled.add(id)
    for found in wrong(system.disk.tables, expectations, _ledger(system)):
        raise Violation(found)


def _ledger(system: ExploredSystem) -> StartedAttempts:
    """The attempts that were started, and those that run in a process."""
    ledger = StartedAttempts()
    ledger.started.update(system.started)
    for node in system.nodes.values():
        for held in node.leases.values():
            ledger.running |= {(held.id, *step.key) for step in held.steps if step.running}
    return ledger
