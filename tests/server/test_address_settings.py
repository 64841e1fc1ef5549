"""The settings of proxies and host names: what they take, and what they say of a mistake."""

from ipaddress import ip_network

import pytest

from wfcore.errors import InvalidInput
from wfserver.settings import settings_from


def test_nobody_is_trusted_and_every_name_is_right_by_default():
    """Without a public URL there is no name to insist on."""
    settings = settings_from({})
    assert (settings.trusted_proxies, settings.allowed_hosts) == ((), None)


def test_proxies_are_addresses_and_networks():
    """Of both kinds, separated by commas or spaces."""
    given = settings_from({"WFCORE_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8 fd00::/8"})
    networks = [ip_network(one) for one in ("127.0.0.1/32", "10.0.0.0/8", "fd00::/8")]
    assert list(given.trusted_proxies) == networks


def test_operators_are_emails():
    """In lower case, separated by commas or spaces; anything else is said at the start. AC-7."""
    given = settings_from({"WFCORE_OPERATORS": "Ann@example.org, bob@example.org cy@x"})
    assert given.policy.operators == {"ann@example.org", "bob@example.org", "cy@x"}
    assert settings_from({}).policy.operators == frozenset()
    for wrong in ("ann", "ann@", "@x", "ann@x,bob"):
        with pytest.raises(InvalidInput, match=r"WFCORE_OPERATORS: .* is no email"):
            settings_from({"WFCORE_OPERATORS": wrong})


def test_a_public_url_names_the_host():
    """Its host and this machine's own names are answered to, and what the setting adds."""
    of_url = {"WFCORE_PUBLIC_URL": "https://WF.example.org:8443/flows"}
    loopback = {"localhost", "127.0.0.1", "[::1]"}
    assert settings_from(of_url).allowed_hosts == {"wf.example.org", *loopback}
    added = settings_from({**of_url, "WFCORE_ALLOWED_HOSTS": "Wf.internal, 192.0.2.1"})
    assert added.allowed_hosts == {"wf.example.org", "wf.internal", "192.0.2.1", *loopback}
    assert settings_from({**of_url, "WFCORE_ALLOWED_HOSTS": "*"}).allowed_hosts is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WFCORE_TRUSTED_PROXIES", "*"),
        ("WFCORE_TRUSTED_PROXIES", "proxy.example.org"),
        ("WFCORE_TRUSTED_PROXIES", "10.0.0.1/8"),
        ("WFCORE_ALLOWED_HOSTS", "https://example.org"),
        ("WFCORE_ALLOWED_HOSTS", "example.org:443"),
        ("WFCORE_ALLOWED_HOSTS", "*.example.org"),
        ("WFCORE_ALLOWED_HOSTS", "exämple.org"),
    ],
)
def test_a_mistake_is_named(name: str, value: str):
    """The variable, and how it is written."""
    with pytest.raises(InvalidInput, match=name):
        settings_from({name: value})
