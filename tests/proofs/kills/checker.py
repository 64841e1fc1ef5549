"""
What must hold after every restart. Each function returns what is wrong, in words that begin
with the kind of the violation. What concerns single executions is in `proof.records`.
"""

from collections.abc import Iterable, Iterator, Mapping, Set

from tests.proofs.kills.flows import COUNTING, NEVER_AGAIN, STATEFUL, Attempt, Ledger
from tests.proofs.kills.promises import Promises
from tests.proofs.kills.world import Sight
from wfcore.model.execution import Awaits, Execution, StepStatus, TriggerSource

ENDED = {"COMPLETED", "FAILED", "CANCELLED"}
RESTING = ENDED | {"INTERRUPTED", "AWAITING_APPROVAL"}
CUT_SHORT = {"INTERRUPTED", "CANCELLED"}
RESUMES = 3
"""How often the service goes on by itself with what it may resume. EX-12."""
RESUMED = {TriggerSource.MANUAL, TriggerSource.SCHEDULE, TriggerSource.DELAYED_COMPLETION}
"""What starts families that the service resumes; those of API and webhook it never does."""


def wrong(promises: Promises, ledger: Ledger, sight: Sight) -> Iterator[str]:
    """Everything that holds at any moment at which no request is under way."""
    yield from _executions(promises, sight)
    yield from _approvals(promises, sight)
    yield from _starts(ledger, sight)
    yield from _releases(promises, ledger, sight)
    yield from _states(sight)
    yield from _counted(sight)
    yield from _read(ledger)
    yield from _untold(sight)


def _executions(promises: Promises, sight: Sight) -> Iterator[str]:
    for tag, execution_id in (promises.started | promises.by_hand).items():
        if sight.status(execution_id) is None:
            yield f"unknown: {execution_id} of {tag} was accepted"
    for execution_id in promises.cancelled:
        if (status := sight.status(execution_id)) != "CANCELLED":
            yield f"cancel undone: {execution_id} is {status}"
    rejected = {one.execution_id for one in sight.approvals.values() if one.status == "REJECTED"}
    for id, run in sight.executions.items():
        if run.status == "FAILED":
            yield f"failed: {id} {run.error}"
        asked = id in promises.to_cancel | rejected or sight.status(run.parent_id) == "CANCELLED"
        if run.status == "CANCELLED" and not asked:
            yield f"cancelled by nobody: {id}"


def _approvals(promises: Promises, sight: Sight) -> Iterator[str]:
    for id, answer in promises.decided.items():
        if (found := sight.approvals.get(id)) is None or found.status != answer.status:
            yield f"decision undone: {id} was {answer.status}, is {found and found.status}"
    for id, one in sight.approvals.items():
        possible = {"PENDING", *(answer.status for answer in promises.asked.get(id, ()))}
        if one.execution_id in promises.to_cancel:
            possible.add("CANCELLED")
        if one.status not in possible:
            yield f"decided by nobody: {id} is {one.status}, not one of {possible}"
        run = sight.executions.get(one.execution_id)
        if run is None or _waits(run, one.step_name, id) != (one.status == "PENDING"):
            yield f"waiting: {id} is {one.status}, its execution {run and run.status}"


def _waits(run: Execution, step: str, approval_id: str) -> bool:
    """Whether the step waits for that approval, and the execution is not over."""
    result = run.step_results.get(step)
    asks = result is not None and result.status is StepStatus.AWAITING_APPROVAL
    waits = asks and result is not None and result.approval_id == approval_id
    alone = run.workflow_name == "ask" and run.status != "AWAITING_APPROVAL"
    return waits and run.status not in ENDED and not alone


