"""Verifying callbacks: what the server signs is taken, and nothing else."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from wfcore.model.execution import ExecutionStatus
from wfcore.rules.callback import SECRET_PREFIX, body_of, message, signed
from wfcore.testing.builders import execution
from wfcore.time import EpochMs
from wfcore_client import CallbackRefused, verify_callback
from wfcore_client.shapes import EventKind

SECRET = SECRET_PREFIX + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
OTHER = SECRET_PREFIX + "YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODk="
NOW = 1_767_225_600
RUN = execution(status=ExecutionStatus.FAILED, completed_at=EpochMs(NOW * 1_000), error="why")
BODY = body_of(RUN)
HEADERS = signed(SECRET, "cb", EpochMs(NOW * 1_000), BODY)


@pytest.mark.parametrize("secret", [SECRET, [OTHER, SECRET]])
def test_what_the_server_signs_is_read(secret: str | list[str]) -> None:
    """The message is verified with one secret or several, headers in any case, and is typed."""
    titled = {name.title(): value for name, value in HEADERS.items()}
    found = verify_callback(secret, titled, BODY, now_s=NOW + 299)
    assert found.type is EventKind.EXECUTION_FAILED
    assert (found.data.execution_id, found.data.error) == (RUN.id, "why")


def test_every_field_of_the_message_is_typed() -> None:
    """The shape has the fields that the rule writes, and no others."""
    told = message(RUN)
    found = verify_callback(SECRET, HEADERS, BODY, now_s=NOW)
    assert len(vars(found)) == len(told)
    assert len(vars(found.data)) == len(told["data"])  # type: ignore[arg-type]


def test_any_standard_sender_is_understood() -> None:
    """A signature of the Standard Webhooks library is taken, also beside older ones."""
    at = datetime.fromtimestamp(NOW, UTC)
    ours = Webhook(SECRET).sign("msg_1", at, BODY.decode())
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(NOW)}
    signature = {"webhook-signature": f"v1,AAAA v2,x {ours}"}
    assert verify_callback(SECRET, headers | signature, BODY, now_s=NOW).data.error == "why"


@given(st.sampled_from(sorted(HEADERS)), st.text(max_size=40))
def test_headers_that_were_changed_are_refused(name: str, value: str) -> None:
    """Another id, time or signature is not the server's, whatever it is."""
    if value.strip() != HEADERS[name]:
        with pytest.raises(CallbackRefused):
            verify_callback(SECRET, {**HEADERS, name: value}, BODY, now_s=NOW)


@pytest.mark.parametrize("now", [NOW - 301, NOW + 301])
def test_an_old_message_is_refused(now: int) -> None:
    """A message that was kept and sent again later is refused."""
    with pytest.raises(CallbackRefused, match="timestamp"):
        verify_callback(SECRET, HEADERS, BODY, now_s=now)


def test_another_body_or_secret_is_refused() -> None:
    """One byte more, another secret, or none of the headers: refused."""
    for secret, headers, body in (
        (SECRET, HEADERS, BODY + b" "),
        (OTHER, HEADERS, BODY),
        (SECRET, {}, BODY),
        ([], HEADERS, BODY),
    ):
        with pytest.raises(CallbackRefused):
            verify_callback(secret, headers, body, now_s=NOW)


def test_what_is_signed_and_no_callback_is_refused() -> None:
    """A good signature over something else is refused as well."""
    for body in (b"{}", b"[1]", b"no JSON"):
        headers = signed(SECRET, "cb", EpochMs(NOW * 1_000), body)
        with pytest.raises(CallbackRefused, match="not a callback"):
            verify_callback(SECRET, headers, body, now_s=NOW)
