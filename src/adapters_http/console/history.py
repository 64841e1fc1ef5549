"""The history of an execution in words: one sentence for each event, with its icon."""

from adapters_http.console.language import N_, _
from wfcore.model.event import EventKind

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
