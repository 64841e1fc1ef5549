"""Where browsers have passkeys, and which of an account's count. SR-7."""

import pytest
from attrs import evolve

from wfcore.model.passkey import Passkey, RelyingParty
from wfcore.rules.auth.passkeys import relying_party, usable_passkeys
from wfcore.testing import builders as make
from wfcore.time import EpochMs


@pytest.mark.parametrize(
    ("url", "party"),
    [
        (None, None),
        ("http://flows.example.org", None),
        ("https://192.0.2.1", None),
        ("https://[2001:db8::1]", None),
        ("http://127.0.0.1:8000", None),
        ("https://flows.example.org", ("flows.example.org", "https://flows.example.org")),
        ("https://Flows.example.org:443/at", ("flows.example.org", "https://flows.example.org")),
        ("https://flows.example.org:8443", ("flows.example.org", "https://flows.example.org:8443")),
        ("http://localhost:8000/at", ("localhost", "http://localhost:8000")),
        ("http://one.localhost", ("one.localhost", "http://one.localhost")),
    ],
)
def test_the_public_url_says_where_passkeys_count(
    url: str | None, party: tuple[str, str] | None
) -> None:
    """Host and origin follow from it; an address in numbers, or without TLS, has none. SR-7."""
    assert relying_party(url) == (RelyingParty(*party) if party else None)


def test_a_changed_address_leaves_passkeys_behind() -> None:
    """Those of another host do not count; of the others the last used is first. SR-7."""
    one = Passkey("a", "a", "", -7, "flows.example.org", EpochMs(1))
    used, other = evolve(one, id="b", last_used_at=EpochMs(2)), evolve(one, id="c", rp_id="old")
    account = evolve(make.account(), passkeys=(one, used, other))
    assert usable_passkeys(account, relying_party("https://flows.example.org")) == (used, one)
    assert usable_passkeys(account, None) == ()
