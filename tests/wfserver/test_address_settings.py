"""The settings of proxies and host names: what they take, and what they say of a mistake."""

import os
import re
from contextlib import suppress
from ipaddress import ip_network

import pytest

from wfcore.errors import InvalidInput
from wfcore.model.access import SignOnTerms
from wfcore.testing.fakes import ManualClock
from wfserver.errors import CommandFailed
from wfserver.settings.record import settings_from, take_environment
from wfserver.settings.sign_on import sign_on_with
from wfserver.settings.table import KNOWN


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
        *(
            (
                {"WFCORE_OIDC_TRUST_EMAIL": "1", "WFCORE_OIDC_ISSUER": issuer},
                "WFCORE_OIDC_TRUST_EMAIL: needs WFCORE_OIDC_ISSUER to be the issuer of one tenant",
            )
            for issuer in (
                "https://login.microsoftonline.com/common/v2.0",
                "https://login.microsoftonline.com/Organizations/v2.0",
                "https://login.microsoftonline.us/consumers/v2.0",
                "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0",
                "https://sts.windows.net",
            )
        ),
    ],
)
def test_what_is_wrong_with_an_identity_provider_is_said_at_the_start(wrong, says):
    """The variable, and what would be right."""
    with pytest.raises(InvalidInput, match=re.escape(says)):
        settings_from({**OIDC, **wrong})


def test_the_issuer_of_one_tenant_may_be_trusted_with_emails():
    """One tenant's, or any provider's own; nobody is trusted without being asked for. SE-9."""
    tenant = "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0"
    for issuer in (tenant, "https://login.example.org/realms/common"):
        env = {**OIDC, "WFCORE_OIDC_ISSUER": issuer}
        assert settings_from({**env, "WFCORE_OIDC_TRUST_EMAIL": "1"}).sign_on.trusts_email
        assert not settings_from(env).sign_on.trusts_email


def test_who_may_be_asked_without_an_account_is_a_setting():
    """Addresses and domains, as they are compared; anything else is named. AP-41, GT-5."""
    env = {"WFCORE_GATE_APPROVERS": "Eva@Example.org, @Bücher.example"}
    assert settings_from(env).policy.gate_approvers == {
        "eva@example.org", "@xn--bcher-kva.example",
    }  # fmt: skip
    for wrong in ("@", "example.org", "eva@example.org(x)", "*"):
        with pytest.raises(InvalidInput, match="WFCORE_GATE_APPROVERS: "):
            settings_from({"WFCORE_GATE_APPROVERS": wrong})


def test_an_identity_provider_needs_its_extra(monkeypatch):
    """Without Authlib the server says what to install, before it answers."""
    settings = settings_from(OIDC)
    monkeypatch.setattr("wfserver.settings.sign_on.find_spec", lambda name: None)
    with pytest.raises(CommandFailed, match=r"\[oidc\]"):
        sign_on_with(settings.sign_on, ManualClock())


def test_a_public_url_names_the_host():
    """Its host and this machine's own names are answered to, and what the setting adds."""
    of_url = {"WFCORE_PUBLIC_URL": "https://WF.example.org:8443/flows"}
    loopback = {"localhost", "127.0.0.1", "[::1]"}
    assert settings_from(of_url).allowed_hosts == {"wf.example.org", *loopback}
    added = settings_from({**of_url, "WFCORE_ALLOWED_HOSTS": "Wf.internal, 192.0.2.1"})
    assert added.allowed_hosts == {"wf.example.org", "wf.internal", "192.0.2.1", *loopback}
    assert settings_from({**of_url, "WFCORE_ALLOWED_HOSTS": "*"}).allowed_hosts is None


def test_a_public_url_is_kept_as_browsers_write_it():
    """A host in another script is the one that requests name; passkeys are bound to it. SR-7."""
    settings = settings_from({"WFCORE_PUBLIC_URL": "https://Bücher.example:8443/Äpfel/"})
    assert settings.public_url == "https://xn--bcher-kva.example:8443/Äpfel"
    assert settings.allowed_hosts is not None
    assert "xn--bcher-kva.example" in settings.allowed_hosts


@pytest.mark.parametrize(
    "url",
    [
        "https://wf.example.org.",
        "https://wf.example.org:99999",
        "https://wf.example.org:x",
        "https://:8000",
        "https://b\u2028.example",
    ],
)
def test_a_public_url_that_no_browser_opens_so_is_refused(url: str):
    """A final dot makes another origin, at which no passkey of the host counts. SR-7."""
    with pytest.raises(InvalidInput, match="public-url"):
        settings_from({"WFCORE_PUBLIC_URL": url})


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
