"""Evidence of signed releases: what was changed is named. SR-8."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters_runtime.passkeys import verifies
from tests.support.authenticator import flipped
from wfcore.rules.approval.agreement import hash_of
from wfcore.rules.approval.machine import Approve
from wfcore.rules.audit.evidence import Unfit, key_lines, keys_in, read_evidence, sealed
from wfcore.usecases.audit.auditing import UNKNOWN
from wfcore.usecases.audit.evidence import write_evidence

from .conftest import World
from .test_signed_choices import verdict
from .test_signed_release import ROWS, deed, opened, signed_in, signing

__all__ = ["signing"]


async def written(world: World) -> str:
    """Evidence of rows that Ann changed and signed, and Bob signed after her."""
    ann, bob = await signed_in(world, "ann"), await signed_in(world, "bob")
    both = {"approvers": ("ann@example.org", "bob@example.org"), "required_approvals": 2}
    approval = await opened(world, ann.who, **both)
    after = await ann.approve(deed(approval, Approve({"rows": ROWS[:1]})))
    await bob.approve(deed(after))
    return await write_evidence(world.services, approval.execution_id, (), UNKNOWN)


async def test_it_fits_and_names_its_keys(signing: World) -> None:
    """Both receipts are in it; a key counts as known only if --trust names it. SR-8."""
    document = read_evidence(await written(signing), verifies)
    (approval,) = document["approvals"]
    assert len(approval["receipts"]) == 2
    first, second = used = keys_in(document)
    told = key_lines(used, {(first.account_id, first.public_key)})
    assert told[0].endswith("key named by --trust")
    assert told[1].endswith("key known only from this file (--trust)")
    swapped = key_lines(used, {(first.account_id, second.public_key)})
    assert all("only from this file" in line for line in swapped)


async def test_the_short_verifiers_take_what_evidence_has(signing: World, tmp_path: Path) -> None:
    """Receipts and rows are taken from it as docs/signed-release.md says. SR-2, SR-8."""
    (approval,) = json.loads(await written(signing))["approvals"]
    rows, receipt = tmp_path / "rows.json", tmp_path / "receipt.json"
    released = {one["name"]: one["items"] for one in approval["reviewableGroups"]}
    for changed in (False, True):
        if changed:
            released["rows"][0]["amount"] = 99
        rows.write_text(json.dumps(released))
        for one in approval["receipts"]:
            receipt.write_text(json.dumps(one))
            fits = f"fits: signed by {one['statement']['accountId']}"
            wrong = "the rows are not the signed ones"
            assert verdict(receipt, rows).strip() == (wrong if changed else fits)


def refusal(text: str, change: Callable[[Any, Any], Any]) -> str:
    """Why evidence is refused after *change* to its approval and links, with all hashes anew."""
    document = json.loads(text)
    links = [one for one in document["audit"]["links"] if not isinstance(one, str)]
    change(document["approvals"][0], links)
    document.pop("hash")
    with pytest.raises(Unfit) as unfit:
        read_evidence(sealed(document), verifies)
    return str(unfit.value)


def _receipt(name: str, value: Any) -> Callable[[Any, Any], Any]:
    def change(approval: Any, links: Any) -> None:
        for one in (approval["receipts"][0], approval["history"][1]["receipt"]):
            one[name] = value(one[name])

    return change


async def test_what_was_changed_is_named(signing: World) -> None:
    """A row, a receipt, a comment: none can be another one, also with hashes made anew. SR-8."""
    text = await written(signing)

    def row(approval: Any, links: Any) -> None:
        group = approval["reviewableGroups"][0]
        group["items"][0]["amount"] = 1
        approval["itemsHash"] = hash_of({group["name"]: group["items"]})

    assert "rows" in refusal(text, row)
    assert "line 2" in refusal(text, _receipt("signature", flipped))
    assert "line 2" in refusal(text, lambda one, _: one["history"][1].update(receipt=None))
    assert "line 2" in refusal(text, lambda one, _: one["history"][1].update(comment="no"))
    assert "lacks the receipt" in refusal(text, lambda one, _: one["receipts"].pop())
    twice = refusal(text, lambda one, _: one["receipts"].__setitem__(1, one["receipts"][0]))
    assert "lacks the receipt" in twice


async def test_without_a_verifier_no_signature_fits(signing: World) -> None:
    """Whoever forgets it accepts nothing. SR-8."""
    with pytest.raises(Unfit, match="signature"):
        read_evidence(await written(signing))
