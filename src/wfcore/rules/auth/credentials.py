"""
Where a request carries its API key: three places, tried in order. Spec: ways to carry the key.
"""

from collections.abc import Sequence

from wfcore.errors import AuthReason, Unauthenticated
from wfcore.rules.auth.api_key import PREFIX

_SCHEME = "bearer"
_OURS = f"{PREFIX}_"


def presented_key(
    authorization: Sequence[str], x_api_key: Sequence[str], query: Sequence[str]
) -> str:
    """
    The first non-empty one of Bearer, `X-API-Key` and `api_key`; the search stops there. AU-1.

    *authorization*, *x_api_key*, *query*: all values that the request carries under those names
    (the query only where the route allows it). An `Authorization` header of another scheme is
    skipped, and the next place is tried. Two different values in one place are malformed, as are
    two different `Authorization` headers of any scheme, because a proxy may have looked at either.
    AU-5.

    Raises `Unauthenticated`.
    """
    if len({value.strip() for value in authorization}) > 1:
        raise Unauthenticated(AuthReason.MALFORMED)
    for way, read in ((authorization, _bearer), (x_api_key, str.strip), (query, str.strip)):
        found = {key for key in map(read, way) if key}
        if len(found) > 1:
            raise Unauthenticated(AuthReason.MALFORMED)
        if found:
            return found.pop()
    raise Unauthenticated(AuthReason.MISSING)


def _bearer(value: str) -> str:
    scheme, _, key = value.strip().partition(" ")
    return key.strip() if scheme.lower() == _SCHEME else ""


def bears_key(authorization: Sequence[str], x_api_key: Sequence[str], query: Sequence[str]) -> bool:
    """
    Whether any value looks like one of our keys, valid or not. AU-10.

    Then only the key counts; otherwise the values may belong to a surrounding application.
    """
    values = (*map(_bearer, authorization), *map(str.strip, x_api_key), *map(str.strip, query))
    return any(value.startswith(_OURS) for value in values)
