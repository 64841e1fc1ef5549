"""
What must hold after every restart. Each function returns what is wrong, in words that begin
with the kind of the violation.
"""

from collections.abc import Iterator, Mapping, Sequence

from proof.flows import Ledger
from proof.promises import Promises
from proof.world import Sight
from wfcore.model.event import Event
from wfcore.model.execution import Execution

ENDED = {"COMPLETED", "FAILED", "CANCELLED"}
RESTING = ENDED | {"INTERRUPTED", "AWAITING_APPROVAL"}
STEPS = {"work": ("first", "last"), "ask": ("first", "review", "last")}


def wrong(promises: Promises, ledger: Ledger, sight: Sight) -> Iterator[str]:
    """Everything that holds at any moment at which no request is under way."""
    yield from _executions(promises, sight)
    yield from _approvals(promises, sight)
    yield from _starts(ledger, sight)


def _executions(promises: Promises, sight: Sight) -> Iterator[str]:
    for tag, execution_id in promises.started.items():
        if sight.status(execution_id) is None:
            yield f"unknown: {execution_id} of {tag} was accepted"
    for execution_id in promises.cancelled:
        if (status := sight.status(execution_id)) != "CANCELLED":
            yield f"cancel undone: {execution_id} is {status}"
    rejected = {one.execution_id for one in sight.approvals.values() if one.status == "REJECTED"}
    for id, run in sight.executions.items():
        if run.status == "FAILED":
            yield f"failed: {id} {run.error}"
        if run.status == "CANCELLED" and id not in promises.to_cancel | rejected:
            yield f"cancelled by nobody: {id}"


def _approvals(promises: Promises, sight: Sight) -> Iterator[str]:
    for id, status in promises.decided.items():
        if (found := sight.approvals.get(id)) is None or found.status != status:
            yield f"decision undone: {id} was {status}, is {found and found.status}"
    for id, one in sight.approvals.items():
        possible = {"PENDING", *promises.asked.get(id, ())}
        if one.execution_id in promises.to_cancel:
            possible.add("CANCELLED")
        if one.status not in possible:
            yield f"decided by nobody: {id} is {one.status}, not one of {possible}"
        waits = sight.status(one.execution_id) == "AWAITING_APPROVAL"
        if waits != (one.status == "PENDING"):
            yield f"waiting: {id} is {one.status}, {sight.status(one.execution_id)}"


def _starts(ledger: Ledger, sight: Sight) -> Iterator[str]:
    for (execution_id, step), times in ledger.begun.items():
        if times > 1:
            yield f"step twice: {step} of {execution_id}"
        if execution_id not in sight.executions:
            yield f"ghost: {execution_id} ran, and nobody knows it"
    for tag, executions in ledger.executions_by_tag.items():
        if len(executions) > 1:
            yield f"start twice: {tag} is {executions}"


def not_interrupted(cut_off: set[str], promises: Promises, sight: Sight) -> Iterator[str]:
    """Executions whose step was killed are INTERRUPTED, or CANCELLED where that was asked."""
    for id in cut_off:
        status = sight.status(id)
        if status != "INTERRUPTED" and not (status == "CANCELLED" and id in promises.to_cancel):
            yield f"not interrupted: {id} is {status}"


def moved(before: Mapping[str, str], promises: Promises, sight: Sight) -> Iterator[str]:
    """What rested *before* (by execution) still does, unless somebody asked for a change."""
    asked = {one.execution_id for id, one in sight.approvals.items() if id in promises.asked}
    for id, status in before.items():
        excused = status not in ENDED and id in promises.to_cancel | asked
        if sight.status(id) != status and not excused:
            yield f"moved: {id} was {status}, is {sight.status(id)}"


def resting(sight: Sight) -> dict[str, str]:
    """The executions that do not move by themselves, with their status."""
    return {id: run.status.value for id, run in sight.executions.items() if run.status in RESTING}


def unlike_its_history(run: Execution, events: Sequence[Event]) -> Iterator[str]:
    """Events are numbered from 1 without gaps; exactly an ended one has a terminal event, last."""
    if [event.number for event in events] != list(range(1, len(events) + 1)):
        yield f"events: {run.id} has {[event.number for event in events]}"
    terminal = [
        event.number
        for event in events
        if event.kind.rpartition(".")[2].upper() in ENDED and event.kind.startswith("execution.")
    ]
    if terminal != ([len(events)] if run.status in ENDED else []):
        yield f"events: {run.id} is {run.status}, terminal events {terminal} of {len(events)}"


def unlike_the_ledger(run: Execution, ledger: Ledger) -> Iterator[str]:
    """What was started is on record; what COMPLETED has done each step once, to its end."""
    begun = {step for id, step in ledger.begun if id == run.id}
    if missing := begun - run.step_results.keys():
        yield f"not recorded: {missing} of {run.id}"
    if run.status != "COMPLETED":
        return
    for step in ("first", "last"):
        if not ledger.begun[run.id, step] == ledger.ended[run.id, step] == 1:
            yield f"incomplete: {step} of {run.id}, which is COMPLETED"
