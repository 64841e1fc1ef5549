"""
The invariants of a world: checks of each change of the disk before the change is made, and of each
step before the step starts. The checks know nothing of how the code under simulation made the
change.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from wfcore.memory.disk import Changes, Rows
from wfcore.memory.tables import (
    ACCOUNTS,
    APPROVALS,
    DEFINITIONS,
    EVENTS,
    EXECUTIONS,
    LEASES,
    LIMITS,
    REPLAYS,
    STATES,
    WEBHOOKS,
    WORKFLOWS,
)
from wfcore.model.access import Tier
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource, Purpose
from wfcore.model.event import Event
from wfcore.model.execution import Execution, ExecutionStatus, PendingFailure, StepStatus
from wfcore.model.webhook import Webhook, WebhookStatus
from wfcore.model.workflow import ApprovalStep, DefinitionSnapshot, OnLimit, WorkflowState
from wfcore.ports.runtime import Job
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.limits import WEBHOOKS_PER_ACCOUNT
from wfcore.testing.simulator.bounds import few_branches, late_retries
from wfcore.testing.simulator.identities import enough_agreed, one_voice_each, require
from wfcore.testing.simulator.repair_checks import Results, kept_results, reads_last_files
from wfcore.testing.simulator.runner import COUNTED
from wfcore.time import EpochMs

Tables = Mapping[str, Rows]
MOVES = {(row.state, row.target) for row in EXECUTION.rows} | {(None, EXECUTION.initial)}
SWITCH = "execution."
CLOCKS_DIFFER_MS = 10_000
"""
How far the times of work of two processes may lie apart. The processes read their clocks at
different moments, and one of them may have missed a correction before the clock jumped.
"""


class WorldFacts(Protocol):
    """The state of the world that the invariants need."""

    def lost(self, worker: str) -> bool:
        """Whether *worker* may rightly count as lost: dead, or cut off for a while."""

    def acts(self, worker: str) -> bool:
        """Whether the current task belongs to *worker*."""

    def lives(self, worker: str) -> bool:
        """Whether the process of *worker* exists, even if that process cannot work."""

    def lease_time(self) -> int:
        """
        The latest instant at which a lease may have ended by now, before a clock was set back.
        """

    @property
    def turn(self) -> int:
        """The number of the scheduler's turn."""


