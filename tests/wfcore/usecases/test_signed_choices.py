"""Signed releases beside all else that an approval can be: stages, answers, files, going back."""

import hashlib
import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from adapters_store.files import LocalFiles
from wfcore.errors import Forbidden, NotFound, StoreUnavailable
from wfcore.model.access import OPERATOR
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.notice import NoticeKind
from wfcore.model.workflow import (
    ApprovalStep,
    Assurance,
    Column,
    ColumnType,
    GroupSpec,
    OnRevise,
    Stage,
)
from wfcore.ports.files import StoredFile
from wfcore.ports.runtime import LeftFile
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.approval.machine import Approve, Reject, Revise, receipts_of
from wfcore.rules.canonical import rfc8785
from wfcore.rules.receipt import receipt_document, receipt_fault
from wfcore.usecases.accounts import passkeys
from wfcore.usecases.approvals import approvals
from wfcore.usecases.artifacts import list_artifacts
from wfcore.usecases.audit.auditing import UNKNOWN

from .conftest import World, code
from .test_failing_triggers import told
from .test_signed_release import ROWS, VERIFIES, Person, deed, now, opened, signed_in, signing

__all__ = ["signing"]
VERIFY = Path(__file__).parents[3] / "docs/signed-release/verify.py"


def is_signed_by(approval: Approval, *people: Person) -> bool:
    """Whether the receipts fit, are of the released rows, and of exactly these people."""
    receipts = receipts_of(approval)
    assert [receipt_fault(one, VERIFIES) for one in receipts] == [None] * len(people)
    assert {one.statement["itemsHash"] for one in receipts} == {items_hash(approval)}
    signers = [one.statement["accountId"] for one in receipts]
    return signers == [one.who.account.id for one in people]


def verdict(receipt: Path, rows: Path) -> str:
    """The first words of the verifier that auditors get."""
    argv = [sys.executable, VERIFY, receipt, rows]
    return subprocess.run(argv, capture_output=True, text=True).stdout.partition(" with")[0]


async def test_each_receipt_is_an_artifact(signing: World, tmp_path: Path) -> None:
    """A file for each person, which the verifier without wfcore accepts as it is. SR-2."""
    ann, bob = await signed_in(signing, "ann"), await signed_in(signing, "bob")
    both = ("ann@example.org", "bob@example.org")
    approval = await opened(signing, ann.who, approvers=both, required_approvals=2)
    await ann.approve(deed(approval))
    run_id = approval.execution_id
    assert await list_artifacts(signing.services, ann.who, run_id) == []
    after = await bob.approve(deed(approval))
    files = sorted(await list_artifacts(signing.services, ann.who, run_id), key=lambda f: f.name)
    assert [one.name for one in files] == ["receipt-1.json", "receipt-2.json"]
    rows = tmp_path / "rows.json"
    rows.write_text(json.dumps({group.name: list(group.items) for group in after.groups}))
    for file, receipt in zip(files, receipts_of(after), strict=True):
        assert (file.step_name, file.attempt, file.previewable) == ("review", 1, True)
        chunks = signing.services.files.read(file.storage_key, 0, file.size)
        content = b"".join([one async for one in chunks])
        assert content.decode() == rfc8785(receipt_document(receipt))
        assert hashlib.sha256(content).hexdigest() == file.sha256
        copy = tmp_path / file.name
        copy.write_bytes(content)
        assert verdict(copy, rows) == f"fits: signed by {receipt.statement['accountId']}"


class Unavailable(LocalFiles):
    """Files of which none can be stored."""

    async def store(self, *about: Any, **more: Any) -> StoredFile:
        raise StoreUnavailable("no room")


async def test_no_release_is_without_its_file(signing: World) -> None:
    """While files cannot be stored nothing is decided; the person confirms again. SR-2."""
    ann = await signed_in(signing, "ann")
    approval = await opened(signing, ann.who)
    services = evolve(signing.services, files=Unavailable(signing.services.files.root))
    with pytest.raises(StoreUnavailable):
        await evolve(ann, world=evolve(signing, services=services)).approve(deed(approval))
    assert (await now(signing, approval)).status is ApprovalStatus.PENDING
    assert await list_artifacts(signing.services, ann.who, approval.execution_id) == []
    assert is_signed_by(await ann.approve(deed(approval)), ann)


async def test_a_rejection_leaves_no_file(signing: World) -> None:
    """What is rejected leaves no receipt. SR-2."""
    ann = await signed_in(signing, "ann")
    approval = await opened(signing, ann.who)
    await ann.decide(deed(approval, Reject()))
    assert await list_artifacts(signing.services, ann.who, approval.execution_id) == []


