"""The settings of proxies and host names: what they take, and what they say of a mistake."""

import os
import re
from contextlib import suppress
from ipaddress import ip_network

import pytest

from wfcore.errors import InvalidInput
from wfcore.model.access import SignOnTerms
from wfcore.testing.fakes import ManualClock
from wfserver.setting_table import KNOWN
from wfserver.settings import settings_from, take_environment
from wfserver.sign_on import sign_on_with
from wfserver.terminal.failures import Failed


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


def test_links_are_mailed_where_mail_and_an_address_are_set():
    """A link in a mail needs a public URL; without mail nobody can ask for one. SE-10."""
    mail = {"WFCORE_SMTP_URL": "smtp://mail.example.org", "WFCORE_MAIL_FROM": "wf@example.org"}
    public = {"WFCORE_PUBLIC_URL": "https://wf.example.org"}
    for given, mails in (({}, False), (mail, False), (public, False), ({**mail, **public}, True)):
        assert settings_from(given).mails_links is mails


@pytest.mark.parametrize("text", ["http://[", "[", "9" * 5_000, "\udcff", "//", "http://"])
def test_whatever_a_setting_says_is_taken_or_refused(text: str):
    """Half an address, a number of thousands of digits, bytes that are no text."""
    for name in sorted(KNOWN.keys() - {"WFCORE_SETTINGS"}):
        with suppress(InvalidInput):
            settings_from({name: text})


OIDC = {
    "WFCORE_OIDC_ISSUER": "https://login.example.org/a/",
    "WFCORE_OIDC_CLIENT_ID": "wfcore",
    "WFCORE_OIDC_CLIENT_SECRET": "no-one-knows",
}


def test_an_identity_provider_is_named_by_its_issuer(monkeypatch):
    """Exactly as given; the secret is not shown, nor left in the environment. SE-9."""
    more = {"WFCORE_OIDC_DOMAINS": "Example.org, example.com", "WFCORE_OIDC_CREATE": "1"}
    for name, value in {**OIDC, **more}.items():
        monkeypatch.setenv(name, value)
    settings = settings_from(take_environment())
    assert "WFCORE_OIDC_CLIENT_SECRET" not in os.environ
    assert "no-one-knows" not in repr(settings)
    found = sign_on_with(settings.sign_on, ManualClock())
    assert found.name == "login.example.org"
    assert found.terms == SignOnTerms(frozenset({"example.org", "example.com"}), create=True)
    assert settings_from({}).sign_on is sign_on_with(None, ManualClock()) is None
    named = settings_from({**OIDC, "WFCORE_OIDC_NAME": "Example Corp"}).sign_on
    assert (named.name, named.terms, named.issuer) == (
        "Example Corp",
        SignOnTerms(),
        OIDC["WFCORE_OIDC_ISSUER"],
    )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            {"WFCORE_OIDC_ISSUER": "http://login.example.org"},
            "WFCORE_OIDC_ISSUER: must be the https",
        ),
        ({"WFCORE_OIDC_ISSUER": "login.example.org"}, "WFCORE_OIDC_ISSUER: must be the https"),
        ({"WFCORE_OIDC_CLIENT_ID": ""}, "WFCORE_OIDC_CLIENT_ID: is needed"),
        ({"WFCORE_OIDC_DOMAINS": "a@example.org"}, "WFCORE_OIDC_DOMAINS: a@example.org is no"),
        ({"WFCORE_OIDC_CREATE": "yes"}, "WFCORE_OIDC_CREATE: must be 0 or 1"),
    ],
)
def test_what_is_wrong_with_an_identity_provider_is_said_at_the_start(wrong, says):
    """The variable, and what would be right."""
    with pytest.raises(InvalidInput, match=re.escape(says)):
        settings_from({**OIDC, **wrong})


def test_an_identity_provider_needs_its_extra(monkeypatch):
    """Without Authlib the server says what to install, before it answers."""
    settings = settings_from(OIDC)
    monkeypatch.setattr("wfserver.sign_on.find_spec", lambda name: None)
    with pytest.raises(Failed, match=r"wfcore\[oidc\]"):
        sign_on_with(settings.sign_on, ManualClock())


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
