"""
An OpenID Connect provider: discovery, authorization code with PKCE, and the checks of its token.

Authlib makes the requests and joserfc checks signatures; both are loaded by the first sign-in, so
that a server pays nothing for a way in that nobody uses. What the provider says of itself, and
its keys, are asked for once an hour, and once more when a token names a key that is not known.

A token counts only if it is signed by one of the provider's own keys (never by a shared secret),
comes from this issuer, is meant for this client, answers this attempt's nonce and is not over.
Decision 143.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from attrs import frozen

from wfcore.errors import NotReady, Unvouched
from wfcore.model.access import Identity
from wfcore.ports.identity import SignOnAttempt
from wfcore.rules.auth.vouching import identity_in, is_enough
from wfcore.time import HOUR, SECOND, EpochMs

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
SCOPE = "openid email"
_ANSWERS_S = 10.0
_LEEWAY_S = 30
_BROKEN = 500
"""From this status on the endpoint could not answer, which decides nothing."""
_NONSENSE = (ValueError, KeyError, TypeError)
"""What it raises to look for something in JSON that is not what it should be, or none."""
_NOT_OURS = "The provider's answer does not belong to this sign-in; begin again"


@frozen
class _Facts:
    """What the provider says of itself, and since when that is known here."""

    authorization: str
    token: str
    keys: Any
    userinfo: str | None
    at: EpochMs


class OidcProvider:
    """
    The provider at *issuer*, where this server is registered as *client_id*; *secret* None: as a
    public client. *now*: the wall clock. *trusts_email*: an email counts of which the provider does
    not say whether it is verified.
    """

    def __init__(
        self,
        issuer: str,
        client_id: str,
        secret: str | None,
        now: Callable[[], EpochMs],
        *,
        trusts_email: bool = False,
    ) -> None:
        self._issuer = issuer
        self._client_id = client_id
        self._secret = secret
        self._now = now
        self._trusts_email = trusts_email
        self._facts: _Facts | None = None
        self._asking: asyncio.Task[_Facts] | None = None
        self._context: ssl.SSLContext | None = None

    async def address(self, attempt: SignOnAttempt, redirect_uri: str) -> str:
        facts = await self._known()
        async with self._client(redirect_uri) as client:
            url, _ = client.create_authorization_url(
                facts.authorization,
                state=attempt.state,
                nonce=attempt.nonce,
                code_verifier=attempt.verifier,
            )
        return str(url)

    async def identity(self, attempt: SignOnAttempt, redirect_uri: str, code: str) -> Identity:
        facts = await self._known()
        async with self._client(redirect_uri) as client:
            token = await self._redeemed(client, facts, attempt, code)
            claims = await self._claims(facts, token, attempt.nonce)
            told = None
            if facts.userinfo is not None and not is_enough(claims):
                told = await self._told(client, facts.userinfo, token, claims)
        return identity_in(claims, told, self._trusts_email)

    async def _told(
        self, client: Any, url: str, token: dict[str, Any], claims: dict[str, Any]
    ) -> dict[str, Any] | None:
        """
        What the userinfo endpoint says; None: it has nothing to say. Raises `Unvouched` if that is
        of another person than the token is. OpenID Connect Core 5.3.
        """
        headers = {"Authorization": f"Bearer {token.get('access_token')}"}
        answer = await client.request("GET", url, withhold_token=True, headers=headers)
        if answer.status_code >= _BROKEN:
            answer.raise_for_status()
        try:
            said = answer.json() if answer.is_success else None
        except ValueError:  # signed, or a page
            return None
        if not isinstance(said, dict):
            return None
        if said.get("sub") != claims.get("sub"):
            raise Unvouched(_NOT_OURS)
        return said

    async def _redeemed(
        self, client: Any, facts: _Facts, attempt: SignOnAttempt, code: str
    ) -> dict[str, Any]:
        from authlib.common.errors import AuthlibBaseError

        try:
            said = await client.fetch_token(facts.token, code=code, code_verifier=attempt.verifier)
            token: dict[str, Any] = dict(said)
        except (AuthlibBaseError, *_NONSENSE):
            raise Unvouched(_NOT_OURS) from None
        return token

    async def _claims(self, facts: _Facts, token: dict[str, Any], nonce: str) -> dict[str, Any]:
        from joserfc.errors import InvalidKeyIdError, JoseError

        try:
            try:
                return self._checked(facts, token, nonce)
            except InvalidKeyIdError:  # the provider has new keys
                return self._checked(await self._asked(), token, nonce)
        except (JoseError, *_NONSENSE):
            raise Unvouched(_NOT_OURS) from None

    def _checked(self, facts: _Facts, token: dict[str, Any], nonce: str) -> dict[str, Any]:
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt

        decoded = jwt.decode(token["id_token"], facts.keys, algorithms=list(ALGORITHMS))
        wanted = {
            "iss": {"essential": True, "value": self._issuer},
            "aud": {"essential": True, "value": self._client_id},
        }
        asked = {
            "nonce": nonce,
            "client_id": self._client_id,
            "access_token": token.get("access_token"),
        }
        claims = CodeIDToken(decoded.claims, decoded.header, wanted, asked)
        claims.validate(now=self._now() // SECOND, leeway=_LEEWAY_S)
        return dict(decoded.claims)

    async def _known(self) -> _Facts:
        if self._facts is None or self._now() - self._facts.at >= HOUR:
            return await self._asked()
        return self._facts

    async def _asked(self) -> _Facts:
        """Those who ask at the same time ask together."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._ask())
        return await asyncio.shield(self._asking)

    async def _ask(self) -> _Facts:
        """
        Raises `NotReady` if the provider does not answer, makes no sense, or is another than was
        asked.
        """
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        try:
            async with self._client(None) as client:
                said = await self._json(client, f"{self._issuer.rstrip('/')}{_DISCOVERY}")
                if said.get("issuer") != self._issuer:
                    raise NotReady("The sign-in provider is not the issuer that the settings name")
                keys: Any = await self._json(client, _url(said, "jwks_uri"))
            ends = _url(said, "authorization_endpoint"), _url(said, "token_endpoint")
            asks = _url(said, "userinfo_endpoint") if said.get("userinfo_endpoint") else None
            self._facts = _Facts(*ends, KeySet.import_key_set(keys), asks, self._now())
        except (JoseError, *_NONSENSE) as error:
            raise NotReady(_SILENT) from error
        return self._facts

    async def _json(self, client: Any, url: str) -> dict[str, Any]:
        answer = await client.request("GET", url, withhold_token=True)
        answer.raise_for_status()
        return dict(answer.json())

    @asynccontextmanager
    async def _client(self, redirect_uri: str | None) -> AsyncIterator[Any]:
        """Authlib's client. What goes wrong on the way is `NotReady`: nothing was decided."""
        self._context = self._context or await asyncio.to_thread(_load)
        import httpx2
        from authlib.integrations.httpx_client import AsyncOAuth2Client

        made = AsyncOAuth2Client(
            self._client_id,
            self._secret,
            token_endpoint_auth_method="client_secret_basic" if self._secret else "none",
            scope=SCOPE,
            redirect_uri=redirect_uri,
            code_challenge_method="S256",
            verify=self._context,
            timeout=_ANSWERS_S,
            trust_env=False,
        )
        try:
            async with made as client:
                yield client
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise NotReady(_SILENT) from error


_DISCOVERY = "/.well-known/openid-configuration"
_SILENT = "The sign-in provider does not answer; try again, or sign in another way"


def _url(said: dict[str, Any], name: str) -> str:
    url = said[name]
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        raise ValueError(name)
    return url


def _load() -> ssl.SSLContext:
    """In a thread: the libraries and the certificates take a fraction of a second."""
    import authlib.integrations.httpx_client
    import authlib.oidc.core  # noqa: F401

    return ssl.create_default_context()
