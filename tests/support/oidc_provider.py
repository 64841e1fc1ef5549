"""
An OpenID Connect provider on loopback that knows one person, and can be told to misbehave, or to
have the habits of a real one.
"""

import asyncio
import hashlib
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode

from attrs import define, field
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.support.http_world import serving

CLIENT, SECRET = "wfcore", "secret-of-the-client"


def new_key(id: str) -> RSAKey:
    return RSAKey.generate_key(2_048, {"kid": id, "use": "sig", "alg": "RS256"})


KEY, OTHER_KEY = new_key("first"), new_key("second")


_ANN, _SILENT = "ann@example.org", {"email_verified": None}
_NO_EMAIL = {**_SILENT, "email": None}
HABITS: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "Keycloak": ({"azp": CLIENT, "typ": "ID", "preferred_username": "ann"}, {"email": _ANN}),
    "Google": ({"azp": CLIENT, "hd": "example.org"}, {"email": _ANN, "email_verified": True}),
    "Cognito": (
        {"email_verified": "true", "token_use": "id", "cognito:username": "1"},
        {"email": _ANN, "email_verified": "true"},
    ),
    "Cognito, without the email in the token": (
        _NO_EMAIL,
        {"email": _ANN, "email_verified": "true", "username": "1"},
    ),
    "Authelia": (_NO_EMAIL, {"email": _ANN, "email_verified": True, "rat": 1_700_000_000}),
    "Entra ID": ({**_SILENT, "tid": "7", "oid": "8", "ver": "2.0"}, {"email": _ANN, "name": "Ann"}),
    "Entra ID, with xms_edov": ({**_SILENT, "tid": "7", "xms_edov": True}, {"email": _ANN}),
    "Entra ID, with xms_edov as text": ({**_SILENT, "tid": "7", "xms_edov": "1"}, None),
}
"""By provider: how its tokens differ, and what its userinfo endpoint says."""


@define
class Provider:
    """
    `claims`: what its tokens say instead of the truth; `key` signs them, `published` are shown.
    `codes`: what each code that was not redeemed yet stands for.
    """

    now: Callable[[], int]
    issuer: str = ""
    claims: dict[str, Any] = field(factory=dict)
    key: RSAKey = KEY
    published: list[RSAKey] = field(factory=lambda: [KEY])
    codes: dict[str, dict[str, str]] = field(factory=dict)
    denies: bool = False
    broken: bool = False
    odd: dict[str, Response] = field(factory=dict)
    """By path: what is answered instead."""
    userinfo: dict[str, Any] | None = None
    """What the userinfo endpoint says of its person, whose `sub` is "1"; None: there is none."""
    scopes: list[str] | None = None
    """What its metadata says of scopes; None: nothing."""
    wanted_scopes: list[str] = field(factory=list)
    """What is requested beside `openid` and `email`; it refuses all else, as Entra ID does."""
    asked: list[str] = field(factory=list)

    async def discovery(self, request: Request) -> Response:
        self.asked.append("discovery")
        if self.broken:
            return Response("no", 502)
        await asyncio.sleep(0)
        return self.odd.get(request.url.path) or JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                **({} if self.userinfo is None else {"userinfo_endpoint": f"{self.issuer}/me"}),
                **({} if self.scopes is None else {"scopes_supported": self.scopes}),
                "response_types_supported": ["code"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    async def keys(self, request: Request) -> Response:
        return self.odd.get(request.url.path) or JSONResponse(
            {"keys": [key.as_dict(private=False) for key in self.published]}
        )

    async def authorize(self, request: Request) -> Response:
        """Its person is signed in there already, and agrees."""
        query = dict(request.query_params)
        assert (query["client_id"], query["response_type"]) == (CLIENT, "code")
        assert query["code_challenge_method"] == "S256"
        assert query["scope"].split() == ["openid", "email", *self.wanted_scopes]
        code = f"code{len(self.codes)}-{len(self.asked)}"
        self.codes[code] = query
        said = {"error": "access_denied"} if self.denies else {"code": code}
        back = urlencode({**said, "state": query["state"]})
        return RedirectResponse(f"{query['redirect_uri']}?{back}", 302)

    async def me(self, request: Request) -> Response:
        self.asked.append("userinfo")
        if odd := self.odd.get(request.url.path):
            return odd
        assert request.headers["authorization"] == "Bearer x"
        return JSONResponse({"sub": "1", **(self.userinfo or {})})

    def behave_like(self, habit: str) -> None:
        """Speak of its person as the provider of that name does."""
        self.claims, self.userinfo = HABITS[habit]

    async def token(self, request: Request) -> Response:
        self.asked.append("token")
        if odd := self.odd.get(request.url.path):
            return odd
        form = dict(parse_qsl((await request.body()).decode()))
        basic = b64decode(request.headers["authorization"].removeprefix("Basic ")).decode()
        known = self.codes.pop(form["code"], None)
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = urlsafe_b64encode(verifier).rstrip(b"=").decode()
        if (
            known is None
            or basic != f"{CLIENT}:{SECRET}"
            or form["redirect_uri"] != known["redirect_uri"]
            or challenge != known["code_challenge"]
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = self.now() // 1_000
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "1",
            "iat": now,
            "exp": now + 300,
            "nonce": known["nonce"],
            "email": "ann@example.org",
            "email_verified": True,
            **self.claims,
        }
        header = {"alg": "RS256", "kid": self.key.kid}
        signed = jwt.encode(header, {k: v for k, v in claims.items() if v is not None}, self.key)
        return JSONResponse(
            {"access_token": "x", "token_type": "Bearer", "expires_in": 300, "id_token": signed}
        )


@asynccontextmanager
async def a_provider(now: Callable[[], int]) -> AsyncIterator[Provider]:
    """Served on a socket of its own."""
    made = Provider(now)
    app = Starlette(
        routes=[
            Route("/.well-known/openid-configuration", made.discovery),
            Route("/keys", made.keys),
            Route("/authorize", made.authorize),
            Route("/me", made.me),
            Route("/token", made.token, methods=["POST"]),
        ]
    )
    async with serving(app) as url:
        made.issuer = url
        yield made
