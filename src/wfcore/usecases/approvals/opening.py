"""
The opening of an approval between its step and the store: its times by the calendar, and its
attached files. AP-1, AP-29.
"""

from collections.abc import Sequence

from attrs import evolve

from wfcore.effects import Effect, OpenApproval, Outcome
from wfcore.model.approval import ApprovalStatus, Attachment
from wfcore.model.execution import Artifact, Execution
from wfcore.ports.store import Unit
from wfcore.rules.execution.given_files import latest
from wfcore.rules.execution.open_approval import by_the_calendar
from wfcore.time import DurationMs, EpochMs
from wfcore.usecases.audit.auditing import Origin, audit_of, note_decision
from wfcore.usecases.services import Services

BY_ITSELF = Origin(path="rule")
"""The origin of a rule's approval in the audit log."""


async def opened(
    services: Services,
    unit: Unit,
    outcome: Outcome[Execution],
    now: EpochMs,
    left: Sequence[Artifact],
) -> Outcome[Execution]:
    """
    The outcome with its new approvals in their stored form. *now*: the store's time; *left*:
    artifacts that the same unit stores and does not read back. Approvals by a rule are in the audit
    log. AP-35.
    """
    if not any(isinstance(one, OpenApproval) for one in outcome.effects):
        return outcome
    ahead = DurationMs(services.clock.deadline_now() - now)
    run, outcome = outcome.record, by_the_calendar(outcome, ahead)
    effects = [await _with_files(unit, run, one, left) for one in outcome.effects]
    for one in effects:
        if isinstance(one, OpenApproval) and one.approval.assents:
            before = evolve(one.approval, status=ApprovalStatus.PENDING, assents=())
            audit = audit_of("approve", before, one.approval)
            note_decision(services, unit, None, one.approval, audit, run, None, BY_ITSELF)
    return evolve(outcome, effects=tuple(effects))


async def _with_files(
    unit: Unit, run: Execution, effect: Effect, left: Sequence[Artifact]
) -> Effect:
    if not isinstance(effect, OpenApproval):
        return effect
    found: list[Attachment] = []
    for key in effect.attached:
        found += await _files_of(unit, run, key, left)
    return evolve(effect, approval=evolve(effect.approval, attachments=tuple(found)))


async def _files_of(
    unit: Unit, run: Execution, key: str, left: Sequence[Artifact]
) -> Sequence[Attachment]:
    """
    The artifacts of the last attempt of a step, by name; *left*: artifacts that the same unit
    stores.
    """
    stored = await unit.artifacts.of_execution(run.id)
    known = {one.id: one for one in (*stored, *left)}
    kept = [one for one in latest(run.step_results, known.values()) if one.step_name == key]
    return [_attachment(one) for one in sorted(kept, key=lambda one: (one.name, one.id))]


def _attachment(one: Artifact) -> Attachment:
    return Attachment(
        one.id,
        one.execution_id,
        one.step_name,
        one.name,
        one.size,
        one.content_type,
        one.sha256,
    )
