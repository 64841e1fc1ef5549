"""What a caller reads of an error, and what it never does."""

import pytest

from wfcore.errors import (
    AuthReason,
    InvalidDefinition,
    InvalidInput,
    Problem,
    RateLimited,
    StoreUnavailable,
    Unauthenticated,
)


@pytest.mark.parametrize("reason", AuthReason)
def test_no_refused_credential_says_why(reason):
    """AU-6: the words are the same for every cause; the reason is for the audit log."""
    assert str(Unauthenticated(reason, "acc_1", "key_1")) == "Unauthorized"


def test_an_unusable_input_names_its_field():
    """A client can find what to mend."""
    assert str(InvalidInput("inputs.limit", "must be a number")) == "inputs.limit: must be a number"
    assert str(InvalidInput("", "must be an object")) == "must be an object"


def test_a_full_window_says_when_to_come_back():
    """RL-3: limit, window and seconds are in the words too."""
    assert str(RateLimited("minute", 60, 7)) == (
        "Rate limit of 60 requests per minute reached; retry in 7 s"
    )


def test_all_mistakes_of_a_definition_are_listed():
    """DF-1: one line each, with file, line and path of the field."""
    problems = (Problem("steps[0].kind", "unknown", 3), Problem("", "no steps"))
    assert str(InvalidDefinition(problems, "flow.yaml")).splitlines() == [
        "flow.yaml: line 3: steps[0].kind: unknown",
        "flow.yaml: no steps",
    ]


def test_a_store_s_trouble_keeps_its_details():
    """SC-4: drivers say paths and addresses; callers do not read them."""
    assert "/var" not in str(StoreUnavailable("/var/lib/wf.db is locked"))
