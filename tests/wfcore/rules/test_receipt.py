"""Canonical form, digests and verdicts of receipts, and the two verifiers without wfcore."""

import json
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters_runtime.passkeys import verifies
from tests.support.authenticator import PARTY, Authenticator, flipped
from tests.support.distribution import missing
from wfcore.model.passkey import RelyingParty, SignedReceipt
from wfcore.rules.approval.agreement import hash_of
from wfcore.rules.canonical import digest, rfc8785
from wfcore.rules.receipt import (
    challenge_of,
    read_receipt,
    receipt_document,
    receipt_fault,
    signature_fault,
    statement_digest,
)
from wfcore.time import EpochMs

DOCS = Path(__file__).parents[3] / "docs/signed-release"
VECTORS = json.loads((DOCS / "vectors.json").read_text())
NODE = shutil.which("node")
ROWS = {"payouts": [{"id": 1, "payee": "Ådele 🦊", "amount": 10.5}, {"id": 2**53 + 1, "amount": 3}]}

decimals = st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda one: not 2**53 <= abs(one) < 1e21  # RFC 8785 writes these as integers nearby
)
numbers = st.integers(-(2**63), 2**63 - 1) | decimals
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


def receipt(algorithm: int = -7, **other: Any) -> dict[str, Any]:
    """A receipt of ROWS, as others get it."""
    key = Authenticator(algorithm)
    statement = {
        "approvalId": "appr_1",
        "decision": "approve",
        "itemsHash": hash_of(ROWS),
        "answers": {"limit": 1e21, "why": "“due”"},
        "comment": None,
        "accountId": "acc_1",
        "credentialId": key.credential_id,
        "rpId": key.party.id,
        "at": 1_700_000_000_000,
        "nonce": "n",
        **other,
    }
    digests = [digest("another one"), statement_digest(statement)]
    answer = key.sign("n", challenge_of(digests))
    made = SignedReceipt(
        statement,
        tuple(digests),
        key.public_key,
        algorithm,
        EpochMs(1_600_000_000_000),
        answer.authenticator_data,
        answer.client_data,
        answer.signature,
    )
    return dict(receipt_document(made))


def verdict(document: Any) -> str | None:
    return receipt_fault(read_receipt(document), verifies)


@pytest.mark.parametrize("vector", VECTORS["canonical"], ids=lambda one: one["text"][:30])
def test_the_vectors_hold(vector: dict[str, Any]) -> None:
    """The text and digest of each value that docs/signed-release/vectors.json lists. SR-1."""
    assert rfc8785(vector["value"]) == vector["text"]
    assert digest(vector["text"]) == vector["sha256"]


def test_the_vectors_hold_the_ends_of_integers() -> None:
    """2^53+1 and -2^63 are written by their digits, which doubles cannot hold. SR-1."""
    texts = [one["text"] for one in VECTORS["canonical"]]
    assert "[9007199254740993,-9223372036854775808]" in texts


@given(values)
def test_the_text_is_one_for_one_value(value: Any) -> None:
    """It reads back as an equal value, whose text is the same; order of keys is none. SR-1."""
    text = rfc8785(value)
    assert json.loads(text) == value
    assert rfc8785(json.loads(text)) == text
    if isinstance(value, dict):
        assert rfc8785(dict(reversed(value.items()))) == text


@pytest.mark.parametrize("algorithm", [-7, -8, -257])
def test_a_receipt_fits_by_itself(algorithm: int) -> None:
    """Each algorithm that is offered, and the receipt reads back. SR-2."""
    document = receipt(algorithm)
    assert verdict(document) is None
    assert receipt_document(read_receipt(document)) == document


CHANGES: dict[str, Any] = {
    "approvalId": "appr_2",
    "itemsHash": "0" * 64,
    "answers": {},
    "comment": "yes",
    "accountId": "acc_2",
    "at": 1_700_000_000_001,
    "nonce": "m",
    "rpId": "evil.example",
    "credentialId": "x",
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_fact_is_noticed(name: str) -> None:
    """No part of the statement can be changed, alone or with its digest. SR-2."""
    document = receipt()
    document["statement"] = {**document["statement"], name: CHANGES[name]}
    assert verdict(document) == "the statement was changed"
    document["digests"] = [statement_digest(document["statement"])]
    assert verdict(document) is not None


@pytest.mark.parametrize("name", ["authenticatorData", "clientData", "signature", "publicKey"])
def test_a_changed_byte_is_noticed(name: str) -> None:
    """Nor what the authenticator made. SR-2."""
    document = receipt()
    for at in (0, 5, 33, -1):
        assert verdict({**document, name: flipped(document[name], at)}) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"format": "wfcore-receipt/2"},
        {"algorithm": "-7"},
        {"digests": "x"},
        {"signature": None},
        {"more": 1},
    ],
)
def test_another_form_is_no_receipt(change: dict[str, Any]) -> None:
    """Fields and types are exact. SR-2."""
    with pytest.raises(ValueError, match=r"\w"):
        read_receipt({**receipt(), **change})