class Invariants:
    """
    Implements `memory.disk.Watch` and `runner.StepObserver`. *places*: how many executions a worker
    may hold. `closed`: the turn in which each approval was decided, and each execution ended.
    """

    def __init__(self, places: int, court: WorldFacts) -> None:
        self.tables: Tables = {}
        self._places = places
        self._court = court
        self.closed: dict[str, int] = {}
        self._kept: dict[str, Results] = {}

    def __call__(self, tables: Tables, changes: Changes) -> None:
        """Raise `Violation` if *changes* to *tables* break a promise."""
        for name, check in _CHECKS.items():
            for key, after in changes.get(name, {}).items():
                before = tables[name].get(key)
                if before is not None and after is not None:
                    require(after.version > before.version, "lost update", f"{name} {key}")
                check(_After(tables, changes), before, after)
        for id, approval in changes.get(APPROVALS.name, {}).items():
            if approval is not None and approval.status is not ApprovalStatus.PENDING:
                self.closed.setdefault(str(id), self._court.turn)
        for id, run in changes.get(EXECUTIONS.name, {}).items():
            if run is not None and run.status in EXECUTION.final:
                self.closed.setdefault(str(id), self._court.turn)
        for run in changes.get(EXECUTIONS.name, {}).values():
            if run is not None and run.redrive_of and run.id not in tables[EXECUTIONS.name]:
                self._kept[run.id] = _redriven(_After(tables, changes), run)
        if EXECUTIONS.name in changes:
            self._no_place_too_many(tables, changes)
            _no_group_too_full(tables, changes)
            self._no_one_robbed(tables, changes)
        if WEBHOOKS.name in changes:
            _no_webhook_too_many(tables, changes)

    def started(self, job: Job) -> None:
        """
        Raise `Violation` if the step of *job* is not on record as begun, if a redrive keeps its
        result, or if the step reads other files than the last ones.
        """
        run: Execution | None = self.tables[EXECUTIONS.name].get(job.execution_id)
        result = run.step_results.get(job.step_name) if run else None
        begun = result is not None and result.attempts >= job.attempt
        name = f"{job.execution_id}/{job.step_name}.{job.attempt}"
        require(begun, "not recorded", name)
        assert run is not None
        kept = self._kept.get(run.id, {}).get(job.step_name)
        require(kept is None or kept != result, "kept step ran", name)
        reads_last_files(run, job)

    def _no_place_too_many(self, tables: Tables, changes: Changes) -> None:
        changed = {one.worker for one in changes[EXECUTIONS.name].values() if one and one.worker}
        if not changed:
            return
        runs = {**tables[EXECUTIONS.name], **changes[EXECUTIONS.name]}
        held = Counter(run.worker for run in runs.values() if run is not None)
        for worker in sorted(changed):
            require(held[worker] <= self._places, "too many places", f"{worker} {held[worker]}")

    def _no_one_robbed(self, tables: Tables, changes: Changes) -> None:
        """
        A living worker keeps its executions, and no execution of the worker is interrupted. EX-11.
        """
        for id, after in changes[EXECUTIONS.name].items():
            before: Execution | None = tables[EXECUTIONS.name].get(id)
            if after is None or before is None or before.worker is None or after.worker:
                continue
            if after.status in EXECUTION.final or self._court.acts(before.worker):
                continue
            lost = self._court.lost(before.worker)
            if after.status is ExecutionStatus.INTERRUPTED:
                require(lost, "interrupted for nothing", id)
            over = (tables[LEASES.name].get(id) or 0) < self._court.lease_time()
            require(lost or over, "taken away", f"{id} from {before.worker}")
            gone = over or not self._court.lives(before.worker)
            require(gone, "lease unheeded", f"{id} of {before.worker}")


class _After:
    """The tables as they will be after the changes."""

    __slots__ = ("_changes", "_tables")

    def __init__(self, tables: Tables, changes: Changes) -> None:
        self._tables = tables
        self._changes = changes

    def get(self, name: str, key: Any) -> Any:
        changed = self._changes.get(name, {})
        return changed[key] if key in changed else self._tables[name].get(key)

    def before(self, name: str, key: str) -> Any:
        return self._tables[name].get(key)

    @property
    def accounts(self) -> Rows:
        return self._tables[ACCOUNTS.name]


def _execution(world: _After, before: Execution | None, after: Execution | None) -> None:
    require(after is not None, "unknown", before and before.id)
    assert after is not None
    if before is not None and before != after:
        _goes_on(before, after)
    log: tuple[Event, ...] = world.get(EVENTS.name, after.id) or ()
    numbers = [event.number for event in log]
    require(
        numbers == list(range(1, after.events + 1)),
        "events",
        f"{after.id} counts {after.events}, has {numbers}",
    )
    _moves_by_rows(before, after, log)
    _says_what_comes_next(world, after)
    _keeps_its_bounds(world, before, after, log)
    _writes_its_state(world, before, after)


def _keeps_its_bounds(
    world: _After, before: Execution | None, after: Execution, log: tuple[Event, ...]
) -> None:
    snapshot: DefinitionSnapshot = world.get(DEFINITIONS.name, (after.workflow_id, after.revision))
    few_branches(after, snapshot.definition)
    if before is not None:
        late_retries(before, log[before.events :], snapshot.definition)


