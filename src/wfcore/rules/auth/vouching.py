"""
What the claims of an OpenID Connect provider say of somebody's email. SE-9.

The standard has a boolean `email_verified`. Entra ID has none, and says with the optional claim
`xms_edov` whether the domain is its customer's own; Cognito and Apple write "true"; others tell the
email at the userinfo endpoint alone. A provider that says nothing counts only if the operator
trusts it, and one that says no is believed, whatever else is set.
"""

from collections.abc import Mapping
from typing import Any

from wfcore.model.access import Identity
from wfcore.rules.mailbox import same_name

Claims = Mapping[str, Any]
_YES = (True, "true", "True", "1")


def identity_in(token: Claims, userinfo: Claims | None, trusts: bool) -> Identity:
    """
    Who it is by the claims of the token, and those of the userinfo endpoint, which belong to the
    same person; None: it was not asked. *trusts*: an email that neither calls verified counts.
    """
    email, verified = _email(token), _says_verified(token)
    told = userinfo or {}
    if not email or same_name(email) == same_name(_email(told)):
        email = email or _email(told)
        said = _says_verified(told)
        verified = said if verified is None else verified and said is not False
    return Identity(email, trusts if verified is None else verified)


def is_enough(token: Claims) -> bool:
    """Whether the token alone says an email, and whether it is verified."""
    return bool(_email(token)) and _says_verified(token) is not None


def _email(claims: Claims) -> str:
    said = claims.get("email")
    return said if isinstance(said, str) else ""


def _says_verified(claims: Claims) -> bool | None:
    """None: nothing is said of it."""
    said = [claims.get(name) for name in ("email_verified", "xms_edov")]
    found = [any(one is yes or one == yes for yes in _YES) for one in said if one is not None]
    return all(found) if found else None
