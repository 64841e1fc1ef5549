"""The settings of an identity provider, and the provider itself. SE-9; decision 143."""

from collections.abc import Mapping
from importlib.util import find_spec
from urllib.parse import urlsplit

from attrs import field, frozen

from adapters_http.config import SignOn
from adapters_http.transport.connections import is_loopback
from adapters_runtime.oidc import OidcProvider
from wfcore.errors import InvalidInput
from wfcore.installed import install
from wfcore.model.access import SignOnTerms
from wfcore.ports.system import Clock
from wfcore.rules.approval.groups import WANTED, is_group_name
from wfserver.errors import CommandFailed
from wfserver.settings.steps import switch

ISSUER, SECRET = "WFCORE_OIDC_ISSUER", "WFCORE_OIDC_CLIENT_SECRET"
_CLIENT, _NAME = "WFCORE_OIDC_CLIENT_ID", "WFCORE_OIDC_NAME"
_DOMAINS, _CREATE = "WFCORE_OIDC_DOMAINS", "WFCORE_OIDC_CREATE"
_TRUST, _GROUPS = "WFCORE_OIDC_TRUST_EMAIL", "WFCORE_OIDC_GROUPS"
_ENTRA = ("microsoftonline.com", "microsoftonline.us", "partner.microsoftonline.cn", "windows.net")
_EVERYBODY = ("common", "organizations", "consumers", "9188040d-6c67-4c5b-b112-36a304b66dad")
"""Entra ID's issuers for accounts of any tenant; such an account can claim any email."""


@frozen
class SignOnSettings:
    """
    The settings of an identity provider. `secret` None: a public client. `name`: the label of the
    button. `trusts_email`: an email counts even if the provider does not say that the email is
    verified.
    """

    issuer: str
    client_id: str
    secret: str | None = field(repr=False)
    name: str
    terms: SignOnTerms
    trusts_email: bool = False


def sign_on_settings(env: Mapping[str, str]) -> SignOnSettings | None:
    """The settings in the environment; None: there is no issuer. Raises `InvalidInput`."""
    issuer, client_id = env.get(ISSUER, ""), env.get(_CLIENT, "")
    secret, name = env.get(SECRET) or None, env.get(_NAME, "")
    terms = SignOnTerms(_domains(env), switch(env, _CREATE, False), _groups(env))
    if not issuer:
        return None
    try:
        url = urlsplit(issuer)
    except ValueError:
        url = urlsplit("")
    if not url.hostname or not (url.scheme == "https" or is_loopback(url.hostname)):
        raise InvalidInput(ISSUER, "must be the https address of the issuer, exactly as it says")
    if not client_id:
        raise InvalidInput(_CLIENT, f"is needed with {ISSUER}: the provider gave it")
    trusts = switch(env, _TRUST, False)
    if trusts and _is_for_everybody(url.hostname, url.path):
        fix = f"needs {ISSUER} to be the issuer of one tenant: this one is for everybody"
        raise InvalidInput(_TRUST, fix)
    return SignOnSettings(issuer, client_id, secret, name or url.hostname, terms, trusts)


def _is_for_everybody(host: str, path: str) -> bool:
    of_entra = any(host == one or host.endswith(f".{one}") for one in _ENTRA)
    return of_entra and path.lower().strip("/").partition("/")[0] in ("", *_EVERYBODY)


def _domains(env: Mapping[str, str]) -> frozenset[str]:
    """Domains of emails in lower case, from a list with commas or spaces."""
    found = frozenset(env.get(_DOMAINS, "").replace(",", " ").lower().split())
    for one in sorted(found):
        if "@" in one or "." not in one.strip("."):
            raise InvalidInput(_DOMAINS, f"{one} is no domain; write example.org,example.com")
    return found


def _groups(env: Mapping[str, str]) -> Mapping[str, str]:
    """
    The names of groups by the provider's words, from a list of NAME or WORD=NAME with commas.
    AP-50.
    """
    found: dict[str, str] = {}
    for one in filter(None, map(str.strip, env.get(_GROUPS, "").split(","))):
        word, _, name = one.rpartition("=")
        if not is_group_name(name := name.strip()):
            fix = f"{name!r} can be no group: it must be {WANTED}; write NAME or WORD=NAME"
            raise InvalidInput(_GROUPS, fix)
        found[word.strip() or name] = name
    return found


def sign_on_with(settings: SignOnSettings | None, clock: Clock) -> SignOn | None:
    """
    The sign-on of *settings*; None: no sign-on is set up. Raises `CommandFailed` without the extra.
    """
    if settings is None:
        return None
    if find_spec("authlib") is None:
        raise CommandFailed(f"{ISSUER} needs an extra: {install('oidc')}")
    client = settings.issuer, settings.client_id, settings.secret, clock.now
    reads = bool(settings.terms.groups)
    provider = OidcProvider(*client, trusts_email=settings.trusts_email, reads_groups=reads)
    return SignOn(provider, settings.name, settings.terms)