def _goes_on(before: Execution, after: Execution) -> None:
    id = before.id
    require(before.status not in EXECUTION.final, "after the end", f"{id} was {before.status}")
    require(after.fence >= before.fence, "fence", f"{id} from {before.fence} to {after.fence}")
    if after.worker is not None and after.worker != before.worker:
        require(before.worker is None, "taken away", f"{id} from {before.worker}")
        require(after.fence > before.fence, "fence", f"{id} stays {after.fence}")
    require(_lasts(after.accepted_at, after.completed_at), "ran backwards", id)
    if before.failing is not None:
        _keeps_its_verdict(before.failing, after)
    _keeps_what_ended(before, after)
    for name, result in after.step_results.items():
        lasts = _lasts(result.started_at, result.completed_at)
        require(lasts, "ran backwards", f"{id}/{name}")
        old = before.step_results.get(name)
        if old is not None and old.status is StepStatus.COMPLETED:
            require(result == old, "result changed", f"{id}/{name}")
        elif old is None or not old.in_flight:
            continue
        elif result.status is StepStatus.COMPLETED and isinstance(result.output, Mapping):
            fence, attempt = result.output.get("fence"), result.output.get("attempt")
            fits = fence in (None, before.fence) and attempt in (None, result.attempts)
            require(fits, "late result", f"{id}/{name} of fence {fence}, now {before.fence}")


def _keeps_its_verdict(failing: PendingFailure, after: Execution) -> None:
    """`onFailure` runs once and changes nothing of the execution's end. EX-31."""
    require(after.failing == failing, "verdict changed", f"{after.id} failed twice")
    if after.status in (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED):
        same = after.error == failing.error
        require(same, "verdict changed", f"{after.id}: {failing.error}, now {after.error}")


def _keeps_what_ended(before: Execution, after: Execution) -> None:
    """A stored result stays or is put aside unchanged. AP-31."""
    for name, old in before.step_results.items():
        if name in after.step_results:
            continue
        kept = after.rounds_of(name)[-1:]
        same = old.status is StepStatus.AWAITING_APPROVAL or kept == (old,)
        require(bool(kept) and same, "result changed", f"{after.id}/{name} is gone")
    for key, aside in before.put_aside.items():
        require(after.put_aside.get(key) == aside, "result changed", f"{after.id}/{key}")


def _lasts(begun: EpochMs, ended: EpochMs | None) -> bool:
    return ended is None or ended >= begun - CLOCKS_DIFFER_MS


def _moves_by_rows(before: Execution | None, after: Execution, log: tuple[Event, ...]) -> None:
    """Every change of status has an event, and a row of the machine allows the change."""
    status = before.status if before else None
    for event in log[before.events if before else 0 :]:
        if event.kind.startswith(SWITCH):
            reached = ExecutionStatus(event.kind.removeprefix(SWITCH).upper())
            require((status, reached) in MOVES, "no such move", f"{after.id}: {status}->{reached}")
            status = reached
    require(status == after.status, "untold", f"{after.id} is {after.status}, told {status}")


def _says_what_comes_next(world: _After, run: Execution) -> None:
    """The stored record says what happens next; an ended execution has no worker and is not due."""
    match run.status:
        case ExecutionStatus.PENDING | ExecutionStatus.RUNNING:
            says = run.worker is not None or run.due_at is not None or _waits_for_child(world, run)
            require(says or _asks(world, run), "forgotten", run.id)
        case ExecutionStatus.INTERRUPTED:
            require(run.worker is None and run.due_at is not None, "forgotten", run.id)
        case ExecutionStatus.AWAITING_APPROVAL:
            require(run.worker is None or run.due_at is None, "place kept", run.id)
            require(_asks(world, run), "waits for nobody", run.id)
        case _:
            require(run.worker is None and run.due_at is None, "place kept", run.id)
            require(not _asks(world, run), "asks after the end", run.id)


def _waits_for_child(world: _After, run: Execution) -> bool:
    """Whether an execution that *run* started has not ended."""
    ids = [one.open_child for one in run.step_results.values() if one.open_child]
    found: list[Execution | None] = [world.get(EXECUTIONS.name, id) for id in ids]
    return any(child is not None and child.status not in EXECUTION.final for child in found)


