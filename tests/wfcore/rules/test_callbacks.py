"""Callbacks: who is owed one, where it may go, how it is signed, when it is tried again."""

import json

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from wfcore.effects import CallBack
from wfcore.errors import InvalidInput
from wfcore.model.execution import (
    Callback,
    CallbackStatus,
    ExecutionStatus,
    ReasonCode,
    StatusReason,
)
from wfcore.rules.address import is_host, is_public, numeric
from wfcore.rules.callback import (
    DELAYS,
    SECRET_LENGTH,
    answered,
    attempted,
    body_of,
    check_url,
    message,
    owed,
    put_off,
    signed,
)
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.fold import advance
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.values import instants
from wfcore.time import DAY, EpochMs

URL = "https://example.org/told"


@pytest.mark.parametrize(
    ("secret", "id", "at", "body", "signature"),
    [
        (
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330_999,
            b'{"test": 2432232314}',
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
        (
            "whsec_plJ3nmyCDGBKInavdOK15jsl",
            "loFOjxBNrRLzqYUf",
            1_731_705_121_000,
            b'{"event_type":"ping","data":{"success":true}}',
            "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
        ),
    ],
)
def test_published_signatures(secret, id, at, body, signature):
    """CB-2: the headers are those of the examples that the Standard Webhooks scheme publishes."""
    assert signed(secret, id, EpochMs(at), body) == {
        "webhook-id": f"msg_{id}",
        "webhook-timestamp": str(at // 1_000),
        "webhook-signature": signature,
    }


@given(st.text("abcXYZ019", min_size=SECRET_LENGTH, max_size=SECRET_LENGTH), instants())
def test_our_secrets_sign(secret, now):
    """CB-2: any base62 text of our length is a secret of the scheme."""
    assert signed(f"whsec_{secret}", "exec_1", now, b"{}")["webhook-signature"].startswith("v1,")


RUNNING = make.execution(status=ExecutionStatus.RUNNING, due_at=None, worker="w", callback_url=URL)
ENDS = (facts.Finished({"n": 1}), facts.Failed("no", None), facts.CancelAsked())


@given(st.sampled_from(ENDS), st.booleans(), instants(NOW))
def test_every_end_is_told_once(fact, wanted, now):
    """CB-1: whatever ends an execution owes its callback in the same unit, due at once."""
    run = RUNNING if wanted else evolve(RUNNING, callback_url=None)
    outcome = advance(run, fact, now)
    told = [effect.callback for effect in outcome.effects if isinstance(effect, CallBack)]
    assert told == ([owed(run, URL, now)] if wanted else [])
    assert [(one.id, one.url, one.due_at) for one in told] == [(run.id, URL, now)] * wanted


def test_nothing_is_owed_before_the_end():
    """CB-1: what does not end an execution tells nobody."""
    outcome = advance(RUNNING, facts.WorkerLost(NOW), NOW)
    assert not [effect for effect in outcome.effects if isinstance(effect, CallBack)]


@pytest.mark.parametrize(
    ("secret", "fits"), [("whsec_AAAA", True), ("AAAA", True), ("A!AAA", False)]
)
def test_only_base64_is_a_secret(secret, fits):
    """CB-2: with the prefix or without; a letter of another alphabet is a mistake, not skipped."""
    if fits:
        assert signed(secret, "1", NOW, b"") == signed("whsec_AAAA", "1", NOW, b"")
    else:
        with pytest.raises(ValueError, match="base64"):
            signed(secret, "1", NOW, b"")


def test_the_message_of_an_end():
    """CB-2: exactly these fields, as JSON; milliseconds in its time, UTC."""
    run = make.execution(
        "exec_9",
        workflow_id="wf_7",
        workflow_name="Payday",
        status=ExecutionStatus.CANCELLED,
        status_reason=StatusReason(ReasonCode.APPROVAL_REJECTED, "review", "appr_1"),
        error="no",
        completed_at=EpochMs(NOW + 1_234),
        redrive_of="exec_8",
        output={"secret": 1},
    )
    told = {
        "type": "execution.cancelled",
        "timestamp": "2023-11-14T22:13:21.234+00:00",
        "data": {
            "executionId": "exec_9",
            "workflowId": "wf_7",
            "workflowName": "Payday",
            "triggerSource": "open_api",
            "status": "CANCELLED",
            "statusReason": "APPROVAL_REJECTED",
            "error": "no",
            "startedAt": NOW,
            "completedAt": NOW + 1_234,
            "redriveOf": "exec_8",
        },
    }
    assert message(run) == told
    assert json.loads(body_of(run)) == told
    assert owed(evolve(run, key_id="key_7"), URL, NOW) == Callback(
        "exec_9", URL, "key_7", NOW, due_at=NOW
    )


def test_the_message_says_what_ended_and_how():
    """CB-2: type, time and the end; no inputs, no outputs."""
    ended = advance(RUNNING, facts.Finished({"secret": "x"}), NOW).record
    told = message(ended)
    assert told["type"] == "execution.completed"
    assert told["timestamp"] == "2023-11-14T22:13:20.000+00:00"
    assert told["data"]["status"] == "COMPLETED"
    assert told["data"]["executionId"] == ended.id
    assert "secret" not in str(told)


@given(st.lists(st.sampled_from([None, 199, 300, 302, 404, 429, 500, 503]), max_size=12))
def test_it_is_tried_over_a_day(statuses):
    """CB-3: each failure makes it due again, later each time, until the tenth gives it up."""
    callback, now, waits = make.callback(), NOW, []
    failed = evolve(callback, status=CallbackStatus.FAILED, due_at=None, attempts=10)
    for status in statuses:
        if callback.due_at is None:
            break
        now = callback.due_at
        begun = attempted(callback, now)
        count = callback.attempts + 1
        due_at = EpochMs(now + [*DELAYS, DELAYS[-1]][count - 1])
        assert begun == evolve(callback, attempts=count, due_at=due_at)
        callback = answered(begun, status, None if status else "no answer")
        told = f"answered {status}" if status else "no answer"
        assert callback == evolve(begun if count < 10 else failed, last_error=told)
        if callback.due_at is not None:
            waits.append(callback.due_at - now)
    assert waits == sorted(waits)
    tries = min(len(statuses), len(DELAYS) + 1)
    assert callback.attempts == tries
    over = tries > len(DELAYS)
    assert callback.status is (CallbackStatus.FAILED if over else CallbackStatus.PENDING)
    assert (callback.due_at is None) == over
    assert (callback.last_error is None) == (not statuses)


def test_the_last_try_is_a_day_after_the_first():
    """CB-3: the waits add up to a day."""
    assert DAY <= sum(DELAYS) <= 1.1 * DAY


@given(st.integers(200, 299), st.integers(0, len(DELAYS)))
def test_any_2xx_settles_it(status, before):
    """CB-3: an answer of success ends it, whatever went before."""
    begun = attempted(make.callback(attempts=before, last_error="once"), NOW)
    assert answered(begun, status, None) == evolve(
        begun, status=CallbackStatus.DELIVERED, due_at=None, last_error=None
    )


def test_gone_gives_it_up():
    """CB-3: 410 says that nobody wants to hear of it again."""
    begun = attempted(make.callback(), NOW)
    assert answered(begun, 410, None) == evolve(
        begun, status=CallbackStatus.FAILED, due_at=None, last_error="answered 410"
    )


PRIVATE = (
    "168.63.129.16",
    *("127.0.0.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("0.0.0.0", "255.255.255.255", "224.0.0.1", "192.0.2.1", "::1", "::", "fe80::1", "fc00::1"),
    *("::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1"),
    *("192.0.0.8", "192.0.0.9", "192.88.99.1", "198.18.0.1", "240.0.0.1", "::ffff:8.8.8.8"),
    *("::8.8.8.8", "64:ff9b::808:808", "64:ff9b:1::1", "2002:808:808::", "2001::1", "100::1"),
    *("fec0::1", "2001:db8::1", "3fff::1", "5f00::1", "4000::1"),
)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses(address):
    """CB-4: no callback goes to an address that is not public, however it is written."""
    assert not is_public(address)
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(InvalidInput, match="private"):
        check_url(f"https://{host}:8443/x", allow_private=False)
    assert check_url(f"https://{host}:8443/x", allow_private=True)


OTHERWISE = (
    *("2130706433", "0x7f000001", "0X7F.1", "127.1", "127.0.1", "0177.0.0.1", "017700000001"),
    *("10.1", "167772161", "0xa9fea9fe", "169.16689918", "127.0.0.1.", "256.1", "4294967296"),
    *("2822734096", "0x", "0.0"),
)


@pytest.mark.parametrize("host", OTHERWISE)
def test_private_addresses_in_other_spellings(host):
    """CB-4: they are refused at the start, not only when they are called."""
    with pytest.raises(InvalidInput, match="private"):
        check_url(f"https://{host}:8443/x", allow_private=False)
    assert check_url(f"https://{host}:8443/x", allow_private=True)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("134744072", "8.8.8.8"),
        ("0x8.0x8.2056", "8.8.8.8"),
        ("010.8.8.8", "8.8.8.8"),
        ("09.8.8.8", "9.8.8.8"),
        *((name, None) for name in ("8a", "8.8.8.8.8", "example.org", "0xg", "", "1..1", "::1")),
    ],
)
def test_numbers_are_addresses_in_another_spelling(host, address):
    """As resolvers read them; a public one in another spelling is as good as in its own. CB-4."""
    assert numeric(host) == address


@pytest.mark.parametrize("address", ["8.8.8.8", "192.0.1.1", "2606:4700::1111", "2a00::1"])
def test_public_addresses(address):
    """CB-4: a public address is let through."""
    assert is_public(address)


@given(st.ip_addresses(v=6))
def test_no_ipv6_address_hides_an_ipv4_one(found):
    """CB-4: outside of the global unicast space of IPv6 nothing is public."""
    assert not is_public(str(found)) or int(found) >> 125 == 1


@pytest.mark.parametrize(
    ("address", "fits"),
    [
        *(("127.0.0.1", True), ("10.0.0.1", True), ("::1", True), ("fd00::1", True)),
        *(("8.8.8.8", True), ("::ffff:127.0.0.1", True), ("::ffff:169.254.1.1", False)),
        *(("169.254.169.254", False), ("0.0.0.0", False), ("255.255.255.255", False)),
        *(("224.0.0.1", False), ("fe80::1", False), ("::", False), ("ff02::1", False)),
        ("64:ff9b::a9fe:a9fe", False),
    ],
)
def test_hosts_that_an_operator_may_mean(address, fits):
    """AI-6: loopback and private addresses are hosts; link-local, multicast and "any" are none."""
    assert is_host(address) is fits


@pytest.mark.parametrize(
    "url", [URL, "http://example.org", "https://example.org:8443/a?b=c%20d", "https://8.8.8.8"]
)
def test_good_addresses(url):
    """CB-4: an ordinary address comes back as it was written."""
    assert check_url(url, allow_private=False) == url


SCHEME = "must be an address that begins with http:// or https://"
LETTERS = "must be an address of printable ASCII characters"
PASSWORD = "must not have a user name or a password"
HOST = "must not be a private or loopback address"
LONG = "https://example.org/" + "x" * 2_029
BAD = {
    SCHEME: (
        *("", "example.org", "/told", "ftp://example.org", "file:///etc/passwd", "https://", "//x"),
        "https://example.org:0/",
    ),
    LETTERS: ("https://ex ample", "https://exämple.org", "https://example.org/\n", "https://a\x7f"),
    PASSWORD: ("https://ann:pw@example.org", "https://ann@example.org", "https://:pw@example.org"),
    HOST: ("http://localhost/", "http://localhost.", "http://a.localhost", "http://a.localhost."),
    "must not have a fragment (#…)": ("https://example.org/#x",),
    "is not an address": ("https://example.org:99999/", "https://[::1"),
    "is longer than 2,048 characters": (LONG,),
}


@pytest.mark.parametrize(("fix", "url"), [(fix, url) for fix, urls in BAD.items() for url in urls])
def test_bad_addresses(fix, url):
    """CB-4: anything else is refused with the name of the field, and with what is wrong."""
    with pytest.raises(InvalidInput) as refused:
        check_url(url, allow_private=False)
    assert (refused.value.field, refused.value.fix) == ("callbackUrl", fix)
    assert check_url(LONG[:-1], allow_private=False) == LONG[:-1]


@given(st.integers(1, 9), instants())
def test_what_was_not_sent_is_taken_back(attempts, now):
    """CB-3, EX-27: its number is free again, the first delay counts anew, and why is on record."""
    waiting = Callback("exec_1", URL, "key_1", NOW, due_at=NOW, attempts=attempts - 1)
    back = put_off(attempted(waiting, NOW), "no descriptors", now)
    due_at = EpochMs(now + DELAYS[0])
    assert back == evolve(waiting, due_at=due_at, last_error="no descriptors")