async def test_each_stage_signs_when_it_is_asked(signing: World) -> None:
    """Nobody gets a challenge before their stage; each stage leaves its receipts. SR-2, AP-33."""
    ann, bob = await signed_in(signing, "ann"), await signed_in(signing, "bob")
    stages = (Stage(("ann@example.org",)), Stage(("bob@example.org",)))
    approval = await opened(signing, ann.who, stages=stages)
    with pytest.raises(NotFound):
        await bob.begin(deed(approval))
    assert (await ann.approve(deed(approval))).status is ApprovalStatus.PENDING
    with pytest.raises(Forbidden):
        await ann.begin(deed(await now(signing, approval)))
    after = await bob.approve(deed(await now(signing, approval)))
    assert after.status is ApprovalStatus.APPROVED
    assert is_signed_by(after, ann, bob)


async def test_answers_are_signed(signing: World) -> None:
    """The statement has them; other answers than the signed ones release nothing. SR-1."""
    ann = await signed_in(signing, "ann")
    fields = (Column("limit", "Limit", ColumnType.NUMBER, required=True),)
    approval = await opened(signing, ann.who, fields=fields)
    decision = deed(approval, Approve(answers={"limit": 2**53 + 1}))
    confirmed = await ann.take(*ann.sign(await ann.begin(decision)))
    other = evolve(decision, decision=Approve(answers={"limit": 2**53}), confirmed=confirmed)
    with pytest.raises(Forbidden, match="what was signed"):
        await ann.decide(other)
    after = await ann.decide(evolve(decision, confirmed=confirmed))
    assert is_signed_by(after, ann)
    assert receipts_of(after)[0].statement["answers"] == {"limit": 2**53 + 1}


async def test_attachments_are_signed(signing: World) -> None:
    """`itemsHash` covers the attached files, so the signature does, too. SR-1, AP-29."""
    ann = await signed_in(signing, "ann")
    group = GroupSpec("rows", "Rows", list(ROWS))
    asks = ApprovalStep(
        "review", "Look", groups=(group,), attachments=("make",), assurance=Assurance.PASSKEY
    )
    run_id = await signing.start(ann.who, await signing.workflow(ann.who, code("make"), asks))
    lease, _ = await signing.take()
    stored = await signing.services.files.store(run_id, "art_9", BytesIO(b"%PDF"), "list.pdf")
    about = (stored.storage_key, stored.size, "application/pdf", stored.sha256, True)
    await signing.finish(lease, "make", files=(LeftFile("art_9", "list.pdf", *about),))
    (approval,) = await approvals.approvals_of(signing.services, ann.who, run_id)
    assert [one.name for one in approval.attachments] == ["list.pdf"]
    after = await ann.approve(deed(approval))
    assert is_signed_by(after, ann)
    forged = evolve(
        after, attachments=tuple(evolve(one, sha256="0" * 64) for one in after.attachments)
    )
    assert items_hash(forged) != receipts_of(after)[0].statement["itemsHash"]


async def test_after_going_back_the_new_question_is_signed(signing: World) -> None:
    """Asking for changes needs no passkey; what is released later has a signature of it. SR-1."""
    ann = await signed_in(signing, "ann")
    group = GroupSpec("rows", "Rows", list(ROWS))
    asks = ApprovalStep(
        "review",
        "Look",
        groups=(group,),
        assurance=Assurance.PASSKEY,
        on_revise=OnRevise("make"),
    )
    flow = await signing.workflow(ann.who, code("make"), asks, code("after"))
    run_id = await signing.start(ann.who, flow)
    lease, _ = await signing.take()
    await signing.finish(lease, "make")
    (first,) = await approvals.approvals_of(signing.services, ann.who, run_id)
    await ann.decide(deed(first, Revise(), comment="sort them"))
    lease, _ = await signing.take()
    signing.clock.advance(1)
    await signing.finish(lease, "make")
    second, _ = await approvals.approvals_of(signing.services, ann.who, run_id)
    after = await ann.approve(deed(second))
    assert is_signed_by(after, ann)
    assert receipts_of(after)[0].statement["approvalId"] == second.id != first.id
    (file,) = [
        one
        for one in await list_artifacts(signing.services, ann.who, run_id)
        if one.name.startswith("receipt")
    ]
    assert file.attempt == 2


async def test_registering_and_removing_is_mailed(signing: World) -> None:
    """The person hears of each change, also of an operator's; a new name is no news. SR-5."""
    policy = evolve(signing.services.policy, channels=frozenset({"mail"}))
    world = evolve(signing, services=evolve(signing.services, policy=policy))
    ann = await signed_in(world, "ann")
    id, account = ann.key.credential_id, ann.who.account.id
    await passkeys.rename_passkey(world.services, ann.who, id, "blue", UNKNOWN)
    await passkeys.remove_passkey(world.services, OPERATOR, account, id, UNKNOWN)
    notices = reversed(await told(world, NoticeKind.PASSKEY_CHANGED))
    assert [(one.to, one.about["change"], one.about["name"]) for one in notices] == [
        ("ann@example.org", "register", "a key"),
        ("ann@example.org", "remove", "blue"),
    ]