def _asks(world: _After, run: Execution) -> bool:
    """Whether an approval of *run* is open."""
    asked = [r.approval_id for r in run.step_results.values() if r.approval_id is not None]
    found = [world.get(APPROVALS.name, id) for id in asked]
    return any(one is not None and one.status is ApprovalStatus.PENDING for one in found)


def _asks_once(world: _After, new: Approval) -> None:
    """No other approval about the budget of the same execution is open. BU-4."""
    run: Execution = world.get(EXECUTIONS.name, new.execution_id)
    waiting = [r for r in run.step_results.values() if r.status is StepStatus.AWAITING_APPROVAL]
    others = {result.approval_id for result in waiting} - {new.id}
    open: list[Approval | None] = [world.get(APPROVALS.name, id or "") for id in others]
    twice = any(one is not None and one.purpose is Purpose.BUDGET for one in open)
    require(new.purpose is not Purpose.BUDGET or not twice, "asked twice", run.id)


def _approval(world: _After, before: Approval | None, after: Approval | None) -> None:
    require(after is not None, "unknown", before and before.id)
    assert after is not None
    if before is None:
        _asks_once(world, after)
        _goes_back_seldom(world, after)
    if after.status is ApprovalStatus.APPROVED:
        enough_agreed(after, _step_of(world, after), world.accounts)
    for one in after.delegations:
        require(one.until <= after.expires_at, "delegated too long", f"{after.id} to {one.to}")
    if before is None or before == after:
        return
    require(before.status is ApprovalStatus.PENDING, "decided twice", after.id)
    one_voice_each(after, world.accounts)
    escalated = [entry for entry in after.history if entry.action == "escalated"]
    require(len(escalated) <= 1, "escalated twice", after.id)
    grown = len(after.history) - len(before.history)
    if after.status is ApprovalStatus.PENDING:
        require(grown in (0, 1), "decided twice", after.id)
        return
    require(grown == 1 and after.decided_at is not None, "decided twice", after.id)
    assert after.decided_at is not None
    if after.decision_source is DecisionSource.TIMEOUT:
        require(after.decided_at >= after.expires_at, "expired early", after.id)
    elif after.decision_source is not None:
        require(after.decided_at < after.expires_at, "decided late", after.id)
    run: Execution | None = world.before(EXECUTIONS.name, after.execution_id)
    moved: Execution | None = world.get(EXECUTIONS.name, after.execution_id)
    require(run is not None and run != moved, "decided alone", after.id)


def _step_of(world: _After, approval: Approval) -> Any:
    run: Execution = world.get(EXECUTIONS.name, approval.execution_id)
    snapshot: DefinitionSnapshot = world.get(DEFINITIONS.name, (run.workflow_id, run.revision))
    return snapshot.definition.step(approval.step_name.rpartition(".")[2])


def _goes_back_seldom(world: _After, new: Approval) -> None:
    """The step went back at most as often as its definition allows. AP-31."""
    run: Execution = world.get(EXECUTIONS.name, new.execution_id)
    step = _step_of(world, new)
    outputs = [one.output for one in run.rounds_of(new.step_name)]
    revised = sum(isinstance(one, Mapping) and one.get("decision") == "revise" for one in outputs)
    most = step.on_revise.max if isinstance(step, ApprovalStep) and step.on_revise else 0
    require(revised <= most, "too many rounds", f"{run.id}/{new.step_name} {revised} of {most}")


def _redriven(world: _After, run: Execution) -> Results:
    old: Execution = world.get(EXECUTIONS.name, run.redrive_of)
    snapshot: DefinitionSnapshot = world.get(DEFINITIONS.name, (run.workflow_id, run.revision))
    return kept_results(old, run, snapshot.definition)


def _anything(world: _After, before: object, after: object) -> None:
    """The only promise about records of this kind is their version."""