def _starts(ledger: Ledger, sight: Sight) -> Iterator[str]:
    for attempt, times in ledger.begun.items():
        run = sight.executions.get(attempt.execution_id)
        if times > 1:
            yield f"step twice: {attempt} {times} times"
        if run is None:
            yield f"ghost: {attempt.execution_id} ran, and nobody knows it"
        elif attempt.number > 1 + run.resumes:
            yield f"step twice: {attempt} of {run.id}, resumed {run.resumes} times"
        elif run.resumes > (RESUMES if _is_resumed(run, sight) else 0):
            yield f"step twice: {run.id} of {run.trigger_source}, resumed {run.resumes} times"
    for tag, executions in ledger.executions_by_tag.items():
        if len(executions) > 1:
            yield f"start twice: {tag} is {executions}"


def _is_resumed(run: Execution, sight: Sight) -> bool:
    """The promise of an execution: its root's, unless its definition refuses. EX-24, EX-25."""
    if run.workflow_name in NEVER_AGAIN:
        return False
    while run.parent_id is not None:
        run = sight.executions[run.parent_id]
    return run.trigger_source in RESUMED


def _states(sight: Sight) -> Iterator[str]:
    """The state of a workflow is that of a step whose result is COMPLETED, as soon as one is."""
    completed = {
        f"{id} {result.attempts}"
        for id, run in sight.executions.items()
        if run.workflow_name == STATEFUL and (result := run.step_results.get("last")) is not None
        if result.status is StepStatus.COMPLETED
    }
    before, after = sight.states
    if before is not None and before not in completed:
        yield f"state without result: {before}"
    if completed and after is None:
        yield f"result without state: {len(completed)} completed"


def _counted(sight: Sight) -> Iterator[str]:
    """The state of the counting flow is the number of its steps whose result is COMPLETED."""
    results = (
        run.step_results.get("last")
        for run in sight.executions.values()
        if run.workflow_name == COUNTING
    )
    counted = sum(one is not None and one.status is StepStatus.COMPLETED for one in results)
    before, after = sight.counts
    if not before <= counted <= after:
        yield f"state without result: {before} to {after}, {counted} have counted"


def _read(ledger: Ledger) -> Iterator[str]:
    """A step reads the file that the step before it left, which holds the tag of the start."""
    for id, text in ledger.read.items():
        if id not in ledger.executions_by_tag.get(text, set()):
            yield f"other file: {id} has read {text}"


def mails(sight: Sight, taken: Iterable[tuple[str, str]]) -> Iterator[str]:
    """
    Each execution sends one message, however often it is handed over; a step that completed has
    sent it. *taken*: the execution that the subject names, and the `Message-ID` of each mail.
    """
    sent: dict[str, set[str]] = {}
    for subject, id in taken:
        sent.setdefault(subject, set()).add(id)
    for id, messages in sent.items():
        if len(messages) > 1 or id not in sight.executions:
            yield f"mailed twice: {id} as {messages}"
    for id, run in sight.executions.items():
        result = run.step_results.get("tell")
        if result is not None and result.status is StepStatus.COMPLETED and id not in sent:
            yield f"never mailed: {id}"


def _waits_for_mail(run: Execution) -> bool:
    return any(one.awaits is Awaits.MAIL for one in run.step_results.values())


def _releases(promises: Promises, ledger: Ledger, sight: Sight) -> Iterator[str]:
    """The step behind a question gets exactly the rows that the one acknowledged yes let go."""
    for id, one in sight.approvals.items():
        given = ledger.released.get(one.execution_id)
        asked = [answer for answer in promises.asked.get(id, ()) if answer.status == "APPROVED"]
        said = [promises.decided[id]] if id in promises.decided else asked
        if given is not None and given not in {answer.released for answer in said}:
            yield f"other rows: {one.execution_id} was given {given}, let go was {said}"


def under_way(cut_off: Set[Attempt], sight: Sight) -> Iterator[Attempt]:
    """Killed attempts of which the server does not know yet that they are."""
    for attempt in cut_off:
        run = sight.executions.get(attempt.execution_id)
        result = run.step_results.get(attempt.step) if run else None
        if result is None or (result.attempts == attempt.number and result.in_flight):
            yield attempt


