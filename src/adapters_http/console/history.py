"""
The history of an execution in words: one sentence for each event, with its icon. What happened to
a step, and to the steps inside of it, is folded into one entry.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

from attrs import frozen

from adapters_http.console.language import N_, _
from wfcore.model.event import EventKind
from wfcore.model.workflow import Definition, walk
from wfcore.rules.execution.scope import name_of
from wfcore.wire.events import EventView

_SAID = {
    EventKind.EXECUTION_PENDING: ("executions", N_("Accepted")),
    EventKind.EXECUTION_RUNNING: ("start", N_("Running")),
    EventKind.EXECUTION_AWAITING_APPROVAL: ("awaiting_approval", N_("Waits for an approval")),
    EventKind.EXECUTION_INTERRUPTED: ("interrupted", N_("Interrupted: its worker is gone")),
    EventKind.EXECUTION_COMPLETED: ("completed", N_("Completed")),
    EventKind.EXECUTION_FAILED: ("failed", N_("Failed at {step}")),
    EventKind.EXECUTION_CANCELLED: ("cancelled", N_("Cancelled")),
    EventKind.FAILURE_STARTED: ("redo", N_("The steps for a failure begin")),
    EventKind.STEP_STARTED: ("start", N_("{step} began")),
    EventKind.STEP_COMPLETED: ("completed", N_("{step} completed")),
    EventKind.STEP_FAILED: ("failed", N_("{step} failed")),
    EventKind.STEP_SKIPPED: ("skipped", N_("{step} was skipped")),
    EventKind.STEP_RETRYING: ("redo", N_("{step} failed and is tried again")),
    EventKind.STEP_POSTPONED: ("delay", N_("{step} waits for its time")),
    EventKind.STEP_LOG: ("audit", N_("{step} wrote lines")),
    EventKind.APPROVAL_CREATED: ("approval", N_("{step} asked for a decision")),
    EventKind.APPROVAL_ASSENTED: ("approval", N_("{who} agreed to {step}")),
    EventKind.APPROVAL_DELEGATED: ("people", N_("{who} handed {step} on")),
    EventKind.APPROVAL_ESCALATED: ("people", N_("{step} went to further approvers")),
    EventKind.APPROVAL_REMINDER: ("notices", N_("A reminder of {step} was sent")),
    EventKind.APPROVAL_APPROVED: ("completed", N_("{who} approved {step}")),
    EventKind.APPROVAL_REJECTED: ("rejected", N_("{who} rejected {step}")),
    EventKind.APPROVAL_REVISED: ("revised", N_("{who} asked for changes at {step}")),
    EventKind.APPROVAL_CANCELLED: ("cancelled", N_("The question of {step} was withdrawn")),
    EventKind.ARTIFACT_CREATED: ("download", N_("{step} stored a file")),
    EventKind.NOTICE_FAILED: ("notices", N_("A notice could not be sent")),
}


def said(kind: EventKind, who: str | None) -> tuple[str, str, str | None]:
    """
    The icon of an event, and its sentence before and after the name of the step; None for a
    sentence that names no step. *who*: the person of a decision.
    """
    icon, text = _SAID[kind]
    before, step, after = _(text).replace("{who}", who or _("Nobody in time")).partition("{step}")
    return icon, before, after if step else None


@frozen
class FoldedEvents:
    """
    Events after each other, the newest first; of more than one, all are about the same step of the
    sequence, or about steps inside of it. `id`: stays the same while the entry grows. `main`: the
    event whose sentence stands for all. `tries`: how often the step was begun, as far as the events
    show it.
    """

    id: str
    main: EventView
    events: Sequence[EventView]
    tries: int


def outermost(definition: Definition | None) -> Mapping[str, str]:
    """For each step of *definition* the name of the step of the sequence that contains it."""
    if definition is None:
        return {}
    tops = (*definition.steps, *definition.on_failure)
    return {inner.name: top.name for top in tops for _, inner in walk((top,))}


def entries(history: Sequence[EventView], outer: Mapping[str, str]) -> Sequence[FoldedEvents]:
    """The events of *history*, oldest first, as entries, the newest first. *outer*: `outermost`."""
    found, seen = list[FoldedEvents](), Counter[str]()
    for about, events in groupby(history, key=lambda event: _about(event, outer)):
        if about is None:
            found += map(_single, events)
            continue
        seen[about] += 1
        found.append(_entry(about, seen[about], list(events)[::-1]))
    return found[::-1]


def _about(event: EventView, outer: Mapping[str, str]) -> str | None:
    """The step of the sequence that *event* is about; None for an event of the execution."""
    if event.kind.startswith("execution."):
        return None
    return outer.get(name_of(str(event.data.get("step", ""))))


def _single(event: EventView) -> FoldedEvents:
    return FoldedEvents(f"event-{event.number}", event, [event], 1)


def _entry(about: str, time: int, events: Sequence[EventView]) -> FoldedEvents:
    own = [one for one in events if one.data.get("step") == about]
    main = next((one for one in own if one.kind not in _BESIDE), events[0])
    tries = sum(one.kind == EventKind.STEP_RETRYING for one in own) + 1
    return FoldedEvents(f"entry-{about}-{time}", main, events, tries)


_BESIDE = (EventKind.STEP_LOG, EventKind.ARTIFACT_CREATED)
"""The kinds of events that say little about what became of a step."""
