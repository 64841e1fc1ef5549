"""
Verification of the audit log, and evidence of one execution. AL-2 to AL-7; decision 90.

A log is checked while a server runs: entries added in the meantime are left for the next check. If
retention deletes entries before they are read, the check starts again.
"""

from collections.abc import Sequence

from attrs import evolve, frozen

from wfcore.errors import Conflict, InvalidInput, NotFound
from wfcore.model.access import OPERATOR
from wfcore.model.approval import Approval
from wfcore.model.event import Anchor, AuditChain, ChainedEntry, ChainPoint
from wfcore.model.execution import Artifact, Execution
from wfcore.model.json import Json, JsonObject
from wfcore.ports.store import View
from wfcore.rules.audit.chain import (
    Fault,
    anchor_fault,
    end_fault,
    first_fault,
    read_entry,
    start_fault,
    starts_named,
)
from wfcore.rules.audit.evidence import Unfit, links_of, read_evidence, sealed
from wfcore.rules.auth.api_key import without_keys
from wfcore.rules.canonical import digest
from wfcore.rules.masking import NO_SECRETS, mask_text, secret_values
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import Origin, note
from wfcore.usecases.services import Services
from wfcore.usecases.starter_names import starter_names
from wfcore.usecases.unit_of_work import definition_of, retried
from wfcore.wire.approvals import approval_detail
from wfcore.wire.converter import plain
from wfcore.wire.executions import status_view
from wfcore.wire.workflows import definition_view

BATCH = 100
TRIES = 5
"""
The attempts of a check. Retention deletes a piece every few minutes: rarely during a check, never
during five checks in a row.
"""


_BEFORE_ALL = -(2**63)
"""A number below every possible number of an entry, even of an entry inserted by hand."""


@frozen
class AuditCheck:
    """
    The result of checking the log. *fault*: the first entry that does not match; None if all
    entries match.
    """

    chain: AuditChain
    fault: Fault | None

    @property
    def entries(self) -> int:
        """The number of entries."""
        return self.chain.end.number - self.chain.start.number


async def check_audit(services: Services, anchors: Sequence[Anchor] = ()) -> AuditCheck:
    """Read the whole audit log and check each entry, the log's end and *anchors*. AL-2, AL-4."""
    async with services.store.view() as view:
        for _ in range(TRIES):
            chain = await view.audit.chain()
            fault = await _fault(view, chain) or await _unanchored(services, view, chain, anchors)
            if fault is None or (await view.audit.chain()).start == chain.start:
                break
    return AuditCheck(chain, fault)


async def _fault(view: View, chain: AuditChain) -> Fault | None:
    """
    The first fault between the first stored entry (even before the start) and the entries after the
    end.
    """
    at, after = chain.start, _BEFORE_ALL
    starts: set[ChainPoint] = set()
    while at.number < chain.end.number:
        batch = await view.audit.chained(after, BATCH)
        batch = [entry for entry in batch if entry.number <= chain.end.number]
        at, fault = first_fault(chain.id, at, batch)
        if fault is not None:
            return fault
        if not batch:
            break
        starts.update(starts_named(batch))
        after = at.number
    return start_fault(chain, starts) or end_fault(chain, at) or await _behind(view, chain.end)


async def _behind(view: View, end: ChainPoint) -> Fault | None:
    """A fault if the log has an entry after its end that was not appended."""
    for entry in await view.audit.chained(end.number, 1):
        if (await view.audit.chain()).end.number < entry.number:
            return Fault(entry.number, None, "it was inserted: the log ends before it")
    return None


async def _unanchored(
    services: Services, view: View, chain: AuditChain, anchors: Sequence[Anchor]
) -> Fault | None:
    for anchor in anchors:
        found = await _hash_of(view, chain, anchor.number)
        now = services.clock.now()
        fault = anchor_fault(chain, anchor, found, services.policy.audit_ms, now)
        if fault is not None:
            return fault
    return None


async def _hash_of(view: View, chain: AuditChain, number: int) -> str | None:
    if number == chain.start.number:
        return chain.start.hash
    found = await view.audit.chained(number - 1, 1)
    return found[0].hash if found and found[0].number == number else None


