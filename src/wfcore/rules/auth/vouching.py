"""
The email and the groups of a person in the claims of an OpenID Connect provider. SE-9.

The standard has a boolean `email_verified`. Entra ID has none; its optional claim `xms_edov` says
whether the domain is the customer's own. Cognito and Apple write "true"; other providers give the
email only at the userinfo endpoint. If a provider says nothing about verification, its emails count
only if the operator trusts the provider. An email that the provider calls unverified never counts.
"""

from collections.abc import Mapping
from typing import Any

from wfcore.model.access import Identity
from wfcore.rules.mailbox import same_name

Claims = Mapping[str, Any]
GROUPS = "groups"
"""The claim that lists the groups of a person. The standard has none; providers agree on this."""
_YES = (True, "true", "True", "1")


def identity_in(token: Claims, userinfo: Claims | None, trusts: bool) -> Identity:
    """
    The person in the claims of the token and of the userinfo endpoint, which belong to the same
    person (None: the endpoint was not called). *trusts*: whether an email counts if the claims do
    not say whether the email is verified.
    """
    email, verified = _email(token), _says_verified(token)
    told = userinfo or {}
    if not email or same_name(email) == same_name(_email(told)):
        email = email or _email(told)
        said = _says_verified(told)
        verified = said if verified is None else verified and said is not False
    groups = _groups(token) if GROUPS in token else _groups(told)
    return Identity(email, trusts if verified is None else verified, groups)


def is_enough(token: Claims, groups: bool = False) -> bool:
    """
    Whether the token alone contains an email and says whether the email is verified. *groups*:
    whether groups are needed, too.
    """
    named = GROUPS in token or not groups
    return named and bool(_email(token)) and _says_verified(token) is not None


def _groups(claims: Claims) -> frozenset[str]:
    """The groups in the claim `groups`; a single text is one group. AP-50."""
    said = claims.get(GROUPS)
    listed = said if isinstance(said, list) else [said]
    return frozenset(one for one in listed if isinstance(one, str))


def _email(claims: Claims) -> str:
    said = claims.get("email")
    return said if isinstance(said, str) else ""


def _says_verified(claims: Claims) -> bool | None:
    """Whether the claims call the email verified; None if they do not say."""
    said = [claims.get(name) for name in ("email_verified", "xms_edov")]
    found = [any(one is yes or one == yes for yes in _YES) for one in said if one is not None]
    return all(found) if found else None