@pytest.mark.parametrize("change", [{"algorithm": -65535}, {"authenticatorData": "AA"}])
def test_a_weak_or_short_receipt_does_not_fit(change: dict[str, Any]) -> None:
    """Unknown algorithms and cut data are a verdict, never an error. SR-2."""
    assert verdict({**receipt(), **change}) is not None


ELSEWHERE = RelyingParty("evil.example", PARTY.origin)


@pytest.mark.parametrize(
    ("party", "other", "says"),
    [
        (ELSEWHERE, {}, "made for another address"),
        (PARTY, {"origin": "https://evil.example"}, "made at another address"),
        (PARTY, {"cross": True}, "made at another address"),
        (PARTY, {"type": "webauthn.create"}, "no confirmation by a passkey"),
        (PARTY, {"flags": 0x01}, "did not verify the person"),
        (PARTY, {"flags": 0x04}, "did not verify the person"),
    ],
)
def test_a_signature_counts_only_as_it_was_asked_for(
    party: RelyingParty, other: dict[str, Any], says: str
) -> None:
    """A valid signature of the key for another address, deed or authenticator state is refused."""
    key = Authenticator(party=party)
    signed = key.sign("n", b"challenge", **other)
    known = SignedReceipt({}, (), key.public_key, key.algorithm, EpochMs(0), "", "", "")
    fault = signature_fault(signed, known, b"challenge", PARTY.id, verifies)
    assert says in str(fault)


def ways() -> list[list[str]]:
    return [
        [sys.executable, str(DOCS / "verify.py")],
        *([[NODE, str(DOCS / "verify.mjs")]] if NODE else []),
    ]


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_others_verify_without_wfcore(language: str, tmp_path: Path) -> None:
    """The two short verifiers accept a receipt with its rows, and name what was changed. SR-2."""
    if language == "javascript" and NODE is None:
        missing("needs node: apt-get install nodejs")
    way = next(one for one in ways() if ("mjs" in one[1]) is (language == "javascript"))
    document = receipt(answers={})

    def says(changed: Any, rows: Any = ROWS) -> str:
        files = tmp_path / "receipt.json", tmp_path / "rows.json"
        for file, content in zip(files, (changed, rows), strict=True):
            file.write_text(json.dumps(content))
        done = subprocess.run([*way, *map(str, files)], capture_output=True, text=True)
        assert done.stderr == ""
        assert (done.returncode == 0) is done.stdout.startswith("fits")
        return done.stdout.strip()

    assert says(document).startswith("fits")
    for algorithm in (-8, -257):
        assert says(receipt(algorithm, answers={})).startswith("fits")
    other = deepcopy(ROWS)
    other["payouts"][1]["id"] = 2**53
    assert "rows" in says(document, other)
    changed = {**document, "statement": {**document["statement"], "accountId": "acc_2"}}
    assert "statement" in says(changed)
    assert "signature" in says({**document, "signature": flipped(document["signature"])})


HIDING = {
    "a key twice": ('{"g": [{"a": 9000, "a": null}]}', "a key is repeated"),
    "a key twice, spelled otherwise": ('{"g": [{"\\u0061": 9000, "a" : null}]}', "repeated"),
    "beyond all numbers": ('{"g": [{"a": 1e400}]}', "a number is too large"),
    "below all numbers": ('{"g": [{"a": -1e400}]}', "a number is too large"),
}


@pytest.mark.parametrize("way", ways(), ids=lambda way: Path(way[1]).name)
@pytest.mark.parametrize(("rows", "says"), HIDING.values(), ids=HIDING)
def test_rows_that_readers_understand_differently_do_not_fit(
    way: list[str], rows: str, says: str, tmp_path: Path
) -> None:
    """Neither verifier accepts text in which another reader finds what nobody signed. SR-2."""
    signed = {"g": [{"a": None}]}
    document = receipt(answers={}, itemsHash=hash_of(signed))
    files = tmp_path / "receipt.json", tmp_path / "rows.json"
    files[0].write_text(json.dumps(document))

    def verdict() -> tuple[int, str]:
        done = subprocess.run([*way, *map(str, files)], capture_output=True, text=True)
        return done.returncode, done.stdout

    files[1].write_text(json.dumps(signed))
    assert verdict()[0] == 0
    files[1].write_text(rows)
    refused, why = verdict()
    assert refused == 1
    assert says in why


@pytest.mark.parametrize("way", ways(), ids=lambda way: Path(way[1]).name)
def test_columns_may_have_the_names_of_methods(way: list[str], tmp_path: Path) -> None:
    """Rows with columns like toString or __proto__ fit like all others. SR-2."""
    signed = {"g": [{"toString": 1, "valueOf": "x:", "__proto__": {"a": 1}, "constructor": None}]}
    files = tmp_path / "receipt.json", tmp_path / "rows.json"
    files[0].write_text(json.dumps(receipt(answers={}, itemsHash=hash_of(signed))))
    files[1].write_text(json.dumps(signed))
    done = subprocess.run([*way, *map(str, files)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["verify.py", "verify.mjs"])
def test_the_verifiers_are_short(name: str) -> None:
    """At most 60 lines, so that an auditor reads them. SR-2."""
    assert len((DOCS / name).read_text().splitlines()) <= 60
