"""The receipts of a signed release, as artifacts of the execution. SR-2."""

from collections.abc import Sequence
from io import BytesIO

from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.execution import Execution
from wfcore.model.passkey import SignedReceipt
from wfcore.ports.runtime import LeftFile
from wfcore.ports.store import Unit
from wfcore.rules.approval.machine import receipts_of
from wfcore.rules.canonical import rfc8785
from wfcore.rules.receipt import receipt_document
from wfcore.time import EpochMs
from wfcore.usecases.artifacts import artifact_of
from wfcore.usecases.services import Services


async def attach_receipts(
    services: Services, unit: Unit, run: Execution, approval: Approval, now: EpochMs
) -> Sequence[LeftFile]:
    """
    Store each receipt of a released approval as an artifact of its step: `receipt-1.json`, and so
    on. Returns the files. SR-2. Raises `StoreUnavailable`.
    """
    if approval.status is not ApprovalStatus.APPROVED:
        return ()
    numbered = enumerate(receipts_of(approval), 1)
    files = [await _file(services, run.id, number, one, now) for number, one in numbered]
    for file in files:
        unit.put(artifact_of(run, approval.step_name, file, now))
    return files


async def _file(
    services: Services, execution_id: str, number: int, receipt: SignedReceipt, now: EpochMs
) -> LeftFile:
    id, name = services.ids.new("art", now), f"receipt-{number}.json"
    content = BytesIO(rfc8785(receipt_document(receipt)).encode())
    stored = await services.files.store(execution_id, id, content, name)
    kind = "application/json"
    return LeftFile(id, name, stored.storage_key, stored.size, kind, stored.sha256, True)
