"""
An OpenID Connect provider: discovery, authorization code with PKCE, and the checks of its token.

Authlib makes the requests and joserfc checks signatures. Both are loaded at the first sign-in, so
that unused single sign-on costs nothing. The provider's metadata and keys are loaded once an hour,
and again when a token names an unknown key.

A token counts only if one of the provider's own keys has signed it (never a shared secret), and if
it comes from this issuer, is meant for this client, holds this attempt's nonce and has not expired.
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
from wfcore.rules.auth.vouching import GROUPS, identity_in, is_enough
from wfcore.time import HOUR, SECOND, EpochMs

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
SCOPE = "openid email"
_ANSWERS_S = 10.0
_LEEWAY_S = 30
_BROKEN = 500
"""From this status on the endpoint has failed, which proves nothing about the person."""
_MALFORMED = (ValueError, KeyError, TypeError)
"""The errors of reading JSON that is invalid or has another form than expected."""
_NOT_OURS = "The provider's answer does not belong to this sign-in; begin again"


@frozen
class _Metadata:
    """
    The provider's metadata and keys, and the time `at` which they were loaded. `scope`: the scopes
    to request.
    """

    authorization: str
    token: str
    keys: Any
    userinfo: str | None
    scope: str
    at: EpochMs


class OidcProvider:
    """
    The provider at *issuer*, where this server is registered as *client_id*.

    *secret*: None for a public client. *now*: the wall clock. *trusts_email*: whether an email
    counts if the provider does not say that the email is verified. *reads_groups*: whether the
    groups of people are requested. AP-50.
    """

    def __init__(
        self,
        issuer: str,
        client_id: str,
        secret: str | None,
        now: Callable[[], EpochMs],
        *,
        trusts_email: bool = False,
        reads_groups: bool = False,
    ) -> None:
        self._issuer = issuer
        self._client_id = client_id
        self._secret = secret
        self._now = now
        self._trusts_email = trusts_email
        self._reads_groups = reads_groups
        self._metadata: _Metadata | None = None
        self._loading: asyncio.Task[_Metadata] | None = None
        self._context: ssl.SSLContext | None = None

    async def address(self, attempt: SignOnAttempt, redirect_uri: str) -> str:
        metadata = await self._known()
        async with self._client(redirect_uri) as client:
            url, _ = client.create_authorization_url(
                metadata.authorization,
                scope=metadata.scope,
                state=attempt.state,
                nonce=attempt.nonce,
                code_verifier=attempt.verifier,
            )
        return str(url)

    async def identity(self, attempt: SignOnAttempt, redirect_uri: str, code: str) -> Identity:
        metadata = await self._known()
        async with self._client(redirect_uri) as client:
            token = await self._redeemed(client, metadata, attempt, code)
            claims = await self._claims(metadata, token, attempt.nonce)
            userinfo = None
            if metadata.userinfo is not None and not is_enough(claims, self._reads_groups):
                userinfo = await self._userinfo(client, metadata.userinfo, token, claims)
        return identity_in(claims, userinfo, self._trusts_email)

    async def _userinfo(
        self, client: Any, url: str, token: dict[str, Any], claims: dict[str, Any]
    ) -> dict[str, Any] | None:
        """
        The claims of the userinfo endpoint, or None if the endpoint returns no claims. OpenID
        Connect Core 5.3.

        Raises `Unvouched` if the claims are about another person than the token.
        """
        headers = {"Authorization": f"Bearer {token.get('access_token')}"}
        answer = await client.request("GET", url, withhold_token=True, headers=headers)
        if answer.status_code >= _BROKEN:
            answer.raise_for_status()
        try:
            found = answer.json() if answer.is_success else None
        except ValueError:  # a signed document, or a page
            return None
        if not isinstance(found, dict):
            return None
        if found.get("sub") != claims.get("sub"):
            raise Unvouched(_NOT_OURS)
        return found

    async def _redeemed(
        self, client: Any, metadata: _Metadata, attempt: SignOnAttempt, code: str
    ) -> dict[str, Any]:
        from authlib.common.errors import AuthlibBaseError

        try:
            url, verifier = metadata.token, attempt.verifier
            token: dict[str, Any] = dict(
                await client.fetch_token(url, code=code, code_verifier=verifier)
            )
        except (AuthlibBaseError, *_MALFORMED):
            raise Unvouched(_NOT_OURS) from None
        return token

    async def _claims(
        self, metadata: _Metadata, token: dict[str, Any], nonce: str
    ) -> dict[str, Any]:
        from joserfc.errors import InvalidKeyIdError, JoseError

        try:
            try:
                return self._checked(metadata, token, nonce)
            except InvalidKeyIdError:  # the provider has new keys
                return self._checked(await self._load(), token, nonce)
        except (JoseError, *_MALFORMED):
            raise Unvouched(_NOT_OURS) from None

    def _checked(self, metadata: _Metadata, token: dict[str, Any], nonce: str) -> dict[str, Any]:
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt

        decoded = jwt.decode(token["id_token"], metadata.keys, algorithms=list(ALGORITHMS))
        wanted = {
            "iss": {"essential": True, "value": self._issuer},
            "aud": {"essential": True, "value": self._client_id},
        }
        sent = {
            "nonce": nonce,
            "client_id": self._client_id,
            "access_token": token.get("access_token"),
        }
        claims = CodeIDToken(decoded.claims, decoded.header, wanted, sent)
        claims.validate(now=self._now() // SECOND, leeway=_LEEWAY_S)
        return dict(decoded.claims)

    async def _known(self) -> _Metadata:
        if self._metadata is None or self._now() - self._metadata.at >= HOUR:
            return await self._load()
        return self._metadata

    async def _load(self) -> _Metadata:
        """The provider's metadata, by one request for all callers at the same time."""
        if self._loading is None or self._loading.done():
            self._loading = asyncio.ensure_future(self._request_metadata())
        return await asyncio.shield(self._loading)

    async def _request_metadata(self) -> _Metadata:
        """
        Raises `NotReady` if the provider does not answer, answers nonsense, or is another issuer.
        """
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        try:
            async with self._client(None) as client:
                found = await self._json(client, f"{self._issuer.rstrip('/')}{_DISCOVERY}")
                if found.get("issuer") != self._issuer:
                    raise NotReady("The sign-in provider is not the issuer that the settings name")
                keys: Any = await self._json(client, _url(found, "jwks_uri"))
            urls = _url(found, "authorization_endpoint"), _url(found, "token_endpoint")
            userinfo = _url(found, "userinfo_endpoint") if found.get("userinfo_endpoint") else None
            scope = f"{SCOPE} {GROUPS}" if self._reads_groups and _offers_groups(found) else SCOPE
            known = KeySet.import_key_set(keys)
            self._metadata = _Metadata(*urls, known, userinfo, scope, self._now())
        except (JoseError, *_MALFORMED) as error:
            raise NotReady(_SILENT) from error
        return self._metadata

    async def _json(self, client: Any, url: str) -> dict[str, Any]:
        answer = await client.request("GET", url, withhold_token=True)
        answer.raise_for_status()
        return dict(answer.json())

    @asynccontextmanager
    async def _client(self, redirect_uri: str | None) -> AsyncIterator[Any]:
        """Authlib's client. Raises `NotReady` for errors of the network, which decide nothing."""
        self._context = self._context or await asyncio.to_thread(_load_libraries)
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


def _url(metadata: dict[str, Any], name: str) -> str:
    url = metadata[name]
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        raise ValueError(name)
    return url


def _offers_groups(metadata: dict[str, Any]) -> bool:
    """
    Whether there is a scope for groups. Some providers refuse a scope that they do not know, so it
    is requested only where the metadata lists it.
    """
    offered = metadata.get("scopes_supported")
    return isinstance(offered, list) and GROUPS in offered


def _load_libraries() -> ssl.SSLContext:
    """
    Load libraries and certificates. Called in a thread, because that takes a fraction of a second.
    """
    import authlib.integrations.httpx_client
    import authlib.oidc.core  # noqa: F401

    return ssl.create_default_context()