def not_interrupted(cut_off: Set[Attempt], sight: Sight) -> Iterator[str]:
    """
    A killed attempt is on record as INTERRUPTED, and so is its execution, unless it was
    cancelled. What the service resumes may have gone on with another attempt.
    """
    for attempt in cut_off:
        run = sight.executions.get(attempt.execution_id)
        result = run.step_results.get(attempt.step) if run else None
        if run is None or result is None:
            yield f"not recorded: {attempt}"
        elif result.attempts == attempt.number and result.status not in CUT_SHORT:
            yield f"not interrupted: {attempt} is {result.status}"
        if run and not _is_resumed(run, sight) and run.status not in CUT_SHORT:
            yield f"not interrupted: {run.id} is {run.status}"


def moved(before: Mapping[str, str], promises: Promises, sight: Sight) -> Iterator[str]:
    """What rested *before* (by id) still does, unless somebody asked for a change."""
    asked = {one.execution_id for id, one in sight.approvals.items() if id in promises.asked}
    for id, status in before.items():
        if id in sight.approvals:
            continue  # who may have decided it is asked in `wrong`
        run = sight.executions.get(id)
        excused = status not in ENDED and {id, run and run.parent_id} & (asked | promises.to_cancel)
        if sight.status(id) != status and not excused:
            yield f"moved: {id} was {status}, is {sight.status(id)}"


def resting(sight: Sight) -> dict[str, str]:
    """What does not move by itself, with its status: executions, and open approvals."""
    still = {id: run for id, run in sight.executions.items() if rests(run, sight)}
    runs = {id: run.status.value for id, run in still.items() if run.status in RESTING}
    open = {id: "PENDING" for id, one in sight.approvals.items() if one.status == "PENDING"}
    return runs | open


def rests(run: Execution, sight: Sight) -> bool:
    """Whether it waits for people, for its child, or for ever."""
    if run.status == "INTERRUPTED":
        return not _is_resumed(run, sight) or run.resumes >= RESUMES
    waits = run.worker is None and (run.due_at is None or _waits_for_mail(run))
    return run.status in RESTING or (run.status == "RUNNING" and waits)


def not_over(sight: Sight, before: Mapping[str, str]) -> Iterator[str]:
    """
    When the grace is over every execution has ended: what was INTERRUPTED says so, and with it
    what waited for its child. Nothing else has moved.
    """
    for id, run in sight.executions.items():
        if run.status not in ENDED:
            yield f"stuck: {id} is {run.status}"
        elif id not in before and run.status == "COMPLETED":
            continue  # what went on, and what a trigger started since
        elif before.get(id) in ENDED and run.status != before[id]:
            yield f"moved: {id} was {before[id]}, is {run.status}"
        elif before.get(id) not in ENDED and not _given_up(run, sight):
            yield f"failed: {id} was {before.get(id)}, is {run.status} {run.error}"


def _given_up(run: Execution, sight: Sight) -> bool:
    if run.status == "CANCELLED":
        return sight.status(run.parent_id) == "FAILED"
    return "Execution interrupted" in (run.error or "")


def orphans(sight: Sight) -> Iterator[str]:
    """At rest: what has ended has no children left, and who waits for a child has one."""
    for id, run in sight.executions.items():
        if run.status not in ENDED and sight.status(run.parent_id) in ENDED:
            yield f"orphan: {id} is {run.status}, what started it is over"
        for child in _children(run):
            if child not in sight.executions:
                yield f"orphan: {id} waits for {child}, which nobody knows"


def _untold(sight: Sight) -> Iterator[str]:
    """Who waits for a child learns of its end in the same moment. Children are seen first."""
    for id, run in sight.executions.items():
        for child in _children(run):
            if sight.status(child) in ENDED:
                yield f"untold: {id} waits for {child}, which is {sight.status(child)}"


def _children(run: Execution) -> list[str]:
    """What it waits for."""
    return [one.open_child for one in run.step_results.values() if one.open_child]
