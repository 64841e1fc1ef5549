"""Where browsers have passkeys, and which of an account's count. SR-7."""

import pytest
from attrs import evolve

from wfcore.model.passkey import Passkey, RelyingParty
from wfcore.rules.auth.passkeys import relying_party, usable_passkeys
from wfcore.testing import builders as make
from wfcore.time import EpochMs

HOST = "flows.example.org"
ORIGINS = {
    "no address": (None, None, None),
    "no TLS": ("http://flows.example.org", None, None),
    "no TLS at the port of TLS": ("http://flows.example.org:443", None, None),
    "another scheme": ("ftp://flows.example.org", None, None),
    "no scheme": ("flows.example.org", None, None),
    "IPv4": ("https://192.0.2.1", None, None),
    "IPv6": ("https://[2001:db8::1]", None, None),
    "loopback in numbers": ("http://127.0.0.1:8000", None, None),
    "a final dot": ("https://flows.example.org.", None, None),
    "localhost with a final dot": ("http://localhost.:8000", None, None),
    "a name that only ends like localhost": ("http://notlocalhost", None, None),
    "a port beyond all ports": ("https://flows.example.org:99999", None, None),
    "no domain": ("https://b\u2028.example", None, None),
    "TLS": ("https://flows.example.org", HOST, f"https://{HOST}"),
    "upper case, the usual port, a path": (
        "https://Flows.EXAMPLE.org:443/at", HOST, f"https://{HOST}",
    ),
    "a user": ("https://ann@flows.example.org", HOST, f"https://{HOST}"),
    "a port": ("https://flows.example.org:8443", HOST, f"https://{HOST}:8443"),
    "the usual port of the other scheme": (
        "https://flows.example.org:80", HOST, f"https://{HOST}:80",
    ),
    "localhost": ("http://localhost", "localhost", "http://localhost"),
    "LOCALHOST, a port, a path": (
        "http://LOCALHOST:8000/at", "localhost", "http://localhost:8000",
    ),
    "localhost with TLS": ("https://localhost", "localhost", "https://localhost"),
    "below localhost": ("http://one.localhost", "one.localhost", "http://one.localhost"),
    "another script": (
        "https://B\u00dccher.example", "xn--bcher-kva.example", "https://xn--bcher-kva.example",
    ),
    "another script, as browsers write it": (
        "https://xn--bcher-kva.example", "xn--bcher-kva.example", "https://xn--bcher-kva.example",
    ),
    "sharp s, which is a letter of its own": (
        "https://stra\u00dfe.example", "xn--strae-oqa.example", "https://xn--strae-oqa.example",
    ),
}  # fmt: skip
"""By name: a public URL, and the host and origin of passkeys there, if there are any."""


@pytest.mark.parametrize(("url", "host", "origin"), ORIGINS.values(), ids=ORIGINS)
def test_the_public_url_says_where_passkeys_count(
    url: str | None, host: str | None, origin: str | None
) -> None:
    """Host and origin follow from the URL, as browsers write both. SR-7."""
    found = relying_party(url)
    assert found == (RelyingParty(host, origin) if host and origin else None)


def test_a_changed_address_leaves_passkeys_behind() -> None:
    """Those of another host do not count; of the others the last used is first. SR-7."""
    one = Passkey("a", "a", "", -7, "flows.example.org", EpochMs(1))
    used, other = evolve(one, id="b", last_used_at=EpochMs(2)), evolve(one, id="c", rp_id="old")
    account = evolve(make.account(), passkeys=(one, used, other))
    assert usable_passkeys(account, relying_party("https://flows.example.org")) == (used, one)
    assert usable_passkeys(account, None) == ()
