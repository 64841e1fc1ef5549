"""What a request carries: keys, the cookie of a session, and the page that it comes from."""

from typing import Any

import pytest

from adapters_http.auth import credentials_of, header_credentials
from adapters_http.browsers import (
    refuse_cross_site,
    refuse_silent_browser,
    session_cookie,
    session_token,
)
from adapters_http.config import HttpConfig
from adapters_http.metrics import Metrics
from adapters_http.params import span
from adapters_http.request import Context, Request
from wfcore.errors import Forbidden, InvalidInput
from wfcore.model.webhook import Scheme
from wfcore.rules.webhooks.payload import scheme_of
from wfcore.testing import builders as make

URL = "https://flows.example.org"
"""How clients reach the application."""
NOTHING: Any = None
"""No service is asked."""


def asked(*headers: tuple[bytes, bytes], url: str | None = None, **scope: Any) -> Request:
    """A request with these headers."""
    context = Context(NOTHING, HttpConfig(public_url=url), Metrics(), lambda _: b"")
    about = {"method": "POST", "scheme": "http", "path": "/", "query_string": b"", **scope}
    return Request(context, {"type": "http", "headers": list(headers), **about}, "req_1")


def test_all_three_ways_are_carried_apart() -> None:
    """Every value of both headers and of the parameter, as it was sent. AU-4."""
    ask = asked(
        (b"authorization", b"Bearer a"),
        (b"x-api-key", b"b\xe9"),
        (b"authorization", b"Basic \xff"),
        (b"cookie", b"x-api-key=no"),
        query_string=b"api_key=c&other=d&api_key=e",
    )
    found = credentials_of(ask)
    assert list(found.authorization) == ["Bearer a", "Basic \xff"]
    assert list(found.x_api_key) == ["b\xe9"]
    assert list(found.query) == ["c", "e"]
    by_header = header_credentials(ask)
    assert (list(by_header.authorization), list(by_header.x_api_key)) == (
        ["Bearer a", "Basic \xff"],
        ["b\xe9"],
    )
    assert not by_header.query


@pytest.mark.parametrize(
    ("url", "name", "path", "secure"),
    [
        (None, "wfcore_session", "/", False),
        ("http://here:8080/flows", "wfcore_session", "/flows", False),
        (URL, "__Host-wfcore_session", "/", True),
        (f"{URL}/flows/", "wfcore_session", "/flows", True),
    ],
)
def test_a_session_is_kept_where_only_this_application_gets_it(
    url: str | None, name: str, path: str, secure: bool
) -> None:
    """
    For a week, for no script, by TLS alone where there is TLS, under a name that at the root
    nobody else can set. An empty token takes it away. SE-1.
    """
    ask = asked((b"host", b"here"), url=url)
    rest = f"; HttpOnly; SameSite=Lax{'; Secure' if secure else ''}"
    kept = f"{name}=t0; Path={path}; Max-Age=604800{rest}"
    assert session_cookie(ask, "t0") == (b"set-cookie", kept.encode())
    gone = f"{name}=; Path={path}; Max-Age=0{rest}"
    assert session_cookie(ask, "") == (b"set-cookie", gone.encode())
    back = asked((b"cookie", b"a=1; %s=t0; b=2" % name.encode()), (b"host", b"here"), url=url)
    assert session_token(back) == "t0"
    other = b"wfcore_session" if name.startswith("__Host-") else b"__Host-wfcore_session"
    for cookie in (other + b"=t0", name.encode() + b"=", name.encode(), b"x=%s=t0" % other):
        assert session_token(asked((b"cookie", cookie), (b"host", b"here"), url=url)) is None


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"sec-fetch-site", b"same-origin")],
        [(b"origin", b"https://flows.example.org")],
        [(b"origin", b"https://FLOWS.example.org")],
        [(b"origin", b"null"), (b"sec-fetch-site", b"same-origin")],  # without a referrer
    ],
)
def test_a_change_from_an_own_page_or_no_page_passes(headers: list[tuple[bytes, bytes]]) -> None:
    """Own pages are those of the host that was asked, and of the address clients know. SE-3."""
    refuse_cross_site(asked((b"host", b"Here:80"), *headers, url=URL))


@pytest.mark.parametrize(
    "headers",
    [
        [(b"sec-fetch-site", b"cross-site")],
        [(b"sec-fetch-site", b" Cross-Site ")],
        [(b"sec-fetch-site", b"same-origin"), (b"sec-fetch-site", b"cross-site")],
        [(b"origin", b"https://evil.example.org")],
        [(b"origin", b"http://here:81")],
        [(b"origin", b"http://here:80")],
        [(b"origin", b"null")],
        [(b"origin", b"null"), (b"sec-fetch-site", b"same-site")],
        [(b"origin", b"http://[")],
        [(b"origin", b"")],
        [(b"origin", b"http://here:80"), (b"origin", b"https://evil.example.org")],
    ],
)
def test_a_change_from_somebody_else_s_page_is_refused(headers: list[tuple[bytes, bytes]]) -> None:
    """One header that says so is enough, whatever others say; a look is nobody's harm. SE-3."""
    with pytest.raises(Forbidden, match=r"^Cross-site requests are refused($|: the page came by)"):
        refuse_cross_site(asked((b"host", b"Here:80"), *headers, url=URL))
    for method in ("GET", "HEAD"):
        refuse_cross_site(asked((b"host", b"Here:80"), *headers, url=URL, method=method))
    with pytest.raises(Forbidden):
        refuse_cross_site(asked(*headers, url=URL))


PAGE = ((b"cookie", b"a=1"), (b"accept", b"text/html,*/*"))
"""What a browser sends that changes something by a form."""


@pytest.mark.parametrize("told", [(b"origin", b"http://here"), (b"sec-fetch-site", b"same-origin")])
def test_a_browser_says_where_a_change_comes_from(told: tuple[bytes, bytes]) -> None:
    """One of the two headers is enough; without both only what is no browser's passes. SE-8."""
    refuse_silent_browser(asked(*PAGE, told))
    for header in PAGE:
        refuse_silent_browser(asked(header))
    refuse_silent_browser(asked(*PAGE, method="GET"))
    with pytest.raises(Forbidden, match=r"^A browser that says neither Origin nor Sec-Fetch-Site"):
        refuse_silent_browser(asked(*PAGE))


def test_only_a_signature_is_of_somebody_else_s_scheme() -> None:
    """A webhook that a key was bound to afterwards is asked in our own words. WH-7."""
    for key, scheme in ((None, Scheme.SLACK), ("key_1", Scheme.WFCORE)):
        hook = make.webhook(api_key_id=key, secret_key="s" * 40, scheme=Scheme.SLACK)
        assert scheme_of(hook) is scheme


def test_a_span_may_be_open_at_each_end() -> None:
    """And be empty, but never end before it begins. PG-4."""
    for query, found in ((b"", (None, None)), (b"from=5", (5, None)), (b"to=5", (None, 5))):
        assert span(asked(query_string=query)) == found
    assert span(asked(query_string=b"from=5&to=5")) == (5, 5)
    with pytest.raises(InvalidInput, match=r"^to: must not lie before from$"):
        span(asked(query_string=b"from=5&to=4"))