async def audit_anchor(services: Services) -> Anchor:
    """The present end of the audit log, to be stored elsewhere. AL-4."""
    async with services.store.view() as view:
        chain = await view.audit.chain()
        found = await view.audit.chained(chain.end.number - 1, 1) if chain.end.number else ()
    at = read_entry(found[0].text).at if found else EpochMs(0)
    return Anchor(chain.id, chain.end.number, chain.end.hash, at)


@retried
async def write_evidence(
    services: Services, execution_id: str, anchors: Sequence[Anchor], origin: Origin
) -> str:
    """
    The text of a document with all records of one execution and the audit entries that verify them,
    up to *anchors* if given. The audit log gets an entry with the hash of the text. AL-6.

    Raises `NotFound` if neither the execution nor an entry about it exists, `InvalidInput` for
    anchors outside the log, `Conflict` if the log does not match.
    """
    document = await _document(services, execution_id, anchors)
    text = sealed(document)
    try:
        read_evidence(text, services.passkeys.verifies)
    except Unfit as error:
        raise Conflict(f"The audit log does not fit ({error}); see wfcore audit verify") from None
    async with services.store.unit() as unit:
        about: JsonObject = {"sha256": digest(text)}
        note(
            services,
            unit,
            "evidence.write",
            OPERATOR,
            execution_id,
            origin,
            about,
            execution_id=execution_id,
        )
        await unit.commit()
    return text


async def _document(services: Services, execution_id: str, anchors: Sequence[Anchor]) -> JsonObject:
    async with services.store.view() as view:
        own = await view.audit.of_execution(execution_id)
        run = await view.get(Execution, execution_id)
        if run is None and not own:
            raise NotFound("Execution")
        definition = await definition_of(view, run.workflow_id, run.revision) if run else None
        approvals = await view.approvals.of_execution(execution_id)
        artifacts = await view.artifacts.of_execution(execution_id)
        audit = await _audit(view, execution_id, own, anchors)
    names = await starter_names(services, [run]) if run else {}
    return {
        "writtenAt": services.clock.now(),
        "executionId": execution_id,
        "execution": plain(status_view(run, names)) if run else None,
        "definition": plain(definition_view(run, definition)) if run and definition else None,
        "approvals": [plain(approval_detail(_masked(one, run))) for one in approvals],
        "artifacts": [_artifact(one) for one in artifacts],
        "audit": audit,
    }


def _masked(approval: Approval, run: Execution | None) -> Approval:
    """
    The approval with its decided rows unchanged. Comments are masked, because they may contain
    secrets.
    """
    secrets = secret_values(run) if run else NO_SECRETS

    def masked(text: str | None) -> str | None:
        return without_keys(mask_text(text, secrets)) if text else text

    history = tuple(evolve(one, comment=masked(one.comment)) for one in approval.history)
    return evolve(approval, comment=masked(approval.comment), history=history)


def _artifact(artifact: Artifact) -> Json:
    return {
        "id": artifact.id,
        "name": artifact.name,
        "stepName": artifact.step_name,
        "size": artifact.size,
        "sha256": artifact.sha256,
    }


async def _audit(
    view: View, execution_id: str, own: Sequence[ChainedEntry], anchors: Sequence[Anchor]
) -> JsonObject:
    """The part of the chain that contains all of *own* and reaches *anchors*."""
    chain = await view.audit.chain()
    for anchor in anchors:
        reached = chain.start.number <= anchor.number <= chain.end.number
        if anchor.chain != chain.id or not reached:
            fix = f"the log reaches from entry {chain.start.number} to {chain.end.number}"
            raise InvalidInput("--anchor", f"{fix}, not to {anchor.number} of {anchor.chain}")
    numbers = [entry.number for entry in own] + [anchor.number for anchor in anchors]
    last = max(numbers, default=0)
    at = max(min(numbers, default=chain.end.number + 1) - 1, chain.start.number)
    after = end = chain.end
    links: list[Json] = []
    while at < last:
        batch = [one for one in await view.audit.chained(at, BATCH) if one.number <= last]
        if not batch:
            break
        if not links:
            after = ChainPoint(at, batch[0].previous)
        links += links_of(execution_id, batch)
        end = batch[-1].point
        at = end.number
    return {"chain": chain.id, "after": _point(after), "end": _point(end), "links": links}


def _point(point: ChainPoint) -> Json:
    return {"number": point.number, "hash": point.hash}
