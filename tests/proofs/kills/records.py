"""Whether what is on record of one execution fits to itself, and to the ledger."""

from collections.abc import Iterator, Sequence

from tests.proofs.kills.checker import ENDED
from tests.proofs.kills.flows import STEPS, Attempt, Ledger
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution


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


def unlike_the_ledger(run: Execution, events: Sequence[Event], ledger: Ledger) -> Iterator[str]:
    """
    What was started is on record, each attempt once; what COMPLETED has done each step to its
    end, and each round of its loops.
    """
    told = [
        Attempt(run.id, str(event.data["step"]), int(str(event.data["attempt"])))
        for event in events
        if event.kind is EventKind.STEP_STARTED
    ]
    if len(told) != len(set(told)):
        yield f"events: {run.id} started twice: {told}"
    begun = {attempt for attempt in ledger.begun if attempt.execution_id == run.id}
    if missing := begun - set(told):
        yield f"not recorded: {missing}"
    if run.status != "COMPLETED":
        return
    for step in STEPS[run.workflow_name]:
        last = Attempt(run.id, step, run.step_results[step].attempts)
        if not ledger.begun[last] == ledger.ended[last] == 1:
            yield f"incomplete: {last}, which is COMPLETED"
