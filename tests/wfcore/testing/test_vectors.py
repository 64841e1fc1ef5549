"""The test vectors: made from the rules, and right by other means, too."""

import hashlib
import json
import subprocess
import sys
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wfcore.testing import vectors
from wfcore.testing.vectors.__main__ import document, text

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "wfcore.testing.vectors", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )


def cases(name: str, group: str):
    return [pytest.param(case, id=case.name) for case in vectors.cases(name, group)]


@pytest.mark.parametrize("name", vectors.NAMES)
def test_the_files_say_what_the_rules_say(name):
    """Every vector holds: `python -m wfcore.testing.vectors` would change nothing."""
    assert vectors.load(name) == json.loads(text(name)) == json.loads(json.dumps(document(name)))


def test_a_stale_file_is_noticed_and_written_afresh(tmp_path: Path):
    """The command copies the vectors into any folder, and says when they differ."""
    assert command("--check").returncode == 0
    assert command(str(tmp_path)).stdout == f"written: {', '.join(vectors.NAMES)}\n"
    copied = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert copied == {f"{name}.json": text(name) for name in vectors.NAMES}
    (tmp_path / "keys.json").write_text("{}")
    assert command(str(tmp_path)).stdout == "written: keys\n"
    assert command(str(tmp_path)).stdout == ""


@pytest.mark.parametrize("name", vectors.NAMES)
def test_every_case_has_a_name_of_its_own_and_all_are_ascii(name):
    """Anybody can say which vector failed, and no tool can spoil the file."""
    path = Path(vectors.__file__).parent / "data" / f"{name}.json"
    assert path.read_bytes().isascii()
    for group in vectors.load(name)["groups"].values():
        names = [case["name"] for case in group["cases"]]
        assert len(set(names)) == len(names) > 0
        assert group["about"].endswith(".")


def hmac(key: bytes, message: bytes) -> bytes:
    """HMAC-SHA256 as RFC 2104 writes it."""
    key = hashlib.sha256(key).digest() if len(key) > 64 else key
    padded = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(one ^ 0x36 for one in padded) + message).digest()
    return hashlib.sha256(bytes(one ^ 0x5C for one in padded) + inner).digest()


@pytest.mark.parametrize("case", cases("signatures", "trigger"))
def test_signatures_are_hmacs(case):
    """The digest is the one that RFC 2104 defines over the raw bytes. SG-1."""
    body = b64decode(case.given["bodyBase64"])
    assert case.expect["header"] == f"sha256={hmac(case.given['secret'].encode(), body).hex()}"


def test_a_published_signature_is_ours_too():
    """RFC 4231 and Standard Webhooks print the same digests."""
    found = {
        case.name.split(": ")[1]: case.expect
        for group in ("trigger", "callback")
        for case in vectors.cases("signatures", group)
    }
    rfc = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert found["the second test case of RFC 4231"]["header"] == f"sha256={rfc}"
    published = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert found["the example of Standard Webhooks"]["webhook-signature"] == published


@pytest.mark.parametrize("case", cases("signatures", "callback"))
def test_callbacks_are_signed_over_id_time_and_body(case):
    """The three parts, joined by dots, under the decoded secret. CB-2."""
    key = b64decode(case.given["secret"].removeprefix("whsec_"))
    id, at = f"msg_{case.given['executionId']}", str(case.given["nowMs"] // 1_000)
    message = b".".join((id.encode(), at.encode(), b64decode(case.given["bodyBase64"])))
    assert case.expect["webhook-signature"] == f"v1,{b64encode(hmac(key, message)).decode()}"
    assert (case.expect["webhook-id"], case.expect["webhook-timestamp"]) == (id, at)


@pytest.mark.parametrize("case", cases("keys", "form"))
def test_checksums_are_what_the_document_describes(case):
    """A client that follows the words comes to the same six characters. AU-2."""
    digest = hashlib.sha256(f"{case.given['id']}_{case.given['random']}".encode()).digest()
    number, digits = int.from_bytes(digest[:8], "big") % 62**6, ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    assert case.expect["checksum"] == digits
    assert case.expect["key"].endswith(digits)


@pytest.mark.parametrize("case", cases("windows", "windows"))
def test_windows_are_minutes_and_days_of_the_calendar(case):
    """The calendar says the same. RL-2."""
    now = datetime.fromtimestamp(case.given["nowMs"] / 1_000, UTC)
    begun = {
        "minute": now.replace(second=0, microsecond=0),
        "day": now.replace(hour=0, minute=0, second=0, microsecond=0),
    }
    for kind, length in (("minute", 60_000), ("day", 86_400_000)):
        window = case.expect[kind]
        assert window["startMs"] == int(begun[kind].timestamp() * 1_000)
        assert window["endMs"] == window["startMs"] + length