def _state(world: _After, before: WorkflowState | None, after: WorkflowState | None) -> None:
    """
    The values of a workflow change with the result COMPLETED of the step that wrote them, in the
    same commit. SV-3.
    """
    if after is None or after.values == (before.values if before is not None else {}):
        return
    id, step, attempt = _last(after)
    run: Execution = world.get(EXECUTIONS.name, id)
    was: Execution | None = world.before(EXECUTIONS.name, id)
    result, earlier = run.step_results[step], was.step_results.get(step) if was else None
    completes = result.status is StepStatus.COMPLETED and result.attempts == attempt
    done = earlier is not None and earlier.status is StepStatus.COMPLETED
    require(completes and not done, "state without result", f"{step} of {id}, {attempt}")


def _writes_its_state(world: _After, before: Execution | None, after: Execution) -> None:
    """
    A completed step that counts has written the state of its workflow, unless the workflow was
    deleted.
    """
    for key, result in after.step_results.items():
        if result.status is not StepStatus.COMPLETED or not isinstance(result.output, Mapping):
            continue
        earlier = before.step_results.get(key) if before is not None else None
        new = earlier is None or earlier.status is not StepStatus.COMPLETED
        kept = after.redrive_of is not None and before is None
        done = [after.id, key, result.attempts]
        if result.output.get(COUNTED) != done or not new or kept:
            continue  # of a container the output is that of a step in it
        if world.get(WORKFLOWS.name, after.workflow_id) is not None:
            wrote = _last(world.get(STATES.name, after.workflow_id))
            require(wrote == done, "result without state", f"{done}, state of {wrote}")


def _last(state: WorkflowState | None) -> Any:
    return state.values.get("last") if state is not None else None


_CHECKS: Mapping[str, Callable[[_After, Any, Any], None]] = {
    EXECUTIONS.name: _execution,
    APPROVALS.name: _approval,
    ACCOUNTS.name: _anything,
    WORKFLOWS.name: _anything,
    WEBHOOKS.name: _anything,
    REPLAYS.name: _anything,
    STATES.name: _state,
}


def _no_group_too_full(tables: Tables, changes: Changes) -> None:
    """
    In a group of a workflow with a limit, no more executions hold a place than the limit. If the
    workflow refuses starts over the limit, waiting executions count, too. CC-1, CC-4.
    """
    limits = tables[LIMITS.name]
    if not limits:
        return
    skips = {id for id in limits if _skips(tables, id)}
    runs: Mapping[Any, Execution | None] = {**tables[EXECUTIONS.name], **changes[EXECUTIONS.name]}
    held = Counter(
        (run.workflow_id, run.concurrency_group)
        for run in runs.values()
        if run
        and run.concurrency_group
        and (run.fence or run.workflow_id in skips)
        and run.status not in EXECUTION.final
    )
    for (workflow_id, group), count in held.items():
        most = limits.get(workflow_id)
        require(most is None or count <= most, "group too full", f"{group} {count} of {most}")


def _skips(tables: Tables, workflow_id: Any) -> bool:
    revision = tables[WORKFLOWS.name][workflow_id].revision
    snapshot: DefinitionSnapshot = tables[DEFINITIONS.name][workflow_id, revision]
    limit = snapshot.definition.concurrency
    return limit is not None and limit.on_limit is OnLimit.SKIP


def _no_webhook_too_many(tables: Tables, changes: Changes) -> None:
    hooks: Mapping[Any, Webhook | None] = {**tables[WEBHOOKS.name], **changes[WEBHOOKS.name]}
    active = Counter(
        hook.owner_id for hook in hooks.values() if hook and hook.status is WebhookStatus.ACTIVE
    )
    for owner_id in sorted(active):
        plan: Tier = tables[ACCOUNTS.name][owner_id].plan
        most = WEBHOOKS_PER_ACCOUNT[plan]
        require(most is None or active[owner_id] <= most, "too many webhooks", owner_id)
