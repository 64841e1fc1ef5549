"""When a call is sent again."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore_client import BadRequest, NotFound, RateLimited, ServerTrouble, Unreachable, calls
from wfcore_client.methods import BACKOFF, pause

SAFE = calls.execution("e")
ONCE = calls.start("w", idempotency_key="k")
UNSAFE = calls.cancel("e")


@given(st.integers(1, 4), st.sampled_from([SAFE, ONCE]))
def test_trouble_is_outlasted(tried, call):
    """Trouble and silence are waited out with growing pauses where repeating is safe."""
    for trouble in (ServerTrouble(503, "later"), Unreachable("reset")):
        found = pause(BACKOFF, call.repeatable, trouble, tried)
        least = 0.5 * 2 ** (tried - 1)
        assert found is not None
        assert least <= found <= least * 1.25


@pytest.mark.parametrize("trouble", [ServerTrouble(500, ""), Unreachable("reset")])
def test_what_may_have_happened_is_not_repeated(trouble):
    """A call that would do its work twice is not sent again."""
    assert pause(BACKOFF, UNSAFE.repeatable, trouble, 1) is None


@given(st.integers(1, 60), st.sampled_from([SAFE, ONCE, UNSAFE]))
def test_a_full_quota_is_waited_for(told, call):
    """After 429 nothing was done: the call is sent again, never before the time that was told."""
    found = pause(BACKOFF, call.repeatable, RateLimited(429, "", told), 1)
    assert found is not None
    assert told <= found <= told + 1


@given(st.integers(1, 60))
def test_a_server_that_says_how_long_is_not_asked_before(told):
    """`Retry-After` of a 503 is waited for, too, where repeating is safe."""
    trouble = ServerTrouble(503, "stopping", told)
    assert (pause(BACKOFF, True, trouble, 1) or 0) >= told
    assert pause(BACKOFF, False, trouble, 1) is None


def test_not_for_ever():
    """A day's quota is not waited for, and nothing is tried more often than asked for."""
    assert pause(BACKOFF, SAFE.repeatable, RateLimited(429, "", 61), 1) is None
    assert pause(BACKOFF, SAFE.repeatable, ServerTrouble(503, "", 61), 1) is None
    assert pause(replace(BACKOFF, tries=3), True, ServerTrouble(503, ""), 3) is None


@pytest.mark.parametrize("refusal", [BadRequest(400, ""), NotFound(404, "")])
def test_a_no_is_a_no(refusal):
    """What the server refused is not asked again."""
    assert pause(BACKOFF, SAFE.repeatable, refusal, 1) is None
